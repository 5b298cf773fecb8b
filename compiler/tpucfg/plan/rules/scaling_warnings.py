"""Warnings about the figures of the selected rungs: one per rule, with the numbers of each affected rung.

They are matters of judgment: each has a threshold, and `allow:` in the spec can turn it into a note.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final

from tpucfg.findings import Finding
from tpucfg.number_format import format_factor, format_number, format_percent
from tpucfg.plan.rung import Rung
from tpucfg.spec.project import Project
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath

LARGE_BATCH_GROWTH: Final = 8
"""Growth factor from which a batch is regarded as large. The useful batch size depends on the model:
https://arxiv.org/abs/1811.03600."""
MIN_STEPS: Final = 100
"""Number of steps below which a schedule has hardly any effect."""
MAX_WARMUP_SHARE: Final = Fraction(1, 4)
"""Share of the run above which a warm-up is regarded as long."""
KEPT_RATE_GROWTH: Final = 2
"""Growth factor of the batch from which a constant learning rate is reported."""

_BATCH: Final = ("training", "batch_size")


def scaling_warnings(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    """Yield the warnings about these rungs, which are distinct."""
    if rungs:
        for rule in _RULES:
            yield from rule(project, rungs)


def _batch_grew(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    tuned_batch = project.training.batch_size
    large_rungs = [rung for rung in rungs if rung.batch_size >= LARGE_BATCH_GROWTH * tuned_batch]
    if large_rungs:
        batches = listed(
            [
                f"{rung.batch_size:,} ({format_factor(Fraction(rung.batch_size, tuned_batch))}) on {rung.size}"
                for rung in large_rungs
            ]
        )
        message = f"the global batch grows from {tuned_batch:,} to {batches}; the threshold is {LARGE_BATCH_GROWTH}×"
        all_overridden = all("batch_size" in rung.overridden for rung in large_rungs)
        path = ("overrides", large_rungs[0].size, "batch_size") if all_overridden else _BATCH
        hint = "compare the final metric with that of the rung below before you scale up, then allow TPU041"
        yield _finding(project, "TPU041", message, path, hint)


def _few_steps(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    short_rungs = [rung for rung in rungs if rung.train_steps is not None and rung.train_steps < MIN_STEPS]
    if short_rungs:
        counts = listed(
            [f"{rung.train_steps:,} step{'s'[: rung.train_steps != 1]} on {rung.size}" for rung in short_rungs]
        )
        min_train_steps = max(int((MIN_STEPS - 1) * rung.scale) + 1 for rung in short_rungs)
        hint = f"set training.train_steps to {min_train_steps} or more, or end the ladder below"
        path = ("training", "train_steps")
        yield _finding(project, "TPU042", f"few steps are left: {counts}; the threshold is {MIN_STEPS}", path, hint)


def _long_warmup(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    for key in project.training.steps:
        long_rungs = [rung for rung in rungs if "warmup" in key.lower() and _share(rung, key) > MAX_WARMUP_SHARE]
        if long_rungs:
            shares = listed([f"{format_percent(_share(rung, key))} on {rung.size}" for rung in long_rungs])
            numbers = f"{long_rungs[0].steps[key]:,} of {long_rungs[0].train_steps:,} steps on {long_rungs[0].size}"
            threshold = f"the threshold is {float(MAX_WARMUP_SHARE):.0%}"
            message = f"{key} covers much of the run: {shares} ({numbers}); {threshold}"
            yield _too_many_steps(project, "TPU043", message, key, long_rungs, MAX_WARMUP_SHARE)


def _late_checkpoint(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    for key in project.training.steps:
        late_rungs = [rung for rung in rungs if "checkpoint" in key.lower() and _share(rung, key) > 1]
        if late_rungs:
            counts = listed(
                [f"{rung.steps[key]:,} of {rung.train_steps:,} steps on {rung.size}" for rung in late_rungs]
            )
            message = f"{key} is longer than the run: {counts}"
            yield _too_many_steps(project, "TPU044", message, key, late_rungs, Fraction(1))


def _too_many_steps(
    project: Project, id_: str, message: str, key: str, rungs: Sequence[Rung], share: Fraction
) -> Finding:
    """Return a finding whose help is the largest count that is within the share on every rung."""
    scaled_rungs = [rung for rung in rungs if key not in rung.overridden]
    path: KeyPath = ("training", "steps", key) if scaled_rungs else ("overrides", rungs[0].size, key)
    scales = [(rung, rung.scale) for rung in scaled_rungs] or [(rungs[0], Fraction(1))]
    max_count = min(int(int((rung.train_steps or 0) * share) * scale) for rung, scale in scales)
    hint = f"set {dotted(path)} to {max_count} or less, or train longer" if max_count else "train longer"
    return _finding(project, id_, message, path, hint)


def _rate_kept(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    training = project.training
    if training.learning_rate is None or training.learning_rate_rule != "keep":
        return
    grown_rungs = [rung for rung in rungs if rung.scale >= KEPT_RATE_GROWTH and "learning_rate" not in rung.overridden]
    if grown_rungs:
        key = "learning_rate_rule" if "learning_rate_rule" in project.document.data["training"] else "learning_rate"
        growth = listed([f"{format_factor(rung.scale)} on {rung.size}" for rung in grown_rungs])
        yield _finding(
            project,
            "TPU045",
            f"the learning rate is kept at {training.learning_rate.text} while the batch grows {growth}",
            ("training", key),
            "set training.learning_rate_rule to linear or sqrt, or allow TPU045 with your reason",
        )


def _other_generation(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    tuned_on = project.training.tuned_on
    generation = tuned_on.partition("-")[0]
    others = [rung for rung in rungs if rung.size.partition("-")[0] != generation]
    if others:
        sizes = listed([rung.size for rung in others])
        hint = "check batch and memory on the first rung, then set tuned_on to it; or allow TPU046 with your reason"
        verb = "has" if len(others) == 1 else "have"
        message = f"the figures were tuned on {tuned_on}; {sizes} {verb} other cores and memory"
        yield _finding(project, "TPU046", message, ("training", "tuned_on"), hint)


def _batch_per_core(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    for rung in rungs:
        if rung.scale == rung.cores_scale:
            continue
        tuned_per_core = rung.per_core * rung.cores_scale / rung.scale
        consequence = (
            "so its cores have less work and scaling is not linear"
            if rung.per_core < tuned_per_core
            else "so each core needs more memory"
        )
        changed = "falls" if rung.per_core < tuned_per_core else "rises"
        path = ("overrides", rung.size, "batch_size")
        same_batch = int(tuned_per_core * rung.slice.cores)
        numbers = f"from {format_number(tuned_per_core)} to {format_number(rung.per_core)}"
        message = f"the batch per core {changed} {numbers} on {rung.size}, {consequence}"
        hint = f"set {dotted(path)} to {same_batch} to keep the batch per core, or allow TPU047"
        yield _finding(project, "TPU047", message, path, hint)


_RULES: Final[Sequence[Callable[[Project, Sequence[Rung]], Iterator[Finding]]]] = (
    _batch_grew,
    _few_steps,
    _long_warmup,
    _late_checkpoint,
    _rate_kept,
    _other_generation,
    _batch_per_core,
)


def _finding(project: Project, id_: str, message: str, path: KeyPath, hint: str) -> Finding:
    return Finding.of(id_, message, project.document.value_location(path), help=hint)


def _share(rung: Rung, key: str) -> Fraction:
    """Return the share of the run that a figure covers; 0 if the run is counted in epochs, as its steps are unknown."""
    return Fraction(rung.steps[key], rung.train_steps) if rung.train_steps else Fraction(0)
