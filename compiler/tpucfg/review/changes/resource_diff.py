"""From a resource before and after to what happens to it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from tpucfg.diff.change import ABSENT, Change, redact_change
from tpucfg.diff.tree_diff import value_changes
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.redaction import redact, redact_value
from tpucfg.review.changes.iam_changes import access_widenings
from tpucfg.review.changes.resource_change import REMOVING_OPS, Op, ResourceChange, Widening

_OP_OF_ABSENCE: Final[dict[tuple[bool, bool], Op]] = {(False, True): "create", (True, False): "delete"}


class Step(NamedTuple):
    """One resource on both sides, and what the engine says about it where there was one."""

    before: Resource | None
    after: Resource | None
    op: Op
    because: tuple[str, ...] = ()
    """The inputs that force a replacement."""
    differs: tuple[str, ...] = ()
    """The properties that the engine says differ."""


def resource_changes(environment: str, steps: Sequence[Step]) -> tuple[ResourceChange, ...]:
    """What changes, sorted by type and name; what stays as it was is left out. People and secrets are redacted."""
    widened = access_widenings([(step.before, step.after) for step in steps])
    made = (_change(environment, step, more) for step, more in zip(steps, widened, strict=True))
    return tuple(sorted(filter(_is_one, made), key=lambda change: (change.type, change.name, change.op)))


def op_of(before: Resource | None, after: Resource | None) -> Op:
    """What becomes of a resource that is on one side only, and `update` where it is on both."""
    return _OP_OF_ABSENCE.get((before is not None, after is not None), "update")


def _is_one(change: ResourceChange) -> bool:
    return change.op != "same" or bool(change.protection)


def _change(environment: str, step: Step, widened: Sequence[Widening]) -> ResourceChange:
    known = step.after or step.before
    assert known is not None  # noqa: S101 - a step is about a resource
    inputs = tuple(input_changes(step.before, step.after))
    return ResourceChange(
        environment,
        step.op,
        known.type,
        redact(known.name),
        tuple(map(redact_change, inputs)),
        step.because,
        () if inputs else step.differs,
        protected=bool(step.before and step.before.protect),
        protection=_protection(step),
        retained=bool(step.op in REMOVING_OPS and step.before and step.before.retain),
        widened=tuple(it._replace(who=redact(it.who)) for it in widened),
    )


def _protection(step: Step) -> Literal["", "lifted", "added"]:
    if step.before is None or step.after is None or step.before.protect == step.after.protect:
        return ""
    return "lifted" if step.before.protect else "added"


def input_changes(before: Resource | None, after: Resource | None) -> Iterable[Change]:
    """The inputs that differ, by name; of a resource that comes or goes, each of its inputs as one change."""
    old, new = (sort_keys(side.inputs if side else {}) for side in (before, after))
    if before is not None and after is not None:
        return value_changes(old, new)
    return (Change((key,), old.get(key, ABSENT), new.get(key, ABSENT)) for key in (old or new))


def sort_keys(value: Any) -> Any:
    """The value with its keys sorted: engine and program hand them over in whatever order."""
    if isinstance(value, Mapping):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return [sort_keys(item) for item in value] if isinstance(value, list) else value


# What a change does to an environment's resources, from the program alone: no engine, no state, no credentials.


class ImmutableInputs(NamedTuple):
    """What of a type cannot be changed in place."""

    inputs: frozenset[str]
    source: str
    """Where the provider says so: the fields with `ForceNew: true`."""


_PROVIDER: Final = "https://github.com/hashicorp/terraform-provider-google-beta/blob/main/google-beta/"
_SERVICES: Final = f"{_PROVIDER}services/"
_MEMBER: Final = f"{_PROVIDER}tpgiamresource/resource_iam_member.go"
_MEMBER_OF_ALL: Final = frozenset(("role", "member", "condition"))
IMMUTABLE_INPUTS: Final[Mapping[str, ImmutableInputs]] = {
    "gcp:storage/bucket:Bucket": ImmutableInputs(
        frozenset(
            (
                "customPlacementConfig",
                "enableObjectRetention",
                "hierarchicalNamespace",
                "location",
                "name",
                "project",
            )
        ),
        f"{_SERVICES}storage/resource_storage_bucket.go",
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": ImmutableInputs(_MEMBER_OF_ALL | {"bucket"}, _MEMBER),
    "gcp:projects/iAMMember:IAMMember": ImmutableInputs(_MEMBER_OF_ALL | {"project"}, _MEMBER),
    "gcp:serviceaccount/iAMMember:IAMMember": ImmutableInputs(_MEMBER_OF_ALL | {"serviceAccountId"}, _MEMBER),
    "gcp:serviceaccount/account:Account": ImmutableInputs(
        frozenset(("accountId", "project")), f"{_SERVICES}resourcemanager/resource_google_service_account.go"
    ),
    "gcp:projects/service:Service": ImmutableInputs(
        frozenset(("project", "service")), f"{_SERVICES}resourcemanager/resource_google_project_service.go"
    ),
    "gcp:projects/serviceIdentity:ServiceIdentity": ImmutableInputs(
        frozenset(("project", "service")), f"{_SERVICES}resourcemanager/resource_project_service_identity.go"
    ),
}
"""By type. A type that is not here is taken to be updated, and only a preview knows better."""


def program_changes(base: EnvironmentResources | None, head: EnvironmentResources | None) -> tuple[ResourceChange, ...]:
    """What becomes of each resource; a side that is missing has none."""
    known = head or base
    if known is None:
        return ()
    before, after = _by_name(base), _by_name(head)
    steps = [_step(before.get(key), after.get(key)) for key in sorted({*before, *after})]
    return resource_changes(known.environment.name, steps)


def redacted_resources(made: EnvironmentResources) -> tuple[Resource, ...]:
    """The resources of one side by themselves. People and secrets are redacted."""
    listed = made.resources
    return tuple(it._replace(name=redact(it.name), inputs=redact_value(sort_keys(it.inputs))) for it in listed)


def _by_name(made: EnvironmentResources | None) -> dict[tuple[str, str], Resource]:
    return {(resource.type, resource.name): resource for resource in made.resources} if made else {}


def _step(before: Resource | None, after: Resource | None) -> Step:
    if before is None or after is None:
        return Step(before, after, op_of(before, after))
    changed = [change for change in input_changes(before, after) if not _only_case(change)]
    fixed = IMMUTABLE_INPUTS[after.type].inputs if after.type in IMMUTABLE_INPUTS else frozenset[str]()
    because = tuple(dict.fromkeys(str(change.path[0]) for change in changed if change.path[0] in fixed))
    return Step(before, after, "replace" if because else "update" if changed else "same", because)


def _only_case(change: Change) -> bool:
    """The provider keeps a location in upper case, whatever the program says."""
    sides = (change.before, change.after)
    return change.path == ("location",) and len({str(side).upper() for side in sides}) == 1
