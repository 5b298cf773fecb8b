"""The final metrics in a log."""

import io
import json
from collections.abc import Sequence
from itertools import repeat

import pytest

from log_memory import peak_kilobytes
from tpucfg.results.log_metrics import MAX_ENTRY_LENGTH, LogError, last_metrics

BOTH = ("examples_per_second", "accuracy")


def parse(log: str | bytes, keys: Sequence[str] = BOTH) -> dict[str, float]:
    """Return the metrics of a log."""
    content = log if isinstance(log, bytes) else log.encode()
    return dict(last_metrics(io.BytesIO(content), "train.log", keys).metrics)


def line(**metrics: object) -> str:
    """Return a line of JSON."""
    return json.dumps(metrics) + "\n"


def test_the_last_line_with_all_keys_is_taken() -> None:
    """Later lines with only some of the keys are ignored, and so are other keys."""
    log = (
        "starting\n"
        + line(step=1, examples_per_second=10, accuracy=0.5)
        + line(step=2, examples_per_second=20.5, accuracy=0.75, loss=0.1)
        + line(step=3, examples_per_second=30)
        + 'the "accuracy" of {"examples_per_second": is high\n'
    )
    assert parse(log) == {"examples_per_second": 20.5, "accuracy": 0.75}
    assert parse(log, ["examples_per_second"]) == {"examples_per_second": 30}


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "  ",
        "INFO\t2026-01-01 00:00:00\tworkerpool0-0\t",
        "[mnist-0] ",
        "\x1b[32m",
        "\xff ",
        "\x00",
        "{host 0} ",
        "{} ",
    ],
)
def test_a_prefix_of_the_object_is_skipped(prefix: str) -> None:
    """A time or host name before the object, as services add it, is skipped."""
    log = prefix.encode("latin-1") + line(examples_per_second=1, accuracy=2).encode()
    assert parse(log) == {"examples_per_second": 1, "accuracy": 2}


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\nbye"])
def test_the_last_line_may_lack_its_line_break(end: str) -> None:
    """The metrics are found whatever ends the line."""
    assert parse(line(examples_per_second=1, accuracy=2).strip() + end)["accuracy"] == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("NaN", "accuracy is NaN, which is not a finite number"),
        ("Infinity", "not a finite number"),
        ("-Infinity", "accuracy is -Infinity, which is not a finite number"),
        ('"0.97"', 'accuracy is "0.97", which is not a number'),
        ("null", "accuracy is null, which is not a number"),
        ("true", "accuracy is true, which is not a number"),
        ("[0.97]", "not a number"),
        ('"\\u001b[31m"', "not a number"),
    ],
)
def test_a_diverged_run_is_an_error(value: str, expected: str) -> None:
    """An invalid value on the last line is an error: an earlier line is not used instead."""
    log = (
        line(examples_per_second=1, accuracy=0.9)
        + '{"examples_per_second": 1, "accuracy": '
        + value
        + "}\n"
    )
    with pytest.raises(LogError) as excinfo:
        parse(log)
    assert expected in str(excinfo.value)
    assert str(excinfo.value).startswith("train.log:2: ")
    assert str(excinfo.value).isprintable()
    assert ("diverged" in excinfo.value.help) == ("finite" in expected)
    assert ("without quotes" in excinfo.value.help) == ("finite" not in expected)


@pytest.mark.parametrize("value", ["1e400", "-1e999", "9" * 5000])
def test_a_number_beyond_floats_is_out_of_range(value: str) -> None:
    """A number beyond floats is out of range, and not a sign of a diverged run."""
    with pytest.raises(
        LogError, match=r"^train\.log:1: accuracy is a number out of range, beyond 1e308$"
    ) as excinfo:
        parse('{"examples_per_second": 1, "accuracy": ' + value + "}\n")
    assert "diverged" not in excinfo.value.help


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", "train.log has no line of JSON with examples_per_second and accuracy"),
        ("accuracy: 0.97\n", "train.log has no line of JSON with examples_per_second and accuracy"),
        (line(examples_per_second=1), "train.log has no line of JSON with accuracy"),
        (
            line(metrics={"accuracy": 1, "examples_per_second": 1}),
            "with examples_per_second and accuracy",
        ),
        (line(examples_per_second=1) + line(accuracy=1), "on several lines, but not on one"),
        ('["accuracy", "examples_per_second", {}]\n', "with examples_per_second and accuracy"),
        (
            '{"accuracy": 1, "examples_per_second": ' + "[" * 200_000 + "\n",
            "with examples_per_second and accuracy",
        ),
    ],
)
def test_missing_metrics_are_an_error(log: str, expected: str) -> None:
    """The error names the missing metrics, and the help the options to give them."""
    with pytest.raises(LogError) as excinfo:
        parse(log)
    assert expected in str(excinfo.value)
    assert "--metric examples_per_second=NUMBER" in excinfo.value.help


def test_a_line_beyond_the_limit_is_skipped() -> None:
    """A line of two megabytes is skipped, with an object at its end; the next line counts."""
    log = (
        "x" * (2 * MAX_ENTRY_LENGTH)
        + line(examples_per_second=1, accuracy=1)
        + line(examples_per_second=2, accuracy=2)
    )
    assert parse(log)["accuracy"] == 2
    with pytest.raises(LogError):
        parse(log[: 2 * MAX_ENTRY_LENGTH] + line(examples_per_second=1, accuracy=1))


def test_an_endless_line_takes_no_memory() -> None:
    """Reading two hundred megabytes without a line break takes less than 20 megabytes."""
    assert peak_kilobytes(repeat(bytes(1_000_000), 200)) < 20_000
