"""The documentation site and the checker of its links."""

import shutil
from pathlib import Path
from typing import Final

import check_site
import pytest

from spec_factory import ROOT
from tpucfg.findings.formats import sections

pytestmark = [pytest.mark.documents, pytest.mark.telling, pytest.mark.xdist_group("site")]


BROKEN: Final = {
    '<a href="nowhere.html">': "nowhere.html: does not exist",
    '<a href="../outside.html">': "../outside.html: does not exist",
    '<a href="design.html#nothing">': "design.html#nothing: the page has no such anchor",
    '<a href="#nothing">': "#nothing: the page has no such anchor",
    '<img src="images/none.svg">': "images/none.svg: does not exist",
    '<script src="https://example.com/a.js"></script>': (
        "https://example.com/a.js: is loaded from another host"
    ),
    '<link rel="stylesheet" href="//example.com/a.css">': (
        "//example.com/a.css: is loaded from another host"
    ),
}
"""The problem of each tag."""
VALID: Final = (
    '<a href="https://example.com/">',
    '<a href="design.html#terms">',
    '<img src="data:,">',
)


def _copy(built: Path, folder: Path) -> Path:
    return shutil.copytree(built, folder / "site")


def test_every_link_resolves(built: Path) -> None:
    """All pages of the nav exist; links, anchors and images resolve; nothing is loaded from another host."""
    assert [*check_site.missing(built), *check_site.broken(built)] == []


def test_every_document_is_a_page(built: Path) -> None:
    """Every document in docs/ is a page of the site."""
    pages = {
        path.relative_to(built).with_suffix(".md").as_posix() for path in built.rglob("*.html")
    }
    documents = {
        path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")
    }

    assert documents <= pages


def test_each_finding_has_its_anchor(built: Path) -> None:
    """The address of a finding is one of the site."""
    for id_, section in sections().items():
        page, _, anchor = section.address.removeprefix("docs/").partition("#")

        assert anchor == id_.lower()
        assert f'id="{anchor}"' in (built / page).with_suffix(".html").read_text(encoding="utf-8")


def test_every_document_is_in_the_nav() -> None:
    """A reader finds every document in the navigation."""
    documents = {
        path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")
    }

    assert {*check_site.nav_pages()} == documents


def test_a_session_is_marked_with_its_commands(built: Path) -> None:
    """A block with `$ ` is copied without prompts and output; a script is copied unchanged."""
    text = (built / "first-steps.html").read_text(encoding="utf-8")

    assert 'data-copy="tpucfg init my-model --target vertex-ai --infra"' in text
    assert 'data-copy="sed -e &#x27;5s/v2-32/v2-16/&#x27; ' in text
    assert 'data-copy="git init' not in text


def test_each_kind_of_broken_link_is_reported(built: Path, tmp_path: Path) -> None:
    """Each broken link is reported with its page; an external one is not followed, and a valid one is no problem."""
    site = _copy(built, tmp_path)
    (tmp_path / "outside.html").touch()
    with (site / "index.html").open("a", encoding="utf-8") as page:
        page.write("\n".join([*BROKEN, *VALID]))

    assert [*check_site.broken(site)] == [f"index.html: {problem}" for problem in BROKEN.values()]


def test_a_missing_page_of_the_nav_is_reported(built: Path, tmp_path: Path) -> None:
    """A page that only the nav names is reported; zensical's strict mode ignores it."""
    site = _copy(built, tmp_path)
    (site / "arithmetic.html").unlink()

    assert [*check_site.missing(site)] == ["mkdocs.yml: arithmetic.md: does not exist"]
