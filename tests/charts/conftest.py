"""The system's Chromium, in which pictures are looked at as people look at them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browsing import Browse, Viewed


@pytest.fixture
def browse(chromium: Browser, tmp_path: Path) -> Iterator[Browse]:
    """Opens a text as a file with that name; nothing but the file can be had, and what was asked for is kept."""
    contexts = []

    def opened(name: str, text: str, *, width: int = 1280, scheme: str = "light") -> Viewed:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme="dark" if scheme == "dark" else "light", offline=True
        )
        contexts.append(context)
        return Viewed.of(context.new_page(), file)

    yield opened
    for context in contexts:
        context.close()
