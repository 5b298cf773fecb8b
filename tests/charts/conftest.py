"""A fixture that opens charts in the system's Chromium."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from browsing import Browse, OpenedPage


@pytest.fixture
def browse(chromium: Browser, tmp_path: Path) -> Iterator[Browse]:
    """Return a function that opens a text as a file of that name, without network access."""
    contexts: list[BrowserContext] = []

    def open_text(name: str, text: str, *, scheme: str = "light") -> OpenedPage:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        context = chromium.new_context(
            viewport={"width": 1280, "height": 800},
            color_scheme="dark" if scheme == "dark" else "light",
            offline=True,
        )
        contexts.append(context)
        return OpenedPage.of(context.new_page(), file)

    yield open_text
    for context in contexts:
        context.close()
