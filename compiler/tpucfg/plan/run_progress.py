"""Runs that go on: what a run has seen on other sizes, the steps that are left, and what changes at that step.

A run counts its steps over all sizes, as the checkpoints of programs do, and so do the `train_steps` of its figures.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from tpucfg.named_tuple import NamedTuple
from tpucfg.number_format import floor_percent
from tpucfg.plan.rules.scaling_warnings import is_checkpoint_interval
from tpucfg.plan.rung import Rung, Seen, rung_figures
from tpucfg.plan.selection import RunPart, SelectionError
from tpucfg.spec import Training
from tpucfg.text_format import dotted


class RunProgress(NamedTuple):
    """The steps that a run has made before it goes on, on each size."""

    parts: tuple[RunPart, ...]
    """In order, each with its size and batch; never empty."""
    seen: Seen

    @property
    def last(self) -> RunPart:
        """The part at whose end the run goes on."""
        return self.parts[-1]


RungOf = Callable[[str], Rung]
"""Return the rung of a size; raises SelectionError for a size that is unknown."""


def joined_parts(recorded: Sequence[RunPart], done: Sequence[RunPart]) -> tuple[RunPart, ...]:
    """Return the parts of a run in the order of their steps, each step in one part.

    A later part of a size replaces what was done beyond its step: a run goes back to a checkpoint after a failure.

    Raises:
        SelectionError: A part of another size has a smaller step, so that the step between the two is not known.
    """
    parts: tuple[RunPart, ...] = ()
    for part in (*recorded, *done):
        kept = tuple(earlier for earlier in parts if earlier.step < part.step)
        if (
            part.size
            and kept != parts
            and all(earlier.size != part.size for earlier in parts[len(kept) :])
        ):
            last = parts[-1]
            raise SelectionError(
                f"the run was at step {last.step} on {last.size}, and later at step {part.step} on {part.size}: the "
                f"step at which it moved is not known; give it first, as the step that it had on {last.size}"
            )
        # A part without a size takes that of the part that contains its step, or else of the last part.
        known = parts[min(len(kept), len(parts) - 1)] if parts and not part.size else part
        parts = (*kept, known._replace(step=part.step))
    return parts


def run_progress(
    parts: Sequence[RunPart], rung_of: RungOf, ladder: Sequence[str]
) -> RunProgress | None:
    """Return what a run has done; None for a run without parts.

    Args:
        parts: The joined parts of the run.
        rung_of: The rungs of the sizes.
        ladder: The sizes of the environment; only if all have one batch may a part lack its size.

    Raises:
        SelectionError: The size of a part is unknown, or is needed and not given.
    """
    if not parts:
        return None
    if not parts[0].size and len({rung_of(size).batch_size for size in ladder}) > 1:
        step = parts[0].step
        sizes = f"name the size on which the run did these steps, such as --step {ladder[0]}:{step}"
        raise SelectionError(
            f"--step {step}: the batch differs from size to size, and the run has no records; {sizes}"
        )
    known = tuple(_with_batch(part, rung_of, ladder) for part in parts)
    steps = [0, *(part.step for part in known)]
    length = rung_of(known[-1].size).sequence_length
    examples = sum(
        (end - start) * _examples_of_step(part, length)
        for (start, end), part in zip(pairwise(steps), known, strict=True)
    )
    return RunProgress(known, Seen(steps[-1], int(examples)))


def _examples_of_step(part: RunPart, length: int | None) -> Fraction:
    """Return the examples of a step; for a part with another sequence length, its tokens divided by today's length."""
    batch = part.batch_size or 0
    return (
        Fraction(batch * part.sequence_length, length)
        if part.sequence_length and length
        else Fraction(batch)
    )


def _with_batch(part: RunPart, rung_of: RungOf, ladder: Sequence[str]) -> RunPart:
    size = part.size or ladder[0]
    rung = rung_of(size)
    return RunPart(
        size,
        part.step,
        part.batch_size or rung.batch_size,
        part.sequence_length or rung.sequence_length,
    )


def continued_rung(
    training: Training, rung: Rung, progress: RunProgress | None, run: str | None
) -> Rung:
    """Return a rung on which a run goes on, with enough further steps for the examples or tokens that are left.

    A run that is counted in epochs keeps its figures, because its program counts what it has seen.

    Raises:
        SelectionError: Nothing is left.
    """
    seen = progress.seen if progress else None
    if rung.train_steps is None or seen is None:
        return rung._replace(seen=seen) if seen else rung
    left = examples_of_run(training) - seen.examples
    if left <= 0:
        raise SelectionError(
            f"the run {run} has seen all of its examples at step {seen.step}: nothing is left; "
            "choose another --run, or raise the length of the run in the spec"
        )
    steps = seen.step + -(-left // rung.batch_size)
    return rung._replace(steps={**rung.steps, "train_steps": int(steps)}, seen=seen)


def examples_of_run(training: Training) -> Fraction:
    """Return the examples that the spec promises a run; those of tokens may be no whole number."""
    if training.train_tokens is not None and training.sequence_length is not None:
        return Fraction(training.train_tokens, training.sequence_length)
    return Fraction((training.train_steps or 0) * training.batch_size)


def progress_lines(
    training: Training, rung: Rung, progress: RunProgress, before: Rung
) -> Iterator[str]:
    """Yield what a run that goes on has seen, and what changes with its next step.

    Args:
        training: The settings of the spec.
        rung: The rung on which the run goes on.
        progress: What it has done.
        before: The rung of its last part.
    """
    seen, last = progress.seen, progress.last
    sizes = ", then ".join(dict.fromkeys(part.size for part in progress.parts))
    whole = f" of {rung.train_steps:,}" if rung.train_steps else ""
    yield f"goes on at step {seen.step:,}{whole}, with {seen.examples:,} examples seen on {sizes}"
    if rung.train_steps and rung.examples:
        steps, examples = (
            Fraction(seen.step, rung.train_steps),
            Fraction(seen.examples, rung.examples),
        )
        if steps != examples:
            position = f"{floor_percent(steps)} of its steps, with {floor_percent(examples)} of the examples seen"
            yield f"a schedule that is counted in steps goes on at {position}"
    if last.batch_size != rung.batch_size:
        yield f"batch_size is {rung.batch_size:,} from this step on, {last.batch_size:,} before"
    if last.sequence_length != rung.sequence_length:
        change = (
            f"{rung.sequence_length or 'not set'} from this step on, {last.sequence_length} before"
        )
        yield f"sequence_length is {change}: the examples seen are counted by their tokens"
    now, then = dict(rung_figures(rung)), dict(rung_figures(before))
    for figure in ("learning_rate", *training.steps):
        if now.get(figure) != then.get(figure):
            is_ruled = figure == "learning_rate" and figure not in rung.overridden
            rule = f" by the rule {training.learning_rate_rule}" if is_ruled else ""
            yield f"{dotted((figure,))} is {now.get(figure)}{rule}; the spec has {then.get(figure)} on {before.size}"
    for figure in filter(is_checkpoint_interval, training.steps):
        if (
            rung.train_steps
            and rung.train_steps // rung.steps[figure] == seen.step // rung.steps[figure]
        ):
            yield f"no checkpoint is due in the {rung.train_steps - seen.step:,} steps that are left, by {figure}"
