"""Grants in every form in which a resource can declare them."""

import json
from typing import Any

import pytest

from tpucfg.infra.grants import Grant, GrantedObject, grants_of, public_names
from tpucfg.infra.resources import Resource

TEAM = "group:team@example.com"
POLICY = json.dumps(
    {"bindings": [{"role": "roles/a", "members": [TEAM, "allUsers"]}, {"role": "roles/b"}, 3]}
)


def grants(type_: str, **inputs: Any) -> tuple[Grant, ...]:
    """Return the grants of one resource."""
    return grants_of(Resource(type_, "g", inputs))


@pytest.mark.parametrize(
    ("type_", "inputs", "expected"),
    [
        (
            "gcp:storage/bucketIAMMember:BucketIAMMember",
            {"bucket": "b"},
            GrantedObject("bucket", "b"),
        ),
        (
            "gcp:storage/bucketIAMMember:BucketIAMMember",
            {"bucket": "b/b"},
            GrantedObject("bucket", "b"),
        ),
        ("gcp:projects/iAMMember:IAMMember", {"project": "p"}, GrantedObject("project", "p")),
        (
            "gcp:projects/iAMMember:IAMMember",
            {"project": "projects/p"},
            GrantedObject("project", "p"),
        ),
        ("gcp:folder/iAMMember:IAMMember", {"folder": "folders/7"}, GrantedObject("folder", "7")),
        ("gcp:organizations/iAMMember:IAMMember", {"orgId": "9"}, GrantedObject("org", "9")),
        (
            "gcp:serviceAccount/iAMMember:IAMMember",
            {"serviceAccountId": "projects/p/serviceAccounts/a@p.iam.gserviceaccount.com"},
            GrantedObject("service account", "a@p.iam.gserviceaccount.com"),
        ),
        (
            "gcp:secretmanager/secretIamMember:SecretIamMember",
            {"project": "p", "secretId": "wandb"},
            GrantedObject("secret", "p/wandb"),
        ),
        (
            "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
            {"repository": "train", "location": "us", "project": "p"},
            GrantedObject("repository", "p/us/train"),
        ),
        (
            "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
            {"cryptoKeyId": "k"},
            GrantedObject("crypto key", "k"),
        ),
        (
            "gcp:storage/managedFolderIamMember:ManagedFolderIamMember",
            {"bucket": "b", "managedFolder": "jobs/"},
            GrantedObject("managed folder", "b/jobs/"),
        ),
        ("gcp:projects/iAMMember:IAMMember", {}, GrantedObject("resource", "g")),
    ],
)
def test_grant_names_its_object(
    type_: str, inputs: dict[str, Any], expected: GrantedObject
) -> None:
    """The object of a grant is named by the type's own input, without Google's long form."""
    (grant,) = grants(type_, role="roles/x", member=TEAM, **inputs)
    assert grant == Grant("roles/x", TEAM, expected)


@pytest.mark.parametrize(
    ("type_", "inputs", "expected"),
    [
        (
            "gcp:storage/bucketIAMBinding:BucketIAMBinding",
            {"role": "r", "members": [TEAM, "allUsers"]},
            [("r", TEAM), ("r", "allUsers")],
        ),
        (
            "gcp:storage/bucketIAMPolicy:BucketIAMPolicy",
            {"policyData": POLICY},
            [("roles/a", TEAM), ("roles/a", "allUsers")],
        ),
        (
            "gcp:storage/bucketAccessControl:BucketAccessControl",
            {"role": "WRITER", "entity": "domain-example.com"},
            [("WRITER", "domain-example.com")],
        ),
        (
            "gcp:bigquery/dataset:Dataset",
            {
                "accesses": [
                    {"role": "READER", "userByEmail": "a@example.com"},
                    {"role": "OWNER", "iamMember": TEAM},
                ]
            },
            [("READER", "a@example.com"), ("OWNER", TEAM)],
        ),
        (
            "gcp:bigquery/datasetAccess:DatasetAccess",
            {"role": "READER", "specialGroup": "allAuthenticatedUsers"},
            [("READER", "allAuthenticatedUsers")],
        ),
        # Values of another type are shown instead of skipped.
        (
            "gcp:projects/iAMMember:IAMMember",
            {"role": {"a": 1}, "member": 3},
            [("[not a text]", "[not a text]")],
        ),
        (
            "gcp:projects/iAMBinding:IAMBinding",
            {"role": "r", "members": "[secret]"},
            [("r", "[secret]")],
        ),
        # Nothing is granted by a policy that is no JSON, or by a role without members.
        ("gcp:projects/iAMPolicy:IAMPolicy", {"policyData": "[" * 100_000}, []),
        ("gcp:storage/bucketIAMBinding:BucketIAMBinding", {"role": "r", "members": []}, []),
    ],
)
def test_every_member_is_a_grant(
    type_: str, inputs: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    """Members, bindings, policies, access lists and datasets become grants."""
    assert [(grant.role, grant.member) for grant in grants(type_, **inputs)] == expected


def test_title_of_a_condition_restricts_nothing() -> None:
    """The condition of a grant is its expression; a condition without one that is plain text is shown as such."""
    type_ = "gcp:projects/iAMMember:IAMMember"
    conditions = [
        None,
        {"title": "a"},
        {"title": "a", "expression": "x"},
        "[secret]",
        {"expression": 3},
    ]
    expressions = [
        grants(type_, role="r", member=TEAM, condition=condition)[0].condition
        for condition in conditions
    ]
    assert expressions == ["", "[not a text]", "x", "[secret]", "[not a text]"]


def test_public_names_are_found_in_any_case_and_place() -> None:
    """Members and predefined lists are found at any depth, and in policies; the name of a group is none."""
    places = {
        "member": " ALLUSERS",
        "rules": [{"who": ["allAuthenticatedUsers"]}],
        "predefinedAcl": "publicRead",
    }
    names = [
        name
        for name, _ in public_names(Resource("gcp:x/y:Z", "z", {**places, "policyData": POLICY}))
    ]
    assert names == ["ALLUSERS", "allAuthenticatedUsers", "publicRead", "allUsers"]
    assert public_names(Resource("gcp:x/y:Z", "z", {"member": "group:allUsers@example.com"})) == ()
