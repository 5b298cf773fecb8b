"""User text in Markdown: what a real renderer makes of it is the text again, and nothing else."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tpucfg import markdown
from tpucfg.text_format import printable

NASTY = ["```", "<script>alert(1)</script>", "a|b", "@team", "#123", "x`y``z", "`", "``", " ", "a\\|b", "\\"]
NASTY += ["line\nbreak", "\u202eevil", "&lt;", "<!-- x -->", "1. one", "- item", "# head", "> quote", "~~x~~"]
NASTY += ["**b**", "[x](y)", "www.example.com", "https://github.com/a/b/issues/1", "GH-1", "$x$", "</details>"]
NASTY += ["</code>", "| --- |", "~~~", "$`x`$", ":tada:"]
TEXT = st.text() | st.sampled_from(NASTY) | st.lists(st.sampled_from(NASTY)).map("".join)
RENDERER = MarkdownIt("gfm-like", {"linkify": False, "html": True})


class _Text(HTMLParser):
    """The text of a page, and the elements that hold it."""

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
    """What a page of it would show."""
    return _Text(RENDERER.render(text))


def plain(text: str) -> str:
    """What of a text can be seen: the words, as spaces fall together on a page."""
    return " ".join(text.replace(markdown.ZERO_WIDTH_SPACE, "").split())


@given(TEXT.filter(str.strip))
@example("`x")
@example("x\\")
def test_code_shows_the_text(text: str) -> None:
    """Inline code holds the text to the letter, in one element."""
    page = rendered(f"a {markdown.code(text)} b")
    assert plain(page.text) == plain(f"a {printable(text)} b")
    assert page.elements == ["p", "code"]


@given(TEXT)
@example("    *")
@example("    0")
def test_prose_shows_the_text(text: str) -> None:
    """A sentence makes no element of its own, whatever it holds, at the start of a line or in it."""
    for before in ("", "so: "):
        page = rendered(before + markdown.prose(text))
        assert plain(page.text) == plain(before + printable(text))
        assert set(page.elements) <= {"p"}


@given(TEXT)
def test_fence_holds_every_line(text: str) -> None:
    """No line ends the block."""
    page = rendered(markdown.fence(text, "diff") + "\n\nafter")
    assert page.elements == ["pre", "code", "p"]
    assert page.text.endswith("\nafter\n")


@given(TEXT, TEXT)
def test_table_keeps_its_cells(one: str, other: str) -> None:
    """Whatever stands in a cell, the row has its two cells."""
    page = rendered(markdown.table(["a", "b"], [[markdown.code(one), markdown.prose(other)]], numbers=[1]))
    assert page.elements.count("td") == 2
    assert page.elements.count("tr") == 2
    assert set(page.elements) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


@given(TEXT, TEXT)
def test_details_fold_what_they_hold(summary: str, text: str) -> None:
    """Summary and body stay in it, and what comes after is outside."""
    body = markdown.fence(text)
    page = rendered(markdown.details(f"{markdown.html_code(summary)} {markdown.html(summary)}", body) + "\n\nafter")
    assert page.elements[:3] == ["details", "summary", "code"]
    assert plain(page.text).startswith(plain(f"{printable(summary)} {printable(summary)}"))
    assert page.elements[-1] == "p"


@pytest.mark.parametrize(
    "text", ["@team", "a@b", "#123", "org/repo#1", "GH-12", "!7", "https://github.com/a/b/issues/1", "www.a.b"]
)
def test_prose_calls_nobody(text: str) -> None:
    """Mentions, references and addresses are cut by a space without width, as services look for them in the page."""
    page = rendered(markdown.prose(text))
    assert text not in page.text
    assert text in page.text.replace(markdown.ZERO_WIDTH_SPACE, "")
    assert text not in _Text(markdown.html(text)).text


def test_numbers_stand_to_the_right() -> None:
    """The columns that are named are aligned."""
    assert markdown.table(["a", "b"], [["x", "1"]], numbers=[1]).splitlines()[1] == "| --- | --: |"


def test_alert() -> None:
    """An alert is a quotation whose first line names its kind."""
    assert markdown.alert("CAUTION", ["one", "two"]) == "> [!CAUTION]\n> - one\n> - two"
