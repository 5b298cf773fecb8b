"""The lines that MaxText prints after each step, as the measurement of a rung."""

import io
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from tpucfg.cli.app import run
from tpucfg.results.log_metrics import LogError, LogMetrics, Steps, last_metrics
from tpucfg.spec.presets import PRESETS

EXAMPLE = Path(__file__).parents[2] / "examples" / "maxtext" / "tpucfg.yaml"
STEPS = Steps(PRESETS["maxtext"].step_line, 64)
RATE = "examples_per_second"


def step(number: int, seconds: float = 4.0, *, loss: str = "2.500", more: str = "") -> str:
    """Return the line of a step as MaxText's metric_logger.py prints it.

    https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/common/metric_logger.py
    """
    speed = "TFLOP/s/device: 134.911, Tokens/s/device: 8192.000"
    values = f"total_weights: 196608, loss: {loss}, lm_loss: 0.000, perplexity: 12.182"
    return f"completed step: {number}, seconds: {seconds:.3f}, {more}{speed}, {values}"


def parse(lines: Iterable[str], keys: Sequence[str] = (RATE,), steps: Steps = STEPS) -> LogMetrics:
    """Return what is read from a log of lines."""
    log = "".join(f"{line}\n" for line in lines).encode()
    return last_metrics(io.BytesIO(log), "train.log", keys, steps)


def test_the_median_after_the_first_ten_steps_counts() -> None:
    """Steps that compile are left out, and those that save a checkpoint do not change the median."""
    times = [45.0, 0.3, *[9.0] * 8, *[4.0, 4.1, 3.9] * 10, 60.0]
    read = parse(
        ["starting", *(step(number, seconds) for number, seconds in enumerate(times)), "done"]
    )
    assert read.metrics == {RATE: 64 / 4.0}
    assert (
        read.note
        == f"{RATE} is the batch of 64 in the median step, 4 seconds, of the 31 after the first 10"
    )


@pytest.mark.parametrize(("count", "slow"), [(10, 5), (19, 9), (20, 10), (21, 10)])
def test_of_few_steps_the_first_half_is_left_out(count: int, slow: int) -> None:
    """A log of ten steps is enough, and at most half of it is the warm-up."""
    assert (
        parse(step(number, 9 if number < slow else 4) for number in range(count)).metrics[RATE]
        == 16
    )


def test_too_few_steps_are_an_error() -> None:
    """Nine steps may all be warm-up; steps too short to be printed are no measurement."""
    with pytest.raises(LogError, match=r"train\.log has 9 timed steps, too few") as excinfo:
        parse(step(number) for number in range(9))
    assert (
        excinfo.value.help
        == f"let the program run at least 20 steps, or give --metric {RATE}=NUMBER"
    )
    with pytest.raises(LogError, match="too few"):
        parse(step(number, 0) for number in range(30))


PREFIXES = [
    "",
    "[llama-0] ",
    "I0706 16:50:26.230209 140110937163584 metric_logger.py:214] ",
    "\x1b[32m",
    "{",
]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_and_the_line_of_an_elastic_run_are_read(prefix: str) -> None:
    """Text of a host or a logger before the line is skipped."""
    assert (
        parse(prefix + step(number, more="live slice count: 2, ") for number in range(30)).metrics[
            RATE
        ]
        == 16
    )


def test_hosts_that_print_the_same_step_count_once() -> None:
    """The warm-up is counted in steps, not in lines, and a resumed run begins at its own first step."""
    lines = [
        step(5000 + number, 9 if number < 10 else 4) for number in range(25) for _ in range(16)
    ]
    assert parse(lines).metrics[RATE] == 16
    assert parse(lines).note.endswith("of the 15 after the first 10")


def test_lines_without_the_whole_batch_do_not_count() -> None:
    """A ramp-up of the batch, a profile's hidden times and an evaluation are no timed steps."""
    others = [
        "[Rampup Batch Size Phase], completed step: 40, seconds: 1.000, total_weights: 8, loss: 1.000",
        "completed profiler activation/deactivation step: 41, total_weights: 8, loss: 1.000",
        "Completed eval after train step 42, loss=1.000, perplexity=2.000",
    ]
    assert parse([*(step(number) for number in range(30)), *others * 30]).metrics[RATE] == 16
    with pytest.raises(
        LogError, match='no line "completed step: …", and none of JSON with examples_per_second'
    ):
        parse(others)


