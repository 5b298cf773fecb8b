"""Rules about the whole spec, whatever was selected: sizes, ladders, overrides, flags, buckets."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding, Location
from tpucfg.plan.naming import bucket_of
from tpucfg.plan.rung import flag_name, program_args
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import dotted, listed, nearest, quote_key
from tpucfg.yamldoc.document import KeyPath


def project_findings(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Everything that stops every command."""
    for rule, read in _RULES.items():
        if not project.broken & read:
            yield from rule(project, catalog)


def _ladders(project: Project) -> dict[KeyPath, tuple[str, ...]]:
    """Each ladder once: environments without their own share the one at the top."""
    return {environment.sizes_path: environment.sizes for environment in project.environments.values()}


def _unknown_sizes(project: Project, catalog: Catalog) -> Iterator[Finding]:
    mentioned: list[tuple[KeyPath, str]] = [(("training", "tuned_on"), project.training.tuned_on)]
    for path, sizes in _ladders(project).items():
        mentioned += [((*path, index), size) for index, size in enumerate(sizes)]
    for path, size in mentioned:
        if catalog.find(size) is None:
            near = catalog.find(catalog.nearest(size) or "")
            hint = f"did you mean {near.size}?" if near else "see all sizes with: tpucfg sizes"
            details = (_sizes_like(catalog, near),) if near else ()
            message = f"{size} is no size of the catalogue"
            yield Finding.of("TPU020", message, project.document.value_location(path), help=hint, details=details)


def _sizes_like(catalog: Catalog, near: Slice) -> str:
    generation = catalog.generation(near.generation)
    sizes = sorted(generation.slices, key=lambda it: abs(math.log(it.number / near.number)))[:8]
    said = listed([it.size for it in sorted(sizes, key=lambda it: it.number)])
    return f"{generation.title} comes as: {said}" + (" and others" if len(generation.slices) > len(sizes) else "")


