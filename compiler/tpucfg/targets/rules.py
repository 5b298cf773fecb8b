"""The rules of targets: findings about specs that several targets share, and rows about request bodies.

A rule is about sizes, topology, hosts, machines, capacity or time. What a service refuses at once on submission beside
these has no rule: the message of the service is better.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tpucfg.catalog import TARGET_FACTS, Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import KeyPath, fields_at, grouped
from tpucfg.plan import account_id, job_name
from tpucfg.plan.job import PROBE
from tpucfg.plan.naming import MAX_ACCOUNT_ID_LENGTH
from tpucfg.plan.rules.access_rules import target_limit_findings
from tpucfg.schemas import Problem
from tpucfg.spec import Environment, Project, Settings
from tpucfg.targets import target_named
from tpucfg.text_format import dotted, format_value, listed

# Rows about request bodies, and the findings about them.


class FieldRule(NamedTuple):
    """A rule about one field of a request body."""

    path: str
    """The pattern of its path. The rule reads each mapping that can have the field, whether it has the field or not."""
    refuses: Callable[[Any, Mapping[str, Any]], object]
    """Returns a true value for a refused value, None if it is missing, given the mapping that can have the field."""
    sentence: str
    """The reason, to follow the path and a colon; `{value}` is the value."""
    fix: str
    """The edit, in which `{path}` is the field's path."""
    source: str
    """The public page that states the rule."""
    id: str = "TPU074"
    at_key: bool = False
    """True if no value of the field is accepted, so that the problem is at its key."""


def rule_problems(rules: Iterable[FieldRule], data: Any, at: KeyPath = ()) -> Iterator[Problem]:
    """Yield the problems of a request body that fits the API's schema, or of the part of it at a path."""
    for rule in rules:
        for steps, value, parent in fields_at(data, rule.path):
            if rule.refuses(value, parent):
                path = (*at, *steps)
                sentence = rule.sentence.format(value=format_value(value, quoted=False))
                fix = rule.fix.format(path=dotted(path))
                yield service_problem(path, sentence, fix, rule.source)._replace(
                    id=rule.id, at_key=rule.at_key
                )


def service_problem(path: KeyPath, sentence: str, fix: str, source: str) -> Problem:
    """Return the problem of a request body that the service would refuse, although it fits the API's schema."""
    return Problem(
        "TPU074", f"{dotted(path)}: {sentence}", path, fix, details=(f"the rule: {source}",)
    )


# The findings about values of a spec that every target has, and those that several targets share.


