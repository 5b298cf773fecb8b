"""Warnings about the arithmetic of the selected rungs: one for each rule, with the numbers of every rung it is about.

They are judgements, so each has a threshold, and `allow:` in the spec can turn each into a note.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final

from tpucfg.findings import Finding
from tpucfg.plan.rung import Rung
from tpucfg.spec.project import Project
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath

LARGE_BATCH_GROWTH: Final = 8
"""Times. How far a larger batch still helps differs from model to model: https://arxiv.org/abs/1811.03600."""
MIN_STEPS: Final = 100
"""Steps: a run shorter than this leaves a schedule hardly any steps to act in."""
MAX_WARMUP_SHARE: Final = Fraction(1, 4)
"""Share of the run."""
KEPT_RATE_GROWTH: Final = 2
"""Times that the batch grew, from where a learning rate that stays is worth a word."""

_BATCH: Final = ("training", "batch_size")


def scaling_warnings(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    """The warnings of these rungs, each rung given once."""
    if rungs:
        for rule in _RULES:
            yield from rule(project, rungs)


def _batch_grew(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    tuned = project.training.batch_size
    grown = [rung for rung in rungs if rung.batch_size >= LARGE_BATCH_GROWTH * tuned]
    if grown:
        said = listed([f"{rung.batch_size:,} ({rung.batch_size / tuned:g}×) on {rung.size}" for rung in grown])
        yield _finding(
            project,
            "TPU041",
            f"the global batch grows from {tuned:,} to {said}",
            ("overrides", grown[0].size, "batch_size")
            if all("batch_size" in it.overridden for it in grown)
            else _BATCH,
            f"compare the final metric with the rung below before you climb on; the threshold is {LARGE_BATCH_GROWTH}×",
        )


def _few_steps(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    few = [rung for rung in rungs if rung.train_steps is not None and rung.train_steps < MIN_STEPS]
    if few:
        said = listed([f"{rung.train_steps} step{'s'[: rung.train_steps != 1]} on {rung.size}" for rung in few])
        enough = max(int((MIN_STEPS - 1) * rung.scale) + 1 for rung in few)
        hint = f"set training.train_steps to {enough} or more, or stop the ladder below"
        path = ("training", "train_steps")
        yield _finding(project, "TPU042", f"few steps are left: {said}; the threshold is {MIN_STEPS}", path, hint)


def _long_warmup(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    for key in project.training.steps:
        long = [rung for rung in rungs if "warmup" in key.lower() and _share(rung, key) > MAX_WARMUP_SHARE]
        if long:
            said = listed([f"{float(100 * _share(rung, key)):.3g}% on {rung.size}" for rung in long])
            numbers = f"{long[0].steps[key]:,} of {long[0].train_steps:,} steps on {long[0].size}"
            message = (
                f"{key} covers much of the run: {said} ({numbers}); the threshold is {float(MAX_WARMUP_SHARE):.0%}"
            )
            yield _shorten(project, "TPU043", message, key, long, MAX_WARMUP_SHARE)


def _late_checkpoint(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    for key in project.training.steps:
        late = [rung for rung in rungs if "checkpoint" in key.lower() and _share(rung, key) > 1]
        if late:
            said = listed([f"{rung.steps[key]:,} of {rung.train_steps:,} steps on {rung.size}" for rung in late])
            message = f"{key} is longer than the run, which ends before it: {said}"
            yield _shorten(project, "TPU044", message, key, late, Fraction(1))


def _shorten(project: Project, id_: str, message: str, key: str, rungs: Sequence[Rung], share: Fraction) -> Finding:
    """The help is the largest count that stays within the share, on every rung that follows it."""
    following = [rung for rung in rungs if key not in rung.overridden]
    path: KeyPath = ("training", "steps", key) if following else ("overrides", rungs[0].size, key)
    scales = [(rung, rung.scale) for rung in following] or [(rungs[0], Fraction(1))]
    fits = min(int(int((rung.train_steps or 0) * share) * scale) for rung, scale in scales)
    hint = f"set {dotted(path)} to {fits} or less, or train longer" if fits else "train longer"
    return _finding(project, id_, message, path, hint)


def _rate_kept(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    training = project.training
    if training.learning_rate is None or training.learning_rate_rule != "keep":
        return
    kept = [rung for rung in rungs if rung.scale >= KEPT_RATE_GROWTH and "learning_rate" not in rung.overridden]
    if kept:
        said = listed([f"{float(rung.scale):g}× on {rung.size}" for rung in kept])
        yield _finding(
            project,
            "TPU045",
            f"the learning rate stays {training.learning_rate.text} while the batch grows {said}",
            ("training", "learning_rate_rule" if "learning_rate_rule" in _keys(project) else "learning_rate"),
            "set training.learning_rate_rule to linear or sqrt, or allow TPU045 with your reason",
        )


def _other_generation(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    tuned_on = project.training.tuned_on
    generation = tuned_on.partition("-")[0]
    others = [rung for rung in rungs if rung.size.partition("-")[0] != generation]
    if others:
        said = listed([rung.size for rung in others])
        hint = "check batch and memory on the first rung, then set tuned_on to it; or allow TPU046 with your reason"
        verb = "has" if len(others) == 1 else "have"
        message = f"the figures were tuned on {tuned_on}; {said} {verb} other cores and memory"
        yield _finding(project, "TPU046", message, ("training", "tuned_on"), hint)


def _per_core(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    for rung in rungs:
        if rung.scale == rung.cores_scale:
            continue
        tuned = rung.per_core * rung.cores_scale / rung.scale
        consequence = (
            "so its cores are fed less and scaling is not linear"
            if rung.per_core < tuned
            else "so each core needs more memory"
        )
        changed = "falls" if rung.per_core < tuned else "rises"
        path = ("overrides", rung.size, "batch_size")
        numbers = f"from {float(tuned):g} to {float(rung.per_core):g}"
        message = f"the batch per core {changed} {numbers} on {rung.size}, {consequence}"
        hint = f"set {dotted(path)} to {int(tuned * rung.slice.cores)} to keep the batch per core, or allow TPU047"
        yield _finding(project, "TPU047", message, path, hint)


_RULES: Final[Sequence[Callable[[Project, Sequence[Rung]], Iterator[Finding]]]] = (
    _batch_grew,
    _few_steps,
    _long_warmup,
    _late_checkpoint,
    _rate_kept,
    _other_generation,
    _per_core,
)


def _finding(project: Project, id_: str, message: str, path: KeyPath, hint: str) -> Finding:
    return Finding.of(id_, message, project.document.value_location(path), help=hint)


def _share(rung: Rung, key: str) -> Fraction:
    """The share of the run that a figure covers; 0 where the run is counted in epochs and its steps are not known."""
    return Fraction(rung.steps[key], rung.train_steps) if rung.train_steps else Fraction(0)


def _keys(project: Project) -> dict[str, object]:
    keys: dict[str, object] = project.document.data["training"]
    return keys
