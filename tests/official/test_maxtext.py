"""The command lines of MaxText's preset, given to MaxText's own parser, which refuses unknown keys."""

import json
import os
import subprocess
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from jobs import compiled
from official.maxtext_python import maxtext_python
from tpucfg.plan import Job

TRAINER: Final[dict[str, Any]] = {
    "command": ["python3", "-m", "maxtext.trainers.pre_train.train", "base.yml"],
    "args": {"model_name": "llama3.1-8b", "dataset_type": "synthetic"},
}
FIGURES: Final[dict[str, Any]] = {
    "sequence_length": 8192,
    "train_tokens": 20_000_000_000,
    "learning_rate": 3e-4,
    "learning_rate_rule": "sqrt",
    "steps": {"checkpoint_period": {"value": 100, "scale": False}},
    "flags": "maxtext",
}
LADDERS: Final = (
    ("us-west4", ["v5litepod-16", "v5litepod-64", "v5litepod-256x2"]),
    ("us-east5", ["v5p-32", "v5p-128", "v5p-256x2"]),
    ("us-east5", ["v6e-16", "v6e-64", "v6e-256x2"]),
    ("us-central1", ["tpu7x-64", "tpu7x-128", "tpu7x-128x2"]),
)
BATCHES: Final[tuple[dict[str, Any], ...]] = (
    {"per_device_batch_size": 4},
    {"per_device_batch_size": 0.5, "model_parallel": 2},
    {"batch_size": 1024, "grad_accum": 2},
    {"batch_size": 4096, "grad_accum": 8, "batch_rule": "keep"},
)


def jobs() -> list[Job]:
    """Return the jobs of every ladder, and of the first one with every form of the batch, whole runs and probes."""
    planned: list[Job] = []
    first, *others = LADDERS
    pairs = [*product([first], BATCHES), *zip(others, BATCHES, strict=False)]
    for ((region, sizes), batch), probe in product(pairs, (False, True)):
        training = {"tuned_on": sizes[0], **FIGURES, **batch}
        more: dict[str, Any] = {"trainer": TRAINER, "training": training, "probe": {"steps": 50}}
        planned += compiled(
            "gke", *sizes, environment={"region": region}, probes=probe, **more
        ).jobs
    return planned


@pytest.mark.official
@pytest.mark.telling
def test_every_line_means_what_the_plan_says() -> None:
    """MaxText reads the devices, the batch, the steps, the rate, the length and the folder of the plan.

    It finds a flag that MaxText does not have or understands otherwise, and a batch that it multiplies once more.
    """
    planned = jobs()
    lines = [
        {"args": job.args, "topology": _topology(job), "slices": job.slice.slices}
        for job in planned
    ]
    script = Path(__file__).with_name("parse_maxtext.py")
    # On the CPU, because the parser asks JAX for its devices.
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    text = "\n".join(map(json.dumps, lines))
    result = subprocess.run(
        [maxtext_python(), script],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    parsed = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(parsed) == len(planned) == 42
    for job, figures in zip(planned, parsed, strict=True):
        rung = job.rung
        assert figures == {
            "num_target_devices": job.slice.devices,
            "global_batch_size_to_train_on": rung.batch_size,
            "gradient_accumulation_steps": rung.grad_accum or 1,
            "steps": 50 if job.whole else rung.train_steps,
            # A probe follows the first steps of the whole run's schedule, and keeps nothing.
            "learning_rate_schedule_steps": job.whole_run.rung.train_steps,
            "enable_checkpointing": job.whole is None,
            "learning_rate": float(rung.learning_rate or 0),
            "max_target_length": 8192,
            "checkpoint_period": 100,
            "run_name": "probe" if job.whole else job.name,
            "base_output_directory": f"gs://{job.bucket}/{f'jobs/mnist/{job.size}' if job.whole else 'runs/mnist'}",
        }, job.name


def _topology(job: Job) -> str:
    """Return MaxText's name of one slice: `v5e-256` is Google's v5litepod-256."""
    generation, _, number = job.size.partition("x2")[0].rpartition("-")
    return f"{'v5e' if generation == 'v5litepod' else generation}-{number}"
