"""Grants on an environment's bucket that exist in the cloud, but that no stack program declares."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from tpucfg.infra.grants import PUBLIC, Grant, Target, grants_of
from tpucfg.infra.resources import PROJECT_NUMBER, Resource
from tpucfg.infra.rules.roles import BASIC_ROLES, power_of
from tpucfg.redaction import redact

_DEFAULTS: Final = frozenset(
    (
        ("roles/storage.legacyBucketOwner", "projectEditor"),
        ("roles/storage.legacyBucketOwner", "projectOwner"),
        ("roles/storage.legacyBucketReader", "projectViewer"),
        ("roles/storage.legacyObjectOwner", "projectEditor"),
        ("roles/storage.legacyObjectOwner", "projectOwner"),
        ("roles/storage.legacyObjectReader", "projectViewer"),
    )
)
"""Roles and kinds of members that Cloud Storage grants on each new bucket, to the owners, editors and viewers of its
project: https://cloud.google.com/storage/docs/access-control/iam-roles#basic-roles."""
_CASE_INSENSITIVE: Final = ("domain:", "group:", "serviceaccount:", "user:")
"""Kinds of members whose addresses IAM stores in lower case, however they were written."""


class UndeclaredGrant(NamedTuple):
    """Equal grants that the stack does not declare, to one member, or to people of one domain."""

    role: str
    who: str
    """The member; people are redacted, so several of them can share a grant."""
    members: int
    condition: str = ""

    @property
    def is_public(self) -> bool:
        """True if everyone has the role."""
        return self.who in PUBLIC


class BucketAccess(NamedTuple):
    """The grants on a bucket in the cloud, compared with those that the stack declares."""

    bucket: str = ""
    """The bucket's name; empty if it does not exist."""
    grants: tuple[UndeclaredGrant, ...] = ()
    """The riskiest first."""
    has_defaults: bool = False
    """True if owners, editors and viewers of the project have the access that Cloud Storage grants by default."""
    assumed: tuple[str, ...] = ()
    """Service agents that fit a declared grant except for the project's number, which only a preview knows."""
    problem: str = ""
    """The reason why the grants cannot be compared, as a sentence; then only public grants are listed."""


def bucket_target(bucket: str) -> Target:
    """Return a bucket as the object of grants."""
    return Target("bucket", bucket)


def compare_grants(bucket: str, actual: Iterable[Grant], declared: Iterable[Resource], project: str) -> BucketAccess:
    """Return the grants on a bucket that are not declared.

    Args:
        bucket: its name.
        actual: the grants in the cloud.
        declared: the resources of the stack.
        project: the Google project of the bucket.
    """
    on = bucket_target(bucket)
    exact = {_canonical(grant) for resource in declared for grant in grants_of(resource) if grant.on == on}
    rest = {canonical: grant for grant in actual if (canonical := _canonical(grant)) not in exact}
    assumed = _assumed(rest, [grant for grant in exact if PROJECT_NUMBER.search(grant.member)])
    defaults = {grant for grant in rest.values() if _is_default(grant, project)}
    counts = Counter(
        (redact(grant.role), redact(grant.member), grant.condition)
        for canonical, grant in rest.items()
        if grant not in defaults and canonical not in assumed
    )
    grants = (UndeclaredGrant(*key[:2], count, key[2]) for key, count in counts.items())
    members = sorted({redact(rest[grant].member) for grant in assumed})
    return BucketAccess(bucket, tuple(sorted(grants, key=_rank)), bool(defaults), tuple(members))


def _assumed(actual: Collection[Grant], declared: Iterable[Grant]) -> set[Grant]:
    """Return the grants to service agents that fit a declared one; several that fit the same one are of strangers."""
    assumed: set[Grant] = set()
    for grant in declared:
        member = re.compile("[0-9]{1,20}".join(map(re.escape, PROJECT_NUMBER.split(grant.member))))
        fitting = {
            other
            for other in actual
            if (other.role, other.condition) == (grant.role, grant.condition) and member.fullmatch(other.member)
        }
        assumed |= fitting if len(fitting) == 1 else set()
    return assumed


def _is_default(grant: Grant, project: str) -> bool:
    kind, _, owner = grant.member.partition(":")
    return owner == project and not grant.condition and (grant.role, kind) in _DEFAULTS


def _rank(grant: UndeclaredGrant) -> tuple[object, ...]:
    """Order grants by risk: to everyone, of basic roles, of roles that include the right to grant, and all others."""
    return not grant.is_public, grant.role not in BASIC_ROLES, not power_of(grant.role), grant


def _canonical(grant: Grant) -> Grant:
    member = grant.member
    return grant._replace(member=member.lower() if member.lower().startswith(_CASE_INSENSITIVE) else member)
