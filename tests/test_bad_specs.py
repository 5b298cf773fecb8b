"""The findings about every case of tests/bad: a new case needs a folder and no code."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from autofix import apply_help
from badspecs import (
    BAD,
    arguments,
    cases,
    file_of,
    findings_of,
    has_one_file,
    has_several_documents,
    read_case,
    run_check,
)
from tpucfg.findings import RULES, Finding
from tpucfg.yamldoc.reader import read_text

CASES = list(cases())
EVERY_CASE = pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
WITHOUT_CASE = {
    "TPU079": "only a broken template could cause it",
}
FILES = [file for folder in CASES if (file := file_of(folder)).is_file() and has_one_file(folder)]
EVERY_FILE = pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)


@EVERY_CASE
def test_the_output_is_exact(folder: Path) -> None:
    """The output equals expected.txt to the byte, stderr is empty, and the status is 1 for an error."""
    status, out, err = run_check(file_of(folder))
    path = folder / "expected.txt"
    expected = path.read_text() if path.exists() else ""
    assert out == expected, f"review the difference; if it is right: cd {folder} && tpucfg check > expected.txt"
    assert err == ""
    assert status == (1 if ": error[" in out else 0)


@EVERY_CASE
def test_one_mistake_is_one_finding(folder: Path) -> None:
    """A case named for an id has that one finding, besides notes; a case named `several` has several."""
    findings = re.findall(
        r"^\S+: (error|warning|note)\[(TPU\d{3})\]: ", (folder / "expected.txt").read_text(), re.MULTILINE
    )
    serious = [id_ for level, id_ in findings if level != "note"] or [id_ for _, id_ in findings]
    if folder.name.startswith("several-"):
        assert len(serious) > 1
    else:
        assert serious == [folder.name.partition("-")[0]]


def test_every_rule_about_specs_has_a_case() -> None:
    """Each id about specs and configs has a case, or a reason why none is possible."""
    with_case = {folder.name.partition("-")[0] for folder in CASES}
    about_specs = {id_ for id_ in RULES if id_ < "TPU080"}  # tests/infra has those about stacks
    assert about_specs - with_case == set(WITHOUT_CASE)


def test_the_corpus_is_large() -> None:
    """The number of cases does not shrink by accident."""
    assert len(CASES) >= 250
    assert len(list(BAD.glob("*/expected.txt"))) == len(CASES)


@EVERY_FILE
def test_locations_are_in_the_text(file: Path) -> None:
    """Every location is a range of the file, and findings are sorted by location."""
    findings = findings_of(read_case(file), file)
    rows = file.read_bytes().decode(errors="replace").removeprefix("\ufeff").splitlines() or [""]
    assert [finding.location for finding in findings] == sorted(finding.location for finding in findings)
    related = [location for finding in findings for location, _ in finding.related]
    for location in [*(finding.location for finding in findings), *related]:
        assert location.file == file.name
        assert 1 <= location.line <= location.end_line <= len(rows) + 1
        assert 1 <= location.column <= len(rows[location.line - 1]) + 1
        assert (location.line, location.column) <= (location.end_line, location.end_column)


@EVERY_FILE
def test_every_error_and_warning_has_help(file: Path) -> None:
    """Errors and warnings have a help line, and all texts are short, printable and without regular expressions."""
    for finding in findings_of(read_case(file), file):
        if finding.level != "note":
            assert finding.help
        for text in (finding.message, finding.help, *finding.details):
            assert text.isprintable()
            assert not re.search(r"\[a-z|\{\d+,\d*\}|\\Z|\(\?", text)
            assert len(text) < 400


FIXABLE = [
    pytest.param(file, number, id=f"{file.parent.name}-{number}")
    for file in FILES
    for number, finding in enumerate(findings_of(read_case(file), file))
    if apply_help(read_case(file), finding) is not None
]


@pytest.mark.parametrize(("file", "number"), FIXABLE)
def test_the_help_resolves_the_finding(file: Path, number: int) -> None:
    """The edit of the help, applied literally, removes the finding."""
    document = read_case(file)
    before = findings_of(document, file)
    text = apply_help(document, before[number])
    assert text is not None
    after = findings_of(read_text(text, file.name, several=has_several_documents(file.name)), file)
    assert occurrences(after)[identity(before[number])] < occurrences(before)[identity(before[number])]


def identity(finding: Finding) -> tuple[str, str]:
    """Return what two equal findings have in common, wherever they are located."""
    return finding.id, finding.message


def occurrences(findings: tuple[Finding, ...]) -> Counter[tuple[str, str]]:
    """Count how often each finding occurs."""
    return Counter(map(identity, findings))


@EVERY_CASE
def test_every_case_can_be_fixed(folder: Path) -> None:
    """A case is fixed by its help, by `allow`, or by a `fixed.*` without errors and without the ids of the case."""
    fixed = next(folder.glob("fixed.*"), None)
    if not has_one_file(folder):
        assert "help: " in (folder / "expected.txt").read_text()
        return
    if fixed is None:
        file = file_of(folder)
        fixed_by_help = {param.values[1] for param in FIXABLE if param.values[0] == file}
        findings = findings_of(read_case(file), file) if file.is_file() else ()
        for number, finding in enumerate(findings):
            assert number in fixed_by_help or RULES[finding.id].allowable, finding.help
        return
    document = read_case(fixed, file_of(folder).name)
    after = findings_of(document, file_of(folder))
    before = set(re.findall(r"(?:error|warning)\[(TPU\d{3})\]", (folder / "expected.txt").read_text()))
    remaining = [
        finding
        for finding in after
        if finding.level == "error" or (finding.level == "warning" and finding.id in before)
    ]
    assert remaining == []


ALLOWABLE = [
    pytest.param(file, finding, id=f"{file.parent.name}-{finding.id}")
    for file in FILES
    if not file.name.startswith("config.")
    for finding in findings_of(read_case(file), file)
    if RULES[finding.id].allowable and finding.level != "note"
]


@pytest.mark.parametrize(("file", "finding"), ALLOWABLE)
def test_an_allowed_finding_becomes_a_note(file: Path, finding: Finding) -> None:
    """An allowable finding is a note if the spec gives a reason."""
    document = read_case(file)
    data = {**document.data, "allow": {**document.data.get("allow", {}), finding.id: "it is meant"}}
    after = findings_of(read_text(json.dumps(data), file.name), file)
    assert {other.level for other in after if other.id == finding.id} == {"note"}


def test_a_file_of_two_megabytes_is_refused(tmp_path: Path) -> None:
    """A file beyond the limit is refused by its size, whatever it contains."""
    file = tmp_path / "tpucfg.yaml"
    file.write_bytes(b"# " + b"x" * (2 << 20))
    status, out, _ = run_check(file)
    assert status == 1
    assert out == (
        "tpucfg.yaml:1:1: error[TPU010]: tpucfg.yaml is larger than 1,048,576 bytes\n"
        "help: check the path: a spec has a few thousand bytes\n"
        "tpucfg.yaml, 0 configs: 1 error\n"
    )


def test_a_line_of_a_megabyte_is_cut(tmp_path: Path) -> None:
    """A location far to the right is shown with the text around it."""
    file = tmp_path / "tpucfg.yaml"
    file.write_text("a: '" + "x" * 1_000_000 + "'b\n")
    status, out, _ = run_check(file)
    assert status == 1
    assert max(map(len, out.splitlines())) < 140


def test_a_config_is_checked_for_the_target_in_its_name() -> None:
    """The arguments for a config have the target of its file name."""
    assert arguments(Path("config.vertex-ai.yaml")) == [
        "check",
        "--config",
        "config.vertex-ai.yaml",
        "--target",
        "vertex-ai",
    ]
    assert arguments(Path("tpucfg.json")) == ["check", "--spec", "tpucfg.json"]
