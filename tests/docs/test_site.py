"""The documentation's site, built as `make docs` builds it."""

import shutil
from pathlib import Path

import check_site
import pytest

from spec_factory import ROOT
from tpucfg.findings import RULES

pytestmark = [pytest.mark.documents, pytest.mark.xdist_group("site")]


def _copy(built: Path, folder: Path) -> Path:
    return shutil.copytree(built, folder / "site")


def test_nothing_leads_nowhere(built: Path) -> None:
    """Every page of the nav is there; links, anchors and pictures lead somewhere; nothing is loaded from elsewhere."""
    assert [*check_site.missing(built), *check_site.broken(built)] == []


def test_every_document_is_a_page(built: Path) -> None:
    """What lies in docs/ is in the site: a page for each finding, and the reference."""
    pages = {path.relative_to(built).with_suffix(".md").as_posix() for path in built.rglob("*.html")}
    documents = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}

    assert documents <= pages
    assert {f"findings/{id_}.md" for id_ in RULES} <= pages


def test_every_guide_is_in_the_nav() -> None:
    """A page that nobody put into the nav is found by nobody; those of the findings are listed by their index."""
    documents = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    guides = {name for name in documents if not name.startswith("findings/TPU")}

    assert {*check_site.nav_pages()} == guides


def test_a_session_is_marked_with_its_commands(built: Path) -> None:
    """A block with `$ ` is copied without prompts and output; a script is copied as it stands."""
    text = (built / "first-steps.html").read_text(encoding="utf-8")

    assert 'data-copy="tpucfg init my-model"' in text
    assert 'data-copy="sed -e &#x27;5s/v2-32/v2-16/&#x27; ' in text
    assert 'data-copy="git init' not in text


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('<a href="nowhere.html">', "nowhere.html: does not exist"),
        ('<a href="../outside.html">', "../outside.html: does not exist"),
        ('<a href="design.html#nothing">', "design.html#nothing: the page has no such anchor"),
        ('<a href="#nothing">', "#nothing: the page has no such anchor"),
        ('<img src="images/none.svg">', "images/none.svg: does not exist"),
        ('<script src="https://example.com/a.js"></script>', "https://example.com/a.js: is loaded from another host"),
        ('<link rel="stylesheet" href="//example.com/a.css">', "//example.com/a.css: is loaded from another host"),
    ],
)
def test_the_checker_finds(built: Path, tmp_path: Path, written: str, said: str) -> None:
    """Each kind of broken address is named with its page, and is the only thing that is said."""
    site = _copy(built, tmp_path)
    (tmp_path / "outside.html").touch()
    with (site / "index.html").open("a", encoding="utf-8") as page:
        page.write(written)

    assert [*check_site.broken(site)] == [f"index.html: {said}"]


@pytest.mark.parametrize(
    "written", ['<a href="https://example.com/">', '<a href="design.html#words">', '<img src="data:,">']
)
def test_the_checker_lets_pass(built: Path, tmp_path: Path, written: str) -> None:
    """A link that leaves the site is not followed, and a right one is right."""
    site = _copy(built, tmp_path)
    with (site / "index.html").open("a", encoding="utf-8") as page:
        page.write(written)

    assert [*check_site.broken(site)] == []


def test_the_checker_misses_a_page_of_the_nav(built: Path, tmp_path: Path) -> None:
    """A page that the nav names and nobody wrote is said, which zensical's strict mode does not."""
    site = _copy(built, tmp_path)
    (site / "arithmetic.html").unlink()

    assert [*check_site.missing(site)] == ["mkdocs.yml: arithmetic.md: does not exist"]
