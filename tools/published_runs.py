"""Compile published training runs of MaxText again with `tpucfg fit`, and write what the compiler has for each.

python tools/published_runs.py [ID ...]    compiles the named runs of benchmarks/published_runs.yaml, or all: hours

Each run is compiled in its own folder below .cache/published-runs, and what is there is not compiled again: a stopped
command goes on. Then compiler/tpucfg/fit/published.yaml gets all that is there. The last line counts contradictions:
runs that trained on real TPUs, keep nothing in the memory of their hosts, and are refused here for lack of memory.

A flag of the recipe that today's compiler refuses is left out, or turned off where it asks for that, and listed;
nothing else of a recipe is changed.
"""

import argparse
import datetime as dt
import functools
import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tpucfg.catalog import Catalog, Slice
from tpucfg.fit.answers import flag_name
from tpucfg.fit.fit_file import FitFile, FitResult, fit_path, read_fit_file, update_fit_file
from tpucfg.fit.launcher import Outcome, compile_rungs
from tpucfg.fit.worker_process import Limits
from tpucfg.plan import Selection, plan
from tpucfg.spec.parse import project_from_document
from tpucfg.yamldoc.reader import read_text

ROOT: Final = Path(__file__).resolve().parent.parent
RUNS: Final = ROOT / "benchmarks" / "published_runs.yaml"
WRITTEN: Final = ROOT / "compiler" / "tpucfg" / "fit" / "published.yaml"
FOLDER: Final = ROOT / ".cache" / "published-runs"
PYTHON: Final = ROOT / ".venv" / "tpu-compiler" / "bin" / "python"
SECONDS: Final = 3600.0
_REGIONS: Final = {"v5e": "us-west4", "v5p": "us-east5", "v6e": "us-east5", "tpu7x": "us-central1"}
_FIGURES: Final = {
    "per_device_batch_size": "per_device_batch_size",
    "max_target_length": "sequence_length",
}
"""MaxText's names of the figures that a spec has under its own."""
_DEFAULT_LENGTH: Final = 2048
_HEADER: Final = """\
# Written by `make published-runs` from benchmarks/published_runs.yaml: published runs, compiled again with tpucfg fit,
# and the forecast of a step's time beside the published one. HBM is in bytes of a device; `dropped` are flags of the
# recipe that the compiler refuses; used_for_constants: the run proves nothing about the error.
"""


def _slice(run: Mapping[str, Any]) -> Slice:
    size = Catalog().find(run["size"])
    if size is None:
        sys.exit(f"{RUNS.name}: no size {run['size']}")
    return size


def spec_of(run: Mapping[str, Any], flags: list[str], python: Path) -> dict[str, Any]:
    """Return the spec of a published run, with the figures and the arguments of its recipe."""
    size = _slice(run)
    args = dict(word.split("=", 1) for word in run["args"].split())
    figures = {figure: float(args.pop(name)) for name, figure in _FIGURES.items() if name in args}
    return {
        "version": 1,
        "name": "published",
        "target": "gke",
        "sizes": [run["size"]],
        "environments": {
            "dev": {
                "project": "my-project",
                "region": _REGIONS[size.generation],
                "kube_context": "train",
            }
        },
        "trainer": {
            "image": "us-docker.pkg.dev/my-project/train/maxtext:0.2.5",
            "command": ["python3", "-m", "maxtext.trainers.pre_train.train", "base.yml"],
            "args": {**args, "dataset_type": "synthetic", "enable_checkpointing": "false"},
            "xla_flags": {size.generation: flags} if flags else {},
            "fit": {"python": str(python)},
        },
        "training": {
            "tuned_on": run["size"],
            "sequence_length": _DEFAULT_LENGTH,
            **{
                name: int(value) if value.is_integer() else value for name, value in figures.items()
            },
            "model_parallel": math.ceil(1 / figures["per_device_batch_size"]),
            "train_steps": 30,
            "flags": "maxtext",
        },
    }


