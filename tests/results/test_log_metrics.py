"""The last measurement in a log."""

import io
import json
from collections.abc import Sequence
from itertools import repeat

import pytest

from log_memory import kilobytes_taken
from tpucfg.results.cloud_logging import MAX_ENTRY_LENGTH
from tpucfg.results.log_metrics import LogError, last_metrics

BOTH = ("examples_per_second", "accuracy")


def found(log: str | bytes, wanted: Sequence[str] = BOTH) -> dict[str, float]:
    """What a log gives."""
    content = log if isinstance(log, bytes) else log.encode()
    return dict(last_metrics(io.BytesIO(content), "train.log", wanted).metrics)


def line(**metrics: object) -> str:
    """A line of JSON."""
    return json.dumps(metrics) + "\n"


def test_the_last_line_with_all_keys_is_taken() -> None:
    """Later lines that have only some of them do not count, and other keys are left."""
    log = (
        "starting\n"
        + line(step=1, examples_per_second=10, accuracy=0.5)
        + line(step=2, examples_per_second=20.5, accuracy=0.75, loss=0.1)
        + line(step=3, examples_per_second=30)
        + 'the "accuracy" of {"examples_per_second": is high\n'
    )
    assert found(log) == {"examples_per_second": 20.5, "accuracy": 0.75}
    assert found(log, ["examples_per_second"]) == {"examples_per_second": 30}


@pytest.mark.parametrize(
    "prefix", ["", "  ", "INFO\t2026-01-01 00:00:00\tworkerpool0-0\t", "[mnist-0] ", "\x1b[32m", "\xff ", "\x00"]
)
def test_what_stands_before_the_object_is_passed_over(prefix: str) -> None:
    """Services put a time and a host before each line."""
    log = prefix.encode("latin-1") + line(examples_per_second=1, accuracy=2).encode()
    assert found(log) == {"examples_per_second": 1, "accuracy": 2}


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\nbye"])
def test_ends(end: str) -> None:
    """The last line may lack its end."""
    assert found(line(examples_per_second=1, accuracy=2).strip() + end)["accuracy"] == 2


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("NaN", "accuracy is NaN, which is no finite number"),
        ("Infinity", "no finite number"),
        ("-Infinity", "accuracy is -Infinity, which is no finite number"),
        ('"0.97"', 'accuracy is "0.97", which is no number'),
        ("null", "accuracy is null, which is no number"),
        ("true", "accuracy is true, which is no number"),
        ("[0.97]", "no number"),
        ('"\\u001b[31m"', "no number"),
    ],
)
def test_a_run_that_diverged_is_not_passed_over(value: str, said: str) -> None:
    """The last line decides: an earlier and better one is not taken in its place."""
    log = line(examples_per_second=1, accuracy=0.9) + '{"examples_per_second": 1, "accuracy": ' + value + "}\n"
    with pytest.raises(LogError) as caught:
        found(log)
    assert said in str(caught.value)
    assert str(caught.value).startswith("train.log:2: ")
    assert str(caught.value).isprintable()
    assert ("diverged" in caught.value.help) == ("finite" in said)
    assert ("without quotes" in caught.value.help) == ("finite" not in said)


@pytest.mark.parametrize("value", ["1e400", "-1e999", "9" * 5000])
def test_a_number_beyond_floats_is_said_to_be_out_of_range(value: str) -> None:
    """Nobody is told that a run diverged which printed a number."""
    with pytest.raises(LogError, match=r"^train\.log:1: accuracy is a number out of range, beyond 1e308$") as caught:
        found('{"examples_per_second": 1, "accuracy": ' + value + "}\n")
    assert "diverged" not in caught.value.help


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", "train.log has no line of JSON with examples_per_second and accuracy"),
        ("accuracy: 0.97\n", "train.log has no line of JSON with examples_per_second and accuracy"),
        (line(examples_per_second=1), "train.log has no line of JSON with accuracy"),
        (line(metrics={"accuracy": 1, "examples_per_second": 1}), "with examples_per_second and accuracy"),
        (line(examples_per_second=1) + line(accuracy=1), "in several lines, and in none together"),
        ('["accuracy", "examples_per_second", {}]\n', "with examples_per_second and accuracy"),
        ('{"accuracy": 1, "examples_per_second": ' + "[" * 200_000 + "\n", "with examples_per_second and accuracy"),
    ],
)
def test_no_measurement(log: str, said: str) -> None:
    """What is missing is named, and the help gives the other way."""
    with pytest.raises(LogError) as caught:
        found(log)
    assert said in str(caught.value)
    assert "--metric examples_per_second=NUMBER" in caught.value.help


def test_a_line_without_end_is_not_kept() -> None:
    """A line of two megabytes is passed over, and so is all of it; the next counts."""
    log = (
        "x" * (2 * MAX_ENTRY_LENGTH) + line(examples_per_second=1, accuracy=1) + line(examples_per_second=2, accuracy=2)
    )
    assert found(log)["accuracy"] == 2
    with pytest.raises(LogError):
        found(log[: 2 * MAX_ENTRY_LENGTH] + line(examples_per_second=1, accuracy=1))


def test_an_endless_line_takes_no_memory() -> None:
    """Two hundred megabytes without a line break are read in the space of a few."""
    assert kilobytes_taken(repeat(bytes(1_000_000), 200)) < 20_000
