"""Make results of compilations for tests, without JAX."""

from typing import Any, Final

from tpucfg.fit.inputs import FitInputs, fit_inputs
from tpucfg.fit.result import Compiler, FitKey, FitResult, Memory
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
    hbm_bytes=10**9,
    ici_bytes=None,
)


def result_of(project: Project, job: Job, **changes: Any) -> FitResult:
    """Return a result that is of the job as it is now, with other values by field."""
    inputs = fit_inputs(project, job)
    assert inputs is not None, "the spec names no training step"
    return RESULT._replace(key=fit_key(job), inputs=inputs, **changes)
