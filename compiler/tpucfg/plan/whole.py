"""Rules about the whole spec, whatever was selected: sizes, ladders, overrides, flags, buckets."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding, Place
from tpucfg.plan.names import bucket_name
from tpucfg.plan.rung import flag_of, program_args
from tpucfg.schemas import dotted, listed
from tpucfg.spec.document import Path
from tpucfg.spec.model import Environment, Project


def whole_findings(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Everything that stops every command."""
    for rule, read in _RULES.items():
        if not project.broken & read:
            yield from rule(project, catalog)


def bucket_of(project: Project, environment: Environment) -> str:
    """The bucket's name: as the spec says, or as it follows."""
    return environment.bucket or bucket_name(
        project=environment.project, name=project.name, environment=environment.name, region=environment.region
    )


def _ladders(project: Project) -> dict[Path, tuple[str, ...]]:
    """Each ladder once: environments without their own share the one at the top."""
    return {environment.sizes_path: environment.sizes for environment in project.environments.values()}


def _unknown_sizes(project: Project, catalog: Catalog) -> Iterator[Finding]:
    named: list[tuple[Path, str]] = [(("training", "tuned_on"), project.training.tuned_on)]
    for path, sizes in _ladders(project).items():
        named += [((*path, index), size) for index, size in enumerate(sizes)]
    for path, size in named:
        if catalog.find(size) is None:
            near = catalog.nearest(size)
            place = project.document.value(path)
            hint = f"did you mean {near}?" if near else "see all sizes with: tpucfg sizes"
            yield Finding.of("TPU020", f"{size} is no size of the catalogue", place, help=hint)


def _order(project: Project, catalog: Catalog, path: Path, sizes: tuple[str, ...]) -> Iterator[Finding]:
    known = [(index, slice_) for index, size in enumerate(sizes) if (slice_ := catalog.find(size))]
    for (before, lower), (index, upper) in pairwise(known):
        if upper.cores > lower.cores:
            continue
        repeated = upper.size == lower.size
        said = (
            "is written twice" if repeated else f"has {upper.cores} cores and follows {lower.size} with {lower.cores}"
        )
        ordered = sorted({slice_.cores: slice_.size for _, slice_ in reversed(known)}.items())
        yield Finding.of(
            "TPU023",
            f"{upper.size} {said}: a ladder rises in cores from rung to rung",
            project.document.value((*path, index)),
            help=f"write {dotted(path)} as [{', '.join(size for _, size in ordered)}]",
            related=((project.document.value((*path, before)), f"{lower.size}, {lower.cores} cores"),),
        )


def _strays(project: Project) -> Iterator[Finding]:
    """Overrides and zones for a size that is in no ladder: they would change nothing."""
    everywhere = tuple(dict.fromkeys(size for sizes in _ladders(project).values() for size in sizes))
    for size in project.overrides:
        if size not in everywhere:
            yield _stray(project, ("overrides", size), size, everywhere)
    for environment in project.environments.values():
        for size in environment.zones:
            if size not in environment.sizes:
                yield _stray(project, (*environment.path, "zones", size), size, environment.sizes)


def _stray(project: Project, path: Path, size: str, sizes: tuple[str, ...]) -> Finding:
    message = f"{dotted(path[:-1])} names {size}, which is in no ladder it could change"
    hint = f"add {size} to the ladder, or delete the entry"
    return Finding.of("TPU025", message, project.document.key(path), help=hint, details=(f"sizes: {listed(sizes)}",))


def _batches(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """A batch that is whole on every core of the size it was tuned on is so on every rung, unless it is overridden."""
    batches: list[tuple[Path, str, int]] = [
        (("training", "batch_size"), project.training.tuned_on, project.training.batch_size)
    ]
    for size, override in project.overrides.items():
        if override.batch_size:
            batches.append((("overrides", size, "batch_size"), size, override.batch_size))
    for path, size, batch in batches:
        slice_ = catalog.find(size)
        if slice_ and batch % slice_.cores:
            yield _uneven(project, path, slice_, batch)


def _uneven(project: Project, path: Path, slice_: Slice, batch: int) -> Finding:
    below, above = batch // slice_.cores * slice_.cores, (batch // slice_.cores + 1) * slice_.cores
    return Finding.of(
        "TPU040",
        f"a batch of {batch:,} does not divide over the {slice_.cores} cores of {slice_.size}: "
        f"{batch / slice_.cores:g} a core",
        project.document.value(path),
        help=f"set {dotted(path)} to {above}" + (f" or {below}" if below else ""),
    )


def _flags(project: Project) -> Iterator[Finding]:
    """The program would get such a flag twice, and which one wins is up to the program."""
    training = project.training
    keys = [
        key for key in ("batch_size", "train_steps", "epochs", "learning_rate") if getattr(training, key) is not None
    ]
    names = {key: flag for key in (*keys, *training.steps) if (flag := flag_of(training, key))}
    for flag, count in Counter(names.values()).items():
        if count > 1:
            both = [key for key, name in names.items() if name == flag]
            message = f"--{flag} would be given {count} times: for {' and for '.join(both)} of training"
            yield Finding.of("TPU050", message, _figure_place(project, both[-1]), help="give each figure its own flag")
    args = {arg.key: arg for size in ("", *project.overrides) for arg in program_args(project, size)}
    for key, name in names.items():
        if arg := args.get(name):
            yield Finding.of(
                "TPU050",
                f"--{name} would be given twice: by {dotted(arg.path)} and by training.{key}",
                project.document.key(arg.path),
                help=f"delete {dotted(arg.path)}, or leave the figure out with training.flags.{key}: null",
                related=((_figure_place(project, key), "the figure that makes the same flag"),),
            )


def _figure_place(project: Project, key: str) -> Place:
    path = ("training", "steps", key) if key in project.training.steps else ("training", key)
    return project.document.key(path)


def _buckets(project: Project) -> Iterator[Finding]:
    first: dict[str, Environment] = {}
    for environment in project.environments.values():
        bucket = bucket_of(project, environment)
        other = first.setdefault(bucket, environment)
        if other is environment:
            continue
        path, place = (*environment.path, "bucket"), project.document.key
        yield Finding.of(
            "TPU029",
            f"{environment.name} and {other.name} have one bucket, {bucket}: one would overwrite the other's jobs",
            place(path),
            help=f"give environments.{environment.name}.bucket a name of its own",
            related=((place((*other.path, "bucket")), f"the bucket of {other.name}"),),
        )


_RULES: Final[Mapping[Callable[[Project, Catalog], Iterator[Finding]], frozenset[str]]] = {
    _unknown_sizes: frozenset(),
    _orders: frozenset(),
    _strays: frozenset(("sizes", "environments", "overrides")),
    _batches: frozenset(),
    _flags: frozenset(("trainer", "training", "overrides")),
    _buckets: frozenset(("name", "environments")),
}
"""The rules, each with the sections that it compares: it is left out where one of them is broken."""
