"""Rules about parallelism: whole replicas in each slice, and whole examples for each replica and micro-batch."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.number_format import format_number
from tpucfg.plan.rung import NO_OVERRIDE, Rung, decimal_text, make_rung, setting_path
from tpucfg.spec import Override, Project, Training
from tpucfg.spec.sections import compares
from tpucfg.text_format import dotted, format_count, listed
from tpucfg.yamldoc import KeyPath

MAX_BATCH: Final = 10**15
"""The largest number that the schema accepts."""
MAX_GRAD_ACCUM_CANDIDATES: Final = 10_000
"""Numbers that are tried for a help line, so that a batch of many digits costs no time."""
_SHARED_BATCH: Final = (
    "model_parallel is 1; set it if several devices share one "
    "copy of the batch, as in tensor or sequence parallelism"
)
"""A detail for batches with fewer examples than devices, which is a common state of language models."""


@compares("training")
def parallelism_findings(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield the errors about `model_parallel` and about batches, for `tuned_on` and for every rung."""
    tuned_on = catalog.find(project.training.tuned_on)
    if tuned_on is None:
        return  # an unknown size is TPU020
    if fractional := tuple(_fractional_batches(project, catalog)):
        yield from fractional
        return  # the batch that follows was rounded down
    slices = tuple(_ladder_slices(project, catalog))
    setting: KeyPath = ("training", "model_parallel")
    is_tuned_divisible = _devices(tuned_on) % project.training.model_parallel == 0
    if not is_tuned_divisible:
        following = [slice_ for slice_ in slices if not _override(project, slice_).model_parallel]
        common = gcd(*(_devices(slice_) for slice_ in (tuned_on, *following)))
        yield _indivisible(
            project, tuned_on, project.training.model_parallel, setting, setting, common
        )
    divisible = []
    for slice_ in slices:
        own, path = (
            _override(project, slice_).model_parallel,
            ("overrides", slice_.size, "model_parallel"),
        )
        model_parallel = own or project.training.model_parallel
        if _devices(slice_) % model_parallel == 0:
            divisible.append(slice_)
        elif is_tuned_divisible or own:
            yield _indivisible(
                project, slice_, model_parallel, path if own else setting, path, _devices(slice_)
            )
    if not is_tuned_divisible:
        return  # without whole replicas there are no micro-batches
    # Most specs pass the whole-number test, which is faster than to compute the rungs.
    if not all(_is_plainly_even(project, tuned_on, slice_) for slice_ in (tuned_on, *divisible)):
        yield from _uneven_batches(project, tuned_on, divisible)


@compares("sizes", "environments", "overrides")
def _ladder_slices(project: Project, catalog: Catalog) -> Iterator[Slice]:
    """Yield the slice of each size in a ladder once, without unknown sizes."""
    sizes = dict.fromkeys(
        size for environment in project.environments.values() for size in environment.sizes
    )
    yield from (slice_ for size in sizes if (slice_ := catalog.find(size)))


# Model parallelism.


def _override(project: Project, slice_: Slice) -> Override:
    return project.overrides.get(slice_.size, NO_OVERRIDE)


def _devices(slice_: Slice) -> int:
    """Return the JAX devices of one slice of a size: a replica does not span slices."""
    return slice_.devices // slice_.slices


def _indivisible(
    project: Project,
    slice_: Slice,
    model_parallel: int,
    path: KeyPath,
    edited: KeyPath,
    number: int,
) -> Finding:
    """Return the finding about a setting, which is edited to a divisor of a number just below or above it."""
    owner = f"one slice of {slice_.size}" if slice_.slices > 1 else slice_.size
    devices = format_count(_devices(slice_), "JAX device")
    message = f"model_parallel {model_parallel:,} does not divide the {devices} of {owner}"
    divisors = [count for count in range(1, number + 1) if number % count == 0]
    below, above = (
        [n for n in divisors if n < model_parallel],
        [n for n in divisors if n > model_parallel],
    )
    hint = f"set {dotted(edited)} to {' or '.join(map(str, (*below[-1:], *above[:1])))}"
    return project.document.finding("TPU048", message, path, help=hint)


