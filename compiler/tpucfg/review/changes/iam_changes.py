"""Who can do more after a change than before it."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from tpucfg.infra.resource_rules import BASIC_ROLES, PUBLIC
from tpucfg.infra.resources import Resource
from tpucfg.review.changes.resource_change import UNKNOWN, Widening

_Pair = tuple[Resource | None, Resource | None]

_BUCKET: Final = "gcp:storage/bucket:Bucket"
_BARRIERS: Final = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}
"""What keeps a bucket's objects from being opened one by one:
https://cloud.google.com/storage/docs/public-access-prevention."""
_NARROW_TO_BROAD: Final = (
    ("roles/storage.objectViewer", "roles/storage.objectUser", "roles/storage.objectAdmin", "roles/storage.admin"),
    ("roles/viewer", "roles/editor", "roles/owner"),
)
"""Roles of which each holds all that those before it hold: https://cloud.google.com/storage/docs/access-control/iam-roles
and https://cloud.google.com/iam/docs/roles-overview#basic."""


class _Grant(NamedTuple):
    type: str
    role: str
    member: str
    condition: str


def access_widenings(pairs: Sequence[_Pair]) -> list[tuple[Widening, ...]]:
    """For each resource, what it opens.

    A grant that leaves a bucket in the same change, for one that the change makes, moves with the data: that opens
    nothing. A grant that is only narrowed opens nothing either.
    """
    gone = Counter(grant for before, after in pairs for grant in _grants(before) if grant not in {*_grants(after)})
    made = {UNKNOWN, *(name for pair in pairs for name in _made_bucket(*pair))}
    return [(*_new_grants(*pair, gone, made), *_opened(*pair), *_policies(*pair)) for pair in pairs]


def _new_grants(
    before: Resource | None, after: Resource | None, gone: "Counter[_Grant]", made: set[str]
) -> Iterator[Widening]:
    target, given = _target(after), {*_grants(before)}
    had = given if _target(before) == target else set[_Grant]()
    for grant in _grants(after):
        if grant in had or _narrowed(grant, had) or (target in made and grant in given):
            continue
        if target in made and gone[grant] > 0:
            gone[grant] -= 1
        else:
            yield Widening(grant.role, grant.member, _why(grant, had))


def _why(grant: _Grant, had: set[_Grant]) -> Literal["new", "broader", "basic", "public"]:
    if grant.member in PUBLIC:
        return "public"
    if grant.role in BASIC_ROLES:
        return "basic"
    return (
        "broader" if any(_broader(grant.role, other.role) for other in had if other.member == grant.member) else "new"
    )


def _narrowed(grant: _Grant, had: set[_Grant]) -> bool:
    same = (other for other in had if (other.member, other.condition) == (grant.member, grant.condition))
    return any(_broader(other.role, grant.role) for other in same)


def _broader(role: str, than: str) -> bool:
    return any(role in row and than in row and row.index(role) > row.index(than) for row in _NARROW_TO_BROAD)


def _grants(resource: Resource | None) -> Iterator[_Grant]:
    inputs = resource.inputs if resource else {}
    role, members = inputs.get("role"), inputs.get("members")
    if resource is None or not isinstance(role, str):
        return
    condition = json.dumps(inputs.get("condition"), sort_keys=True, default=str)
    for member in [inputs.get("member"), *(members if isinstance(members, list) else [])]:
        if isinstance(member, str):
            yield _Grant(resource.type, role, member, condition)


def _target(resource: Resource | None) -> str:
    """What a grant is on: the inputs that say neither who nor what; of a bucket, its name."""
    inputs = resource.inputs if resource else {}
    bucket = inputs.get("bucket")
    if isinstance(bucket, str):
        return bucket
    own = {key: value for key, value in inputs.items() if key not in {"role", "member", "members", "condition"}}
    return json.dumps(own, sort_keys=True, default=str)


def _made_bucket(before: Resource | None, after: Resource | None) -> Iterator[str]:
    name = after.inputs.get("name") if after and after.type == _BUCKET else None
    if isinstance(name, str) and (before is None or before.inputs.get("name") != name):
        yield name


def _opened(before: Resource | None, after: Resource | None) -> Iterator[Widening]:
    if after is None or after.type != _BUCKET:
        return
    for key, closed in _BARRIERS.items():
        if after.inputs.get(key) != closed and (before is None or before.inputs.get(key) == closed):
            yield Widening(key, "", "opens")


def _policies(before: Resource | None, after: Resource | None) -> Iterator[Widening]:
    policy = after.inputs.get("policyData") if after else None
    if policy is not None and (before is None or before.inputs.get("policyData") != policy):
        yield Widening("policyData", "", "policy")
