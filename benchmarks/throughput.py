"""Throughput of one command with many specs, and the growth of time and memory."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from benchmarks.timing import Cost, run

COUNTS: Final = (100, 300, 1000)
"""Numbers of specs."""
SIZES: Final = ("v2-8", "v2-32", "v2-128", "v2-256", "v2-512")
MIN_CONFIGS_PER_SECOND: Final = 2_500
"""Goal for configs per core second, with the most specs."""
MAX_MEMORY: Final = 200e6
"""Goal for peak memory, in bytes."""
MAX_GROWTH: Final = 1.25
"""Goal for the cost of an additional config above 300 specs, relative to the cost below: time grows linearly."""
_TMPFS: Final = Path("/dev/shm")  # noqa: S108 - a folder in memory, so that no disk is measured
MEMORY_FOLDER: Final = _TMPFS if _TMPFS.is_dir() else None
"""Folder of the files that are read and written; None for the system's default."""

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
    """Return the cheapest of `rounds` runs of `tpucfg render --out DIR --spec A …`, by number of specs."""
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        workdir = Path(folder)
        specs = list(write_specs(workdir))
        costs_by_count: dict[int, list[Cost]] = {count: [] for count in COUNTS}
        for _ in range(rounds):
            for count in COUNTS:
                shutil.rmtree(workdir / "out", ignore_errors=True)
                options = [argument for spec in specs[:count] for argument in ("--spec", spec)]
                costs_by_count[count].append(
                    run([str(tpucfg / "tpucfg"), "render", "--out", "out", *options], workdir)
                )
                _check_complete(workdir / "out", count)
    return {count: min(costs, key=_core_seconds) for count, costs in costs_by_count.items()}


def _core_seconds(cost: Cost) -> float:
    """Return the processor time of all processes, which does not depend on the machine's other load."""
    return cost.cpu_seconds


def write_specs(workdir: Path) -> Iterator[str]:
    """Write specs of different projects with different values; yield their names."""
    for number in range(max(COUNTS)):
        text = _SPEC.format(
            number=number,
            sizes=", ".join(SIZES),
            batch=8 * (64 + number % 128),
            steps=6400 + 64 * (number % 100),
        )
        (workdir / f"{number}.yaml").write_text(text, encoding="utf-8")
        yield f"{number}.yaml"


def _check_complete(out: Path, count: int) -> None:
    """Raise an error if configs are missing: an incomplete run would look fast."""
    written = sum(1 for _ in out.glob("*/dev/*/config.yaml"))
    if written != count * len(SIZES):
        raise RuntimeError(f"{written} configs of {count} specs instead of {count * len(SIZES)}")


def _per_config(costs: Mapping[int, Cost], smaller: int, larger: int) -> float:
    """Return the core seconds per additional config between two numbers of specs, without start-up."""
    return (costs[larger].cpu_seconds - costs[smaller].cpu_seconds) / (
        (larger - smaller) * len(SIZES)
    )


def missed(costs: Mapping[int, Cost]) -> list[str]:
    """Return the names of the goals that these costs miss."""
    few, some, many = COUNTS
    goals = {
        "configs per second": many * len(SIZES) / costs[many].cpu_seconds >= MIN_CONFIGS_PER_SECOND,
        "memory": costs[many].peak_bytes <= MAX_MEMORY,
        "linear growth": _per_config(costs, some, many)
        <= MAX_GROWTH * _per_config(costs, few, some),
    }
    return [name for name, met in goals.items() if not met]


def report(costs: Mapping[int, Cost]) -> Iterator[str]:
    """Yield the results as lines of Markdown."""
    yield "| specs | configs | seconds | core seconds | configs per core second | ms per further config | peak MB |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for previous, count in zip((None, *COUNTS), COUNTS, strict=False):
        cost, configs = costs[count], count * len(SIZES)
        per_config = f"{_per_config(costs, previous, count) * 1000:.3f}" if previous else ""
        times = f"{cost.seconds:.2f} | {cost.cpu_seconds:.2f} | {configs / cost.cpu_seconds:,.0f}"
        yield f"| {count:,} | {configs:,} | {times} | {per_config} | {cost.peak_bytes / 1e6:.0f} |"
    yield ""
    speed, memory = (
        f"{MIN_CONFIGS_PER_SECOND:,} configs per core second",
        f"under {MAX_MEMORY / 1e6:.0f} MB",
    )
    yield f"Goals with {max(COUNTS):,} specs: {speed}, {memory}, linear growth."
