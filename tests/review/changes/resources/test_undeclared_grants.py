"""Grants in the cloud compared with those that a stack declares."""

from typing import Any

import pytest

from tpucfg.infra.grants import Grant
from tpucfg.infra.resources import Resource
from tpucfg.review.changes.resources.undeclared_grants import BucketAccess, bucket_target, compare_grants

VIEWER, ADMIN = "roles/storage.objectViewer", "roles/storage.admin"
AGENT = "serviceAccount:service-{}@cloud-tpu.iam.gserviceaccount.com"


def declared(kind: str = "bucketIAMMember:BucketIAMMember", **inputs: Any) -> Resource:
    """Return a resource that declares grants on the bucket."""
    return Resource(f"gcp:storage/{kind}", "x", {"bucket": "acme", **inputs})


def granted(role: str, member: str) -> Grant:
    """Return a grant in the cloud."""
    return Grant(role, member, bucket_target("acme"))


def compare(actual: list[Grant], *stack: Resource) -> BucketAccess:
    """Return the comparison for a bucket of the project acme-dev."""
    return compare_grants("acme", actual, stack, "acme-dev")


@pytest.mark.parametrize(
    "stack",
    [
        declared(role=VIEWER, member="group:A@b.c"),
        declared("bucketIAMBinding:BucketIAMBinding", role=VIEWER, members=["allUsers", "group:a@b.c"]),
        declared(
            "bucketIAMPolicy:BucketIAMPolicy",
            policyData='{"bindings": [{"role": "roles/storage.objectViewer", "members": ["group:a@b.c"]}]}',
        ),
    ],
    ids=["member", "binding", "policy"],
)
def test_declared_grants_are_known(stack: Resource) -> None:
    """Members, bindings and policies declare grants; IAM stores addresses in lower case."""
    assert compare([granted(VIEWER, "group:a@b.c")], stack).grants == ()


@pytest.mark.parametrize(
    "stack",
    [
        declared(role=VIEWER, member="group:a@b.c", bucket="other"),
        declared(role=ADMIN, member="group:a@b.c"),
        declared(role=VIEWER, member="group:a@b.c", condition={"expression": "false"}),
        declared("bucketIAMPolicy:BucketIAMPolicy", policyData="[]"),
    ],
    ids=["another-bucket", "another-role", "only-with-a-condition", "malformed-policy"],
)
def test_other_grants_are_not_declared(stack: Resource) -> None:
    """Bucket, role, member and condition have to be equal."""
    [grant] = compare([granted(VIEWER, "group:a@b.c")], stack).grants
    assert grant[:3] == (VIEWER, "group:a@b.c", 1)


def test_riskiest_grants_come_first_and_people_are_redacted() -> None:
    """Public access precedes roles that can grant; people of one domain share a line."""
    grants = compare(
        [
            *(granted(VIEWER, f"user:{name}@example.com") for name in ("ada", "bob")),
            granted(ADMIN, "user:eve@example.org"),
            granted(VIEWER, "allUsers"),
        ]
    ).grants
    assert [(grant.role, grant.who, grant.members) for grant in grants] == [
        (VIEWER, "allUsers", 1),
        (ADMIN, "user:[redacted]@example.org", 1),
        (VIEWER, "user:[redacted]@example.com", 2),
    ]


def test_default_grants_of_a_new_bucket_are_one_note() -> None:
    """Only those of the bucket's own project, and only the roles that Cloud Storage grants by default."""
    own = [
        granted("roles/storage.legacyBucketOwner", "projectOwner:acme-dev"),
        granted("roles/storage.legacyObjectReader", "projectViewer:acme-dev"),
    ]
    others = [
        granted("roles/storage.legacyBucketOwner", "projectOwner:stranger"),
        granted("roles/storage.legacyBucketOwner", "projectViewer:acme-dev"),
        granted(ADMIN, "projectOwner:acme-dev"),
    ]
    access = compare([*own, *others])
    assert access.has_defaults
    assert len(access.grants) == len(others)
    assert not compare(others).has_defaults


def test_unknown_project_number_is_assumed_once() -> None:
    """Without a preview, one agent fits the declared one; of two, one is a stranger's, and both are listed."""
    stack = declared(role=VIEWER, member=AGENT.format("[number of acme-dev]"))
    one = compare([granted(VIEWER, AGENT.format(1))], stack)
    assert (one.grants, one.assumed) == ((), (AGENT.format(1),))
    two = compare([granted(VIEWER, AGENT.format(number)) for number in (1, 2)], stack)
    assert (len(two.grants), two.assumed) == (2, ())