# Batches.


def _is_plainly_even(project: Project, tuned_on: Slice, slice_: Slice) -> bool:
    """Return True if the batch grows with the cores, without an override, and divides on a slice."""
    training = project.training
    if training.batch_rule == "keep" or slice_.size in project.overrides:
        return False
    batch, rest = divmod(training.batch_size * slice_.cores, tuned_on.cores)
    return (
        not rest
        and batch % (slice_.devices // training.model_parallel * (training.grad_accum or 1)) == 0
    )


def _uneven_batches(
    project: Project, tuned_on: Slice, slices: Sequence[Slice]
) -> Iterator[Finding]:
    training = project.training
    tuned = make_rung(project._replace(overrides={}), tuned_on, tuned_on)
    rungs = [make_rung(project, tuned_on, slice_) for slice_ in slices]
    following = [] if _is_even(project, tuned) else [tuned]
    details: tuple[str, ...] = ()
    if following and tuned.batch_size < tuned.data_parallel == tuned_on.devices:
        details = (_SHARED_BATCH,)
    for rung in rungs:
        if _is_even(project, rung):
            continue
        if "batch_size" in rung.overridden:
            yield _uneven_override(project, rung)
        elif following[:1] == [tuned]:
            continue  # its batch follows from the one that is reported
        elif training.batch_rule == "keep" or (
            "grad_accum" in rung.overridden and _fits_replicas(project, rung)
        ):
            yield _uneven_accumulation(project, rung)
        else:
            following.append(rung)
    if following:
        first, *others = following
        details = (f"nor on {listed([rung.size for rung in others])}",) if others else details
        hint = _tuned_batch_help(project, tuned, rungs)
        yield _uneven(
            project, _division(project, first), setting_path(training, "batch_size"), hint, details
        )


def _fractional_batches(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield an error for each batch of a device that is no whole number on all devices together."""
    places: list[tuple[KeyPath, str, Training | Override]] = [
        (("training",), project.training.tuned_on, project.training)
    ]
    places += [
        (("overrides", size), size, override) for size, override in project.overrides.items()
    ]
    for section, size, figures in places:
        path, per_device = (*section, "per_device_batch_size"), figures.per_device_batch_size
        slice_ = catalog.find(size)
        if per_device and slice_ and (per_device.value * slice_.devices).denominator != 1:
            batch = format_number(per_device.value * slice_.devices)
            message = f"{per_device.text} examples on each of the {slice_.devices:,} devices of {size} are {batch}"
            nearest = decimal_text(
                Fraction(max(1, round(per_device.value * slice_.devices)), slice_.devices)
            )
            yield _uneven(
                project, f"{message}: no whole number", path, f"set {dotted(path)} to {nearest}"
            )


def _exact_batch(project: Project, rung: Rung) -> Fraction:
    return project.training.batch_size * rung.scale


def _is_even(project: Project, rung: Rung) -> bool:
    return _exact_batch(project, rung).denominator == 1 and rung.micro_batch.denominator == 1


def _fits_replicas(project: Project, rung: Rung) -> bool:
    """Return True if the batch is a whole number for each replica, so that some accumulation divides it."""
    return (_exact_batch(project, rung) / rung.data_parallel).denominator == 1


def _uneven(
    project: Project, message: str, path: KeyPath, hint: str, details: tuple[str, ...] = ()
) -> Finding:
    return project.document.finding("TPU040", message, path, help=hint, details=details)


def _division(project: Project, rung: Rung) -> str:
    """Return the problem: `a batch of 100 does not divide over the 8 devices of v2-8: 12.5 examples each`."""
    batch, replicas = _exact_batch(project, rung), rung.data_parallel
    parts = f"{format_count(replicas, 'device')} of {rung.size}"
    if rung.model_parallel > 1:
        parts = (
            f"{format_count(replicas, 'replica')} of {rung.model_parallel:,} devices on {rung.size}"
        )
    if (rung.grad_accum or 1) > 1:
        parts += f" and {rung.grad_accum:,} micro-batches"
    share = format_number(batch / (replicas * (rung.grad_accum or 1)))
    return (
        f"a batch of {format_number(batch)} does not divide over the {parts}: {share} examples each"
    )


def _tuned_batch_help(project: Project, tuned: Rung, rungs: Sequence[Rung]) -> str:
    """Return the nearest batches that divide on `tuned_on` and on every rung that follows from it."""
    training = project.training
    unit = tuned.data_parallel * (training.grad_accum or 1)
    for rung in rungs:
        if training.batch_rule == "per_core" and not _override(project, rung.slice).batch_size:
            step = rung.data_parallel * (rung.grad_accum or 1) / rung.scale
            unit = lcm(unit * step.denominator, step.numerator) // step.denominator
    devices = (
        tuned.slice.devices * (training.grad_accum or 1) if training.per_device_batch_size else 1
    )
    return _batch_help(
        setting_path(project.training, "batch_size"), training.batch_size, unit, devices
    )


def _batch_help(path: KeyPath, batch: int, unit: int, devices: int = 1) -> str:
    """Return the edit to the nearest batches; `devices` divide one that the spec gives for each of them."""
    below = batch // unit * unit
    nearest = [
        Fraction(count, devices) for count in (below + unit, below) if 0 < count <= MAX_BATCH
    ]
    return (
        f"set {dotted(path)} to {' or '.join(map(decimal_text, nearest))}"
        if nearest
        else "end the ladder below"
    )


def _uneven_override(project: Project, rung: Rung) -> Finding:
    is_of_device = project.overrides[rung.size].per_device_batch_size is not None
    path = ("overrides", rung.size, "per_device_batch_size" if is_of_device else "batch_size")
    devices = rung.slice.devices * (rung.grad_accum or 1) if is_of_device else 1
    per_replica = rung.grad_accum or 1
    if project.training.batch_rule == "keep" and "grad_accum" not in rung.overridden:
        # With a multiple of the tuned micro-batch, accumulation is a whole number.
        per_replica = max(1, int(rung.tuned_micro_batch))
    hint = _batch_help(path, rung.batch_size, rung.data_parallel * per_replica, devices)
    return _uneven(project, _division(project, rung), path, hint)


def _uneven_accumulation(project: Project, rung: Rung) -> Finding:
    """Return the finding for a rung whose batch stays, or whose accumulation the spec sets."""
    overridden = "grad_accum" in rung.overridden
    place: KeyPath = (
        ("overrides", rung.size, "grad_accum") if overridden else ("training", "batch_rule")
    )
    return _uneven(project, _division(project, rung), place, _accumulation_help(project, rung))


def _accumulation_help(project: Project, rung: Rung) -> str:
    """Return the setting of the rung that divides its batch: accumulation, else larger replicas."""
    if _fits_replicas(project, rung):
        examples = rung.batch_size // rung.data_parallel
        candidates = range(rung.grad_accum or 1, min(examples, MAX_GRAD_ACCUM_CANDIDATES) + 1)
        # A batch of prime numbers is left with one example at a time.
        count = next((count for count in candidates if examples % count == 0), examples)
        return f"set overrides.{rung.size}.grad_accum to {count}"
    devices = _devices(rung.slice)
    for model_parallel in range(rung.model_parallel + 1, devices + 1):
        if (
            devices % model_parallel == 0
            and rung.batch_size % (rung.slice.devices // model_parallel) == 0
        ):
            return f"set overrides.{rung.size}.model_parallel to {model_parallel}, or leave {rung.size} out"
    return f"leave {rung.size} out, or set training.batch_rule to per_core"
