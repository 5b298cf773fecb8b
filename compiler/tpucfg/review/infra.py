"""What a change does to an environment's resources, from the program alone: no engine, no state, no credentials."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from tpucfg.diff.model import Change
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.review.redact import redacted, redacted_value
from tpucfg.review.resources import ResourceChange
from tpucfg.review.steps import Step, inputs_between, op_of, ordered, resource_changes


class Fixed(NamedTuple):
    """What of a type cannot be changed in place."""

    inputs: frozenset[str]
    source: str
    """Where the provider says so: the fields with `ForceNew: true`."""


_PROVIDER: Final = "https://github.com/hashicorp/terraform-provider-google-beta/blob/main/google-beta/"
_SERVICES: Final = f"{_PROVIDER}services/"
_MEMBER: Final = f"{_PROVIDER}tpgiamresource/resource_iam_member.go"
_MEMBER_OF_ALL: Final = frozenset(("role", "member", "condition"))
FIXED: Final[Mapping[str, Fixed]] = {
    "gcp:storage/bucket:Bucket": Fixed(
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
    "gcp:storage/bucketIAMMember:BucketIAMMember": Fixed(_MEMBER_OF_ALL | {"bucket"}, _MEMBER),
    "gcp:projects/iAMMember:IAMMember": Fixed(_MEMBER_OF_ALL | {"project"}, _MEMBER),
    "gcp:serviceaccount/iAMMember:IAMMember": Fixed(_MEMBER_OF_ALL | {"serviceAccountId"}, _MEMBER),
    "gcp:serviceaccount/account:Account": Fixed(
        frozenset(("accountId", "project")), f"{_SERVICES}resourcemanager/resource_google_service_account.go"
    ),
    "gcp:projects/service:Service": Fixed(
        frozenset(("project", "service")), f"{_SERVICES}resourcemanager/resource_google_project_service.go"
    ),
    "gcp:projects/serviceIdentity:ServiceIdentity": Fixed(
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


def as_declared(made: EnvironmentResources) -> tuple[Resource, ...]:
    """The resources of one side by themselves. People and secrets are redacted."""
    listed = made.resources
    return tuple(it._replace(name=redacted(it.name), inputs=redacted_value(ordered(it.inputs))) for it in listed)


def _by_name(made: EnvironmentResources | None) -> dict[tuple[str, str], Resource]:
    return {(resource.type, resource.name): resource for resource in made.resources} if made else {}


def _step(before: Resource | None, after: Resource | None) -> Step:
    if before is None or after is None:
        return Step(before, after, op_of(before, after))
    changed = [change for change in inputs_between(before, after) if not _only_case(change)]
    fixed = FIXED[after.type].inputs if after.type in FIXED else frozenset[str]()
    because = tuple(dict.fromkeys(str(change.path[0]) for change in changed if change.path[0] in fixed))
    return Step(before, after, "replace" if because else "update" if changed else "same", because)


def _only_case(change: Change) -> bool:
    """The provider keeps a location in upper case, whatever the program says."""
    sides = (change.before, change.after)
    return change.path == ("location",) and len({str(side).upper() for side in sides}) == 1
