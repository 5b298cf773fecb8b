"""Access that a change adds: new, broader, public or moved grants, and removed barriers."""

from typing import Any

import pytest

from tpucfg.changes.facts import Risk
from tpucfg.changes.resources import ResourceStep, access_statements
from tpucfg.changes.statements import Statement
from tpucfg.infra.resources import BUCKET, Resource

ON_BUCKET = "gcp:storage/bucketIAMMember:BucketIAMMember"
BINDING = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
ON_PROJECT = "gcp:projects/iAMMember:IAMMember"
VIEWER, USER, ADMIN = (
    "roles/storage.objectViewer",
    "roles/storage.objectUser",
    "roles/storage.objectAdmin",
)
TEAM = "group:team@example.com"
CLOSED = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}


def grant(role: str = USER, member: str = TEAM, bucket: str = "a", **more: Any) -> Resource:
    """Return a grant on a bucket."""
    return Resource(ON_BUCKET, "grant", {"bucket": bucket, "role": role, "member": member, **more})


def bucket(name: str = "a", **inputs: Any) -> Resource:
    """Return a bucket that is closed except for the given inputs."""
    return Resource(BUCKET, "data", {"name": name, **CLOSED, **inputs})


def widenings(*pairs: tuple[Resource | None, Resource | None]) -> list[Statement]:
    """Return the access that all changes together add."""
    steps = [ResourceStep(before, after, "update") for before, after in pairs]
    return [statement for of_resource in access_statements(steps) for statement in of_resource]


_REASONS = {
    "everyone, through {}, in": "names",
    "another condition": "condition",
    "without the condition": "unconditional",
    "no longer prevents": "opens",
}


def reason(statement: Statement) -> str:
    """Return the kind of access by the words of its sentence."""
    kind = next((name for words, name in _REASONS.items() if words in statement.template), "new")
    assert (statement.risk is Risk.PUBLIC) == (kind == "names")
    return kind


def summaries(*pairs: tuple[Resource | None, Resource | None]) -> list[tuple[str, str, str]]:
    """Return the role or input, the member and the reason of the access that all changes together add."""
    rows = []
    for statement in widenings(*pairs):
        kind, values = reason(statement), statement.values
        what, who = {"names": (1, 0), "opens": (0, None)}.get(kind, (0, 2))
        rows.append((values[what], "" if who is None else values[who], kind))
    return rows


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, grant(), [(USER, TEAM, "new")]),
        (grant(), None, []),
        (grant(), grant(), []),
        (grant(), grant(member="group:b@example.com"), [(USER, "group:b@example.com", "new")]),
        (grant(VIEWER), grant(ADMIN), [(ADMIN, TEAM, "new")]),
        (grant(ADMIN), grant(VIEWER), [(VIEWER, TEAM, "new")]),
        (grant(VIEWER), grant("roles/custom"), [("roles/custom", TEAM, "new")]),
        (None, grant("roles/owner"), [("roles/owner", TEAM, "new")]),
        (
            None,
            grant(VIEWER, "allUsers"),
            [(VIEWER, "allUsers", "new"), ("member", "allUsers", "names")],
        ),
        (
            None,
            grant(VIEWER, "allAuthenticatedUsers"),
            [
                (VIEWER, "allAuthenticatedUsers", "new"),
                ("member", "allAuthenticatedUsers", "names"),
            ],
        ),
        (grant(condition={"expression": "until May"}), grant(), [(USER, TEAM, "unconditional")]),
        (grant(condition={"title": "a"}), grant(condition={"title": "b"}), []),
        (grant(), grant(condition={"expression": "until May"}), []),
        (grant(), grant(bucket="another"), [(USER, TEAM, "new")]),
        (grant(ADMIN), grant(VIEWER, bucket="another"), [(VIEWER, TEAM, "new")]),
        (
            Resource(BINDING, "b", {"role": USER, "members": [TEAM]}),
            Resource(BINDING, "b", {"role": USER, "members": [TEAM, "allUsers"]}),
            [(USER, "allUsers", "new"), ("members", "allUsers", "names")],
        ),
        (None, bucket(), []),
        (None, Resource(BUCKET, "b", {"name": "b"}), [(key, "", "opens") for key in CLOSED]),
        (
            bucket(),
            bucket(publicAccessPrevention="inherited"),
            [("publicAccessPrevention", "", "opens")],
        ),
        (bucket(uniformBucketLevelAccess=False), bucket(uniformBucketLevelAccess=False), []),
        (bucket(uniformBucketLevelAccess=False), bucket(), []),
    ],
)
def test_added_access_is_reported_with_its_reason(
    before: Resource | None, after: Resource | None, expected: list[Any]
) -> None:
    """Equal or narrower access is not reported; anything more is."""
    assert summaries((before, after)) == expected


