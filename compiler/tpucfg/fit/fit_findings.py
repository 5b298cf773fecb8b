"""Findings about the memory of compiled training steps: those that do not fit, and those that hardly do."""

import shlex
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.findings import Finding, Level
from tpucfg.fit.levers import Levers, less_memory, lever_details
from tpucfg.fit.result import Compiler, Memory
from tpucfg.fit.rung_fit import RungFit
from tpucfg.fit.wording import amount_text, memory_text, short_amount
from tpucfg.number_format import format_percent
from tpucfg.spec import SPEC_NAME, Project
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc import KeyPath

MIN_HEADROOM: Final = Fraction(1, 10)
"""The share of a device's memory that should stay free: prefetched batches and an evaluation need some as well."""


class _Amount(NamedTuple):
    """The memory of a rung, which environments with one ladder usually share."""

    path: KeyPath
    """The size in its ladder."""
    size: str
    fits: bool
    memory: Memory
    compiler: Compiler
    levers: Levers


def fit_findings(project: Project, fits: Iterable[RungFit], *, level: Level | None = None) -> tuple[Finding, ...]:
    """Return the findings about the memory of rungs, with `allow` of the spec applied.

    A result that is outdated has no finding here, and neither has a rung that was never compiled. Environments with one
    ladder share a finding.

    Args:
        project: The project.
        fits: The fits of its rungs.
        level: The level of a step that does not fit, for commands that it does not stop; an error by default.
    """
    amounts: dict[_Amount, list[str]] = {}
    for fit in fits:
        environment = project.environments.get(fit.key.environment)
        if fit.current and environment and fit.key.size in environment.sizes:
            path = (*environment.sizes_path, environment.sizes.index(fit.key.size))
            result = fit.current
            amount = _Amount(path, fit.key.size, result.fits, result.memory, result.compiler, fit.levers)
            amounts.setdefault(amount, []).append(environment.name)
    findings = []
    for amount, environments in amounts.items():
        if not amount.fits:
            findings.append(_does_not_fit(project, amount, environments, level))
        elif has_little_headroom(amount.memory):
            findings.append(_little_headroom(project, amount, environments))
    return tuple(finding.allowed_by(project.allow) for finding in findings)


def has_little_headroom(memory: Memory) -> bool:
    """Return True if less memory stays free than should."""
    return memory.headroom < MIN_HEADROOM * memory.available


def memory_excess(memory: Memory) -> Fraction:
    """Return the memory that a step needs as a multiple of what there is."""
    return Fraction(memory.used, max(1, memory.available))


def fit_command(project: Project, environments: Sequence[str], *sizes: str) -> str:
    """Return the command that compiles rungs in some environments, quoted for a shell; without sizes, all rungs."""
    spec = project.document.file
    words = ["tpucfg", "fit", *(() if spec == SPEC_NAME else ("--spec", spec))]
    wanted = {*sizes}
    compiled = {name for name, other in project.environments.items() if not sizes or wanted & {*other.sizes}}
    if {*environments} != compiled:
        words += [word for name in environments for word in ("--env", name)]
    return shlex.join([*words, *(word for size in sizes for word in ("--size", size))])


def _does_not_fit(project: Project, amount: _Amount, environments: Sequence[str], level: Level | None) -> Finding:
    needed, available = amount_text(amount.memory.used), short_amount(amount.memory.available)
    excess = memory_excess(amount.memory)
    least = "" if amount.memory.exact else "at least "
    return Finding.of(
        "TPU105",
        f"the training step does not fit on {amount.size}: a device needs {least}{needed} of HBM, and the compiler "
        f"grants {available}",
        project.document.value_location(amount.path),
        help=f"{less_memory(amount.size, amount.levers, excess)}, then run: "
        f"{fit_command(project, environments, amount.size)}; or leave {amount.size} out of {dotted(amount.path[:-1])}",
        details=_details(amount, environments, excess),
        level=level,
    )


def _little_headroom(project: Project, amount: _Amount, environments: Sequence[str]) -> Finding:
    excess = memory_excess(amount.memory) / (1 - MIN_HEADROOM)
    share = Fraction(max(0, amount.memory.headroom), max(1, amount.memory.available))
    return Finding.of(
        "TPU106",
        f"the training step leaves {format_percent(share)} of the memory on {amount.size} free: it needs "
        f"{memory_text(amount.memory)} a device, before prefetched batches and evaluation",
        project.document.value_location(amount.path),
        help=f"{less_memory(amount.size, amount.levers, excess)}, or allow TPU106 with your reason",
        details=_details(amount, environments, excess),
    )


def _details(amount: _Amount, environments: Sequence[str], excess: Fraction) -> tuple[str, ...]:
    names = listed(environments, last=" and ")
    source = f"in {names}, compiled with jax {amount.compiler.jax} and libtpu {amount.compiler.libtpu}"
    return (source, *lever_details(amount.levers, excess))
