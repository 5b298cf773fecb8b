"""Every finding has a section in the documents, and `tpucfg explain` prints it."""

import re
from pathlib import Path

import finding_pages
import pytest

from tpucfg.cli.app import run
from tpucfg.findings import RULES
from tpucfg.findings.formats import sections
from tpucfg.plan.rules.scaling_warnings import LARGE_BATCH_GROWTH, MAX_WARMUP_SHARE, MIN_STEPS
from tpucfg.spec.placeholders import PLACEHOLDERS
from tpucfg.yamldoc.parser import MAX_DEPTH, MAX_VALUES
from tpucfg.yamldoc.reader import MAX_FILE_BYTES

WITHOUT_EXAMPLE = {"TPU079", "TPU115"}
"""No spec, config or stack can cause them: only a changed template, or another machine."""
PAGES = [path for path in finding_pages.PAGES.glob("*.md") if path.name != finding_pages.INDEX]


def text_of(id_: str) -> str:
    """Return the section of a finding, with its words separated by single spaces."""
    return " ".join(sections()[id_].text.split())


def test_each_rule_has_one_section_and_a_page_is_sorted() -> None:
    """Every rule has exactly one section, and a page lists its findings in ascending order."""
    ids = [re.findall(r"^## (TPU\d+)", path.read_text(), re.MULTILINE) for path in PAGES]

    assert sorted(id_ for page in ids for id_ in page) == sorted(RULES) == sorted(sections())
    assert ids == [sorted(page) for page in ids]


def test_generated_parts_of_the_pages_are_current() -> None:
    """Headings, levels, examples and the index are what `python tools/finding_pages.py` writes."""
    assert [path.name for path, _ in finding_pages.differing()] == []


def test_a_section_has_its_parts() -> None:
    """A section has real output of its finding and, if that can be allowed, when to allow it."""
    for id_, rule in RULES.items():
        text = sections()[id_].text
        assert (f"[{id_}]: " in text) == (id_ not in WITHOUT_EXAMPLE), id_
        assert ("\n**Allow it** " in text) == rule.allowable, id_
        assert len(text.splitlines()) <= 45, id_


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_links_resolve(page: Path) -> None:
    """A link inside the documentation refers to an existing file and heading."""
    for target, _, heading in re.findall(r"\]\((?!https?:)([^)#]*)(#([^)]+))?\)", page.read_text()):
        text = (finding_pages.PAGES / (target or page.name)).resolve().read_text()
        slugs = {
            re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))
            for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        }
        assert not heading or heading in {*slugs, *re.findall(r'<a id="(\w+)">', text)}


def test_numbers_in_the_pages_match_the_code() -> None:
    """Thresholds and limits in the prose equal those of the code."""
    assert all(
        f"{limit:,}" in text_of("TPU010") for limit in (MAX_FILE_BYTES, MAX_VALUES, MAX_DEPTH)
    )
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


def test_a_new_section_and_a_stale_one_are_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--check` exits with 1 and writes nothing; without it, the parts of a new section are filled in."""
    pages = tmp_path / "docs" / "findings"
    pages.mkdir(parents=True)
    for path in finding_pages.PAGES.iterdir():
        (pages / path.name).write_text(path.read_text())
    monkeypatch.setattr(finding_pages, "PAGES", pages)
    monkeypatch.setattr(finding_pages, "ROOT", tmp_path)
    page, text = pages / "figures.md", (finding_pages.PAGES / "figures.md").read_text()
    stale = re.sub(r"## TPU042.*\n\n.*\n", "## TPU042\n", text)
    stale = re.sub(
        r"(<!-- example: TPU042.+ -->\n)```.*?```\n", r"\1", stale, count=1, flags=re.DOTALL
    )
    stale = stale.replace("1000", "1001")
    page.write_text(stale)

    assert finding_pages.main(["--check"]) == 1
    assert page.read_text() == stale != text
    assert finding_pages.main([]) == 0
    assert page.read_text() == text
    assert finding_pages.main(["--check"]) == 0


@pytest.mark.parametrize("spelling", ["TPU021", "tpu021", "21", "021"])
def test_explain_prints_the_section(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`explain` accepts several forms of an id, and prints the section without marks and without links to pages."""
    assert run(["explain", spelling]) == 0
    printed = capsys.readouterr()
    first, *_, last = printed.out.splitlines()
    assert first == "# TPU021: a size that the region does not offer"
    assert last == "months."
    assert "error[TPU021]: v3-32 is not offered" in printed.out
    assert "<!--" not in printed.out
    assert ".md" not in printed.out
    assert printed.err == ""


def test_explain_lists_all_findings(capsys: pytest.CaptureFixture[str]) -> None:
    """Each finding has a line with its level, its title, and a remark if it can be allowed."""
    assert run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:6] for line in lines] == list(RULES)
    assert "TPU021  error    a size that the region does not offer (can be allowed)" in lines
    assert "TPU042  warning  few steps left (can be allowed)" in lines


@pytest.mark.parametrize(
    "spelling", ["TPU02A", "TPU999", "76", "banana", "../../x", "²", "\x1b[31m"]
)
def test_explain_refuses_an_unknown_id(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown id is wrong use of the command."""
    assert run(["explain", spelling]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith("\nhelp: list all with: tpucfg explain\n")
    assert "\x1b" not in printed.err
