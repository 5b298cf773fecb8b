"""What is said about every spec of tests/bad: adding a case adds a folder and no code."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from autofix import repaired
from badspecs import BAD, arguments, cases, checked, file_of, findings_of, is_alone
from tpucfg.findings import RULES, Finding
from tpucfg.yamldoc.reader import read_file, read_text

CASES = list(cases())
EVERY_ERROR = pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
NO_SPEC_CAN = {"TPU079": "a template would have to be at fault"}
FILES = [file for folder in CASES if (file := file_of(folder)).is_file() and is_alone(folder)]


@EVERY_ERROR
def test_exact_output(folder: Path) -> None:
    """The text is the expected one to the byte, nothing goes to stderr, and the status tells an error."""
    status, out, err = checked(file_of(folder))
    expected = folder / "expected.txt"
    said = expected.read_text() if expected.exists() else ""
    assert out == said, f"read it with suspicion; where it is right: cd {folder} && tpucfg check > expected.txt"
    assert err == ""
    assert status == (1 if ": error[" in out else 0)


@EVERY_ERROR
def test_one_mistake_is_one_finding(folder: Path) -> None:
    """A case named for an id has that finding and, beside notes, no other; `several` has several."""
    said = re.findall(
        r"^\S+: (error|warning|note)\[(TPU\d{3})\]: ", (folder / "expected.txt").read_text(), re.MULTILINE
    )
    serious = [id_ for level, id_ in said if level != "note"] or [id_ for _, id_ in said]
    if folder.name.startswith("several-"):
        assert len(serious) > 1
    else:
        assert serious == [folder.name.partition("-")[0]]


def test_every_rule_occurs() -> None:
    """Each id about a spec has a case, or a reason why no spec can bring it about."""
    named = {folder.name.partition("-")[0] for folder in CASES}
    about_specs = {id_ for id_ in RULES if id_ < "TPU080"}  # tests/infra has those about stacks
    assert about_specs - named == set(NO_SPEC_CAN)


def test_there_are_enough() -> None:
    """A corpus that shrinks by accident is noticed."""
    assert len(CASES) >= 250
    assert len(list(BAD.glob("*/expected.txt"))) == len(CASES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_places_are_in_the_text(file: Path) -> None:
    """Every place is a stretch of the file, and findings come in the order of their places."""
    found = findings_of(read_file(file, file.name), file)
    rows = file.read_bytes().decode(errors="replace").removeprefix("\ufeff").splitlines() or [""]
    assert [it.location for it in found] == sorted(it.location for it in found)
    for location in [location for it in found for location in (it.location, *(other for other, _ in it.related))]:
        assert location.file == file.name
        assert 1 <= location.line <= location.end_line <= len(rows) + 1
        assert 1 <= location.column <= len(rows[location.line - 1]) + 1
        assert (location.line, location.column) <= (location.end_line, location.end_column)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_every_error_says_what_to_do(file: Path) -> None:
    """A sentence of one line that shows no regular expression, and a help line."""
    for finding in findings_of(read_file(file, file.name), file):
        if finding.level != "note":
            assert finding.help
        for text in (finding.message, finding.help, *finding.details):
            assert text.isprintable()
            assert not re.search(r"\[a-z|\{\d+,\d*\}|\\Z|\(\?", text)
            assert len(text) < 400


REPAIRED = [
    pytest.param(file, number, id=f"{file.parent.name}-{number}")
    for file in FILES
    for number, finding in enumerate(findings_of(read_file(file, file.name), file))
    if repaired(read_file(file, file.name), finding) is not None
]


@pytest.mark.parametrize(("file", "number"), REPAIRED)
def test_the_help_is_the_edit_that_ends_it(file: Path, number: int) -> None:
    """Whoever does what the help says, by the letter, is rid of the finding."""
    document = read_file(file, file.name)
    before = findings_of(document, file)
    text = repaired(document, before[number])
    assert text is not None
    after = findings_of(read_text(text, file.name), file)
    assert said(after)[said_of(before[number])] < said(before)[said_of(before[number])]


def said_of(finding: Finding) -> tuple[str, str]:
    """What makes two findings the same, wherever they stand."""
    return finding.id, finding.message


def said(findings: tuple[Finding, ...]) -> Counter[tuple[str, str]]:
    """How often each finding occurs."""
    return Counter(map(said_of, findings))


@EVERY_ERROR
def test_every_case_can_be_fixed(folder: Path) -> None:
    """By the letter of the help, by `allow`, or as `fixed.*` shows, which has no error and none of the case's ids."""
    fixed = next(folder.glob("fixed.*"), None)
    if not is_alone(folder):
        assert "help: " in (folder / "expected.txt").read_text()
        return
    if fixed is None:
        file = file_of(folder)
        by_help = {param.values[1] for param in REPAIRED if param.values[0] == file}
        found = findings_of(read_file(file, file.name), file) if file.is_file() else ()
        for number, finding in enumerate(found):
            assert number in by_help or RULES[finding.id].allowable, finding.help
        return
    document = read_file(fixed, file_of(folder).name)
    after = findings_of(document, file_of(folder))
    before = set(re.findall(r"(?:error|warning)\[(TPU\d{3})\]", (folder / "expected.txt").read_text()))
    assert not [it for it in after if it.level == "error" or (it.level == "warning" and it.id in before)]


ALLOWABLE = [
    pytest.param(file, finding, id=f"{file.parent.name}-{finding.id}")
    for file in FILES
    if not file.name.startswith("config.")
    for finding in findings_of(read_file(file, file.name), file)
    if RULES[finding.id].allowable and finding.level != "note"
]


@pytest.mark.parametrize(("file", "finding"), ALLOWABLE)
def test_a_judgement_can_be_overruled(file: Path, finding: Finding) -> None:
    """An allowable finding becomes a note where the spec gives a reason."""
    document = read_file(file, file.name)
    data = {**document.data, "allow": {**document.data.get("allow", {}), finding.id: "it is meant"}}
    after = findings_of(read_text(json.dumps(data), file.name), file)
    assert {it.level for it in after if it.id == finding.id} == {"note"}


def test_a_file_of_two_megabytes(tmp_path: Path) -> None:
    """It is refused by its size, whatever is in it."""
    file = tmp_path / "tpucfg.yaml"
    file.write_bytes(b"# " + b"x" * (2 << 20))
    status, out, _ = checked(file)
    assert status == 1
    assert out == (
        "tpucfg.yaml:1:1: error[TPU010]: tpucfg.yaml is larger than 1,048,576 bytes\n"
        "help: a spec has a few thousand bytes: is this the right file?\n"
        "tpucfg.yaml, 0 configs: 1 error\n"
    )


def test_a_line_of_a_megabyte(tmp_path: Path) -> None:
    """A place far to the right is shown with what stands around it."""
    file = tmp_path / "tpucfg.yaml"
    file.write_text("a: '" + "x" * 1_000_000 + "'b\n")
    status, out, _ = checked(file)
    assert status == 1
    assert max(map(len, out.splitlines())) < 140


def test_arguments() -> None:
    """A config's file name says the target."""
    assert arguments(Path("config.vertex-ai.yaml")) == [
        "check",
        "--config",
        "config.vertex-ai.yaml",
        "--target",
        "vertex-ai",
    ]
    assert arguments(Path("tpucfg.json")) == ["check", "--spec", "tpucfg.json"]
