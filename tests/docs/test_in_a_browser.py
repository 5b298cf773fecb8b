"""The documentation site in a browser: served by Python's own server, and opened in Chromium."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

import loopback

pytestmark = pytest.mark.xdist_group("site")

PAGES = (
    "index",
    "first-steps",
    "arithmetic",
    "targets/gke",
    "reference/spec",
    "findings/sizes-and-regions",
)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """Serve the site, and return its URL."""
    with loopback.serving(
        ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=built))
    ) as server:
        yield loopback.address(server)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """Open an empty page with the width of a small laptop's screen."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", [pytest.param(PAGES[0], marks=pytest.mark.telling), *PAGES[1:]])
def test_a_page_loads_only_from_the_site(address: str, page: Page, name: str) -> None:
    """Each request goes to the site and succeeds, all images are shown, and the console has no message.

    The first one catches a script, a style or a font that a new version of the builder loads from another host.
    """
    requests: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on(
        "response",
        lambda response: (
            problems.append(f"{response.status} {response.url}") if not response.ok else None
        ),
    )
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))

    page.goto(f"{address}/{name}.html", wait_until="networkidle")

    assert problems == []
    assert [url for url in requests if not url.startswith((f"{address}/", "data:", "blob:"))] == []
    assert page.evaluate(
        "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def open_search(page: Page) -> Locator:
    """Press the search's key until its input field is shown, and return the field.

    The search is mounted by a script some time after the page has loaded, and ignores keys before that.
    """
    field = page.get_by_role("combobox", name="Search")
    for _ in range(30):
        page.keyboard.press("Control+k")
        try:
            field.wait_for(timeout=2000)
        except PlaywrightTimeout:
            continue
        return field
    pytest.fail("the search did not open within a minute")


@pytest.mark.telling
def test_the_search_finds_a_key_of_the_spec(address: str, page: Page) -> None:
    """A search for a key of the spec finds the section of the reference that has it.

    Catches a search index without the anchors of the reference, or a search that does not open.
    """
    page.goto(f"{address}/index.html", wait_until="networkidle")
    open_search(page).fill("max_drop")
    result = page.get_by_role("option").first
    result.wait_for()

    assert (result.get_attribute("href") or "").endswith("/reference/spec.html?h=max_drop#gate")


def test_a_session_is_copied_as_its_commands(address: str, page: Page) -> None:
    """The copy button copies the commands of a session, without prompts and output."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{address}/first-steps.html", wait_until="networkidle")
    block = page.locator(".highlight", has_text="wrong.yaml").first
    block.hover()
    block.get_by_role("button").click()

    assert page.evaluate("navigator.clipboard.readText()").splitlines() == [
        "sed -e '5s/v2-32/v2-16/' -e '9s/us-central1/us-east5/' tpucfg.yaml > wrong.yaml",
        "tpucfg check --spec wrong.yaml",
    ]
