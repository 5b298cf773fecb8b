"""The settings of a rung that can lower its memory without another batch, and the edit of them that a help names."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.plan import Job, flag_name
from tpucfg.spec import Project
from tpucfg.spec.placeholders import used_placeholders

_MAX_FACTOR: Final = 10_000
"""The factors of a micro-batch that are tried."""
_PARALLELISM: Final = frozenset({"model_parallel", "data_parallel"})


class Levers(NamedTuple):
    """The values on which a rung's memory depends, as far as its program can see them."""

    grad_accum: int
    micro_batch: int
    """Examples of one replica and micro-batch."""
    accumulation_flag: str | None
    """The flag of the accumulation that the program gets; None if it gets none."""
    sees_accumulation: bool
    """True if the program gets the accumulation, by that flag or by a placeholder."""
    can_divide_model: bool
    """True if a flag or a variable of the program has `${model_parallel}` or `${data_parallel}`, and a slice has more
    devices than share a copy of the batch now."""
    is_tuned_size: bool = False
    """True on the size of `training.tuned_on` without an accumulation of its own: `training` then decides it, and an
    override would make its micro-batch another one than was tuned, which is a warning (TPU047)."""


NO_LEVERS: Final = Levers(1, 1, None, sees_accumulation=False, can_divide_model=False)
"""Those of a program that sees neither setting."""


def levers(project: Project, job: Job) -> Levers:
    """Return the levers of a job."""
    rung, trainer = job.rung, job.settings.trainer
    texts = [text for arg in trainer.args for text in arg.values if text] + [text for _, text in trainer.env]
    placeholders = used_placeholders(texts)
    flag = flag_name(project.training, "grad_accum")
    return Levers(
        rung.grad_accum or 1,
        int(rung.micro_batch),
        flag,
        flag is not None or "grad_accum" in placeholders,
        not placeholders.isdisjoint(_PARALLELISM) and rung.model_parallel < rung.slice.devices // rung.slice.slices,
        rung.size == project.training.tuned_on and "grad_accum" not in rung.overridden,
    )


def less_memory(size: str, values: Levers, excess: Fraction) -> str:
    """Return the edit that lowers a device's memory and keeps the batch, as an imperative.

    Args:
        size: The rung.
        values: The levers of the rung.
        excess: The factor by which the memory has to fall.
    """
    return ", or ".join(_edits(size, values, excess)) or f"lower the memory of the program's step on {size}"


def lever_details(values: Levers, excess: Fraction) -> Iterator[str]:
    """Yield the sentences about the limits of the edit."""
    count = _least_accumulation(values, excess)
    if count:
        yield f"grad_accum {count} would do if all of the memory fell in proportion, which parameters do not"
    elif values.sees_accumulation:
        yield f"its micro-batch of {values.micro_batch:,} cannot be split far enough by grad_accum"
    if values.accumulation_flag and count:
        yield f"a program that does not read --{values.accumulation_flag} needs a smaller micro-batch of its own"


def _edits(size: str, values: Levers, excess: Fraction) -> Iterator[str]:
    if count := _least_accumulation(values, excess):
        section = "training" if values.is_tuned_size else f"overrides.{size}"
        yield f"set {section}.grad_accum to {count} or more"
    if values.can_divide_model:
        yield f"raise overrides.{size}.model_parallel"


def _least_accumulation(values: Levers, excess: Fraction) -> int | None:
    """Return the least accumulation that would suffice if memory fell in proportion; None if none divides the batch."""
    if not values.sees_accumulation:
        return None
    factors = range(2, min(values.micro_batch, _MAX_FACTOR) + 1)
    factor = next((number for number in factors if number >= excess and values.micro_batch % number == 0), None)
    return factor and values.grad_accum * factor
