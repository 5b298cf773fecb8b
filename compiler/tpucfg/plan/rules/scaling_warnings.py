"""Warnings about the figures of the selected rungs: one per rule, with the numbers of each affected rung.

They are matters of judgment: each has a threshold, and `allow:` in the spec can turn it into a note.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final

from tpucfg.findings import Finding
from tpucfg.number_format import format_factor, format_number, format_percent
from tpucfg.plan.rung import Rung, number_path, ratio, setting_path
from tpucfg.spec import Project
from tpucfg.text_format import dotted, format_count, listed
from tpucfg.yamldoc import KeyPath

LARGE_BATCH_GROWTH: Final = 8
"""Growth factor from which a batch is regarded as large. The useful batch size depends on the model:
https://arxiv.org/abs/1811.03600."""
MIN_STEPS: Final = 100
"""Number of steps below which a schedule has hardly any effect."""
MAX_WARMUP_SHARE: Final = Fraction(1, 4)
"""Share of the run above which a warm-up is regarded as long."""
_WHOLE_RUN: Final = Fraction(1)
KEPT_RATE_GROWTH: Final = 2
"""Growth factor of the batch from which a constant learning rate is reported."""


def scaling_warnings(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    """Yield the warnings about these rungs, which are distinct."""
    if rungs:
        for rule in _RULES:
            yield from rule(project, rungs)


def _batch_grew(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    tuned_batch = project.training.batch_size
    large_rungs = [rung for rung in rungs if rung.batch_size >= LARGE_BATCH_GROWTH * tuned_batch]
    if large_rungs:
        growths = [
            (rung, format_factor(ratio(rung.batch_size, tuned_batch))) for rung in large_rungs
        ]
        batches = listed(
            [f"{rung.batch_size:,} ({growth}) on {rung.size}" for rung, growth in growths]
        )
        message = f"the global batch grows from {tuned_batch:,} to {batches}; the threshold is {LARGE_BATCH_GROWTH}×"
        path = setting_path(project.training, "batch_size")
        if all("batch_size" in rung.overridden for rung in large_rungs):
            path = ("overrides", large_rungs[0].size, "batch_size")
        hint = "compare the final metric with that of the rung below before you scale up, then allow TPU041"
        yield project.document.finding("TPU041", message, path, help=hint)


def _few_steps(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    short_rungs = [
        rung for rung in rungs if rung.train_steps is not None and rung.train_steps < MIN_STEPS
    ]
    if short_rungs:
        counts = listed(
            [
                f"{format_count(rung.train_steps or 0, 'step')} on {rung.size}"
                for rung in short_rungs
            ]
        )
        path = setting_path(project.training, "train_steps")
        fewest = max(_least_length(project, rung) for rung in short_rungs)
        hint = f"set {dotted(path)} to {fewest} or more, end the ladder below, or allow TPU042 for a test of the speed"
        yield project.document.finding(
            "TPU042", f"few steps are left: {counts}; the threshold is {MIN_STEPS}", path, help=hint
        )


def _least_length(project: Project, rung: Rung) -> int:
    """Return the fewest steps or tokens of the spec that leave a rung enough steps."""
    if project.training.train_tokens and rung.sequence_length:
        return (MIN_STEPS - 1) * rung.sequence_length * rung.batch_size + 1
    return int((MIN_STEPS - 1) * rung.scale) + 1


def _long_warmup(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    for key in filter(is_warmup, project.training.steps):
        long_rungs = [rung for rung in rungs if _exceeds(rung, key, MAX_WARMUP_SHARE)]
        if long_rungs:
            shares = listed(
                [
                    f"{format_percent(ratio(rung.steps[key], rung.train_steps or 1))} on {rung.size}"
                    for rung in long_rungs
                ]
            )
            threshold = f"the threshold is {float(MAX_WARMUP_SHARE):.0%}"
            message = f"{key} covers much of the run: {shares} ({_steps_of_run(long_rungs[0], key)}); {threshold}"
            yield _too_many_steps(project, "TPU043", message, key, long_rungs, MAX_WARMUP_SHARE)


def _late_checkpoint(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    for key in filter(is_checkpoint_interval, project.training.steps):
        late_rungs = [rung for rung in rungs if _exceeds(rung, key, _WHOLE_RUN)]
        if late_rungs:
            counts = listed([_steps_of_run(rung, key) for rung in late_rungs])
            message = f"{key} is longer than the run: {counts}"
            yield _too_many_steps(project, "TPU044", message, key, late_rungs, _WHOLE_RUN)


def _steps_of_run(rung: Rung, key: str) -> str:
    return f"{rung.steps[key]:,} of {rung.train_steps:,} steps on {rung.size}"


def _too_many_steps(
    project: Project, id_: str, message: str, key: str, rungs: Sequence[Rung], share: Fraction
) -> Finding:
    """Return a finding whose help is the largest count that is within the share on every rung."""
    scaled_rungs = [rung for rung in rungs if key not in rung.overridden]
    setting = project.training.steps[key]
    path = number_path(project, key) if scaled_rungs else ("overrides", rungs[0].size, key)
    is_scaled = setting.scaled and scaled_rungs
    scales = [
        (rung, rung.scale if is_scaled else Fraction(1)) for rung in scaled_rungs or rungs[:1]
    ]
    max_count = min(int(int((rung.train_steps or 0) * share) * scale) for rung, scale in scales)
    hint = (
        f"set {dotted(path)} to {max_count} or less, or train longer"
        if max_count
        else "train longer"
    )
    return project.document.finding(id_, message, path, help=hint)


def _rate_kept(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    training = project.training
    if training.learning_rate and training.learning_rate_rule != "keep":
        return
    grown_rungs = [
        rung
        for rung in rungs
        if rung.scale >= KEPT_RATE_GROWTH and "learning_rate" not in rung.overridden
    ]
    if not grown_rungs:
        return
    growth = listed([f"{format_factor(rung.scale)} on {rung.size}" for rung in grown_rungs])
    if training.learning_rate:
        key = (
            "learning_rate_rule"
            if "learning_rate_rule" in project.document.data["training"]
            else "learning_rate"
        )
        path: KeyPath = ("training", key)
        message = f"the learning rate is kept at {training.learning_rate.text} while the batch grows {growth}"
        hint = "set training.learning_rate_rule to linear or sqrt, or allow TPU045 with your reason"
    else:
        path = setting_path(training, "batch_size")
        message = f"the spec has no learning rate, and the batch grows {growth}: the program's own rate stays"
        hint = "set training.learning_rate and training.learning_rate_rule, or allow TPU045 with your reason"
    yield project.document.finding("TPU045", message, path, help=hint)


def _other_generation(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    tuned_on = project.training.tuned_on
    generation = tuned_on.partition("-")[0]
    others = [rung for rung in rungs if rung.size.partition("-")[0] != generation]
    if others:
        sizes = listed([rung.size for rung in others])
        hint = "check batch and memory on the first rung, then set tuned_on to it; or allow TPU046 with your reason"
        message = (
            f"the figures were tuned on {tuned_on}, whose cores and memory are not those of {sizes}"
        )
        yield project.document.finding("TPU046", message, ("training", "tuned_on"), help=hint)


def _micro_batch(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    """Yield a warning for each override that makes the micro-batch smaller, and one for the rungs where the rule does.

    With a larger one, a device needs more memory, which `tpucfg fit` compares.
    """
    shrunk = []
    for rung in rungs:
        if rung.micro_batch >= rung.tuned_micro_batch or _work_per_core(project, rung) == 1:
            continue
        if key := next(
            (key for key in ("batch_size", "grad_accum") if key in rung.overridden), None
        ):
            path, noun = ("overrides", rung.size, key), _batch_noun(project, [rung])
            tuned_step = rung.tuned_micro_batch * rung.data_parallel
            same = (
                tuned_step * (rung.grad_accum or 1)
                if key == "batch_size"
                else rung.batch_size / tuned_step
            )
            edit = (
                f"set {dotted(path)} to {same} to keep {noun}"
                if same.denominator == 1
                else f"delete {dotted(path)}"
            )
            yield _smaller_micro_batch(project, [rung], path, f"{edit}, or allow TPU047")
        else:
            shrunk.append(rung)
    if shrunk:
        hint = "set training.batch_rule to per_core, which lets the batch grow, or allow TPU047 with your reason"
        yield _smaller_micro_batch(project, shrunk, ("training", "batch_rule"), hint)


def _smaller_micro_batch(
    project: Project, rungs: Sequence[Rung], path: KeyPath, hint: str
) -> Finding:
    sizes = listed([f"{format_number(rung.micro_batch)} on {rung.size}" for rung in rungs])
    change = f"{_batch_noun(project, rungs)} falls from {format_number(rungs[0].tuned_micro_batch)} to {sizes}"
    message = f"{change}, so the devices have less work and scaling is not linear"
    return project.document.finding("TPU047", message, path, help=hint)


def _work_per_core(project: Project, rung: Rung) -> Fraction:
    """Return the examples of one core and micro-batch, relative to those on `tuned_on`.

    Two changes leave it at 1: a replica that grows in devices and examples by the same factor, and a generation with
    another number of cores per device.
    """
    return (
        rung.scale
        * (project.training.grad_accum or 1)
        / ((rung.grad_accum or 1) * rung.cores_scale)
    )


def _batch_noun(project: Project, rungs: Sequence[Rung]) -> str:
    is_plain = all(rung.model_parallel == 1 and (rung.grad_accum or 1) == 1 for rung in rungs)
    if is_plain and (project.training.grad_accum or 1) == project.training.model_parallel == 1:
        return "the batch per device"
    return "the micro-batch of a replica"


_RULES: Final[Sequence[Callable[[Project, Sequence[Rung]], Iterator[Finding]]]] = (
    _batch_grew,
    _few_steps,
    _long_warmup,
    _late_checkpoint,
    _rate_kept,
    _other_generation,
    _micro_batch,
)


def _exceeds(rung: Rung, key: str, share: Fraction) -> bool:
    """Return True if a figure covers more than a share of the run; not if the run is counted in epochs."""
    # In integers, because most figures exceed no share, and fractions take ten times as long.
    steps = rung.train_steps or 0
    return 0 < steps * share.numerator < rung.steps[key] * share.denominator


# Meanings of settings and flags, by the names that common training programs give them.

_CHECKPOINTS: Final = re.compile(r"checkpoint|ckpt|(?<![a-z])sav(?:e|es|ing)(?![a-z]|_summary)")
"""Words of such names: `save_checkpoints_steps` of TensorFlow's estimators
(https://www.tensorflow.org/versions/r2.5/api_docs/python/tf/estimator/RunConfig), `checkpoint_period` of MaxText
(https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/configs/base.yml), `ckpt_steps` of Big Vision
(https://github.com/google-research/big_vision/blob/main/big_vision/train.py), `save_steps` of Transformers
(https://huggingface.co/docs/transformers/main_classes/trainer)."""


def names_checkpoints(key: str) -> bool:
    """Return True if the name of a setting, a flag or a variable shows that the program writes checkpoints."""
    return _CHECKPOINTS.search(key.lower()) is not None


def is_checkpoint_interval(key: str) -> bool:
    """Return True if the name of a count of steps means an interval between two checkpoints."""
    # What is kept at an interval is saved more often, and these checkpoints are never deleted.
    return names_checkpoints(key) and not key.rpartition(".")[2].lower().startswith("keep")


def is_warmup(key: str) -> bool:
    """Return True if the name of a setting means a warm-up of the learning rate."""
    return "warmup" in key.lower().replace("-", "").replace("_", "")
