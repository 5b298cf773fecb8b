"""The size limit of a comment: folds are cut inside, the largest first, and what is cut is named or counted."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tpucfg.review.markdown.section import (
    Block,
    Item,
    Section,
    code_block,
    fold,
    markdown_blocks,
    size,
    table_block,
)
from tpucfg.review.markdown.size_limit import MAX_COMMENT_BYTES, join_within_limit

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=300)
ITEMS = st.lists(st.builds(Item, TEXTS, st.text(max_size=80)), min_size=1, max_size=40)
NAMES = st.text("abc `<>é", min_size=1, max_size=30)


@st.composite
def sections(draw: st.DrawFn) -> list[Section]:
    """Return folds with code blocks, whose summaries have the number of the fold."""
    blocks = draw(st.lists(st.lists(ITEMS, min_size=1, max_size=3), max_size=30))
    return [
        fold(f"t{number}", f"summary {number}.", [code_block(items, "diff") for items in group])
        for number, group in enumerate(blocks)
    ]


def section(name: str, lines: int) -> Section:
    """Return a section with this number of lines, of ten characters each."""
    items = [Item("123456789", f"{name}{number}") for number in range(lines)]
    return fold(f"`{name}`", name, [code_block(items)])


def test_sections_that_fit_are_included() -> None:
    """Nothing is omitted below the limit."""
    text = join_within_limit("head", [section("a", 1)], "footer", omission_hint="hint")
    assert text == "head\n\n<details><summary>a</summary>\n\n```\n123456789\n```\n\n</details>\n\nfooter\n"


def test_largest_section_is_cut_first() -> None:
    """It keeps its first lines, and names what is omitted; smaller sections are whole."""
    text = join_within_limit("head", [section("a", 10), section("big", 300), section("c", 10)], max_bytes=2500)
    assert len(re.findall("^123456789$", text, re.MULTILINE)) > 100
    assert text.count("omitted for length") == 1
    (omitted,) = re.findall(r"_(\d+) of 300 lines are omitted for length: (.*) and (\d+) more\._", text)
    assert omitted[1].startswith(f"big{300 - int(omitted[0])}, ")
    assert len(omitted[1].split(", ")) + int(omitted[2]) == int(omitted[0])
    assert size(text) > 2300


def test_large_sections_have_equal_shares() -> None:
    """Two sections that are too large keep as many bytes as each other."""
    text = join_within_limit("head", [section("a", 1000), section("b", 3000)], max_bytes=6000)
    (first, second) = (len(part) for part in text.split("<details>")[1:])
    assert abs(first - second) < 100
    assert len(text) > 5700


def test_value_before_and_after_stay_together() -> None:
    """A cut never separates the two lines of a change."""
    items = [Item(f"- {number}: old\n+ {number}: new", str(number)) for number in range(200)]
    for max_bytes in range(700, 760):
        text = join_within_limit("head", [fold("t", "s", [code_block(items, "diff")])], max_bytes=max_bytes)
        assert text.count(": old") == text.count(": new") > 0


def test_table_keeps_its_header() -> None:
    """A table is cut below its header, and the labels of the omitted rows are named."""
    rows = "\n".join(["| a | b |", "| --- | --: |", *[f"| row {number} | {number} |" for number in range(200)]])
    text = join_within_limit("", [fold("t", "s", [table_block(rows, [f"r{n}" for n in range(200)])])], max_bytes=1200)
    assert "| a | b |\n| --- | --: |\n| row 0 | 0 |" in text
    assert re.search(r"_\d+ of 200 lines are omitted for length: r\d+, ", text)


def test_omission_hint_is_shown_only_if_needed() -> None:
    """The hint precedes the footer, and is included only if something is omitted."""
    text = join_within_limit("head", [section("a", 100)], "footer", max_bytes=900, omission_hint="hint")
    assert text.endswith("\n\nhint\n\nfooter\n")
    assert "hint" not in join_within_limit("head", [section("a", 1)], "footer", omission_hint="hint")


def test_thousands_of_sections_are_counted() -> None:
    """If not even all summaries fit, the first ones are shown, and the others named or counted."""
    text = join_within_limit("head", [section(str(number), 100) for number in range(5000)])
    assert size(text) <= MAX_COMMENT_BYTES
    shown, named = text.count("<details>"), len(re.findall(r"`\d+`", text))
    counted = re.search(r"([\d,]+) more sections\._", text)
    assert counted
    assert shown > 100
    assert shown + named + int(counted[1].replace(",", "")) == 5000


def test_head_over_the_limit_is_cut_at_a_line() -> None:
    """If the head alone exceeds the limit, it is cut at a line, and a note is added."""
    text = join_within_limit("\n".join(["head"] * 30_000), [section("a", 1)])
    assert size(text) <= MAX_COMMENT_BYTES
    assert text.endswith("head\n\n_The rest is omitted for length._\n")


def test_markdown_becomes_blocks_with_the_same_text() -> None:
    """Code, tables, alerts and lists are blocks that can be cut; together they are the text."""
    parts = ["**a**", "- b\n- c", "| d |\n| --- |\n| e |", "> [!CAUTION]\n> - f", "````\n```\n\ng\n````"]
    blocks = [*markdown_blocks("\n\n".join(parts))]
    assert [block.text for block in blocks] == parts
    assert [len(block.items) for block in blocks] == [1, 2, 1, 1, 3]
    assert blocks[1] == Block((Item("- b"), Item("- c")))


@given(st.text("ab\n", max_size=200), sections(), st.integers(min_value=900, max_value=20_000))
def test_comment_never_exceeds_the_limit(head: str, folds: list[Section], max_bytes: int) -> None:
    """Any comment fits, is deterministic, closes what it opens, and shows or names every section."""
    text = join_within_limit(head, folds, max_bytes=max_bytes)
    assert size(text) <= max_bytes
    assert text == join_within_limit(head, folds, max_bytes=max_bytes)
    if "The rest is omitted" in text:
        return
    outside = re.sub(r"(?ms)^(`{3,})(?:diff)?$.*?^\1$", "", text)
    assert not re.search("^```", outside, re.MULTILINE)
    assert outside.count("<details>") == outside.count("</details>")
    counted = re.search(r"([\d,]+) more sections\._", text)
    missing = [n for n in range(len(folds)) if f"summary {n}." not in text and not re.search(rf"\bt{n}\b", text)]
    assert len(missing) == (int(counted[1].replace(",", "")) if counted else 0)


@given(st.lists(NAMES, min_size=1, max_size=300), st.integers(min_value=500, max_value=5_000))
def test_section_is_cut_to_any_size(names: list[str], max_bytes: int) -> None:
    """A section that is cut has at most the size that is asked for."""
    cut = fold("t", "s", [code_block([Item("x" * 30, name) for name in names])]).cut(max_bytes)
    assert size(cut) <= max_bytes
