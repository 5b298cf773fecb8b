"""Ladders with replicas, micro-batches and tokens, in every output that shows figures."""

import json
from pathlib import Path

import pytest

from process import Run
from spec_factory import spec

HEADER = (
    "size chips cores hosts batch_size data_parallel model_parallel grad_accum micro-batch train_steps save_steps "
    "examples tokens"
)
LADDER = [
    HEADER,
    "v5litepod-64 64 64 16 256 16 4 4 4 9,537 500 2,441,472 20,000,538,624 (+538,624)",
    "v5litepod-128x2 256 256 64 256 64 4 1 4 9,537 500 2,441,472 20,000,538,624 (+538,624)",
]
COLUMNS = (
    *("size", "cores", "data_parallel", "model_parallel", "grad_accum", "micro-batch"),
    *("examples/s", "tokens/s", "tokens/s/device", "per core", "scaling", "status"),
)
STATUS = [
    " ".join(COLUMNS),
    "v5litepod-64 64 16 4 4 4 32 262,144 4,096 0.5 – recorded",
    "v5litepod-128x2 256 64 4 1 4 102 835,584 3,264 0.3984 79.6% recorded",
]


def rows(output: str) -> list[str]:
    """Return the rows of the only table, with single spaces."""
    return [" ".join(line.split()) for line in output.splitlines()[1:4]]


@pytest.fixture
def chat(tpucfg: Run, tmp_path: Path) -> Run:
    """Return the command in a project whose batch stays, with a record of each of two rungs."""
    data = spec(
        name="chat",
        target="gke",
        sizes=["v5litepod-64", "v5litepod-128x2"],
        environments__dev__region="us-west4",
        training={
            "tuned_on": "v5litepod-64",
            "batch_size": 256,
            "batch_rule": "keep",
            "grad_accum": 4,
            "model_parallel": 4,
            "sequence_length": 8192,
            "train_tokens": 20_000_000_000,
            "steps": {"save_steps": {"value": 500, "scale": False}},
        },
    )
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(data, indent=1))
    for size, throughput in (("v5litepod-64", 32), ("v5litepod-128x2", 102)):
        recorded = tpucfg("record", "--size", size, "--metric", f"examples_per_second={throughput}")
        assert recorded.returncode == 0, recorded.stderr
    return tpucfg


def test_the_ladder_has_columns_of_parallelism(chat: Run) -> None:
    """The batch per core is replaced by the split of devices and batch, and tokens have their surplus."""
    assert rows(chat("ladder").stdout) == LADDER
    assert "| micro-batch |" in chat("ladder", "--format", "markdown").stdout


def test_the_status_has_tokens_per_second(chat: Run) -> None:
    """The measured examples are tokens too, and cores of all slices are compared."""
    assert rows(chat("status").stdout) == STATUS


def test_data_has_the_figures(chat: Run) -> None:
    """Both commands have equal figures as JSON."""
    expected = {
        "slices": 2,
        "devices": 256,
        "data_parallel": 64,
        "model_parallel": 4,
        "grad_accum": 1,
        "micro_batch_size": 4,
        "sequence_length": 8192,
        "tokens": 20_000_538_624,
    }
    rung = json.loads(chat("ladder", "--format", "json").stdout)["ladders"][0]["rungs"][1]
    assert rung | expected == rung
    status = json.loads(chat("status", "--format", "json").stdout)["environments"][0]["rungs"][1]
    assert status | expected == status
    assert status["tokens_per_second"] == 102 * 8192


def test_a_plain_ladder_has_no_such_columns(tpucfg: Run) -> None:
    """Without any of these settings, tables and data are as short as before."""
    assert (
        "data_parallel" not in tpucfg("ladder").stdout + tpucfg("ladder", "--format", "json").stdout
    )
    assert "tokens" not in tpucfg("status").stdout + tpucfg("status", "--format", "json").stdout
