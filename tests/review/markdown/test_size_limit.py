"""The size limit of a comment: whole sections are omitted, the largest first."""

from hypothesis import given
from hypothesis import strategies as st

from tpucfg.review.markdown.size_limit import MAX_COMMENT_BYTES, Section, fit_sections

SECTIONS = st.lists(st.builds(Section, st.text(max_size=9), st.text(max_size=3000)), max_size=40)


def section(name: str, lines: int) -> Section:
    """Return a section with this number of lines, of ten characters each."""
    return Section(f"`{name}`", "\n".join(["123456789"] * lines))


def test_sections_that_fit_are_included() -> None:
    """Nothing is omitted below the limit."""
    assert (
        fit_sections("head", [section("a", 1), section("b", 1)], "footer")
        == "head\n\n123456789\n\n123456789\n\nfooter\n"
    )


def test_largest_section_is_omitted_first() -> None:
    """A line with its title and length replaces it; smaller sections are included."""
    text = fit_sections("head", [section("a", 10), section("big", 50), section("c", 10)], max_bytes=400)
    assert text.count("123456789") == 20
    parts = text.split("\n\n")
    assert parts[2] == "_Omitted for length: `big` (50 lines, 499 characters)._"


def test_later_of_two_equal_sections_is_omitted() -> None:
    """Of two sections with the same size, the later one is omitted."""
    text = fit_sections("head", [section("a", 20), section("b", 20)], max_bytes=350)
    assert "`b`" in text
    assert "`a`" not in text


def test_omission_hint_is_shown_only_if_needed() -> None:
    """The hint precedes the footer, and is included only if a section is omitted."""
    text = fit_sections("head", [section("a", 100)], "footer", max_bytes=400, omission_hint="hint")
    assert text.endswith("\n\nhint\n\nfooter\n")
    assert "hint" not in fit_sections("head", [section("a", 1)], "footer", omission_hint="hint")


def test_thousands_of_omitted_sections_are_counted() -> None:
    """The number of lines for omitted sections is limited too."""
    text = fit_sections("head", [section(str(number), 100) for number in range(5000)])
    assert len(text.encode()) <= MAX_COMMENT_BYTES
    assert text.startswith("head\n\n")
    assert "more sections._" in text


def test_head_over_the_limit_is_cut_at_a_line() -> None:
    """If the head alone exceeds the limit, it is cut at a line, and a note is added."""
    text = fit_sections("\n".join(["head"] * 30_000), [section("a", 1)])
    assert len(text.encode()) <= MAX_COMMENT_BYTES
    assert text.endswith("head\n\n_The rest is omitted for length._\n")


@given(st.text(max_size=200), SECTIONS, st.integers(min_value=400, max_value=20_000))
def test_comment_never_exceeds_the_limit(head: str, sections: list[Section], max_bytes: int) -> None:
    """Any comment fits, equal input has equal output, and a head that fits is complete."""
    text = fit_sections(head, sections, max_bytes=max_bytes)
    assert len(text.encode(errors="replace")) <= max_bytes
    assert text == fit_sections(head, sections, max_bytes=max_bytes)
    if len(head.encode()) < max_bytes // 2:
        assert text.startswith(head)
