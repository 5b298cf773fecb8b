"""User text in Markdown: a real renderer shows the text literally, and adds nothing."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tpucfg import markdown
from tpucfg.review.folds import fold
from tpucfg.text_format import printable

HOSTILE = [
    "```",
    "<script>alert(1)</script>",
    "a|b",
    "@team",
    "#123",
    "x`y``z",
    "`",
    "``",
    " ",
    "a\\|b",
    "\\",
]
HOSTILE += [
    "line\nbreak",
    "\u202eevil",
    "&lt;",
    "<!-- x -->",
    "1. one",
    "- item",
    "# head",
    "> quote",
    "~~x~~",
]
HOSTILE += [
    "**b**",
    "[x](y)",
    "www.example.com",
    "https://github.com/a/b/issues/1",
    "GH-1",
    "$x$",
    "</details>",
]
HOSTILE += ["</code>", "| --- |", "~~~", "$`x`$", ":tada:"]
TEXT = st.text() | st.sampled_from(HOSTILE) | st.lists(st.sampled_from(HOSTILE)).map("".join)
RENDERER = MarkdownIt("gfm-like", {"linkify": False, "html": True})


class _Text(HTMLParser):
    """The text and the elements of an HTML page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.elements = "", list[str]()
        self.feed(page)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the interface
        self.elements.append(tag)


def rendered(text: str) -> _Text:
    """Return the rendered page of a Markdown text."""
    return _Text(RENDERER.render(text))


def plain(text: str) -> str:
    """Return the visible words of a text, without repeated spaces."""
    return " ".join(text.replace(markdown.ZERO_WIDTH_SPACE, "").split())


@given(TEXT.filter(str.strip))
@example("`x")
@example("x\\")
def test_code_shows_the_text_literally(text: str) -> None:
    """Inline code contains the exact text, in one element."""
    page = rendered(f"a {markdown.code(text)} b")
    assert plain(page.text) == plain(f"a {printable(text)} b")
    assert page.elements == ["p", "code"]


@given(TEXT)
@example("    *")
@example("    0")
def test_prose_shows_the_text_literally(text: str) -> None:
    """Prose of any content adds no element, at the start of a line or inside it."""
    for before in ("", "so: "):
        page = rendered(before + markdown.prose(text))
        assert plain(page.text) == plain(before + printable(text))
        assert set(page.elements) <= {"p"}


@given(TEXT)
def test_a_fence_contains_every_line(text: str) -> None:
    """No line of any content ends the code block."""
    page = rendered(markdown.fence(text, "diff") + "\n\nafter")
    assert page.elements == ["pre", "code", "p"]
    assert page.text.endswith("\nafter\n")


@given(TEXT, TEXT)
def test_a_table_row_keeps_its_cells(first: str, second: str) -> None:
    """Cells of any content leave the number of cells in a row unchanged."""
    page = rendered(
        markdown.table(["a", "b"], [[markdown.code(first), markdown.prose(second)]], numbers=[1])
    )
    assert page.elements.count("td") == 2
    assert page.elements.count("tr") == 2
    assert set(page.elements) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


@given(TEXT, TEXT)
def test_fold_contains_its_body(summary: str, text: str) -> None:
    """The summary and the body are inside the folded part, and the following text is outside."""
    folded = fold(
        "", f"{markdown.html_code(summary)} {markdown.html(summary)}", [markdown.fence(text)]
    )
    page = rendered(f"{folded.text}\n\nafter")
    assert page.elements[:3] == ["details", "summary", "code"]
    assert plain(page.text).startswith(plain(f"{printable(summary)} {printable(summary)}"))
    assert page.elements[-1] == "p"


@pytest.mark.parametrize(
    "text",
    [
        "@team",
        "a@b",
        "#123",
        "org/repo#1",
        "GH-12",
        "!7",
        "https://github.com/a/b/issues/1",
        "www.a.b",
    ],
)
def test_prose_contains_no_reference(text: str) -> None:
    """Mentions, references and addresses are split by a zero-width space, so that services do not find them."""
    page = rendered(markdown.prose(text))
    assert text not in page.text
    assert text in page.text.replace(markdown.ZERO_WIDTH_SPACE, "")
    assert text not in _Text(markdown.html(text)).text


def test_numeric_columns_are_aligned_right() -> None:
    """The given columns are aligned right, and only those."""
    assert markdown.table(["a", "b"], [["x", "1"]], numbers=[1]).splitlines()[1] == "| --- | --: |"


def test_an_alert_names_its_kind() -> None:
    """An alert is a quotation whose first line names the kind."""
    assert markdown.alert(["one", "two"]) == "> [!CAUTION]\n> - one\n> - two"
