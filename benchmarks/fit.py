"""Memory and bounds of real programs on slices of each generation: `python -m benchmarks.fit`.

Every rung of the examples with a training step is compiled, and every published run of `benchmarks/fit_runs.py`. The
TPU compiler is that of `make tpu-compiler`, or of the Python in TPUCFG_TPU_PYTHON. A rung takes up to some minutes;
those that were measured before are kept in `.cache/bench/fit` and not measured again without `--fresh`.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.environments import ROOT
from benchmarks.fit_runs import RUNS, Run, slice_of, spec_text
from tpucfg.fit.fit_file import FitResult, fit_path, read_fit_file
from tpucfg.fit.forecast import lower_bound
from tpucfg.fit.rung_fit import gib, step_time
from tpucfg.spec.parse import load_project

RESULTS: Final = Path(__file__).with_name("RESULTS.md")
HEADING: Final = "## Compiling without a TPU"
"""Heading of the section in the results; `make bench-write` keeps it."""
FUZZ: Final = "## Fuzzing"
"""Heading of the fuzzer's section; a test compares it with the fuzzer's own."""
EXAMPLES: Final = (
    ("chat", "prod"),
    ("fit/moe", "dev"),
    ("fit/nnx", "dev"),
    ("fit/keras", "dev"),
    ("fit/resnet", "dev"),
)
"""The examples with a training step, and the environment whose ladder has all rungs."""
_SECTION: Final = """\
{heading}

Taken on {day} by `python -m benchmarks.fit --write`. Memory is that of a device; `≥` is the least amount that the
compiler names when it refuses a step. The bound is the least time of a step. Seconds are the wall time
of `tpucfg fit --fresh`, from start to end.

- machine: {machine}
- versions: {versions}

{table}

The published runs are on real TPUs, and their programs are not these: model, batch and sequence are equal, and all
devices share the parameters, but

{differences}
"""
_CACHE: Final = ROOT / ".cache" / "bench" / "fit"
_TIME_LIMIT: Final = "30m"


class Rung(NamedTuple):
    """A program on a slice."""

    folder: Path
    """A copy of the program with its spec."""
    environment: str
    size: str
    program: str
    """The program's name in the table."""
    run: Run | None = None
    """The published run that it is compared with."""


class Measurement(NamedTuple):
    """The result for a rung, and the wall time of the whole command."""

    rung: Rung
    result: FitResult
    seconds: float


def rungs() -> Iterator[Rung]:
    """Yield all rungs, with their programs copied to where they are compiled."""
    for name, environment in EXAMPLES:
        folder = _copy(name, name.rpartition("/")[2])
        project, _ = load_project(folder / "tpucfg.yaml")
        for size in project.environments[environment].sizes if project else ():
            yield Rung(folder, environment, size, name.rpartition("/")[2])
    for run in RUNS:
        folder = _copy(run.program, run.name)
        (folder / "tpucfg.yaml").write_text(spec_text(run), encoding="utf-8")
        yield Rung(folder, "dev", run.size, run.model, run)


def _copy(example: str, name: str) -> Path:
    """Copy an example, without its results; return the copy's folder."""
    folder = _CACHE / name
    ignore = shutil.ignore_patterns("results", "__pycache__", "README.md")
    shutil.copytree(ROOT / "examples" / example, folder, ignore=ignore, dirs_exist_ok=True)
    return folder


def measure(rung: Rung, python: Path, *, fresh: bool) -> Measurement | None:
    """Compile a rung, or return its measurement of an earlier time; None if its compilation failed."""
    times = rung.folder / f"{rung.environment}-{rung.size}.json"
    if fresh or not times.exists():
        command = [
            sys.executable,
            "-m",
            "tpucfg",
            "fit",
            "--env",
            rung.environment,
            "--size",
            rung.size,
        ]
        environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
        environment["PYTHONPATH"] = str(ROOT / "compiler")
        start = time.perf_counter()
        subprocess.run(
            [*command, "--fresh", "--time-limit", _TIME_LIMIT],
            cwd=rung.folder,
            env=environment,
            check=False,
        )
        seconds = time.perf_counter() - start
    else:
        seconds = json.loads(times.read_text(encoding="utf-8"))
    for key, result in read_fit_file(fit_path(rung.folder)).results.items():
        if (key.environment, key.size) == (rung.environment, rung.size):
            times.write_text(json.dumps(seconds), encoding="utf-8")
            return Measurement(rung, result, seconds)
    return None