def target_findings(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield all findings of an environment's target about the spec."""
    yield from _unsupported_sizes(project, environment, slices)
    for slice_ in slices:
        yield from _unsupported_machine(project, environment.target, slice_)
    yield from target_limit_findings(project, environment, slices)
    if not _uses_own_account(project, environment, slices):
        yield from long_account_id(project, environment)
    yield from target_named(environment.target).spec_findings(project, environment, slices)


def _unsupported_sizes(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield an error for each reason why the target does not support sizes, with the targets that support them."""
    target = environment.target
    refused = (
        (slice_.refusals[target].reason, slice_)
        for slice_ in slices
        if target not in slice_.targets
    )
    for reason, refused_slices in grouped(refused).items():
        names = listed([slice_.size for slice_ in refused_slices], last=" and ")
        path = (*environment.sizes_path, environment.sizes.index(refused_slices[0].size))
        common = set.intersection(*(set(slice_.targets) for slice_ in refused_slices))
        others = ", ".join(name for name in refused_slices[0].targets if name in common)
        pronoun = "it" if len(refused_slices) == 1 else "them"
        move = (
            f"{_target_edit(project, environment, target)} that supports {pronoun} ({others}), or "
            if others
            else ""
        )
        # Without all of its rungs, the ladder would be empty, which is an error too.
        is_whole = len(refused_slices) == len(environment.sizes)
        replace = f"replace {names} by sizes that {target} supports: tpucfg sizes --target {target}"
        # The sources are read only here, because most specs have no such size.
        sources = Catalog().sources
        ids = dict.fromkeys(
            source for slice_ in refused_slices for source in slice_.refusals[target].sources
        )
        yield Finding.of(
            "TPU024",
            f"{target} does not support {names}: {reason}",
            project.document.value_location(path),
            help=f"{move}{replace if is_whole else f'leave {names} out'}",
            details=[f"see {sources[id_].url}" for id_ in ids],
        )


def _target_edit(project: Project, environment: Environment, target: str) -> str:
    """Return the beginning of the edit that chooses another target: in the spec, or on the command line."""
    data = project.document.data
    own = data["environments"][environment.name].get("target")
    if target != (own or data.get("target")):
        return "give --target one"
    return f"set {dotted(environment.path) + '.' if own else ''}target to one"


def _unsupported_machine(project: Project, target: str, slice_: Slice) -> Iterator[Finding]:
    """Yield an error for an override whose machine or topology its size does not have, or the target chooses."""
    override = project.overrides.get(slice_.size)
    if override is None:
        return
    choice = TARGET_FACTS[target].machine_choice
    # Where the API names a slice by its accelerators, it takes no machine.
    machines = slice_.machines if choice != "none" and target not in slice_.accelerators else ()
    machines += slice_.named_machines if choice == "machine and topology" else ()
    topologies = slice_.topologies if choice == "machine and topology" else ()
    names = [machine.name for machine in machines]
    for key, value, known, verb, forms in (
        ("machine", override.machine, names, "run on", f"{slice_.size} runs on"),
        ("topology", override.topology, topologies, "have the topology", "its chips form"),
    ):
        if value is None or value in known:
            continue
        path = ("overrides", slice_.size, key)
        shown = listed(known, 12, last=" or ")
        reason = f"{forms} {shown}" if known else f"{target} chooses the {key} itself"
        hint = f"set {dotted(path)} to {shown}" if known else f"delete {dotted(path)}"
        message = f"{slice_.size} cannot {verb} {value}: {reason}"
        yield Finding.of("TPU026", message, project.document.value_location(path), help=hint)


def distinct_settings(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> tuple[Settings, ...]:
    """Return the settings of the environment's jobs on these sizes, equal ones once."""
    # If all sizes of the ladder are unknown, which is TPU020, the rest of the environment is still checked.
    sizes = [slice_.size for slice_ in slices] or [""]
    settings = (project.settings[environment.name, size] for size in sizes)
    return tuple({id(value): value for value in settings}.values())


def _uses_own_account(project: Project, environment: Environment, slices: Sequence[Slice]) -> bool:
    """Return True if no job on these sizes runs as the account that the stack would create."""
    settings = distinct_settings(project, environment, slices)
    accounts = [
        each.targets.get(environment.target, {}).get("service_account") for each in settings
    ]
    # A service with a project of its own runs jobs as its own account.
    return all(accounts) or TARGET_FACTS[environment.target].has_tenant_project


def long_account_id(project: Project, environment: Environment) -> Iterator[Finding]:
    """Yield an error if the id of the account that the stack would create is too long."""
    id_ = account_id(name=project.name, environment=environment.name)
    if len(id_) > MAX_ACCOUNT_ID_LENGTH:
        yield Finding.of(
            "TPU030",
            f"the account of {environment.name} would have the id {id_}: "
            f"it has {len(id_)} characters, and Google allows {MAX_ACCOUNT_ID_LENGTH}",
            project.document.key_location(environment.path),
            help=f"shorten the project's or the environment's name by {len(id_) - MAX_ACCOUNT_ID_LENGTH} characters, "
            f"or set targets.{environment.target}.service_account to an account of your own",
        )


def long_job_names(
    project: Project,
    environment: Environment,
    slices: Sequence[Slice],
    max_length: Callable[[Slice], int],
    source: str,
) -> Iterator[Finding]:
    """Yield an error for the job of an environment whose name exceeds the service's limit by most characters.

    `max_length` returns the limit for a size. Names are checked without a run id; the rules of the request body check
    the complete name.
    """
    if not slices:  # all sizes of the environment are unknown, which is TPU020
        return
    names = [
        job_name(
            name=project.name,
            environment=environment.name,
            size=slice_.size,
            run=None,
            kind=PROBE if project.is_probe else None,
        )
        for slice_ in slices
    ]
    name, slice_ = max(
        zip(names, slices, strict=True), key=lambda pair: len(pair[0]) - max_length(pair[1])
    )
    if (excess := len(name) - max_length(slice_)) > 0:
        yield Finding.of(
            "TPU030",
            f"the job name {name} has {len(name)} characters, and {max_length(slice_)} are allowed for {slice_.size}",
            project.document.key_location(environment.path),
            help=f"shorten the project's or the environment's name by {excess} characters",
            details=(f"the rule: {source}",),
        )
