"""Every finding has a page, and `tpucfg explain` prints it."""

import re
from pathlib import Path

import finding_pages
import pytest

from tpucfg.cli.app import run
from tpucfg.findings import RULES
from tpucfg.plan.rules.scaling_warnings import LARGE_BATCH_GROWTH, MAX_WARMUP_SHARE, MIN_STEPS
from tpucfg.spec.placeholders import PLACEHOLDERS
from tpucfg.yamldoc.parser import MAX_DEPTH, MAX_VALUES
from tpucfg.yamldoc.reader import MAX_FILE_BYTES

WITHOUT_EXAMPLE = {"TPU079", "TPU115"}
"""No spec, config or stack can cause them: only a changed template, or another machine."""


def text_of(id_: str) -> str:
    """Return the page in the repository."""
    return (finding_pages.PAGES / f"{id_}.md").read_text()


def test_pages_and_rules_have_equal_ids() -> None:
    """The pages and the rules have the same ids."""
    assert {path.stem for path in finding_pages.PAGES.iterdir()} == {*RULES, "index"}


def test_generated_parts_of_the_pages_are_current() -> None:
    """Titles, levels, examples and the index are what `python tools/finding_pages.py` writes."""
    assert [path.name for path, _ in finding_pages.differing()] == []


@pytest.mark.parametrize("id_", RULES)
def test_a_page_has_its_sections(id_: str) -> None:
    """A page has a level, an example with real output, the edit and, for an allowable finding, when to allow it."""
    text = text_of(id_)
    assert "<!-- level -->" in text
    assert (f"[{id_}]: " in text) == (id_ not in WITHOUT_EXAMPLE)
    assert ("<!-- example: " in text) == (id_ not in WITHOUT_EXAMPLE)
    assert "\n## What to do\n" in text
    assert ("\n## When to allow it\n" in text) == RULES[id_].allowable
    assert not re.search(r"<!-- (level|example|fix)[^\n]*-->\n(?:(?!<!-- end -->).)*<!-- (?!end)", text, re.DOTALL)


@pytest.mark.parametrize("id_", RULES)
def test_links_resolve(id_: str) -> None:
    """A link inside the documentation refers to an existing file and heading."""
    for target, _, heading in re.findall(r"\]\((?!https?:)([^)#]+)(#([^)]+))?\)", text_of(id_)):
        page = (finding_pages.PAGES / target).resolve()
        assert page.is_file(), target
        headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
        slugs = {re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in headings}
        assert not heading or heading in slugs


def test_numbers_in_the_pages_match_the_code() -> None:
    """Thresholds and limits in the prose equal those of the code."""
    assert all(f"{limit:,}" in text_of("TPU010") for limit in (MAX_FILE_BYTES, MAX_VALUES, MAX_DEPTH))
    assert f"at least {LARGE_BATCH_GROWTH} times the tuned one" in text_of("TPU041")
    assert f"fewer than {MIN_STEPS} steps" in text_of("TPU042")
    assert MAX_WARMUP_SHARE * 4 == 1
    assert "more than a quarter of the run" in text_of("TPU043")
    assert all(f"${{{name}}}" in text_of("TPU009") for name in PLACEHOLDERS)


def test_an_example_shows_only_findings_of_its_id() -> None:
    """The example has all paragraphs of one id, and not the summary."""
    output = (
        "a.yaml:1:1: error[TPU001]: one\n  |\nhelp: x\n\na.yaml:2:1: warning[TPU042]: two\n\n"
        "a.yaml:3:1: error[TPU001]: three\n"
        "a.yaml, 0 configs: 2 errors and 1 warning\n"
    )
    assert finding_pages.paragraphs(output, "TPU001") == [
        "a.yaml:1:1: error[TPU001]: one",
        "  |",
        "help: x",
        "",
        "a.yaml:3:1: error[TPU001]: three",
    ]


def test_a_stale_page_is_detected_and_refreshed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--check` exits with 1 and writes nothing; without it, the page is refreshed."""
    pages = tmp_path / "docs" / "findings"
    pages.mkdir(parents=True)
    for path in finding_pages.PAGES.iterdir():
        (pages / path.name).write_text(path.read_text())
    monkeypatch.setattr(finding_pages, "PAGES", pages)
    monkeypatch.setattr(finding_pages, "ROOT", tmp_path)
    stale = (pages / "TPU040.md").read_text().replace("1000", "1001")
    (pages / "TPU040.md").write_text(stale)
    assert finding_pages.main(["--check"]) == 1
    assert (pages / "TPU040.md").read_text() == stale
    assert finding_pages.main([]) == 0
    assert (pages / "TPU040.md").read_text() == text_of("TPU040")
    assert finding_pages.main(["--check"]) == 0


@pytest.mark.parametrize("spelling", ["TPU021", "tpu021", "21", "021"])
def test_explain_prints_the_page(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`explain` accepts several forms of an id, and prints the page without the script's marks."""
    assert run(["explain", spelling]) == 0
    printed = capsys.readouterr()
    assert printed.out == re.sub(r"<!-- .* -->\n", "", text_of("TPU021"))
    assert printed.err == ""


def test_explain_lists_all_findings(capsys: pytest.CaptureFixture[str]) -> None:
    """Each finding has a line with its level, its title, and a remark if it can be allowed."""
    assert run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:6] for line in lines] == list(RULES)
    assert "TPU021  error    a size that the region does not offer (can be allowed)" in lines
    assert "TPU042  warning  few steps left (can be allowed)" in lines


@pytest.mark.parametrize(
    ("spelling", "hint"),
    [
        ("TPU02A", "did you mean TPU020? "),
        ("TPU999", ""),
        ("76", "did you mean TPU006? "),
        ("banana", ""),
        ("../../x", ""),
        ("²", ""),
        ("\x1b[31m", ""),
    ],
)
def test_explain_refuses_an_unknown_id(spelling: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown id is wrong use of the command, with the nearest id in the help."""
    assert run(["explain", spelling]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith(f"\nhelp: {hint}list all with: tpucfg explain\n")
    assert "\x1b" not in printed.err
