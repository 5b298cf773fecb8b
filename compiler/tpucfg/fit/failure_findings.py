"""Findings about compilations that gave no result: each mistake once, at its place in the spec."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.findings import Finding, Location
from tpucfg.fit import failure_texts as texts
from tpucfg.fit.failure_texts import PYTHON, STEP, FailureCase, FailureText
from tpucfg.fit.failures import XLA_VARIABLE, FlagError, flag_name
from tpucfg.fit.launcher import Outcome
from tpucfg.plan.job import XLA_FLAGS_VARIABLE, Job
from tpucfg.spec.project import Project
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath


class _Rule(NamedTuple):
    """The finding for a kind of failure."""

    id: str
    place: KeyPath
    """The setting at fault."""
    text: Callable[[FailureCase], FailureText]


def failure_findings(
    project: Project, outcomes: Iterable[Outcome], folder: Path, time_limit: float
) -> tuple[Finding, ...]:
    """Return the findings about failed compilations: one for each mistake, although many rungs have it."""
    findings: dict[tuple[str, Location, str], tuple[Finding, list[str]]] = {}
    for outcome in outcomes:
        if outcome.failure is None:
            continue
        case = FailureCase(project, outcome.job, outcome.failure, folder, time_limit)
        for finding in _findings(case):
            # Messages of one mistake may differ by the shapes of arrays, which are digits.
            key = (finding.id, finding.location, re.sub("[0-9]", "", finding.message))
            _, rungs = findings.setdefault(key, (finding, []))
            rungs.append(f"{outcome.job.environment.name} {outcome.job.size}")
    return tuple(
        finding._replace(details=(*finding.details, f"not compiled: {listed(rungs)}"))
        for finding, rungs in findings.values()
    )


def missing_step_finding(project: Project, jobs: Sequence[Job]) -> Finding:
    """Return the finding for a spec of which no selected rung names a training step."""
    path = jobs[0].settings.source(("trainer",)) if jobs else ("trainer",)
    return Finding.of(
        "TPU062",
        "no selected rung has a training step to compile: trainer.fit is not set",
        project.document.key_location(path),
        help='add to trainer: fit: {step: "trainer.fit:abstract_step", python: .venv/bin/python}, with a function that '
        "returns the jitted step and its abstract arguments; see: tpucfg explain TPU062",
    )


def machine_finding(project: Project, job: Job, reason: str) -> Finding:
    """Return the finding for a machine that cannot compile."""
    path = job.settings.source(("trainer", "fit"))
    return Finding.of(
        "TPU115",
        f"no step can be compiled here: {reason}",
        project.document.key_location(path),
        help="run tpucfg fit on another machine with Linux on x86-64, in a container or in a workflow; the results in "
        "results/fit.json can be read anywhere",
    )


def _findings(case: FailureCase) -> Iterator[Finding]:
    if case.failure.kind == "xla-flag":
        yield from (_flag_finding(case, error) for error in case.failure.flags)
        return
    rule = _RULES[case.failure.kind]
    text = rule.text(case)
    place = rule.place or _size_path(case.job)
    yield Finding.of(
        rule.id,
        text.message,
        case.project.document.value_location(case.job.settings.source(place) if rule.place else place),
        help=text.help,
        details=text.details,
    )


def _size_path(job: Job) -> KeyPath:
    return (*job.environment.sizes_path, job.environment.sizes.index(job.size))


# TPU112: XLA flags.


class _Reader(NamedTuple):
    """The part of the compiler that reads a variable with flags."""

    name: str
    name_on_tpu: str
    package: str


_READERS: Final[Mapping[str, _Reader]] = {
    XLA_FLAGS_VARIABLE: _Reader("the TPU compiler", "the TPU runtime", "libtpu"),
    XLA_VARIABLE: _Reader("XLA", "JAX", "jax"),
}
_OF_THE_HOST: Final = ("xla_dump_", "xla_disable_hlo_passes", "xla_force_host_platform_device_count")
"""Beginnings of flags that MaxText sets in XLA_FLAGS, and that libtpu does not know.

Source: https://github.com/AI-Hypercomputer/maxtext/blob/main/benchmarks/maxtext_xpk_runner.py
"""


def _flag_finding(case: FailureCase, error: FlagError) -> Finding:
    path, flag = _flag_place(case.job, error)
    location = case.project.document.text_location(path, flag)
    hint = f"delete {flag} from {dotted(path[:-1] if isinstance(path[-1], int) else path)}"
    reader = _READERS[error.variable]
    message = f"{reader.name} does not know the flag {error.name}"
    if error.reason:
        reason = error.reason[:1].lower() + error.reason[1:]
        message, hint = f"{reader.name} refuses {flag}: {reason}", f"give the flag another value, or {hint}"
    elif error.variable == XLA_FLAGS_VARIABLE and error.name.startswith(_OF_THE_HOST):
        hint = f"move {flag} to trainer.env.{XLA_VARIABLE}, which XLA on the host reads, or {hint}"
    elif error.nearest:
        hint = f"write {flag.replace(error.name, error.nearest, 1)}, or {hint}"
    details = (
        f"the program would end at its start: {reader.name_on_tpu} reads the flags with the same parser",
        f"the compiler is that of {case.fit.python}; another version of {reader.package} may know other flags",
    )
    return Finding.of("TPU112", message, location, help=hint, details=details)


def _flag_place(job: Job, error: FlagError) -> tuple[KeyPath, str]:
    """Return the path of the value that has a flag, and the flag as it is written there."""
    generation = job.slice.generation
    names = (error.name, f"no{error.name}")
    settings = job.settings.trainer.xla_flags if error.variable == XLA_FLAGS_VARIABLE else {}
    for index, flag in enumerate(settings.get(generation, ())):
        if flag_name(flag) in names:
            return (*job.settings.source(("trainer", "xla_flags", generation)), index), flag
    text = dict(job.env).get(error.variable, "")
    written = next((flag for flag in text.split() if flag_name(flag) in names), error.name)
    return job.settings.source(("trainer", "env", error.variable)), written


_RULES: Final[Mapping[str, _Rule]] = {
    "no-python": _Rule("TPU114", PYTHON, texts.no_python),
    "no-start": _Rule("TPU114", PYTHON, texts.no_start),
    "old-python": _Rule("TPU114", PYTHON, texts.old_python),
    "no-jax": _Rule("TPU114", PYTHON, texts.no_jax),
    "old-jax": _Rule("TPU114", PYTHON, texts.old_jax),
    "no-libtpu": _Rule("TPU114", PYTHON, texts.old_jax),
    "no-module": _Rule("TPU116", STEP, texts.no_module),
    "import-failed": _Rule("TPU116", STEP, texts.import_failed),
    "no-function": _Rule("TPU116", STEP, texts.no_function),
    "step-failed": _Rule("TPU117", STEP, texts.step_failed),
    "wrong-return": _Rule("TPU117", STEP, texts.wrong_return),
    "refused": _Rule("TPU119", STEP, texts.refused),
    "no-topology": _Rule("TPU063", (), texts.no_topology),
    "no-shape": _Rule("TPU063", (), texts.no_shape),
    "timeout": _Rule("TPU118", STEP, texts.timeout),
    "memory": _Rule("TPU118", STEP, texts.memory),
    "crash": _Rule("TPU118", STEP, texts.crash),
    "mute": _Rule("TPU118", STEP, texts.mute),
    "malformed": _Rule("TPU118", STEP, texts.malformed),
}
