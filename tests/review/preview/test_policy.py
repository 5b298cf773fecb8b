"""Policies of buckets, as gcloud prints them."""

import json
from typing import Any

import pytest

from tpucfg.infra.grants import Grant
from tpucfg.review.changes.resources.undeclared_grants import bucket_target
from tpucfg.review.preview.policy import BucketPolicy, read_policy


def policy(*bindings: Any, **keys: Any) -> str:
    """Return a policy of gcloud with these bindings."""
    data = {"bindings": [*bindings], "etag": "CAI=", "kind": "storage#policy", "version": 1}
    return json.dumps({**data, "resourceId": "projects/_/buckets/acme-dev", **keys})


def read(text: str) -> BucketPolicy:
    """Return a text read as the policy of dev."""
    return read_policy("dev", "dev.json", text.encode(errors="surrogatepass"))


def test_grants_are_read() -> None:
    """Each member of each binding is a grant, with the expression of its condition."""
    condition = {"title": "until then", "expression": "request.time < timestamp('2030-01-01T00:00:00Z')"}
    bucket_policy = read(
        policy(
            {"role": "roles/storage.objectViewer", "members": ["allUsers", "user:ada@example.com"]},
            {"role": "roles/storage.admin", "members": ["group:a@b.c"], "condition": condition},
        )
    )
    assert bucket_policy.bucket == "acme-dev"
    on = bucket_target("acme-dev")
    assert bucket_policy.grants == (
        Grant("roles/storage.objectViewer", "allUsers", on),
        Grant("roles/storage.objectViewer", "user:ada@example.com", on),
        Grant("roles/storage.admin", "group:a@b.c", on, condition["expression"]),
    )


def test_bucket_that_does_not_exist_has_no_grants() -> None:
    """The answer of gcloud before the first `pulumi up` is no failure."""
    text = "ERROR: (gcloud.storage.buckets.get-iam-policy) gs://acme-dev not found: 404.\n"
    assert read(text) == BucketPolicy("dev")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file contains no policy"),
        ("null", "the file contains no policy"),
        ("{", "invalid JSON"),
        ("{}", "does not name its bucket"),
        (policy(resourceId="projects/_/buckets/a/../b"), "does not name its bucket"),
        (policy(resourceId=["x"]), "does not name its bucket"),
        (policy(bindings={}), "malformed"),
        (policy(7), "malformed"),
        (policy({"members": ["allUsers"]}), "malformed"),
        (policy({"role": 1, "members": ["allUsers"]}), "malformed"),
        (policy({"role": "x", "members": [None]}), "malformed"),
        (policy({"role": "x", "members": ["a"], "condition": "always"}), "malformed"),
        ('{"a":' * 100_000, "invalid JSON"),
        (" " * (2**20 + 1), "larger than 1 MiB"),
        (policy({"role": "roles/viewer", "members": [f"user:u{n}@example.com" for n in range(100_000)]}), "larger"),
    ],
)
def test_malformed_policy_is_a_failure(text: str, reason: str) -> None:
    """Hostile files are failures with a reason, and never grants."""
    bucket_policy = read(text)
    assert bucket_policy.failure
    assert reason in bucket_policy.failure.reason
    assert bucket_policy.grants == ()


def test_error_of_gcloud_is_quoted_without_addresses() -> None:
    """A missing permission is reported in gcloud's own words, without a person's address."""
    failure = read("ERROR: (gcloud.storage.buckets.get-iam-policy) [jane.doe@example.com] lacks a permission").failure
    assert failure
    assert failure.lines == (
        "ERROR: (gcloud.storage.buckets.get-iam-policy) [[redacted]@example.com] lacks a permission",
    )
