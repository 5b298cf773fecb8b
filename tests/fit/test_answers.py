"""Answers of the worker: recorded ones are read, and any other text is refused without a crash."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from false_python import RESULT
from tpucfg.fit.answers import (
    AnswerError,
    FitFailure,
    FlagError,
    Phase,
    StepResult,
    flag_errors,
    parse_answer,
)
from tpucfg.plan import XLA_FLAGS_VARIABLE

RECORDED: Final = Path(__file__).parent / "recorded"
ANSWERS: Final = sorted(RECORDED.glob("*.jsonl"))


def as_line(value: Any) -> bytes:
    """Return an answer as the worker writes it."""
    return json.dumps(value).encode()


@pytest.mark.parametrize("file", ANSWERS, ids=lambda file: file.stem)
def test_recorded_answers_are_read(file: Path) -> None:
    """Every line of the real worker is an answer: phases, and at most one result or error at the end."""
    *phases, last = map(parse_answer, file.read_bytes().splitlines())
    assert all(isinstance(answer, Phase) for answer in phases)
    assert isinstance(last, Phase) == file.with_suffix(".stderr").exists()


def test_both_wordings_of_the_refusal_have_figures() -> None:
    """A result of a refusal has the least amount, and no traffic."""
    for name in ("refused", "refused-old"):
        result = parse_answer((RECORDED / f"{name}.jsonl").read_bytes().splitlines()[-1])
        assert isinstance(result, StepResult)
        assert result.figures
        assert not result.figures.fits
        assert not result.figures.memory.exact
        assert result.figures.memory.headroom < 0
        assert result.figures.forecast is None


@pytest.mark.parametrize(
    ("name", "flag", "error"),
    [
        (
            "unknown-flag",
            "--xla_tpu_max_hbm_size_mb=8000",
            FlagError("xla_tpu_max_hbm_size_mb", "xla_tpu_max_hbm_size_mib"),
        ),
        ("unlike-any-flag", "--absent_flag=1", FlagError("absent_flag")),
        (
            "illegal-value",
            "--xla_tpu_enable_async_collective_fusion=maybe",
            FlagError(
                "xla_tpu_enable_async_collective_fusion",
                reason="Illegal value 'maybe' specified for flag 'xla_tpu_enable_async_collective_fusion'",
            ),
        ),
    ],
)
def test_recorded_refusals_of_flags_are_recognized(name: str, flag: str, error: FlagError) -> None:
    """The compiler's words lead to the flag; for another job's flags they mean nothing."""
    output = (RECORDED / f"{name}.stderr").read_text()
    assert flag_errors(output, {XLA_FLAGS_VARIABLE: ("--xla_other=1", flag), "XLA_FLAGS": ()}) == (
        error,
    )
    assert flag_errors(output, {XLA_FLAGS_VARIABLE: ("--xla_other=1",), "XLA_FLAGS": ()}) == ()


def test_only_files_below_the_folder_are_kept() -> None:
    """A path that leaves the folder, or that a result cannot name, is dropped; the others are sorted and unique."""
    files = [
        "b.py",
        "a.py",
        "b.py",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a\nb",
        "a\\b",
        "\ud800",
        "",
        "ä/b c.py",
    ]
    answer = parse_answer(as_line({"result": RESULT | {"files": files}}))
    assert isinstance(answer, StepResult)
    assert answer.files == ("a.py", "b.py", "ä/b c.py")


def test_large_counts_are_exact() -> None:
    """A step of thousands of chips has more FLOPs than fit into 64 bits."""
    answer = parse_answer(as_line({"result": RESULT | {"flops": 39 * 10**18 + 1}}))
    assert isinstance(answer, StepResult)
    assert answer.figures
    assert answer.figures.flops == 39 * 10**18 + 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(st.sampled_from(sorted(RESULT)), JSON)
def test_a_result_with_any_other_value_is_read_or_refused(key: str, value: Any) -> None:
    """No value of a field leads to another exception."""
    try:
        answer = parse_answer(as_line({"result": RESULT | {key: value}}))
    except AnswerError:
        return
    assert isinstance(answer, StepResult)


@given(JSON | st.fixed_dictionaries({"error": JSON}) | st.fixed_dictionaries({"phase": JSON}))
def test_any_json_is_read_or_refused(value: Any) -> None:
    """No JSON leads to another exception."""
    try:
        assert isinstance(parse_answer(as_line(value)), Phase | FitFailure | StepResult)
    except AnswerError:
        return


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(line: bytes) -> None:
    """No bytes lead to another exception, and its text is short and printable."""
    with pytest.raises(AnswerError) as error:
        parse_answer(line)
    assert str(error.value).isprintable()
    assert len(str(error.value)) <= 60