def test_grant_that_moves_with_its_bucket_adds_nothing() -> None:
    """A member of the old bucket with an equal grant on its successor has no more access than before."""
    old, new = grant(), grant(bucket="b")
    assert summaries((bucket("a"), None), (None, bucket("b")), (old, None), (None, new)) == []
    assert summaries((bucket("a"), bucket("b")), (old, new)) == []


def test_grant_on_an_existing_bucket_is_new() -> None:
    """A grant on an existing bucket is new, even if an equal one on another bucket is revoked."""
    assert summaries((grant(), None), (None, grant(bucket="secrets"))) == [(USER, TEAM, "new")]


def test_grant_on_another_project_is_new() -> None:
    """Only grants on buckets move: an equal role in another project is more access."""
    before, after = (
        Resource(ON_PROJECT, "g", {"project": name, "role": "roles/x.y", "member": TEAM})
        for name in ("a", "b")
    )
    assert summaries((before, after)) == [("roles/x.y", TEAM, "new")]


def new_environment(*grants: Resource) -> list[tuple[str, str]]:
    """Return the object and the reason of each grant of a new environment with a bucket and an account."""
    account = Resource(
        "gcp:serviceaccount/account:Account", "w", {"accountId": "tpu", "project": "p"}
    )
    pairs = [(None, resource) for resource in (bucket(), account, *grants)]
    return [(widening.values[1], reason(widening)) for widening in widenings(*pairs)]


def on_account(role: str, member: str, account: str = "tpu@p.iam.gserviceaccount.com") -> Resource:
    """Return a grant on a service account."""
    inputs = {
        "serviceAccountId": f"projects/p/serviceAccounts/{account}",
        "role": role,
        "member": member,
    }
    return Resource("gcp:serviceaccount/iAMMember:IAMMember", "g", inputs)


def test_new_environment_owns_only_what_it_creates() -> None:
    """Grants on the new bucket and the new account are expected; those on anything else are not."""
    project = Resource(
        ON_PROJECT, "g", {"project": "p", "role": "roles/ml.serviceAgent", "member": TEAM}
    )
    assert new_environment(grant(), grant(bucket="prod"), project) == [
        ("prod", "new"),
        ("p", "new"),
    ]
    assert new_environment(grant(member="allUsers"), grant("roles/owner")) == [
        ("member", "names"),
        ("a", "new"),
    ]


def test_only_pods_of_its_project_may_act_as_a_new_account() -> None:
    """A grant to act as the account is expected only for pods of the account's own project."""
    own, email = "serviceAccount:p.svc.id.goog[default/x]", "tpu@p.iam.gserviceaccount.com"
    role = "roles/iam.workloadIdentityUser"
    assert new_environment(on_account(role, own)) == []
    assert new_environment(on_account(role, own.replace(":p.", ":other."))) == [(email, "new")]
    assert new_environment(on_account("roles/iam.serviceAccountTokenCreator", TEAM)) == [
        (email, "new")
    ]
    assert new_environment(on_account(role, own, "other@p.iam.gserviceaccount.com"))[0][1] == "new"


