"""Rules about the whole spec, whatever is selected, with the table of all of them, and about several specs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Allowance, Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.naming import bucket_of
from tpucfg.plan.rules.access_rules import credential_findings
from tpucfg.plan.rules.figure_rules import figure_findings
from tpucfg.plan.rules.trainer_rules import trainer_findings
from tpucfg.spec import Environment, Project, deletion_help
from tpucfg.spec.layer_rules import layer_findings
from tpucfg.spec.sections import apply_rules, compares
from tpucfg.text_format import dotted, listed, nearest, quote_key
from tpucfg.yamldoc import KeyPath

_XLA_FLAGS: Final[KeyPath] = ("trainer", "xla_flags")


def project_findings(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield the findings about the whole spec, which every command reports."""
    return apply_rules(_RULES, project, catalog)


def _ladders(project: Project) -> dict[KeyPath, tuple[str, ...]]:
    """Return each ladder once, by its path: environments without a ladder share the one at the top level."""
    return {
        environment.sizes_path: environment.sizes for environment in project.environments.values()
    }


@compares()
def _unknown_sizes(project: Project, catalog: Catalog) -> Iterator[Finding]:
    mentioned: list[tuple[KeyPath, str]] = [(("training", "tuned_on"), project.training.tuned_on)]
    lists: dict[KeyPath, Sequence[str]] = {**_ladders(project)}
    lists["tune", "sizes"] = project.document.data.get("tune", {}).get("sizes", ())
    for path, sizes in lists.items():
        mentioned += [((*path, index), size) for index, size in enumerate(sizes)]
    for path, size in mentioned:
        if catalog.find(size) is None:
            near = catalog.find(catalog.nearest(size) or "")
            hint = f"did you mean {near.size}?" if near else "list the sizes with: tpucfg sizes"
            details = (_sizes_like(catalog, near),) if near else ()
            yield project.document.finding(
                "TPU020", f"{size} is not a TPU size", path, help=hint, details=details
            )


def _sizes_like(catalog: Catalog, near: Slice) -> str:
    generation = catalog.generation(near.generation)
    # Sorted by ratio, so that both smaller and larger sizes are among the eight.
    nearest_sizes = sorted(
        generation.slices, key=lambda slice_: abs(math.log(slice_.number / near.number))
    )[:8]
    names = listed(
        [slice_.size for slice_ in sorted(nearest_sizes, key=lambda slice_: slice_.number)]
    )
    return f"sizes of {generation.title} near it: {names}"


class _Place(NamedTuple):
    """A size in a ladder."""

    position: int
    slice: Slice


