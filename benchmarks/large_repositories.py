"""Repositories of many configs: compare two trees, check hand-written files, and review a change of all configs."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.environments import ROOT
from benchmarks.throughput import COUNTS, MEMORY_FOLDER, SIZES, write_specs
from benchmarks.timing import Cost, fastest, run

CONFIGS: Final = max(COUNTS) * len(SIZES)
_CHANGED_SHARE: Final = 100
"""One config of this many differs between the trees, or is broken."""
MAX_DIFF_RATIO: Final = 3.0
MAX_REVIEW_SECONDS: Final = 1.0
_ENVIRONMENTS: Final = 50
"""The most that a spec may have."""
_SIZES: Final = (
    "v5litepod-8, v5litepod-16, v5litepod-32, v5litepod-64, v5litepod-128, v5litepod-256"
)
REVIEWED_CONFIGS: Final = _ENVIRONMENTS * len(_SIZES.split())
ALL_CONFIGS: Final = ("train_steps: 64000", "train_steps: 32000")
"""An edit of the spec that changes every config."""
ONE_CONFIG: Final = ("batch_size: 512", "batch_size: 256")
"""An edit that changes one config: only the first environment has this size."""

_DIFF: Final = "tpucfg diff before after"
_GIT: Final = "git diff --no-index --stat before after"
_CHECK: Final = "tpucfg check --config before --target vertex-ai"
_SCRIPT: Final = "script (PyYAML, jsonschema)"
_REVIEW_ALL: Final = f"tpucfg review, {REVIEWED_CONFIGS} configs change"
_REVIEW_ONE: Final = f"tpucfg review, 1 of {REVIEWED_CONFIGS} changes"


class Comparison(NamedTuple):
    """Two commands of which the first has a goal relative to the second."""

    command: str
    reference: str
    goal: str


COMPARISONS: Final = (
    Comparison(_DIFF, _GIT, f"{MAX_DIFF_RATIO:g} × the time"),
    Comparison(_CHECK, _SCRIPT, "less time"),
    Comparison(_REVIEW_ALL, _REVIEW_ONE, f"{MAX_REVIEW_SECONDS:g} s more processor time"),
)

_SPEC: Final = """\
version: 1
name: large
target: vertex-ai
sizes: [{sizes}]
environments:
  first: {{project: my-project, region: us-west4, sizes: [v5litepod-4, {other_sizes}]}}
{environments}
trainer:
  image: us-docker.pkg.dev/my-project/train/model:1.0
  args: {{data_dir: "${{bucket}}/data"}}
training:
  tuned_on: v5litepod-8
  batch_size: 1024
  train_steps: 64000
  learning_rate: 0.1
  learning_rate_rule: linear
overrides:
  v5litepod-4: {{batch_size: 512}}
allow:
  TPU041: compared with the rung below, on each rung
  TPU047: compared with the rung below, on each rung
"""


def measure(tpucfg: Path, rounds: int) -> dict[str, Cost]:
    """Return the fastest of `rounds` runs of each command."""
    program = str(tpucfg / "tpucfg")
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        workdir = Path(folder)
        _write_trees(program, workdir)
        schema = str(ROOT / "schema" / "vertex-ai.schema.json")
        script = str(ROOT / "benchmarks" / "peers" / "script" / "check.py")
        costs = fastest(
            {
                _DIFF: (program, *_DIFF.split()[1:]),
                # git's status is 1, because the trees differ.
                _GIT: ("/bin/sh", "-c", f"{_GIT}; test $? = 1"),
                _CHECK: (program, *_CHECK.split()[1:]),
                _SCRIPT: (str(tpucfg / "python"), script, schema, "before"),
            },
            workdir,
            rounds,
        )
    for name, edit in ((_REVIEW_ALL, ALL_CONFIGS), (_REVIEW_ONE, ONE_CONFIG)):
        with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
            write_repository(Path(folder), edit)
            costs |= fastest({name: (program, "review", "--base", "HEAD")}, Path(folder), rounds)
    return costs


def _write_trees(program: str, workdir: Path) -> None:
    """Write the configs of many specs to the folder `before`, and a copy with a few changes to `after`."""
    options = [argument for spec in write_specs(workdir) for argument in ("--spec", spec)]
    run([program, "render", "--out", "before", *options], workdir)
    shutil.copytree(workdir / "before", workdir / "after")
    for path in sorted((workdir / "after").rglob("config.yaml"))[::_CHANGED_SHARE]:
        path.write_text(path.read_text().replace("--warmup_steps=", "--warmup_steps=1"))


def write_repository(folder: Path, edit: tuple[str, str]) -> None:
    """Write a git repository with a spec of many configs, which an edit in the working tree changes."""
    environments = (
        f"  e{number}: {{project: my-project-{number}, region: us-west4}}"
        for number in range(1, _ENVIRONMENTS)
    )
    _, _, other_sizes = _SIZES.partition(", ")
    text = _SPEC.format(sizes=_SIZES, other_sizes=other_sizes, environments="\n".join(environments))
    spec = folder / "tpucfg.yaml"
    spec.write_text(text)
    identity = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.com")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "base")):
        subprocess.run(["git", *command], cwd=folder, check=True)
    spec.write_text(text.replace(*edit))


def missed(costs: Mapping[str, Cost]) -> list[str]:
    """Return the goals that these costs miss."""
    goals = {
        "diff": costs[_DIFF].seconds <= MAX_DIFF_RATIO * costs[_GIT].seconds,
        "check": costs[_CHECK].seconds < costs[_SCRIPT].seconds,
        "review": costs[_REVIEW_ALL].cpu_seconds - costs[_REVIEW_ONE].cpu_seconds
        <= MAX_REVIEW_SECONDS,
    }
    return [f"{name} of many configs" for name, met in goals.items() if not met]


def report(costs: Mapping[str, Cost]) -> Iterator[str]:
    """Yield the results as lines of Markdown."""
    yield "| command | seconds | core seconds | peak MB | against | seconds | core seconds | ratio | goal |"
    yield "|---|---:|---:|---:|---|---:|---:|---:|---|"
    for command, reference, goal in COMPARISONS:
        cost, other = costs[command], costs[reference]
        times = f"{cost.seconds:.2f} | {cost.cpu_seconds:.2f} | {cost.peak_bytes / 1e6:.0f}"
        others = (
            f"{other.seconds:.2f} | {other.cpu_seconds:.2f} | {cost.seconds / other.seconds:.2f}"
        )
        yield f"| {_code(command)} | {times} | {_code(reference)} | {others} | {goal} |"


def _code(command: str) -> str:
    return command if "," in command else f"`{command}`"
