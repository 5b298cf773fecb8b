"""Access that a change adds: new, broader, public or moved grants, and removed barriers."""

from typing import Any

import pytest

from tpucfg.infra.resources import Resource
from tpucfg.review.changes.iam_changes import access_widenings
from tpucfg.review.changes.resource_change import BUCKET, Widening

ON_BUCKET = "gcp:storage/bucketIAMMember:BucketIAMMember"
BINDING = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
ON_PROJECT = "gcp:projects/iAMMember:IAMMember"
VIEWER, USER, ADMIN = "roles/storage.objectViewer", "roles/storage.objectUser", "roles/storage.objectAdmin"
TEAM = "group:team@example.com"
CLOSED = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}


def grant(role: str = USER, member: str = TEAM, bucket: str = "a", **more: Any) -> Resource:
    """Return a grant on a bucket."""
    return Resource(ON_BUCKET, "grant", {"bucket": bucket, "role": role, "member": member, **more})


def bucket(name: str = "a", **inputs: Any) -> Resource:
    """Return a bucket that is closed except for the given inputs."""
    return Resource(BUCKET, "data", {"name": name, **CLOSED, **inputs})


def widenings(*pairs: tuple[Resource | None, Resource | None]) -> list[Widening]:
    """Return the access that all changes together add."""
    return [widening for of_resource in access_widenings(pairs) for widening in of_resource]


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
def test_added_access_is_reported_with_its_reason(
    before: Resource | None, after: Resource | None, expected: list[Any]
) -> None:
    """Equal or narrower access is not reported; anything more is."""
    assert widenings((before, after)) == [Widening(*fields) for fields in expected]


def test_grant_that_moves_with_its_bucket_adds_nothing() -> None:
    """A member of the old bucket with an equal grant on its successor has no more access than before."""
    old, new = grant(), grant(bucket="b")
    assert widenings((bucket("a"), None), (None, bucket("b")), (old, None), (None, new)) == []
    assert widenings((bucket("a"), bucket("b")), (old, new)) == []


def test_grant_on_an_existing_bucket_is_new() -> None:
    """A grant on an existing bucket is new, even if an equal one on another bucket is revoked."""
    assert widenings((grant(), None), (None, grant(bucket="secrets"))) == [Widening(USER, TEAM, "new")]


def test_one_revoked_grant_excuses_one_new_grant() -> None:
    """Of two grants on new buckets, one replaces the revoked grant and the second is new."""
    pairs = [
        (None, bucket("b")),
        (None, bucket("c")),
        (grant(), None),
        (None, grant(bucket="b")),
        (None, grant(bucket="c")),
    ]
    assert widenings(*pairs) == [Widening(USER, TEAM, "new")]


def test_grant_on_another_project_is_new() -> None:
    """Only grants on buckets move: an equal role in another project is more access."""
    before, after = (
        Resource(ON_PROJECT, "g", {"project": name, "role": "roles/x.y", "member": TEAM}) for name in ("a", "b")
    )
    assert widenings((before, after)) == [Widening("roles/x.y", TEAM, "new")]
