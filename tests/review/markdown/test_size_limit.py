"""A comment that fits: sections go as a whole, the largest first, and the head stays."""

from hypothesis import given
from hypothesis import strategies as st

from tpucfg.review.markdown.size_limit import MAX_COMMENT_BYTES, Section, fit_sections

SECTIONS = st.lists(st.builds(Section, st.text(max_size=9), st.text(max_size=3000)), max_size=40)


def section(name: str, lines: int) -> Section:
    """A section of so many lines of ten characters."""
    return Section(f"`{name}`", "\n".join(["123456789"] * lines))


def test_everything_that_fits_stays() -> None:
    """Nothing is left out where there is room."""
    assert (
        fit_sections("head", [section("a", 1), section("b", 1)], "foot") == "head\n\n123456789\n\n123456789\n\nfoot\n"
    )


def test_the_largest_goes_first_and_leaves_a_line() -> None:
    """It is named with its length, in its place; the smaller ones stay whole."""
    text = fit_sections("head", [section("a", 10), section("big", 50), section("c", 10)], most=400)
    assert text.count("123456789") == 20
    parts = text.split("\n\n")
    assert parts[2] == "_Left out for length: `big` (50 lines, 499 characters)._"


def test_of_two_alike_the_later_goes() -> None:
    """Equal sizes are no matter of chance."""
    text = fit_sections("head", [section("a", 20), section("b", 20)], most=350)
    assert "`b`" in text
    assert "`a`" not in text


def test_what_is_left_out_is_somewhere() -> None:
    """The line that says where stands before the foot, and only where something is left out."""
    text = fit_sections("head", [section("a", 100)], "foot", most=400, elsewhere="there")
    assert text.endswith("\n\nthere\n\nfoot\n")
    assert "there" not in fit_sections("head", [section("a", 1)], "foot", elsewhere="there")


def test_thousands_of_sections_are_counted() -> None:
    """What they leave behind is bounded as well."""
    text = fit_sections("head", [section(str(number), 100) for number in range(5000)])
    assert len(text.encode()) <= MAX_COMMENT_BYTES
    assert text.startswith("head\n\n")
    assert "more sections._" in text


def test_a_head_that_is_too_long_is_cut_at_a_line() -> None:
    """As a last resort, and with a word about it."""
    text = fit_sections("\n".join(["head"] * 30_000), [section("a", 1)])
    assert len(text.encode()) <= MAX_COMMENT_BYTES
    assert text.endswith("head\n\n_The rest is left out for length._\n")


@given(st.text(max_size=200), SECTIONS, st.integers(min_value=400, max_value=20_000))
def test_it_always_fits(head: str, sections: list[Section], most: int) -> None:
    """In bytes and so in characters, and a head that fits is whole; equal input is equal output."""
    text = fit_sections(head, sections, most=most)
    assert len(text.encode(errors="replace")) <= most
    assert text == fit_sections(head, sections, most=most)
    if len(head.encode()) < most // 2:
        assert text.startswith(head)
