"""Rules about the whole spec, whatever is selected: sizes, ladders, overrides, flags, buckets, prices."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.findings import RULES, Finding, Location
from tpucfg.plan.naming import bucket_of
from tpucfg.plan.rules.trainer_rules import trainer_findings, unused_generations
from tpucfg.plan.rules.unread_settings import unread_module, unread_rate_rule
from tpucfg.plan.rung import flag_name
from tpucfg.spec.credentials import credential_findings
from tpucfg.spec.layer_rules import layer_findings
from tpucfg.spec.layers import deletion_path, present_layers
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import dotted, listed, nearest, quote_key
from tpucfg.yamldoc.document import KeyPath


def project_findings(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield the findings about the whole spec, which every command reports."""
    for rule, sections in _RULES.items():
        if not project.broken & sections:
            yield from rule(project, catalog)


def _ladders(project: Project) -> dict[KeyPath, tuple[str, ...]]:
    """Return each ladder once, by its path: environments without a ladder share the one at the top level."""
    return {environment.sizes_path: environment.sizes for environment in project.environments.values()}


def _unknown_sizes(project: Project, catalog: Catalog) -> Iterator[Finding]:
    mentioned: list[tuple[KeyPath, str]] = [(("training", "tuned_on"), project.training.tuned_on)]
    for path, sizes in _ladders(project).items():
        mentioned += [((*path, index), size) for index, size in enumerate(sizes)]
    for path, size in mentioned:
        if catalog.find(size) is None:
            near = catalog.find(catalog.nearest(size) or "")
            hint = f"did you mean {near.size}?" if near else "list the sizes with: tpucfg sizes"
            details = (_sizes_like(catalog, near),) if near else ()
            message = f"{size} is not a TPU size"
            yield Finding.of("TPU020", message, project.document.value_location(path), help=hint, details=details)


def _sizes_like(catalog: Catalog, near: Slice) -> str:
    generation = catalog.generation(near.generation)
    # Sorted by ratio, so that both smaller and larger sizes are among the eight.
    nearest_sizes = sorted(generation.slices, key=lambda slice_: abs(math.log(slice_.number / near.number)))[:8]
    names = listed([slice_.size for slice_ in sorted(nearest_sizes, key=lambda slice_: slice_.number)])
    return f"{generation.title} is offered as: {names}" + (
        " and others" if len(generation.slices) > len(nearest_sizes) else ""
    )