@compares()
def _unordered_sizes(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield, for each ladder, its repeated sizes or, if there are none, sizes with equal cores or the first descent."""
    for path, sizes in _ladders(project).items():
        places = [
            _Place(position, slice_)
            for position, size in enumerate(sizes)
            if (slice_ := catalog.find(size))
        ]
        # Reversed, so that the first of several places is kept.
        by_size = {place.slice.size: place for place in reversed(places)}
        by_cores = {place.slice.cores: place for place in reversed(places)}
        repeated = [
            (first, place) for place in places if (first := by_size[place.slice.size]) is not place
        ]
        equal = [
            (first, place)
            for place in places
            if (first := by_cores[place.slice.cores]) is not place
        ]
        descending = [
            (lower, upper)
            for lower, upper in pairwise(places)
            if upper.slice.cores < lower.slice.cores
        ]
        for lower, upper in repeated or equal or descending[:1]:
            yield _order_finding(project, path, lower, upper, [place.slice for place in places])


def _order_finding(
    project: Project, path: KeyPath, lower: _Place, upper: _Place, ladder: Sequence[Slice]
) -> Finding:
    size, other = upper.slice, lower.slice
    has_cores = f"has {size.cores:,} cores"
    if size.size == other.size:
        problem, hint = "is in the ladder twice", "delete one of the two"
    elif size.cores == other.cores:
        problem = (
            f"{has_cores}, as many as {other.size}: each rung needs more cores than the one below"
        )
        hint = f"leave {other.size} or {size.size} out, or give each an environment of its own"
    else:
        problem = f"{has_cores} and follows {other.size} with {other.cores:,}: a ladder is in ascending order"
        ascending = sorted(ladder, key=lambda slice_: slice_.cores)
        hint = f"set {dotted(path)} to [{', '.join(slice_.size for slice_ in ascending)}]"
    at_lower = project.document.value_location((*path, lower.position))
    related = ((at_lower, f"{other.size}, {other.cores:,} cores"),)
    place = (*path, upper.position)
    return project.document.finding(
        "TPU023", f"{size.size} {problem}", place, help=hint, related=related
    )


@compares("sizes", "environments", "overrides")
def _unused_sizes(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield an error for each override and each zone of a size that is in no ladder: it would have no effect."""
    all_sizes = tuple(dict.fromkeys(size for sizes in _ladders(project).values() for size in sizes))
    places: list[tuple[KeyPath, tuple[str, ...]]] = [((), all_sizes)]
    places += [
        (environment.path, environment.sizes) for environment in project.environments.values()
    ]
    sections = [((*place, key), sizes) for place, sizes in places for key in ("overrides", "zones")]
    nodes = [(section, sizes, project.document.node(section)) for section, sizes in sections]
    for path, sizes in [
        ((*section, size), sizes) for section, sizes, node in nodes if node for size in node.keys
    ]:
        size = str(path[-1])
        if size in sizes:
            continue
        near = nearest(size, sizes) if catalog.find(size) is None else None
        hint = (
            f"did you mean {near}?"
            if near
            else f"delete {dotted(path)}, or add {size} to the ladder"
        )
        if path == ("overrides", size) and size in project.environments:
            hint = _override_of_environment(project, size)
        owner = (
            f"the ladder of {path[1]} does not have"
            if path[0] == "environments"
            else "no ladder has"
        )
        message = f"{dotted(path)} has no effect: {owner} {quote_key(size)}"
        details = (f"the sizes are: {listed(sizes)}",)
        yield project.document.finding(
            "TPU025", message, path, at_key=True, help=hint, details=details
        )


@compares("sizes", "environments", "overrides")
def _unknown_fallbacks(project: Project, _: Catalog) -> Iterator[Finding]:
    """Yield an error for each fallback that is no other size of the ladders: it is checked and priced as a rung."""
    for size, override in project.overrides.items():
        ladders = [each.sizes for each in project.environments.values() if size in each.sizes]
        for index, other in enumerate(override.fallback):
            path = ("overrides", size, "fallback", index)
            if ladders and other == size:
                message = f"a run of {quote_key(size)} cannot move to its own size"
                yield project.document.finding(
                    "TPU025", message, path, help=deletion_help(project.document, path)
                )
            elif ladders and not any(other in sizes for sizes in ladders):
                message = f"a run cannot move to {quote_key(other)}: no ladder with {quote_key(size)} has it"
                hint = f"delete {dotted(path)}, or add {quote_key(other)} to the ladder"
                yield project.document.finding("TPU025", message, path, help=hint)


def _override_of_environment(project: Project, name: str) -> str:
    """Return the edit for an override under the name of an environment, which has settings of its own."""
    keys, own = (project.document.data[section][name] for section in ("overrides", "environments"))
    if {*keys} <= {"capacity", "trainer", "targets"} - {*own}:
        return f"move the keys of overrides.{name} to environments.{name} itself"
    return f"delete overrides.{name}: {name} is an environment, and overrides are for sizes"


@compares()
def _layers(project: Project, _: Catalog) -> Iterator[Finding]:
    return layer_findings(project.document)


@compares("name", "environments")
def _shared_buckets(project: Project, _: Catalog) -> Iterator[Finding]:
    """Yield an error for each environment whose bucket an earlier one uses."""
    first_users: dict[str, Environment] = {}
    for environment in project.environments.values():
        bucket = bucket_of(project, environment)
        first_user = first_users.setdefault(bucket, environment)
        if first_user is environment:
            continue
        bucket_path: KeyPath = (*environment.path, "bucket")
        default = bucket_of(project, environment._replace(bucket=None))
        hint = f"set {dotted(bucket_path)} to a name of its own"
        if environment.bucket and default not in first_users:
            hint = f"delete {dotted(bucket_path)}, which makes it {default}"
        names = f"{environment.name} and {first_user.name}"
        message = f"{names} share the bucket {bucket}: each would overwrite the other's jobs"
        details = (
            "a bucket is shared by specs with different names, as folders have the name and no environment",
        )
        at_first = project.document.value_location((*first_user.path, "bucket"))
        related = ((at_first, f"the bucket of {first_user.name}"),)
        yield project.document.finding(
            "TPU029", message, bucket_path, help=hint, details=details, related=related
        )


@compares("training")
def _unknown_steps(project: Project, _: Catalog) -> Iterator[Finding]:
    """Yield an error for each setting that the preset's program does not know, and at whose flag it ends."""
    training = project.training
    unknown = training.preset.unknown_steps if training.preset else {}
    for key in training.steps:
        if key in unknown and key not in training.flags:
            message = f"the preset's program has no argument {key}, and would end at its start"
            path = ("training", "steps", key)
            yield project.document.finding("TPU007", message, path, at_key=True, help=unknown[key])


@compares()
def _unknown_generations(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield an error for each unknown generation: its price has no rung, and no job gets its compiler flags."""
    paths: list[KeyPath] = [("prices", name) for name in project.prices]
    for settings in project.distinct_settings():
        paths += [settings.source((*_XLA_FLAGS, name)) for name in settings.trainer.xla_flags]
    for path in paths:
        name = str(path[-1])
        if name in catalog.generation_names:
            continue
        near = catalog.nearest_generation(name) or nearest(name, catalog.generation_names)
        message = f"{dotted(path[:-1])} has {quote_key(name)}, which is not a TPU generation"
        deletion = (
            f"delete prices.{quote_key(name)}"
            if path[0] == "prices"
            else deletion_help(project.document, path)
        )
        hint = f"did you mean {near}?" if near else deletion
        details = (f"the generations are: {listed(catalog.generation_names)}",)
        yield project.document.finding(
            "TPU004", message, path, at_key=True, help=hint, details=details
        )


@compares("trainer", "environments", "sizes", "overrides")
def _unused_generations(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each generation with flags that no job has: a rung was removed, or the name is wrong."""
    used: dict[KeyPath, bool] = {}
    for (_, size), settings in project.settings.items():
        # Without flags, the catalog is not asked: an unknown size makes it load every generation.
        if not size or not settings.trainer.xla_flags or (slice_ := catalog.find(size)) is None:
            continue
        for generation in settings.trainer.xla_flags:
            path = settings.source((*_XLA_FLAGS, generation))
            used[path] = used.get(path, False) or slice_.generation == generation
    for path, is_used in used.items():
        if not is_used and path[-1] in catalog.generation_names:
            message = f"{dotted(path)} changes nothing: no rung with this setting is a {path[-1]}"
            hint = deletion_help(project.document, path)
            yield project.document.finding("TPU016", message, path, at_key=True, help=hint)


_RULES: Final = (
    _unknown_sizes,
    _unordered_sizes,
    _unused_sizes,
    _unknown_fallbacks,
    figure_findings,
    _layers,
    credential_findings,
    trainer_findings,
    _unknown_generations,
    _unused_generations,
    _shared_buckets,
    _unknown_steps,
)


# The specs of one command: a bucket that two create, and folders that two share.


class BucketUse(NamedTuple):
    """An environment's use of its bucket: all that the rules need, as hundreds of specs are not kept."""

    project: str
    """The spec's name."""
    environment: str
    bucket: str
    is_created: bool
    """False if the bucket exists already."""
    bucket_location: Location
    name_location: Location
    allow: Mapping[str, Allowance]

    @property
    def file(self) -> str:
        """The spec."""
        return self.name_location.file

    @property
    def user(self) -> str:
        """The environment, for another spec's finding."""
        return f"{self.environment} in {self.file}"


def bucket_uses(project: Project) -> tuple[BucketUse, ...]:
    """Return how a spec's environments use their buckets."""
    locate = project.document.value_location
    return tuple(
        BucketUse(
            project=project.name,
            environment=environment.name,
            bucket=bucket_of(project, environment),
            is_created=environment.creates_bucket,
            bucket_location=locate((*environment.path, "bucket")),
            name_location=locate(("name",)),
            allow=project.allow,
        )
        for environment in project.environments.values()
    )


def shared_bucket_findings(uses: Sequence[BucketUse]) -> Iterator[Finding]:
    """Yield the findings about each spec that creates the bucket, or has the folders, of an earlier spec."""
    creators: dict[str, BucketUse] = {}
    folders: dict[tuple[str, str], BucketUse] = {}
    for use in uses:
        creator = creators.setdefault(use.bucket, use) if use.is_created else use
        if creator.file != use.file:
            yield _created_twice(use, creator)
        first = folders.setdefault((use.bucket, use.project), use)
        if first.file != use.file:
            yield _same_folders(use, first).allowed_by(use.allow)


def _created_twice(use: BucketUse, creator: BucketUse) -> Finding:
    subject = f"{use.environment} creates the bucket {use.bucket}, as does {creator.user}"
    message = f"{subject}: whichever stack is updated second would fail, as the name is taken"
    path = dotted(("environments", use.environment, "bucket"))
    hint = f"set {path} to {{name: {use.bucket}, create: false}}, which shares the bucket of {creator.user}"
    related = ((creator.bucket_location, f"the bucket of {creator.environment}"),)
    return Finding.of("TPU131", message, use.bucket_location, help=hint, related=related)


def _same_folders(use: BucketUse, first: BucketUse) -> Finding:
    message = (
        f"{use.environment} has the folders of {first.user}: gs://{use.bucket}/jobs/{use.project}"
    )
    hint, related = "give one of the specs another name", ((first.name_location, "the same name"),)
    return Finding.of("TPU126", message, use.name_location, help=hint, related=related)
