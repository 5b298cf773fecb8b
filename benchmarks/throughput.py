"""Many specs in one command: how many configs a second, and how time and memory grow."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from benchmarks.timing import Cost, run

COUNTS: Final = (100, 300, 1000)
"""Specs."""
SIZES: Final = ("v2-8", "v2-32", "v2-128", "v2-256", "v2-512")
FASTEST: Final = 2_500
"""Configs in a second of one core, at least, with all specs."""
MEMORY: Final = 200e6
"""Bytes, at most."""
STEEPEST: Final = 1.25
"""Times that a further config may cost more from 300 specs on than before: time grows no faster than the configs."""
_TMPFS: Final = Path("/dev/shm")  # noqa: S108 - a folder in memory, so that no disk is measured
MEMORY_FOLDER: Final = _TMPFS if _TMPFS.is_dir() else None
"""Where the files stand that are read and written; None for the system's own choice."""

_SPEC: Final = """\
version: 1
name: project-{number}
target: vertex-ai
sizes: [{sizes}]
environments:
  dev: {{project: my-project-{number}, region: us-central1}}
trainer:
  image: us-docker.pkg.dev/my-project-{number}/train/model:1.{number}
  args:
    distribution_strategy: tpu
    data_dir: ${{bucket}}/data
    model_dir: ${{job_dir}}
training:
  tuned_on: v2-8
  batch_size: {batch}
  train_steps: {steps}
  learning_rate: 0.1
  learning_rate_rule: linear
  steps:
    warmup_steps: 200
    save_checkpoints_steps: 500
allow:
  TPU041: compared with the rung below, on each rung
"""


def measure(tpucfg: Path, rounds: int) -> dict[int, Cost]:
    """The cheapest of so many runs of `tpucfg render --out DIR --spec A --spec B …`, by the number of specs."""
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        here = Path(folder)
        specs = list(write_specs(here))
        taken: dict[int, list[Cost]] = {count: [] for count in COUNTS}
        for _ in range(rounds):
            for count in COUNTS:
                shutil.rmtree(here / "out", ignore_errors=True)
                options = [word for spec in specs[:count] for word in ("--spec", spec)]
                taken[count].append(run([str(tpucfg / "tpucfg"), "render", "--out", "out", *options], here))
                _complete(here / "out", count)
    return {count: min(costs, key=_core_seconds) for count, costs in taken.items()}


def _core_seconds(cost: Cost) -> float:
    """What decides here: of all its processes, and so the time on one core that nobody shares."""
    return cost.cpu_seconds


def write_specs(here: Path) -> Iterator[str]:
    """Specs of different projects, with figures of their own."""
    for number in range(max(COUNTS)):
        text = _SPEC.format(
            number=number, sizes=", ".join(SIZES), batch=8 * (64 + number % 128), steps=6400 + 64 * (number % 100)
        )
        (here / f"{number}.yaml").write_text(text, encoding="utf-8")
        yield f"{number}.yaml"


def _complete(out: Path, count: int) -> None:
    """A run that left configs out would look fast."""
    made = sum(1 for _ in out.glob("*/dev/*/config.yaml"))
    if made != count * len(SIZES):
        raise RuntimeError(f"{made} configs of {count} specs, and not {count * len(SIZES)}")


def _per_config(costs: Mapping[int, Cost], fewer: int, more: int) -> float:
    """Seconds of a core for each further config between two numbers of specs: what the start costs falls out."""
    return (costs[more].cpu_seconds - costs[fewer].cpu_seconds) / ((more - fewer) * len(SIZES))


def missed(costs: Mapping[int, Cost]) -> list[str]:
    """The goals that these figures miss, in a word each."""
    few, some, many = COUNTS
    judged = {
        "configs a second": many * len(SIZES) / costs[many].cpu_seconds >= FASTEST,
        "memory": costs[many].peak_bytes <= MEMORY,
        "linear growth": _per_config(costs, some, many) <= STEEPEST * _per_config(costs, few, some),
    }
    return [name for name, met in judged.items() if not met]


def report(costs: Mapping[int, Cost]) -> Iterator[str]:
    """The figures as Markdown."""
    yield "| specs | configs | seconds | core seconds | configs per core second | ms per additional config | peak MB |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for fewer, count in zip((None, *COUNTS), COUNTS, strict=False):
        cost, configs = costs[count], count * len(SIZES)
        further = f"{_per_config(costs, fewer, count) * 1000:.3f}" if fewer else ""
        times = f"{cost.seconds:.2f} | {cost.cpu_seconds:.2f} | {configs / cost.cpu_seconds:,.0f}"
        yield f"| {count:,} | {configs:,} | {times} | {further} | {cost.peak_bytes / 1e6:.0f} |"
    yield ""
    memory = f"under {MEMORY / 1e6:.0f} MB"
    yield f"Goals with {max(COUNTS):,} specs: {FASTEST:,} configs in a second of one core, {memory}, linear growth."