def test_grant_that_another_resource_gave_is_not_new() -> None:
    """A grant that moves to a resource of another name or type adds no access."""
    binding = Resource(BINDING, "b", {"bucket": "a", "role": USER, "members": [TEAM]})
    assert summaries((binding, None), (None, grant())) == []


def test_condition_that_changes_is_told_apart() -> None:
    """A condition that is removed or exchanged is another reason than a new grant."""
    first, second = (grant(condition={"expression": text}) for text in ("a", "b"))
    assert summaries((first, grant())) == [(USER, TEAM, "unconditional")]
    assert summaries((first, second)) == [(USER, TEAM, "condition")]


def test_hidden_member_of_a_changed_grant_is_new() -> None:
    """Two secrets look equal, so a grant that changes may have another member; one that does not change has none."""
    hidden = grant(member="[secret]")
    assert summaries((hidden, hidden)) == [(USER, "[secret]", "new")]
    assert access_statements([ResourceStep(hidden, hidden, "same")]) == [()]


def test_everyone_in_another_input_is_named() -> None:
    """The public is found in any input, once, unless it was there before."""
    before, after = (
        Resource("gcp:x/y:Z", "z", {"rules": [{"who": [who]}]}) for who in ("me", "allUsers")
    )
    assert summaries((before, after)) == [("rules", "allUsers", "names")]
    assert summaries((after, after)) == []


def custom_role(permissions: list[str], **parent: str) -> Resource:
    """Return a custom role of a project or of an organization."""
    module = "organizations" if "orgId" in parent else "projects"
    inputs = {"roleId": "tpu.chat.dev", "permissions": permissions, **parent}
    return Resource(f"gcp:{module}/iAMCustomRole:IAMCustomRole", "role", inputs)


@pytest.mark.parametrize(
    ("parent", "role"),
    [
        ({"project": "p"}, "projects/p/roles/tpu.chat.dev"),
        ({"orgId": "12"}, "organizations/12/roles/tpu.chat.dev"),
    ],
)
def test_granted_custom_role_has_its_permissions(parent: dict[str, str], role: str) -> None:
    """A new grant of a role that the same program declares has the role's permissions, old or new."""
    declared = custom_role(["tpu.nodes.delete", "tpu.nodes.get"], **parent)
    grant_on_project = Resource(ON_PROJECT, "g", {"project": "p", "role": role, "member": TEAM})

    for before in (None, declared):
        (statement,) = widenings((before, declared), (None, grant_on_project))
        assert (
            statement.plain
            == f"grants {role} on the project p to {TEAM}: tpu.nodes.delete, tpu.nodes.get"
        )


def test_grant_of_an_unknown_custom_role_has_no_permissions() -> None:
    """A role that another program declares, or whose permissions are not known yet, is shown by its name only."""
    role = "projects/p/roles/tpu.chat.dev"
    grant_on_project = Resource(ON_PROJECT, "g", {"project": "p", "role": role, "member": TEAM})
    unknown = custom_role([], project="p")._replace(
        inputs={"roleId": "tpu.chat.dev", "project": "p"}
    )

    for pairs in ([(None, grant_on_project)], [(None, unknown), (None, grant_on_project)]):
        (statement,) = widenings(*pairs)
        assert statement.plain == f"grants {role} on the project p to {TEAM}"


def test_access_to_a_secret_is_always_new() -> None:
    """The review names the secret and its project; a secret is never one that the change creates."""
    on_secret = Resource(
        "gcp:secretmanager/secretIamMember:SecretIamMember",
        "s",
        {
            "project": "p",
            "secretId": "wandb",
            "role": "roles/secretmanager.secretAccessor",
            "member": TEAM,
        },
    )

    assert new_environment(on_secret) == [("p/wandb", "new")]
    assert widenings((on_secret, on_secret)) == []
