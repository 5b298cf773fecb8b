"""The part of a job that decides its compilation, so that a result can be compared with a spec without compiling."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tpucfg.plan import XLA_FLAGS_VARIABLE, Job, make_job
from tpucfg.spec import Project

FlagValue = str | None | tuple[str | None, ...]
"""The text of a flag, None for a bare one, a tuple for a repeated one."""


class FitInputs(NamedTuple):
    """The values with which a rung's training step is built and compiled."""

    step: str
    """The function: `<module>:<function>`."""
    flags: Mapping[str, FlagValue]
    """The flags of the config, without their dashes."""
    env: Mapping[str, str]
    """The variables that the config sets, without that of the compiler's flags."""
    xla_flags: tuple[str, ...]
    topology: str
    """Chips of one slice along each axis; empty if no source states it."""
    chips_per_host: int


def fit_inputs(project: Project, job: Job) -> FitInputs | None:
    """Return the inputs of a job's compilation; None if the spec names no step for it.

    They are those of the job without a run's id: another output folder makes no other program.
    """
    fit = job.settings.trainer.fit
    if fit is None:
        return None
    if job.run:
        job = make_job(project, job.environment, job.rung, None)
    env = dict(job.env)
    xla_flags = env.pop(XLA_FLAGS_VARIABLE, "").split()
    return FitInputs(
        fit.step, parse_flags(job.args), env, tuple(xla_flags), job.slice.topology or "", job.slice.chips_per_host
    )


def parse_flags(args: Iterable[str]) -> dict[str, FlagValue]:
    """Return the flags of a command line by name, in order: `--a=1` is `{"a": "1"}`, a bare `--a` is `{"a": None}`."""
    values: dict[str, list[str | None]] = {}
    for arg in args:
        name, separator, text = arg.removeprefix("--").partition("=")
        values.setdefault(name, []).append(text if separator else None)
    return {name: texts[0] if len(texts) == 1 else tuple(texts) for name, texts in values.items()}
