"""The site as a reader sees it: served by Python's own server, and opened in Chromium."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

import loopback

pytestmark = pytest.mark.xdist_group("site")

PAGES = ("index", "first-steps", "arithmetic", "targets/gke", "reference/spec", "findings/TPU021")


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """Where the site is."""
    with loopback.serving(ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=built))) as server:
        yield loopback.address(server)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """An empty page as wide as a small laptop's."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_nobody_else(address: str, page: Page, name: str) -> None:
    """All that a page loads comes from the site and is there, its pictures show, and its scripts do not complain."""
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda response: said.append(f"{response.status} {response.url}") if not response.ok else None)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))

    page.goto(f"{address}/{name}.html", wait_until="networkidle")

    assert said == []
    assert [url for url in asked if not url.startswith((f"{address}/", "data:", "blob:"))] == []
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_search_finds_a_key(address: str, page: Page) -> None:
    """Whoever looks for a key of the spec finds its entry in the reference."""
    page.goto(f"{address}/index.html", wait_until="networkidle")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search").fill("max_drop")
    found = page.get_by_role("option").first
    found.wait_for()

    assert (found.get_attribute("href") or "").endswith("/reference/spec.html?h=max_drop#gatemax_drop")


def test_a_session_is_copied_as_its_commands(address: str, page: Page) -> None:
    """The copy button gives what can be pasted into a shell: no prompt, and nothing of what was printed."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{address}/first-steps.html", wait_until="networkidle")
    block = page.locator(".highlight", has_text="wrong.yaml").first
    block.hover()
    block.get_by_role("button").click()

    assert page.evaluate("navigator.clipboard.readText()").splitlines() == [
        "sed -e '5s/v2-32/v2-16/' -e '9s/us-central1/us-east5/' tpucfg.yaml > wrong.yaml",
        "tpucfg check --spec wrong.yaml",
    ]
