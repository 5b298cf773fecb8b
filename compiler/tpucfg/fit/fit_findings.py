"""Findings about the fits of rungs: steps that do not or hardly fit, rungs whose fit is not known, and `gate.fit`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.findings import Finding, Level
from tpucfg.fit.fit_file import NAME, Compiler, Memory
from tpucfg.fit.rung_fit import (
    KnownFits,
    MemorySettings,
    RungFit,
    amount_text,
    fit_command,
    memory_text,
    outdated_text,
    short_amount,
    verdict_text,
)
from tpucfg.number_format import format_percent
from tpucfg.paths import grouped
from tpucfg.spec import Project
from tpucfg.text_format import dotted, format_count, listed
from tpucfg.yamldoc import KeyPath

_UNKNOWN: Final = ("not compiled", "outdated")
_MAX_NAMES: Final = 3
"""Reasons that a note gives, and rungs that it names for each."""
MIN_HEADROOM: Final = Fraction(1, 10)
"""The share of a device's memory that should stay free: prefetched batches and an evaluation need some as well."""
HOST_OFFLOAD: Final = (
    "the step keeps arrays in its host's memory, and runs "
    "are known that train although the compiler refuses them"
)


class _Amount(NamedTuple):
    """The memory of a rung, which environments with one ladder usually share."""

    path: KeyPath
    """The size in its ladder."""
    size: str
    fits: bool
    memory: Memory
    compiler: Compiler
    memory_settings: MemorySettings
    is_reliable: bool


def fit_findings(
    project: Project, fits: Iterable[RungFit], *, level: Level | None = None
) -> tuple[Finding, ...]:
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
            amount = _Amount(
                path,
                fit.key.size,
                result.fits,
                result.memory,
                result.compiler,
                fit.memory_settings,
                result.is_reliable,
            )
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


def _does_not_fit(
    project: Project, amount: _Amount, environments: Sequence[str], level: Level | None
) -> Finding:
    needed, available = amount_text(amount.memory.used), short_amount(amount.memory.available)
    excess = memory_excess(amount.memory)
    least = "" if amount.memory.exact else "at least "
    if not amount.is_reliable:
        level = "warning"
    return Finding.of(
        "TPU105",
        f"the training step does not fit on {amount.size}: a device needs {least}{needed} of HBM, and the compiler "
        f"grants {available}",
        project.document.value_location(amount.path),
        help=f"{less_memory(amount.size, amount.memory_settings, excess)}, then run: "
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
        help=f"{less_memory(amount.size, amount.memory_settings, excess)}, or allow TPU106 with your reason",
        details=_details(amount, environments, excess),
    )


def _details(amount: _Amount, environments: Sequence[str], excess: Fraction) -> tuple[str, ...]:
    names = listed(environments, last=" and ")
    doubt = () if amount.is_reliable else (HOST_OFFLOAD,)
    source = (
        f"in {names}, compiled with jax {amount.compiler.jax} and libtpu {amount.compiler.libtpu}"
    )
    return (source, *doubt, *memory_details(amount.memory_settings, excess))


# The edit that lowers the memory.

_MAX_FACTOR: Final = 10_000
"""The factors of a micro-batch that are tried."""


def less_memory(size: str, values: MemorySettings, excess: Fraction) -> str:
    """Return the edit that lowers a device's memory and keeps the batch, as an imperative.

    Args:
        size: The rung.
        values: The memory settings of the rung.
        excess: The factor by which the memory has to fall.
    """
    return (
        ", or ".join(_edits(size, values, excess))
        or f"lower the memory of the program's step on {size}"
    )


def memory_details(values: MemorySettings, excess: Fraction) -> Iterator[str]:
    """Yield the sentences about the limits of the edit."""
    count = _least_accumulation(values, excess)
    if count:
        yield f"grad_accum {count} would do if all of the memory fell in proportion, which parameters do not"
    elif values.sees_accumulation:
        yield f"its micro-batch of {values.micro_batch:,} cannot be split far enough by grad_accum"
    if values.accumulation_flag and count:
        yield f"a program that does not read --{values.accumulation_flag} needs a smaller micro-batch of its own"


def _edits(size: str, values: MemorySettings, excess: Fraction) -> Iterator[str]:
    if count := _least_accumulation(values, excess):
        section = "training" if values.is_tuned_size else f"overrides.{size}"
        yield f"set {section}.grad_accum to {count} or more"
    if values.can_divide_model:
        yield f"raise overrides.{size}.model_parallel"


def _least_accumulation(values: MemorySettings, excess: Fraction) -> int | None:
    """Return the least accumulation that would suffice if memory fell in proportion; None if none divides the batch."""
    if not values.sees_accumulation:
        return None
    factors = range(2, min(values.micro_batch, _MAX_FACTOR) + 1)
    factor = next(
        (number for number in factors if number >= excess and values.micro_batch % number == 0),
        None,
    )
    return factor and values.grad_accum * factor


