"""Check the built site: broken links, anchors and images, and resources that are loaded from other hosts.

Zensical's strict mode overlooks a missing page of the nav, and a link to a file outside the folder of the documents.
The pages have to work without network access: every script, style, font and image is part of the site.

    python tools/check_site.py SITE    exits 1 and prints the pages and links
"""

import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import yaml

SETTINGS: Final = Path(__file__).resolve().parent.parent / "mkdocs.yml"
LOADED: Final = {
    "img": ("src",),
    "script": ("src",),
    "link": ("href",),
    "source": ("src",),
    "iframe": ("src",),
}
"""By tag, the attributes whose address a browser loads without a click."""
UNCHECKED: Final = ("404.html",)
"""Pages with links relative to the root of the host, which is unknown here."""


class Link(NamedTuple):
    """One address in a page."""

    tag: str
    address: str

    @property
    def is_external(self) -> bool:
        """True for an address outside the site."""
        parts = urlsplit(self.address)
        return bool(parts.scheme or parts.netloc)


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[Link] = []
        self.anchors: set[str] = set()

    @cached_property
    def parsed(self) -> "Page":
        """The page itself, parsed on first access."""
        self.feed(self.path.read_text(encoding="utf-8"))
        return self

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the links and anchors of a tag."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.links += [
            Link(tag, values[name]) for name in {*LOADED.get(tag, ()), "href"} if name in values
        ]


def broken(site: Path) -> Iterator[str]:
    """Yield a line for each broken address, and for each resource that a page loads from another host."""
    site = site.resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path in (path for path in pages if path.name not in UNCHECKED):
        for link in pages[path].parsed.links:
            if error := _error(link, path, site, pages):
                yield f"{path.relative_to(site)}: {link.address}: {error}"


def _error(link: Link, path: Path, site: Path, pages: Mapping[Path, Page]) -> str | None:
    if link.is_external:
        loaded = link.tag in LOADED and urlsplit(link.address).scheme != "data"
        return "is loaded from another host" if loaded else None
    parts = urlsplit(link.address)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file() or not target.is_relative_to(site):
        return "does not exist"
    anchor = unquote(parts.fragment)
    if (
        anchor
        and target in pages
        and anchor not in pages[target].parsed.anchors
        and anchor != "__skip"
    ):
        return "the page has no such anchor"
    return None


def missing(site: Path) -> Iterator[str]:
    """Yield a line for each page of the nav that does not exist."""
    for name in nav_pages():
        if not (site / name).with_suffix(".html").is_file():
            yield f"mkdocs.yml: {name}: does not exist"


def nav_pages() -> Iterator[str]:
    """Yield every page of the nav, in order."""
    settings = yaml.load(SETTINGS.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506 - creates only strings
    yield from _leaves(settings["nav"])


def _leaves(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(entry)


def main(site: Path) -> int:
    """Print the errors; return the exit status."""
    problems = [*missing(site), *broken(site)]
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