def compile_run(
    run: Mapping[str, Any], all_flags: Mapping[str, str], folder: Path, python: Path
) -> Outcome:
    """Compile a run without the flags that the compiler refuses; keep its spec and its result in the folder."""
    asked = all_flags[run["xla_flags"]].split() if "xla_flags" in run else []
    flags = [
        *{flag_name(flag): flag for flag in asked}.values()
    ]  # of two with one name, the compiler takes the last
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        text = json.dumps(spec_of(run, flags, python), indent=1)
        (folder / "tpucfg.yaml").write_text(text, encoding="utf-8")
        project, findings = project_from_document(read_text(text, "tpucfg.yaml"))
        if project is None:
            sys.exit(
                f"{folder.name}: the run makes no spec: {[finding.message for finding in findings]}"
            )
        jobs = plan(project, Catalog(), Selection()).jobs
        file = FitFile(fit_path(folder), {})
        (outcome,) = compile_rungs(
            project, jobs, file, folder, Limits(1, SECONDS, 1 << 40), lambda _: None
        )
        refused = (
            {error.name: error.reason for error in outcome.failure.flags} if outcome.failure else {}
        )
        if not refused:
            return outcome
        # The compiler may have a feature on by itself, and ask for `name=false`.
        off = [
            f"--{name}=false"
            for name, reason in refused.items()
            if f"{name}=false" in reason and f"--{name}=false" not in flags
        ]
        flags = [*(flag for flag in flags if flag_name(flag) not in refused), *off]


def step_seconds(run: Mapping[str, Any]) -> float:
    """Return the published time of a step."""
    if "tflops_per_chip" in run:
        return float(run["tflops"] / run["tflops_per_chip"])
    if "tokens_per_s_per_chip" in run:
        size, args = _slice(run), dict(word.split("=", 1) for word in run["args"].split())
        tokens = float(args["per_device_batch_size"]) * int(
            args.get("max_target_length", _DEFAULT_LENGTH)
        )
        return tokens * size.devices / size.chips / float(run["tokens_per_s_per_chip"])
    return float(run["step_seconds"])


def row_of(run: Mapping[str, Any], result: FitResult, dropped: list[str]) -> dict[str, Any]:
    """Return what the written file has of a run."""
    forecast = result.forecast
    return {
        "generation": _slice(run).generation,
        "size": run["size"],
        "title": run["title"],
        "step_seconds": round(step_seconds(run), 4),
        **({"forecast_seconds": round(forecast.seconds, 4)} if forecast else {}),
        **(
            {"parts": {part: round(seconds, 4) for part, seconds in forecast.parts.items()}}
            if forecast
            else {}
        ),
        "used_for_constants": run.get("seen", False),
        "host_offload": "offload" in run["args"],
        "fits": result.fits,
        "hbm": {"used": result.memory.used, "available": result.memory.available},
        **({"dropped": dropped} if dropped else {}),
    }


def written(
    runs: Mapping[str, Any], all_flags: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any], FitResult]]:
    """Yield the id, the row and the result of each run that was compiled, in the order of the runs."""
    for name, run in runs.items():
        for result in read_fit_file(fit_path(FOLDER / name)).results.values():
            asked = all_flags.get(run.get("xla_flags", ""), "").split()
            yield (
                name,
                row_of(
                    run, result, [flag for flag in asked if flag not in result.inputs.xla_flags]
                ),
                result,
            )


def write(runs: Mapping[str, Any], all_flags: Mapping[str, str]) -> int:
    """Write the file of all that was compiled, and return the number of contradictions."""
    rows, versions = {}, set()
    for name, row, result in written(runs, all_flags):
        rows[name] = row
        versions.add(
            f"jax {result.compiler.jax}, libtpu {result.compiler.libtpu}, {result.compiler.framework}"
        )
    compiled = {name: row for name, row in rows.items() if "forecast_seconds" in row}
    refused = {name: row for name, row in rows.items() if name not in compiled}
    data = {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "versions": sorted(versions),
        "rows": compiled,
        "refused": refused,
    }
    WRITTEN.write_text(_HEADER + yaml.safe_dump(data, sort_keys=False, width=118), encoding="utf-8")
    return sum(not row["fits"] and not row["host_offload"] for row in rows.values())


def main() -> int:
    """Compile the runs that are missing, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID")
    data = yaml.safe_load(RUNS.read_text(encoding="utf-8"))
    runs = data["runs"]
    names = parser.parse_args().ids or [*runs]
    for number, name in enumerate(names, 1):
        folder = FOLDER / name
        if not fit_path(folder).exists():
            outcome = compile_run(runs[name], data["xla_flags"], folder, PYTHON)
            if outcome.result:
                update_fit_file(fit_path(folder), functools.partial(list, [outcome.result]))
            reason = (
                f"{outcome.failure.kind}: {outcome.failure.message[:300]}"
                if outcome.failure
                else "compiled"
            )
            seconds = f" ({outcome.seconds.total:.0f} s)" if outcome.seconds else ""
            print(f"{number}/{len(names)} {name}: {reason}{seconds}", flush=True)
    contradictions = write(runs, data["xla_flags"])
    print(
        f"{WRITTEN.relative_to(ROOT)}: {contradictions} runs that trained without host offload are refused for memory"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