def report(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield the measurements as lines of Markdown."""
    yield "| program | size | devices | batch | GiB used | available | bound | seconds | published run |"
    yield "|---|---|---:|---:|---:|---:|---|---:|---|"
    for rung, result, seconds in measurements:
        slice_ = slice_of(rung.size)
        bound = lower_bound(result, slice_) if result.fits else None
        used = gib(result.memory.used) if result.fits else f"**≥ {gib(result.memory.used)}**"
        cells = (
            rung.program,
            rung.size,
            f"{slice_.devices}",
            f"{int(str(result.inputs.flags['batch_size'])):,}",
            used,
            gib(result.memory.available),
            step_time(bound) if bound else "does not fit",
            f"{seconds:.0f}",
            f"[{rung.run.source}]({rung.run.url}): {rung.run.outcome}"
            if rung.run and rung.run.url
            else "",
        )
        yield f"| {' | '.join(cells)} |"


def differences(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield a line for each published run: how the compiled program differs from it."""
    runs = [rung.run for rung, _, _ in measurements if rung.run and rung.run.url]
    yield from (f"- {run.model} on {run.size}: {run.differs}" for run in runs)


def contradictions(measurements: Sequence[Measurement]) -> list[str]:
    """Return the rungs whose result is not that of the published run."""
    return [
        f"{rung.program} on {rung.size}"
        for rung, result, _ in measurements
        if rung.run and rung.run.fits is not None and rung.run.fits != result.fits
    ]


def section(measurements: Sequence[Measurement], note: str = "") -> str:
    """Return the section of the results, with a note about the machine."""
    versions = sorted(
        {
            f"jax {result.compiler.jax}, libtpu {result.compiler.libtpu}"
            for _, result, _ in measurements
        }
    )
    return _SECTION.format(
        heading=HEADING,
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=f"{os.cpu_count()} cores, {platform.system()}{note and f'; {note}'}",
        versions="; ".join(versions),
        table="\n".join(report(measurements)),
        differences="\n".join(differences(measurements)),
    )


def main() -> None:
    """Measure all rungs, and print or write the section; print contradictions to stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fit", description="Compile programs for TPUs."
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write the section into {RESULTS.name} too"
    )
    parser.add_argument("--fresh", action="store_true", help="measure all rungs again")
    parser.add_argument(
        "--note",
        default="",
        metavar="TEXT",
        help="a note about the machine, such as its other load",
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        help="measure the rungs of one program or size; use earlier others",
    )
    options = parser.parse_args()
    python = Path(
        os.environ.get("TPUCFG_TPU_PYTHON") or ROOT / ".venv" / "tpu-compiler" / "bin" / "python"
    )
    measurements = []
    for rung in rungs():
        if not options.only or options.only in {rung.program, rung.size, rung.folder.name}:
            measurements.append(measure(rung, python, fresh=options.fresh))
        elif (rung.folder / f"{rung.environment}-{rung.size}.json").exists():
            measurements.append(measure(rung, python, fresh=False))
    complete = [measurement for measurement in measurements if measurement]
    text = section(complete, options.note)
    print(text, end="")
    if options.write:
        RESULTS.write_text(replaced(RESULTS.read_text(encoding="utf-8"), text), encoding="utf-8")
    problems = contradictions(complete)
    if problems or len(complete) < len(measurements):
        failed = len(measurements) - len(complete)
        print(
            f"contradicted: {', '.join(problems) or 'none'}; not compiled: {failed}",
            file=sys.stderr,
        )


def replaced(page: str, text: str) -> str:
    """Return the page with the section, before that of the fuzzer, which is the last one."""
    before, _, rest = page.partition(HEADING)
    if not rest:
        start = page.index(FUZZ)
        return f"{page[:start]}{text}\n{page[start:]}"
    end = rest.find("\n## ")
    return f"{before}{text}{rest[end:]}"


if __name__ == "__main__":
    main()
