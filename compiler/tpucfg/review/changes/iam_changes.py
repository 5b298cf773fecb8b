"""Access that a change adds: new and broader grants, basic roles, public members, and opened buckets."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from tpucfg.infra.resource_rules import BASIC_ROLES, PUBLIC
from tpucfg.infra.resources import Resource
from tpucfg.review.changes.resource_change import BUCKET, UNKNOWN, Widening

_Pair = tuple[Resource | None, Resource | None]
"""A resource before and after."""

_BARRIERS: Final = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}
"""Inputs of a bucket that prevent access to single objects:
https://cloud.google.com/storage/docs/public-access-prevention."""
_NARROW_TO_BROAD: Final = (
    ("roles/storage.objectViewer", "roles/storage.objectUser", "roles/storage.objectAdmin", "roles/storage.admin"),
    ("roles/viewer", "roles/editor", "roles/owner"),
)
"""Roles of which each includes the permissions of those before it:
https://cloud.google.com/storage/docs/access-control/iam-roles and
https://cloud.google.com/iam/docs/roles-overview#basic."""


class _Grant(NamedTuple):
    """A role for one member, without the resource that it is granted on."""

    type: str
    role: str
    member: str
    condition: str


def access_widenings(pairs: Sequence[_Pair]) -> list[tuple[Widening, ...]]:
    """Return the access that each resource adds.

    A grant on a bucket that the change creates adds no access if the change also revokes an equal grant elsewhere: the
    grant moves with its data. A grant whose role becomes narrower adds no access either.
    """
    revoked = Counter(grant for before, after in pairs for grant in _grants(before) if grant not in {*_grants(after)})
    # In a preview, a grant on a new bucket can refer to a name that is only known after the update.
    created_buckets = {UNKNOWN, *(name for pair in pairs for name in _created_bucket(*pair))}
    return [
        (*_new_grants(*pair, revoked, created_buckets), *_opened_buckets(*pair), *_replaced_policies(*pair))
        for pair in pairs
    ]


def _new_grants(
    before: Resource | None, after: Resource | None, revoked: "Counter[_Grant]", created_buckets: set[str]
) -> Iterator[Widening]:
    target, previous = _target(after), {*_grants(before)}
    previous_on_target = previous if _target(before) == target else set[_Grant]()
    for grant in _grants(after):
        moves_along = target in created_buckets and grant in previous
        if grant in previous_on_target or _is_narrowed(grant, previous_on_target) or moves_along:
            continue
        # Each revoked grant excuses one new grant only: two would give access to a second bucket.
        if target in created_buckets and revoked[grant] > 0:
            revoked[grant] -= 1
        else:
            yield Widening(grant.role, grant.member, _reason(grant, previous_on_target))


def _reason(grant: _Grant, previous: set[_Grant]) -> Literal["new", "broader", "basic", "public"]:
    if grant.member in PUBLIC:
        return "public"
    if grant.role in BASIC_ROLES:
        return "basic"
    roles = [other.role for other in previous if other.member == grant.member]
    return "broader" if any(_is_broader(grant.role, role) for role in roles) else "new"


def _is_narrowed(grant: _Grant, previous: set[_Grant]) -> bool:
    """Return True if the member had a broader role under an equal condition."""
    comparable = (other for other in previous if (other.member, other.condition) == (grant.member, grant.condition))
    return any(_is_broader(other.role, grant.role) for other in comparable)


def _is_broader(role: str, than: str) -> bool:
    return any(role in row and than in row and row.index(role) > row.index(than) for row in _NARROW_TO_BROAD)


def _grants(resource: Resource | None) -> Iterator[_Grant]:
    """Yield the grants of an IAM member or binding; other resources have none."""
    inputs = resource.inputs if resource else {}
    role, members = inputs.get("role"), inputs.get("members")
    if resource is None or not isinstance(role, str):
        return
    condition = json.dumps(inputs.get("condition"), sort_keys=True, default=str)
    for member in [inputs.get("member"), *(members if isinstance(members, list) else [])]:
        if isinstance(member, str):
            yield _Grant(resource.type, role, member, condition)


def _target(resource: Resource | None) -> str:
    """Return the target of a grant: the bucket's name, or else all inputs that do not describe the grant itself."""
    inputs = resource.inputs if resource else {}
    bucket = inputs.get("bucket")
    if isinstance(bucket, str):
        return bucket
    target = {key: value for key, value in inputs.items() if key not in {"role", "member", "members", "condition"}}
    return json.dumps(target, sort_keys=True, default=str)


def _created_bucket(before: Resource | None, after: Resource | None) -> Iterator[str]:
    name = after.inputs.get("name") if after and after.type == BUCKET else None
    if isinstance(name, str) and (before is None or before.inputs.get("name") != name):
        yield name


def _opened_buckets(before: Resource | None, after: Resource | None) -> Iterator[Widening]:
    if after is None or after.type != BUCKET:
        return
    for key, closed in _BARRIERS.items():
        if after.inputs.get(key) != closed and (before is None or before.inputs.get(key) == closed):
            yield Widening(key, "", "opens")


def _replaced_policies(before: Resource | None, after: Resource | None) -> Iterator[Widening]:
    # A policy replaces all grants at once, and its JSON is not parsed: each change to it counts as widened access.
    policy = after.inputs.get("policyData") if after else None
    if policy is not None and (before is None or before.inputs.get("policyData") != policy):
        yield Widening("policyData", "", "policy")
