"""The bounds of a comment: each line, the cautions, each fold, and the whole."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tpucfg.changes.facts import Risk
from tpucfg.changes.statements import LocatedStatement, Statement
from tpucfg.markdown import code, prose
from tpucfg.review.cautions import Caution, bound_cautions, give_verdict
from tpucfg.review.folds import MAX_COMMENT_BYTES, Fold, cut_middle, fold, join_within_limit, size
from tpucfg.review.review import RepositoryReview

LINES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\n\r`"), max_size=300), max_size=40
)


def section(name: str, lines: int) -> Fold:
    """Return a fold with this number of lines, of ten bytes each."""
    return fold(f"`{name}`", name, ["123456789"] * lines, "```", "```")


# Folds


def test_folds_that_fit_are_included() -> None:
    """Nothing is omitted below the limit, and the hint is not needed."""
    text = join_within_limit(["head"], [section("a", 1)], ["footer"], hint="hint")
    assert (
        text
        == "head\n\n<details><summary>a</summary>\n\n```\n123456789\n```\n\n</details>\n\nfooter\n"
    )


def test_fold_above_its_share_is_cut() -> None:
    """It keeps its first lines, and counts what is omitted; smaller folds are whole."""
    text = join_within_limit(
        ["head"], [section("a", 10), section("big", 900), section("c", 10)], max_bytes=9000
    )
    assert len(re.findall("^123456789$", text, re.MULTILINE)) > 150
    (omitted,) = re.findall(r"_(\d+) of 900 lines are omitted for length\._", text)
    assert len(re.findall("^123456789$", text, re.MULTILINE)) == 920 - int(omitted)
    assert text.count("<details>") == 3


def test_large_folds_have_equal_shares() -> None:
    """Two folds that are too large keep as many bytes as each other."""
    text = join_within_limit(["head"], [section("a", 1000), section("b", 3000)], max_bytes=12_000)
    first, second = (len(part) for part in text.split("<details>")[1:])
    assert abs(first - second) < 100


def test_value_before_and_after_stay_together() -> None:
    """A cut never separates the two lines of a change."""
    pairs = [f"- {number}: old\n+ {number}: new" for number in range(400)]
    for max_bytes in range(6000, 6060):
        text = join_within_limit(
            ["head"], [fold("t", "s", pairs, "```diff", "```")], max_bytes=max_bytes
        )
        assert text.count(": old") == text.count(": new") > 0


def test_table_keeps_its_header() -> None:
    """A table is cut below its header."""
    rows = [f"| row {number} | {number} |" for number in range(1000)]
    text = join_within_limit(
        [""], [fold("t", "s", rows, "| a | b |\n| --- | --: |")], max_bytes=6000
    )
    assert "| a | b |\n| --- | --: |\n| row 0 | 0 |" in text


def test_thousands_of_folds_are_counted() -> None:
    """The first folds are shown, the others named or counted, and the hint precedes the footer."""
    text = join_within_limit(
        ["head"], [section(str(number), 100) for number in range(5000)], ["footer"], hint="hint"
    )
    assert size(text) <= MAX_COMMENT_BYTES
    assert text.count("<details>") == 60
    assert "_Omitted for length: `60`, `61`, " in text
    assert text.endswith(" and 4924 more._\n\nhint\n\nfooter\n")


def test_head_over_the_limit_is_cut_at_a_line() -> None:
    """If the head alone exceeds the limit, it is cut at a line, and a note is added."""
    text = join_within_limit(["\n".join(["head"] * 30_000)], [section("a", 1)])
    assert size(text) <= MAX_COMMENT_BYTES
    assert text.endswith("head\n\n_The rest is omitted for length._\n")


@given(
    st.text("ab\n", max_size=200),
    st.lists(LINES, max_size=30),
    st.integers(min_value=900, max_value=20_000),
)
def test_comment_never_exceeds_the_limit(
    head: str, groups: list[list[str]], max_bytes: int
) -> None:
    """Any comment fits, is deterministic, and closes what it opens."""
    folds = [
        fold(f"t{n}", f"summary {n}.", lines, "```diff", "```") for n, lines in enumerate(groups)
    ]
    text = join_within_limit([head], folds, max_bytes=max_bytes)
    assert size(text) <= max_bytes
    assert text == join_within_limit([head], folds, max_bytes=max_bytes)
    if "The rest is omitted" not in text:
        outside = re.sub(r"(?ms)^(`{3,})(?:diff)?$.*?^\1$", "", text)
        assert not re.search("^```", outside, re.MULTILINE)
        assert outside.count("<details>") == outside.count("</details>")


# Lines


def test_long_value_is_cut_in_its_middle() -> None:
    """The values before and after it stay, and the number of characters between them."""
    line = f"**prod**: grants {code('roles/x')} to {code('a' + 'x' * 21_000 + 'z')}, if {code('c' * 100)}"
    cut = cut_middle(line, 700)
    assert cut == f"**prod**: grants `roles/x` to  … 21,004 characters cut … , if `{'c' * 100}`"


def test_member_is_printed_whole() -> None:
    """A member of 200 characters stays whole in a line that is cut."""
    member = f"serviceAccount:{'m' * 185}"
    cut = cut_middle(f"grants {code('r' * 9000)} on {code('b' * 60)} to {code(member)}", 700)
    assert code(member) in cut


@given(
    st.lists(
        st.tuples(st.booleans(), st.text("ab `\\*_<&\n", min_size=1, max_size=900)), max_size=20
    ),
    st.integers(min_value=300, max_value=2_000),
)
def test_cut_line_is_bounded_and_keeps_its_code_closed(
    parts: list[tuple[bool, str]], max_length: int
) -> None:
    """Any line of code and prose is about as long as asked for, and each code span that is opened is closed."""
    line = " ".join((code if is_code else prose)(text) for is_code, text in parts)
    cut = cut_middle(line, max_length)
    assert len(cut) <= max_length + 100
    spans = re.sub(r"(?<![\\`])(`+)(?!`).+?(?<!`)\1(?!`)", "", cut)
    assert not re.search(r"(?<![\\`])`", spans)


# Cautions


def caution(risk: Risk, number: int, length: int) -> Caution:
    """Return a caution of about a length."""
    return Caution(risk, f"{risk.name} {number} {code('x' * length)}")


def test_one_long_caution_hides_none() -> None:
    """A caution of 21 kB is cut, and the ones after it are shown."""
    block = bound_cautions(
        [caution(Risk.DESTRUCTIVE, 0, 21_000), *(caution(Risk.CAUTION, n, 10) for n in range(5))]
    )
    assert [line.text.split()[0] for line in block.lines] == ["DESTRUCTIVE", *["CAUTION"] * 5]
    assert not block.omitted


def test_twenty_long_cautions_hide_none() -> None:
    """Many long cautions are each cut to a shorter line, before any is left out."""
    block = bound_cautions([caution(Risk.ACCESS, n, 9_000) for n in range(40)])
    assert len(block.lines) == 40
    assert not block.omitted


def test_each_risk_has_its_line_before_any_has_a_second() -> None:
    """Without room for all, every kind of risk is shown, and the number of the others by risk."""
    many = [caution(Risk.DESTRUCTIVE, n, 900) for n in range(500)]
    block = bound_cautions([*many, caution(Risk.CAUTION, 0, 900), caution(Risk.ACCESS, 0, 900)])
    risks = [line.risk for line in block.lines]
    assert risks == sorted(risks, reverse=True)
    assert {*risks} == {Risk.DESTRUCTIVE, Risk.ACCESS, Risk.CAUTION}
    assert block.omission == (
        f"… and {len(block.omitted)} more: {len(block.omitted)} destructive; the verdict is therefore unknown"
    )


def test_a_caution_that_is_left_out_makes_the_verdict_unknown() -> None:
    """Every `--fail-on` refuses a change with a risk that the comment does not show."""

    def is_known(cautions: int) -> bool:
        statements = (
            LocatedStatement("", Statement(f"{number} {'x' * 900}", risk=Risk.CAUTION))
            for number in range(cautions)
        )
        return give_verdict(RepositoryReview((), statements=tuple(statements))).is_known

    assert is_known(5)
    assert not is_known(500)


def test_access_for_everyone_is_first_among_thousands() -> None:
    """Neither many grants to single members nor their environments push a public one out."""
    many = [caution(Risk.ACCESS, n, 100) for n in range(5_000)]
    public = caution(Risk.PUBLIC, 5_000, 100)
    block = bound_cautions([*many, public, caution(Risk.DESTRUCTIVE, 0, 100)])
    assert [line.risk for line in block.lines[:2]] == [Risk.DESTRUCTIVE, Risk.PUBLIC]
    assert block.lines[1] == public
    assert block.omitted