# What is not known.


class FitProblem(NamedTuple):
    """The reason why a rung is not known to fit."""

    reason: str
    """A clause: `its training step was never compiled`."""
    fix: str
    """The edit before `tpucfg fit` compiles the rung, as an imperative."""


def known_fit_findings(
    project: Project, known: KnownFits, *, level: Level | None = None
) -> tuple[Finding, ...]:
    """Return the findings about the file, the memory of the steps, and the rungs whose fit is not known.

    Args:
        project: The spec.
        known: The fits of its selected jobs.
        level: The level of errors, for commands that they do not stop.
    """
    # No result of a broken file counts, so every rung would be reported as not compiled.
    if known.file.findings:
        return tuple(
            finding._replace(level=level or finding.level) for finding in known.file.findings
        )
    return (
        *fit_findings(project, known.rungs.values(), level=level),
        *_unknown_fits(project, known),
    )


def _unknown_fits(project: Project, known: KnownFits) -> Iterator[Finding]:
    """Yield a note for each environment with rungs whose fit is not known."""
    for name, environment in project.environments.items():
        if text := unknown_fits_text(known, name):
            unknown = _unknown(known, name)
            sizes = () if len(unknown) == len(environment.sizes) else tuple(unknown)
            hint = (
                f"compile the training step, without a TPU: {fit_command(project, (name,), *sizes)}"
            )
            yield Finding.of(
                "TPU107", text, project.document.key_location(environment.path), help=hint
            )


def unknown_fits_text(known: KnownFits, environment: str) -> str:
    """Return the sentence about the rungs of an environment whose fit is not known; empty if there is none."""
    fits, unknown = known.of_environment(environment), _unknown(known, environment)
    if not unknown:
        return ""
    count = f"{len(unknown)} of {len(fits)} rungs" if len(fits) > 1 else next(iter(unknown))
    return f"{environment}: the fit of {count} is not known: {_reasons(unknown)}"


def _unknown(known: KnownFits, environment: str) -> Mapping[str, RungFit]:
    return {
        size: fit
        for size, fit in known.of_environment(environment).items()
        if fit.verdict in _UNKNOWN
    }


def _reasons(unknown: Mapping[str, RungFit]) -> str:
    """Return the reasons, each once with its rungs: `v2-8 and v2-32 were never compiled`."""
    reasons = [
        f"{listed(names, limit=_MAX_NAMES, last=' and ')} {'was' if len(names) == 1 else 'were'} {text}"
        for text, names in grouped(
            (unknown_text(fit), size) for size, fit in unknown.items()
        ).items()
    ]
    others = len(reasons) - _MAX_NAMES
    more = f"; and {format_count(others, 'other reason')}" if others > 0 else ""
    return "; ".join(reasons[:_MAX_NAMES]) + more


def known_text(fit: RungFit) -> str:
    """Return what is known of a rung: `11.2 of 15.75 GiB of HBM a device, as committed`."""
    source = "" if fit.is_trusted else f", as committed in results/{NAME}"
    return (
        f"not known: {unknown_text(fit)}"
        if fit.current is None
        else f"{verdict_text(fit)} of HBM a device{source}"
    )


def unknown_text(fit: RungFit) -> str:
    """Return the reason why a fit is not known, as the end of a sentence about the rung."""
    return outdated_text(fit) or "never compiled"


# The condition `gate.fit`: a rung may be started only if its training step is known to fit.


def fit_problems(
    known: KnownFits, environment: str, sizes: Iterable[str]
) -> Mapping[str, FitProblem]:
    """Return the problem of each rung that is not known to fit, by size."""
    fits = known.of_environment(environment)
    problems = {size: _problem(known, fits.get(size), size) for size in sizes}
    return {size: problem for size, problem in problems.items() if problem}


def _problem(known: KnownFits, fit: RungFit | None, size: str) -> FitProblem | None:
    """Return the problem of a rung; `fit` is None if the spec names no training step for it."""
    if fit is None:
        return FitProblem(
            "the spec names no training step for it", "set trainer.fit.step, and compile it"
        )
    if known.file.findings:
        return FitProblem(
            f"{known.file.path} cannot be read", f"delete {known.file.path}, and compile again"
        )
    if fit.verdict == "fits" or (fit.current and not fit.current.is_reliable):
        return None
    if fit.current:  # it does not fit
        edit = less_memory(size, fit.memory_settings, memory_excess(fit.current.memory))
        return FitProblem(
            f"its training step {verdict_text(fit)}", f"{edit}, and compile {size} again"
        )
    return FitProblem(f"its training step was {unknown_text(fit)}", f"compile {size}")
