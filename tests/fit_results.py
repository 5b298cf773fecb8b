"""Make results of compilations for tests, without JAX."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from spec_factory import planned, project
from tpucfg.fit.fit_file import (
    Compiler,
    FitKey,
    FitResult,
    Memory,
    StepForecast,
    fit_file_text,
    fit_path,
)
from tpucfg.fit.inputs import FitInputs, fit_inputs
from tpucfg.fit.rung_fit import fit_key
from tpucfg.plan import Job
from tpucfg.spec.project import Project

GIB: Final = 1 << 30
INPUTS: Final = FitInputs("trainer.fit:abstract_step", {"batch_size": "1024"}, {}, (), "2x2", 4)
RESULT: Final = FitResult(
    key=FitKey("mnist", "dev", "v2-8"),
    inputs=INPUTS,
    files={},
    compiler=Compiler("0.10.2", "0.0.42.1"),
    stablehlo="0" * 64,
    fits=True,
    memory=Memory(2 * GIB, 7 * GIB),
    flops=184 * 10**12,
    flops_8bit=0,
    uncounted=(),
    forecast=StepForecast(2.5, {"products": 1.5, "fusions": 0.75, "communication": 0.25}),
)


def result_of(spec_project: Project, job: Job, **changes: Any) -> FitResult:
    """Return a result that is of the job as it is now, with other values by field."""
    inputs = fit_inputs(spec_project, job)
    assert inputs is not None, "the spec names no training step"
    return RESULT._replace(key=fit_key(job), inputs=inputs, **changes)


def results_text(
    data: Any, used: Mapping[str, float], available: float = 7.48, **changes: Any
) -> str:
    """Return the file of results for a spec, with the memory in GiB of some rungs: `dev/v2-8`, or `v2-8` of dev.

    A rung that needs more than is available was refused. `changes` are other values of every result.
    """
    spec_project, jobs = (
        project(data),
        {f"{job.environment.name}/{job.size}": job for job in planned(data).jobs},
    )
    results = []
    for name, amount in used.items():
        fits = amount <= available
        memory = Memory(round(amount * GIB), round(available * GIB), exact=fits)
        job = jobs[name if "/" in name else f"dev/{name}"]
        results.append(result_of(spec_project, job, **{"memory": memory, "fits": fits, **changes}))
    return fit_file_text(results)


def write_spec(
    folder: Path, data: Any, used: Mapping[str, float] | None = None, **changes: Any
) -> Path:
    """Write a spec, and the results of its rungs beside it if there are any; return the path of the spec."""
    (folder / "results").mkdir(parents=True, exist_ok=True)
    path = folder / "tpucfg.yaml"
    path.write_text(json.dumps(data, indent=1))
    if used is not None:
        fit_path(folder).write_text(results_text(data, used, **changes))
    return path
