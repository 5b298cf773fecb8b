"""Who can do more after a change: grants that are new, broader, public or moved, and barriers that fall."""

from typing import Any

import pytest

from tpucfg.infra.resources import Resource
from tpucfg.review.changes.iam_changes import access_widenings
from tpucfg.review.changes.resource_change import Widening

BUCKET, ON_BUCKET = "gcp:storage/bucket:Bucket", "gcp:storage/bucketIAMMember:BucketIAMMember"
BINDING = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
ON_PROJECT = "gcp:projects/iAMMember:IAMMember"
VIEWER, USER, ADMIN = "roles/storage.objectViewer", "roles/storage.objectUser", "roles/storage.objectAdmin"
TEAM = "group:team@example.com"
CLOSED = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}


def grant(role: str = USER, member: str = TEAM, bucket: str = "a", type_: str = ON_BUCKET, **more: Any) -> Resource:
    """A grant on a bucket."""
    return Resource(type_, "grant", {"bucket": bucket, "role": role, "member": member, **more})


def bucket(name: str = "a", **inputs: Any) -> Resource:
    """A bucket that is closed, but for what is given."""
    return Resource(BUCKET, "data", {"name": name, **CLOSED, **inputs})


def opened(*pairs: tuple[Resource | None, Resource | None]) -> list[Widening]:
    """Everything that these changes open."""
    return [widening for found in access_widenings(pairs) for widening in found]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, grant(), [(USER, TEAM, "new")]),
        (grant(), None, []),
        (grant(), grant(), []),
        (grant(), grant(member="group:b@example.com"), [(USER, "group:b@example.com", "new")]),
        (grant(VIEWER), grant(ADMIN), [(ADMIN, TEAM, "broader")]),
        (grant(ADMIN), grant(VIEWER), []),
        (grant(VIEWER), grant("roles/custom"), [("roles/custom", TEAM, "new")]),
        (None, grant("roles/owner"), [("roles/owner", TEAM, "basic")]),
        (None, grant(VIEWER, "allUsers"), [(VIEWER, "allUsers", "public")]),
        (None, grant(VIEWER, "allAuthenticatedUsers"), [(VIEWER, "allAuthenticatedUsers", "public")]),
        (grant(condition={"title": "until May"}), grant(), [(USER, TEAM, "new")]),
        (grant(), grant(bucket="another"), [(USER, TEAM, "new")]),
        (grant(ADMIN), grant(VIEWER, bucket="another"), [(VIEWER, TEAM, "new")]),
        (
            Resource(BINDING, "b", {"role": USER, "members": [TEAM]}),
            Resource(BINDING, "b", {"role": USER, "members": [TEAM, "allUsers"]}),
            [(USER, "allUsers", "public")],
        ),
        (None, Resource("gcp:projects/iAMPolicy:IAMPolicy", "p", {"policyData": "{}"}), [("policyData", "", "policy")]),
        (None, bucket(), []),
        (None, Resource(BUCKET, "b", {"name": "b"}), [(key, "", "opens") for key in CLOSED]),
        (bucket(), bucket(publicAccessPrevention="inherited"), [("publicAccessPrevention", "", "opens")]),
        (bucket(uniformBucketLevelAccess=False), bucket(uniformBucketLevelAccess=False), []),
        (bucket(uniformBucketLevelAccess=False), bucket(), []),
    ],
)
def test_what_a_change_opens(before: Resource | None, after: Resource | None, expected: list[Any]) -> None:
    """Less access, or the same, is nothing; anything more is told with its reason."""
    assert opened((before, after)) == [Widening(*one) for one in expected]


def test_grant_that_moves_with_its_bucket_opens_nothing() -> None:
    """A member of the old bucket who has the same on the one that takes its place has no more than before."""
    old, new = grant(), grant(bucket="b")
    assert opened((bucket("a"), None), (None, bucket("b")), (old, None), (None, new)) == []
    assert opened((bucket("a"), bucket("b")), (old, new)) == []


def test_grant_on_a_bucket_that_was_there_is_new() -> None:
    """Taking somebody from one bucket and letting them into another is a new grant, however alike the two look."""
    assert opened((grant(), None), (None, grant(bucket="secrets"))) == [Widening(USER, TEAM, "new")]


def test_one_grant_that_goes_does_not_excuse_two_that_come() -> None:
    """On the new bucket one member has what the old one gave; a second grant of the kind is new."""
    pairs = [
        (None, bucket("b")),
        (None, bucket("c")),
        (grant(), None),
        (None, grant(bucket="b")),
        (None, grant(bucket="c")),
    ]
    assert opened(*pairs) == [Widening(USER, TEAM, "new")]


def test_grant_on_a_project_is_new_even_where_one_goes() -> None:
    """Only data moves: the same role in another project is more."""
    one, other = (Resource(ON_PROJECT, "g", {"project": it, "role": "roles/x.y", "member": TEAM}) for it in ("a", "b"))
    assert opened((one, other)) == [Widening("roles/x.y", TEAM, "new")]
