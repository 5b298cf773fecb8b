"""The condition `gate.fit`: a rung may be started only if its training step is known to fit."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tpucfg.fit.fit_findings import memory_excess
from tpucfg.fit.known_fits import KnownFits, unknown_text
from tpucfg.fit.levers import less_memory
from tpucfg.fit.rung_fit import RungFit
from tpucfg.fit.wording import verdict_text


class FitProblem(NamedTuple):
    """The reason why a rung is not known to fit."""

    reason: str
    """A clause: `its training step was never compiled`."""
    fix: str
    """The edit before `tpucfg fit` compiles the rung, as an imperative."""


def fit_problems(known: KnownFits, environment: str, sizes: Iterable[str]) -> Mapping[str, FitProblem]:
    """Return the problem of each rung that is not known to fit, by size."""
    fits = known.of_environment(environment)
    problems = {size: _problem(known, fits.get(size), size) for size in sizes}
    return {size: problem for size, problem in problems.items() if problem}


def _problem(known: KnownFits, fit: RungFit | None, size: str) -> FitProblem | None:
    """Return the problem of a rung; `fit` is None if the spec names no training step for it."""
    if fit is None:
        return FitProblem("the spec names no training step for it", "set trainer.fit.step, and compile it")
    if known.file.findings:
        return FitProblem(f"{known.file.path} cannot be read", f"delete {known.file.path}, and compile again")
    if fit.verdict == "fits":
        return None
    if fit.current:  # it does not fit
        edit = less_memory(size, fit.levers, memory_excess(fit.current.memory))
        return FitProblem(f"its training step {verdict_text(fit)}", f"{edit}, and compile {size} again")
    return FitProblem(f"its training step was {unknown_text(fit)}", f"compile {size}")