def _unordered_sizes(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield, for each ladder, its repeated sizes or, if there are none, sizes with equal cores or the first descent."""
    for path, sizes in _ladders(project).items():
        rungs = [(index, slice_) for index, size in enumerate(sizes) if (slice_ := catalog.find(size))]
        # Reversed, so that the first of several rungs is kept.
        by_size = {rung[1].size: rung for rung in reversed(rungs)}
        by_cores = {rung[1].cores: rung for rung in reversed(rungs)}
        repeated = [(by_size[rung[1].size], rung) for rung in rungs if by_size[rung[1].size][0] != rung[0]]
        equal_cores = [
            (by_cores[rung[1].cores], rung) for rung in rungs if by_cores[rung[1].cores][1].size != rung[1].size
        ]
        descending = [(lower, upper) for lower, upper in pairwise(rungs) if upper[1].cores < lower[1].cores]
        for lower, upper in repeated or equal_cores or descending[:1]:
            yield _order_finding(project, path, lower, upper, [slice_ for _, slice_ in rungs])


def _order_finding(
    project: Project, path: KeyPath, lower: tuple[int, Slice], upper: tuple[int, Slice], ladder: Sequence[Slice]
) -> Finding:
    size, other = upper[1], lower[1]
    if size.size == other.size:
        problem, hint = "is in the ladder twice", "delete one of the two"
    elif size.cores == other.cores:
        problem = f"has {size.cores:,} cores, as many as {other.size}: each rung needs more cores than the one below"
        hint = f"leave {other.size} or {size.size} out, or give each an environment of its own"
    else:
        problem = (
            f"has {size.cores:,} cores and follows {other.size} with {other.cores:,}: a ladder is in ascending order"
        )
        ascending = sorted(ladder, key=lambda slice_: slice_.cores)
        hint = f"set {dotted(path)} to [{', '.join(slice_.size for slice_ in ascending)}]"
    location = project.document.value_location
    label = f"{other.size}, {other.cores:,} cores"
    return Finding.of(
        "TPU023",
        f"{size.size} {problem}",
        location((*path, upper[0])),
        help=hint,
        related=[(location((*path, lower[0])), label)],
    )


def _unused_sizes(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield an error for each override and each zone of a size that is in no ladder: it would have no effect."""
    all_sizes = tuple(dict.fromkeys(size for sizes in _ladders(project).values() for size in sizes))
    mentioned: list[tuple[KeyPath, tuple[str, ...]]] = [(("overrides", size), all_sizes) for size in project.overrides]
    for environment in project.environments.values():
        overrides = project.document.data["environments"][environment.name].get("overrides", {})
        mentioned += [((*environment.path, "zones", size), environment.sizes) for size in environment.zones]
        mentioned += [((*environment.path, "overrides", size), environment.sizes) for size in overrides]
    for path, sizes in mentioned:
        size = str(path[-1])
        if size in sizes:
            continue
        near = nearest(size, sizes) if catalog.find(size) is None else None
        hint = f"did you mean {near}?" if near else f"delete {dotted(path)}, or add {size} to the ladder"
        message = f"{dotted(path)} has no effect: no ladder has {quote_key(size)}"
        if path[0] == "environments":
            message = f"{dotted(path)} has no effect: the ladder of {path[1]} does not have {quote_key(size)}"
        details = (f"the sizes are: {listed(sizes)}",)
        yield Finding.of("TPU025", message, project.document.key_location(path), help=hint, details=details)


def _duplicate_flags(project: Project, _: Catalog) -> Iterator[Finding]:
    """Yield an error for each flag that the program would get twice."""
    yield from _flags_of_two_figures(project)
    yield from _flags_of_argument_and_figure(project)


def _figure_flags(project: Project) -> dict[str, str]:
    """Return the flag of each figure of `training`."""
    training = project.training
    present = {
        "batch_size": True,
        "grad_accum": _may_accumulate(project),
        "train_steps": training.train_steps is not None or training.train_tokens is not None,
        "epochs": training.epochs is not None,
        "learning_rate": training.learning_rate is not None,
        **dict.fromkeys(training.steps, True),
    }
    return {key: flag for key, is_present in present.items() if is_present and (flag := flag_name(training, key))}


def _may_accumulate(project: Project) -> bool:
    """Return True if some rung may have micro-batches: by a setting, or because the batch stays on a smaller slice."""
    overridden = any(override.grad_accum for override in project.overrides.values())
    return bool(project.training.grad_accum) or overridden or project.training.batch_rule == "keep"


def _flags_of_two_figures(project: Project) -> Iterator[Finding]:
    training, flags = project.training, _figure_flags(project)
    for flag, count in Counter(flags.values()).items():
        if count > 1:
            figures = [figure for figure, name in flags.items() if name == flag]
            message = f"--{flag} would be given {count} times: for {' and for '.join(figures)} of training"
            renamed = next((figure for figure in reversed(figures) if figure in training.flags), figures[-1])
            path: KeyPath = ("training", "flags", renamed)
            location = (
                project.document.value_location(path)
                if renamed in training.flags
                else _figure_location(project, renamed)
            )
            hint = f"set {dotted(path)} to null, which omits the figure, or to another flag"
            yield Finding.of("TPU050", message, location, help=hint)


def _flags_of_argument_and_figure(project: Project) -> Iterator[Finding]:
    figure_of_flag = {flag: figure for figure, flag in _figure_flags(project).items()}
    args = {arg.path: arg for settings in project.distinct_settings() for arg in settings.trainer.args}
    for path, arg in args.items():
        if figure := figure_of_flag.get(arg.key):
            yield Finding.of(
                "TPU050",
                f"--{arg.key} would be given twice: by {dotted(path)} and by {dotted(_figure_path(project, figure))}",
                project.document.key_location(path),
                help=f"delete {dotted(path)}, or set training.flags.{figure} to null, which omits the figure",
                related=((_figure_location(project, figure), "the figure with the same flag"),),
            )


def _figure_path(project: Project, key: str) -> KeyPath:
    if key in project.training.steps:
        return ("training", "steps", key)
    return ("training", "train_tokens" if key == "train_steps" and project.training.train_tokens else key)


def _figure_location(project: Project, key: str) -> Location:
    return project.document.key_location(_figure_path(project, key))


def _layers(project: Project, _: Catalog) -> Iterator[Finding]:
    return layer_findings(project.document, project.broken)


def _credentials(project: Project, _: Catalog) -> Iterator[Finding]:
    return credential_findings(project.document)


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
        hint = (
            f"delete {dotted(bucket_path)}, which makes it {default}"
            if environment.bucket and default not in first_users
            else ""
        )
        location = project.document.value_location
        yield Finding.of(
            "TPU029",
            f"{environment.name} and {first_user.name} share the bucket {bucket}: "
            "each would overwrite the other's jobs",
            location(bucket_path),
            help=hint or f"set {dotted(bucket_path)} to a name of its own",
            related=((location((*first_user.path, "bucket")), f"the bucket of {first_user.name}"),),
        )


def _unknown_prices(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield an error for each price of an unknown generation: the rungs it is meant for would have no cost."""
    for name in project.prices:
        if name not in catalog.generation_names:
            near = catalog.nearest_generation(name) or nearest(name, catalog.generation_names)
            yield Finding.of(
                "TPU004",
                f"prices has {quote_key(name)}, which is not a TPU generation",
                project.document.key_location(("prices", name)),
                help=f"did you mean {near}?" if near else f"delete prices.{quote_key(name)}",
                details=(f"the generations are: {listed(catalog.generation_names)}",),
            )


_READ_BY_ONE_TARGET: Final = {
    ("trainer", key): target for target, facts in TARGET_FACTS.items() for key in facts.trainer_keys
}
"""The keys of the trainer that only one target reads."""

_FOUND_BY_INFRA: Final = frozenset(rule.id for rule in RULES.values() if "TPU088" <= rule.id < "TPU100")
"""Findings about a stack's resources, which only `tpucfg infra` and `tpucfg review` report."""


def unused_settings(project: Project) -> Iterator[Finding]:
    """Yield a warning for each setting that no job reads.

    The result is valid only for a check of every environment, each on the target that the spec sets.
    """
    for layer in present_layers(project.document):
        users = _users(project, layer)
        targets = {environment.target for environment in users}
        for path, target in _target_settings(project, layer):
            if users and target not in targets:
                yield _unused_finding(project, path, f"only {target} reads it, and {_other_targets(users, layer)}")
        yield from (_unused_finding(project, *unread) for unread in unread_module(project, layer, users))
    yield from (_unused_finding(project, *unread) for unread in unread_rate_rule(project))
    for environment in project.environments.values():
        for target, facts in TARGET_FACTS.items():
            for key in facts.environment_keys:
                path = (*environment.path, key)
                if environment.target != target and project.document.node(path):
                    reason = f"only {target} reads it, and {environment.name} is on {environment.target}"
                    yield _unused_finding(project, path, reason)


def _target_settings(project: Project, layer: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of each setting of a layer that only one target reads, and the target."""
    section: KeyPath = (*layer, "targets")
    node = project.document.node(section)
    yield from (((*section, name), name) for name in (node.keys if node else ()))
    for key, target in _READ_BY_ONE_TARGET.items():
        if project.document.node((*layer, *key)):
            yield (*layer, *key), target


def _users(project: Project, layer: KeyPath) -> list[Environment]:
    """Return the environments in whose jobs a layer takes part."""
    name = layer[1] if layer[:1] == ("environments",) else None
    size = layer[-1] if "overrides" in layer[::2] else None
    return [
        environment
        for environment in project.environments.values()
        if name in (None, environment.name) and (size is None or size in environment.sizes)
    ]


def _other_targets(users: Sequence[Environment], layer: KeyPath) -> str:
    """Return the clause about the targets of the environments that a layer takes part in."""
    if not layer:
        return "no environment has that target"
    if layer[0] == "environments":
        return f"{users[0].name} is on {users[0].target}"
    return f"no environment with {layer[1]} has that target"


def _unused_finding(project: Project, path: KeyPath, reason: str) -> Finding:
    message = f"{dotted(path)} has no effect: {reason}"
    hint = f"delete {dotted(deletion_path(project.document, path))}"
    return Finding.of("TPU061", message, project.document.key_location(path), help=hint)


def unused_allowances(project: Project, occurred: Collection[str]) -> Iterator[Finding]:
    """Yield a warning for each id that the spec allows and that did not occur."""
    for id_ in project.allow:
        if id_ not in occurred and id_ not in _FOUND_BY_INFRA:
            location = project.document.key_location(("allow", id_))
            yield Finding.of("TPU013", f"{id_} is allowed and did not occur", location, help=f"delete allow.{id_}")


_RULES: Final[Mapping[Callable[[Project, Catalog], Iterator[Finding]], frozenset[str]]] = {
    _unknown_sizes: frozenset(),
    _unordered_sizes: frozenset(),
    _unused_sizes: frozenset(("sizes", "environments", "overrides")),
    _duplicate_flags: frozenset(("trainer", "training", "overrides")),
    _layers: frozenset(),
    _credentials: frozenset(),
    trainer_findings: frozenset(("trainer",)),
    unused_generations: frozenset(("trainer", "environments", "sizes", "overrides")),
    _shared_buckets: frozenset(("name", "environments")),
    _unknown_prices: frozenset(("prices",)),
}
"""The rules, each with the sections that it compares: a rule is skipped if one of them is broken."""
