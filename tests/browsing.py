"""Observations of a page in a browser: its requests, its console messages, and overlapping elements."""

from pathlib import Path
from typing import Any, NamedTuple, Protocol

from playwright.sync_api import Page

BOXES = """() => {
  const shown = element => element.getClientRects().length > 0;
  const box = element => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left, right, top, bottom, text: element.textContent };
  };
  return [...document.querySelectorAll("svg")].filter(shown).map(svg => ({
    frame: box(svg),
    texts: [...svg.querySelectorAll("text")].filter(text => text.textContent).map(box),
    marks: [...svg.querySelectorAll("circle, .bar")].map(box),
  }));
}"""
"""JavaScript that returns the frame, labels, dots and bars of each visible chart, in pixels of the window."""


class OpenedPage(NamedTuple):
    """A page that was opened, and what it requested and logged."""

    page: Page
    requests: list[str]
    """The URLs of all requests."""
    messages: list[str]
    """Console messages and uncaught errors."""

    @classmethod
    def of(cls, page: Page, file: Path) -> "OpenedPage":
        """Open a file, and record its requests and messages from the start."""
        requests: list[str] = []
        messages: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(file.as_uri(), wait_until="load")
        return cls(page, requests, messages)

    def overlaps(self) -> list[str]:
        """Return a description of each label that touches another label, a mark or the chart's edge."""
        overlaps = []
        for chart in self.page.evaluate(BOXES):
            labels = chart["texts"]
            overlaps += [
                f"{box['text']!r} leaves the chart"
                for box in labels
                if not _is_inside(box, chart["frame"])
            ]
            overlaps += [
                f"{box['text']!r} touches {other['text'] or 'a mark'!r}"
                for index, box in enumerate(labels)
                for other in (*labels[index + 1 :], *chart["marks"])
                if _touch(box, other)
            ]
        return overlaps


class Browse(Protocol):
    """Type of the fixture `browse`."""

    def __call__(self, name: str, text: str, *, scheme: str = "light") -> OpenedPage:
        """Open a text as a file with that name, whose extension determines its type."""
        ...


# Boxes may share half a pixel, as browsers place text at fractions of a pixel.
def _touch(box: dict[str, Any], other: dict[str, Any], tolerance: float = 0.5) -> bool:
    return bool(
        box["left"] < other["right"] - tolerance
        and other["left"] < box["right"] - tolerance
        and box["top"] < other["bottom"] - tolerance
        and other["top"] < box["bottom"] - tolerance
    )


def _is_inside(box: dict[str, Any], frame: dict[str, Any]) -> bool:
    return bool(
        box["left"] >= frame["left"] - 1
        and box["right"] <= frame["right"] + 1
        and box["top"] >= frame["top"] - 1
        and box["bottom"] <= frame["bottom"] + 1
    )
