"""The findings about every case of tests/bad: a new case needs a folder and no code."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

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
from goldens import Goldens
from tpucfg.findings import RULES, Finding
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_text

CASES: Final = list(cases())
WITHOUT_CASE: Final = {
    "TPU079": "only a broken template could cause it",
}


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_case(folder: Path, goldens: Goldens) -> None:
    """The case has its exact output and one mistake, which its help, `allow` or a fixed file resolves."""
    file = file_of(folder)
    assert_output_is_exact(file, goldens)
    assert_one_mistake_is_one_finding(folder)
    if not has_one_file(folder):
        assert "help: " in (folder / "expected.txt").read_text()
        return
    document = read_case(file) if file.is_file() else None
    findings = findings_of(document, file) if document else ()
    if document:
        assert_locations_are_in_the_text(file, findings)
        assert_findings_are_readable(findings)
        if not file.name.startswith("config."):
            assert_allowed_findings_become_notes(file, document, findings)
    assert_findings_can_be_fixed(file, document, findings)


def assert_output_is_exact(file: Path, goldens: Goldens) -> None:
    """Require that the output equals expected.txt to the byte, stderr is empty, and the status is 1 for an error."""
    status, out, err = run_check(file)
    path = file.parent / "expected.txt"
    assert out == goldens.text(path, out), (
        f"review the difference; if it is right: pytest --write-goldens {Path(__file__).name} -k {path.parent.name}"
    )
    assert err == ""
    assert status == (1 if ": error[" in out else 0)


def assert_one_mistake_is_one_finding(folder: Path) -> None:
    """Require the one finding that the case is named for, besides notes; a case named `several` has several."""
    findings = re.findall(
        r"^\S+: (error|warning|note)\[(TPU\d{3})\]: ",
        (folder / "expected.txt").read_text(),
        re.MULTILINE,
    )
    serious = [id_ for level, id_ in findings if level != "note"] or [id_ for _, id_ in findings]
    if folder.name.startswith("several-"):
        assert len(serious) > 1
    else:
        assert serious == [folder.name.partition("-")[0]]


def assert_locations_are_in_the_text(file: Path, findings: Sequence[Finding]) -> None:
    """Require that every location is a range of the file, and findings are sorted by location."""
    rows = file.read_bytes().decode(errors="replace").removeprefix("\ufeff").splitlines() or [""]
    assert [finding.location for finding in findings] == sorted(
        finding.location for finding in findings
    )
    related = [location for finding in findings for location, _ in finding.related]
    for location in [*(finding.location for finding in findings), *related]:
        assert location.file == file.name
        assert 1 <= location.line <= location.end_line <= len(rows) + 1
        assert 1 <= location.column <= len(rows[location.line - 1]) + 1
        assert (location.line, location.column) <= (location.end_line, location.end_column)


def assert_findings_are_readable(findings: Sequence[Finding]) -> None:
    """Require help for errors and warnings, and texts that are short, printable and without regular expressions."""
    for finding in findings:
        assert finding.help or finding.level == "note"
        for text in (finding.message, finding.help, *finding.details):
            assert text.isprintable()
            assert not re.search(r"\[a-z|\{\d+,\d*\}|\\Z|\(\?", text)
            assert len(text) < 400


def assert_allowed_findings_become_notes(
    file: Path, document: Document, findings: Sequence[Finding]
) -> None:
    """Require that an allowable finding becomes a note if the spec gives a reason."""
    for id_ in {
        finding.id
        for finding in findings
        if RULES[finding.id].allowable and finding.level != "note"
    }:
        allowance: Any = "it is meant"
        if RULES[id_].only_by_path:
            paths = [
                finding.message.partition(" has the ")[0]
                for finding in findings
                if finding.id == id_
            ]
            allowance = {"path": paths, "reason": "it is meant"}
        data = {**document.data, "allow": {**document.data.get("allow", {}), id_: allowance}}
        after = findings_of(read_text(json.dumps(data), file.name), file)
        assert {other.level for other in after if other.id == id_} == {"note"}


def assert_findings_can_be_fixed(
    file: Path, document: Document | None, findings: Sequence[Finding]
) -> None:
    """Require that help or `allow` resolves each finding, or a `fixed.*` the case."""
    fixed_by_help = [
        document is not None and help_resolves(file, document, finding) for finding in findings
    ]
    fixed = next(file.parent.glob("fixed.*"), None)
    if fixed is None:
        for finding, is_fixed in zip(findings, fixed_by_help, strict=True):
            assert is_fixed or RULES[finding.id].allowable, finding.help
        return
    after = findings_of(read_case(fixed, file.name), file)
    text = (file.parent / "expected.txt").read_text()
    before = set(re.findall(r"(?:error|warning)\[(TPU\d{3})\]", text))
    assert [
        finding
        for finding in after
        if finding.level == "error" or (finding.level == "warning" and finding.id in before)
    ] == []


def help_resolves(file: Path, document: Document, finding: Finding) -> bool:
    """Return False if the help of a finding is no edit; the edit, applied literally, has to remove the finding."""
    text = apply_help(document, finding)
    if text is None:
        return False
    before = findings_of(document, file)
    after = findings_of(read_text(text, file.name, several=has_several_documents(file.name)), file)
    assert occurrences(after)[identity(finding)] < occurrences(before)[identity(finding)], (
        finding.help
    )
    return True


def identity(finding: Finding) -> tuple[str, str]:
    """Return what two equal findings have in common, wherever they are located."""
    return finding.id, finding.message


def occurrences(findings: Sequence[Finding]) -> Counter[tuple[str, str]]:
    """Count how often each finding occurs."""
    return Counter(map(identity, findings))


def test_every_rule_about_specs_has_a_case() -> None:
    """Each id about specs and configs has a case, or a reason why none is possible."""
    with_case = {folder.name.partition("-")[0] for folder in CASES}
    about_specs = {id_ for id_ in RULES if id_ < "TPU080"}  # tests/infra has those about stacks
    assert about_specs - with_case == set(WITHOUT_CASE)


def test_the_corpus_is_large() -> None:
    """The number of cases does not shrink by accident."""
    assert len(CASES) >= 250
    assert len(list(BAD.glob("*/expected.txt"))) == len(CASES)


def test_a_file_of_two_megabytes_is_refused(tmp_path: Path) -> None:
    """A file beyond the limit is refused by its size, whatever it contains."""
    file = tmp_path / "tpucfg.yaml"
    file.write_bytes(b"# " + b"x" * (2 << 20))
    status, out, _ = run_check(file)
    assert status == 1
    assert out == (
        "tpucfg.yaml:1:1: error[TPU010]: tpucfg.yaml is larger than 1,048,576 bytes\n"
        "help: check the path: specs and configs have a few thousand bytes\n"
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