def _orders(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Of each ladder, sizes that stand in it twice, else sizes of as many cores, else an order that does not rise."""
    for path, sizes in _ladders(project).items():
        known = [(index, slice_) for index, size in enumerate(sizes) if (slice_ := catalog.find(size))]
        rung = {slice_.size: (index, slice_) for index, slice_ in reversed(known)}
        level = {slice_.cores: (index, slice_) for index, slice_ in reversed(known)}
        repeated = [(rung[it.size], (index, it)) for index, it in known if rung[it.size][0] != index]
        equal = [(level[it.cores], (index, it)) for index, it in known if level[it.cores][1].size != it.size]
        falling = [(lower, upper) for lower, upper in pairwise(known) if upper[1].cores < lower[1].cores]
        for lower, upper in repeated or equal or falling[:1]:
            yield _disorder(project, path, lower, upper, [slice_ for _, slice_ in known])


def _disorder(
    project: Project, path: KeyPath, lower: tuple[int, Slice], upper: tuple[int, Slice], ladder: Sequence[Slice]
) -> Finding:
    size, other = upper[1], lower[1]
    if size.size == other.size:
        said, hint = "stands in the ladder twice", "delete one of the two"
    elif size.cores == other.cores:
        said = f"has {size.cores} cores, as many as {other.size}: each rung has more than the one below"
        hint = f"leave {other.size} or {size.size} out, or give each an environment of its own"
    else:
        said = f"has {size.cores} cores and follows {other.size} with {other.cores}: a ladder rises from rung to rung"
        ordered = sorted(ladder, key=lambda it: it.cores)
        hint = f"set {dotted(path)} to [{', '.join(it.size for it in ordered)}]"
    location = project.document.value_location
    label = f"{other.size}, {other.cores} cores"
    return Finding.of(
        "TPU023",
        f"{size.size} {said}",
        location((*path, upper[0])),
        help=hint,
        related=[(location((*path, lower[0])), label)],
    )


def _strays(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Overrides and zones for a size that is in no ladder: they would change nothing."""
    everywhere = tuple(dict.fromkeys(size for sizes in _ladders(project).values() for size in sizes))
    mentioned: list[tuple[KeyPath, tuple[str, ...]]] = [(("overrides", size), everywhere) for size in project.overrides]
    for environment in project.environments.values():
        mentioned += [((*environment.path, "zones", size), environment.sizes) for size in environment.zones]
    for path, sizes in mentioned:
        size = str(path[-1])
        if size in sizes:
            continue
        near = nearest(size, sizes) if catalog.find(size) is None else None
        hint = f"did you mean {near}?" if near else f"delete {dotted(path)}, or add {size} to the ladder"
        message = f"{dotted(path)} changes nothing: no ladder has {quote_key(size)}"
        if path[0] == "environments":
            message = f"{dotted(path)} changes nothing: the ladder of {path[1]} does not have {quote_key(size)}"
        details = (f"the sizes are: {listed(sizes)}",)
        yield Finding.of("TPU025", message, project.document.key_location(path), help=hint, details=details)


def _batches(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """A batch that is whole on every core of the size it was tuned on is so on every rung, unless it is overridden."""
    batches: list[tuple[KeyPath, str, int]] = [
        (("training", "batch_size"), project.training.tuned_on, project.training.batch_size)
    ]
    for size, override in project.overrides.items():
        if override.batch_size:
            batches.append((("overrides", size, "batch_size"), size, override.batch_size))
    for path, size, batch in batches:
        slice_ = catalog.find(size)
        if slice_ and batch % slice_.cores:
            yield _uneven(project, path, slice_, batch)


def _uneven(project: Project, path: KeyPath, slice_: Slice, batch: int) -> Finding:
    below, above = batch // slice_.cores * slice_.cores, (batch // slice_.cores + 1) * slice_.cores
    return Finding.of(
        "TPU040",
        f"a batch of {batch:,} does not divide over the {slice_.cores} cores of {slice_.size}: "
        f"{batch / slice_.cores:g} a core",
        project.document.value_location(path),
        help=f"set {dotted(path)} to {above}" + (f" or {below}" if below else ""),
    )


def _flags(project: Project, _: Catalog) -> Iterator[Finding]:
    """The program would get such a flag twice, and which one wins is up to the program."""
    training = project.training
    keys = [
        key for key in ("batch_size", "train_steps", "epochs", "learning_rate") if getattr(training, key) is not None
    ]
    names = {key: flag for key in (*keys, *training.steps) if (flag := flag_name(training, key))}
    for flag, count in Counter(names.values()).items():
        if count > 1:
            both = [key for key, name in names.items() if name == flag]
            message = f"--{flag} would be given {count} times: for {' and for '.join(both)} of training"
            renamed = next((key for key in reversed(both) if key in training.flags), both[-1])
            path: KeyPath = ("training", "flags", renamed)
            location = (
                project.document.value_location(path) if renamed in training.flags else _figure_place(project, renamed)
            )
            hint = f"set {dotted(path)} to null, which leaves the figure out, or to another flag"
            yield Finding.of("TPU050", message, location, help=hint)
    figures = {name: key for key, name in names.items()}
    args = {arg.path: arg for size in ("", *project.overrides) for arg in program_args(project, size)}
    for at, arg in args.items():
        if key := figures.get(arg.key):
            yield Finding.of(
                "TPU050",
                f"--{arg.key} would be given twice: by {dotted(at)} and by {dotted(_figure_path(project, key))}",
                project.document.key_location(at),
                help=f"delete {dotted(at)}, or set training.flags.{key} to null, which leaves the figure out",
                related=((_figure_place(project, key), "the figure that makes the same flag"),),
            )


def _figure_path(project: Project, key: str) -> KeyPath:
    return ("training", "steps", key) if key in project.training.steps else ("training", key)


def _figure_place(project: Project, key: str) -> Location:
    return project.document.key_location(_figure_path(project, key))


def _buckets(project: Project, _: Catalog) -> Iterator[Finding]:
    first: dict[str, Environment] = {}
    for environment in project.environments.values():
        bucket = bucket_of(project, environment)
        other = first.setdefault(bucket, environment)
        if other is environment:
            continue
        own: KeyPath = (*environment.path, "bucket")
        default = bucket_of(project, environment._replace(bucket=None))
        hint = f"delete {dotted(own)}, which makes it {default}" if environment.bucket and default not in first else ""
        location = project.document.value_location
        yield Finding.of(
            "TPU029",
            f"{environment.name} and {other.name} have one bucket, {bucket}: one would overwrite the other's jobs",
            location(own),
            help=hint or f"set {dotted(own)} to a name of its own",
            related=((location((*other.path, "bucket")), f"the bucket of {other.name}"),),
        )


# Prices of what is not there: a misspelt generation would leave its rungs without a cost, in silence.


def price_findings(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """A price for something that is no generation of TPUs."""
    for name in project.prices:
        if name not in catalog.names:
            near = catalog.named(name) or nearest(name, catalog.names)
            yield Finding.of(
                "TPU004",
                f"prices has {quote_key(name)}, which is no generation of TPUs",
                project.document.key_location(("prices", name)),
                help=f"did you mean {near}?" if near else f"delete prices.{quote_key(name)}",
                details=(f"it takes: {listed(catalog.names)}",),
            )


# What a spec says and nothing uses. Only a complete check can tell: of every environment, on the target it names.


_OF_ONE_TARGET: Final = {
    ("trainer", "worker_image"): "ai-platform",
    ("trainer", "runtime"): "ai-platform",
    ("trainer", "python"): "ai-platform",
}
"""Keys outside `targets` that only one target reads; `kube_context` is gke's, and stands in each environment."""


_OF_RESOURCES: Final = ("TPU094",)
"""Allowable findings about the resources of a stack, which only `tpucfg infra` looks at."""


def unused_settings(project: Project) -> Iterator[Finding]:
    """A warning for each setting of a target that no environment has."""
    used = {environment.target for environment in project.environments.values()}
    settings: list[tuple[KeyPath, str]] = [(("targets", name), name) for name in project.targets]
    settings += _OF_ONE_TARGET.items()
    for path, target in settings:
        if target not in used and project.document.node(path):
            yield _unused(project, path, f"{target} reads it, and no environment has that target")
    for environment in project.environments.values():
        if environment.kube_context and environment.target != "gke":
            path = (*environment.path, "kube_context")
            yield _unused(project, path, f"gke reads it, and {environment.name} is on {environment.target}")


def _unused(project: Project, path: KeyPath, why: str) -> Finding:
    message = f"{dotted(path)} changes nothing: {why}"
    return Finding.of("TPU061", message, project.document.key_location(path), help=f"delete {dotted(path)}")


def unused_allowances(project: Project, occurred: Collection[str]) -> Iterator[Finding]:
    """A warning for each id that is allowed and is not among those that occurred."""
    for id_ in project.allow:
        if id_ not in occurred and id_ not in _OF_RESOURCES:
            location = project.document.key_location(("allow", id_))
            yield Finding.of("TPU013", f"{id_} is allowed and did not occur", location, help=f"delete allow.{id_}")


_RULES: Final[Mapping[Callable[[Project, Catalog], Iterator[Finding]], frozenset[str]]] = {
    _unknown_sizes: frozenset(),
    _orders: frozenset(),
    _strays: frozenset(("sizes", "environments", "overrides")),
    _batches: frozenset(),
    _flags: frozenset(("trainer", "training", "overrides")),
    _buckets: frozenset(("name", "environments")),
    price_findings: frozenset(("prices",)),
}
"""The rules, each with the sections that it compares: it is left out where one of them is broken."""