def test_other_metrics_are_those_of_the_last_step() -> None:
    """The loss is on the line; what is not on it is asked for; a loss that is no number is a diverged run."""
    lines = [step(number, loss=f"{10 - number / 10:.3f}") for number in range(30)]
    assert parse(lines, [RATE, "loss", "perplexity"]).metrics == {
        RATE: 16,
        "loss": 7.1,
        "perplexity": 12.182,
    }
    assert parse(lines[:2], ["loss"]).metrics == {"loss": 9.9}
    with pytest.raises(
        LogError, match=r"^train\.log:30: the line of the last step has no accuracy$"
    ) as excinfo:
        parse(lines, [RATE, "accuracy"])
    assert "--metric accuracy=NUMBER" in excinfo.value.help
    with pytest.raises(LogError, match="loss is NaN, which is not a finite number"):
        parse([*lines, step(30, loss="nan")], [RATE, "loss"])


def test_a_metric_of_a_run_that_has_not_ended_is_not_final() -> None:
    """A whole run of 31 steps ends with step 30; its speed is known before."""
    lines = [step(number) for number in range(30)]
    run_of = [STEPS._replace(total=total) for total in (30, 31)]
    assert parse(lines, [RATE, "loss"], run_of[0]).metrics["loss"] == 2.5
    assert parse(lines, [RATE], run_of[1]).metrics == {RATE: 16}
    with pytest.raises(
        LogError, match=r"^train\.log:30: loss of step 29 is not final: a run has 31$"
    ) as excinfo:
        parse(lines, [RATE, "loss"], run_of[1])
    assert excinfo.value.help.endswith("--run ID --step 30")


def test_a_log_of_other_batches_is_refused() -> None:
    """8,192 tokens per second in 4 seconds are 32,768 tokens a device, so 6 x 8,192 of the spec are another run."""
    lines = [step(number) for number in range(30)]
    assert parse(lines, steps=STEPS._replace(tokens_per_device=Fraction(32768))).metrics == {
        RATE: 16
    }
    with pytest.raises(LogError, match="32,768 tokens a device, and 49,152 in the spec"):
        parse(lines, steps=STEPS._replace(tokens_per_device=Fraction(6 * 8192)))


def test_a_line_of_json_with_all_metrics_goes_first() -> None:
    """A program that prints its own throughput knows better, wherever the line stands; one without it does not."""
    lines = [step(number) for number in range(30)]
    assert parse([json.dumps({RATE: 15.5}), *lines]).metrics == {RATE: 15.5}
    assert parse([json.dumps({"accuracy": 1}), *lines]).metrics == {RATE: 16}


def as_text(line: str) -> dict[str, object]:
    """Return the payload of a line on GKE."""
    return {"textPayload": f"{line}\n"}


def as_message(line: str) -> dict[str, object]:
    """Return the payload of a line on Vertex AI and Compute Engine."""
    return {"jsonPayload": {"message": line}}


@pytest.mark.parametrize("payload", [as_text, as_message])
def test_entries_of_cloud_logging_are_read_in_either_order(
    payload: Callable[[str], dict[str, object]],
) -> None:
    """`gcloud logging read` prints the newest entry first, in a list; a sink writes one entry per line."""
    entries = [
        {
            "timestamp": f"2026-03-01T12:00:{number:02}Z",
            **payload(step(number, 9 if number < 10 else 4, loss=str(number))),
        }
        for number in range(30)
    ]
    for ordered in (entries, entries[::-1]):
        for log in (json.dumps(ordered, indent=2), "\n".join(map(json.dumps, ordered))):
            assert parse([log], [RATE, "loss"]).metrics == {RATE: 16, "loss": 29}


def test_only_a_preset_has_lines_of_steps() -> None:
    """Without a preset in the spec, the lines are text like any other."""
    log = "\n".join(step(number) for number in range(30)).encode()
    with pytest.raises(LogError, match="no line of JSON with examples_per_second"):
        last_metrics(io.BytesIO(log), "train.log", [RATE])


def test_record_takes_the_batch_of_the_rung(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The batch of the rung is that of the whole slice: 64 examples on 16 chips, 256 on 64."""
    spec, log = tmp_path / "tpucfg.yaml", tmp_path / "train.log"
    shutil.copy(EXAMPLE, spec)
    log.write_text("".join(f"{step(number)}\n" for number in range(30)))
    for size, expected in (("v6e-16", "16"), ("v6e-64", "64")):
        assert run(["record", "--spec", str(spec), "--size", size, "--from", str(log)]) == 0
        output = capsys.readouterr().out
        assert f"recorded {size}: {RATE} {expected}\n{RATE} is the batch of " in output
