"""Sentences about changed options, providers, source names and features of the engine."""

from typing import Any

import pytest

from tpucfg.changes.facts import Risk
from tpucfg.changes.programs import declaration_statements
from tpucfg.changes.resource_diff import program_changes
from tpucfg.changes.resource_meanings import resource_statements
from tpucfg.changes.resources import ResourceStep
from tpucfg.infra.grants import IMAGE_GRANT, KEY_GRANT
from tpucfg.infra.resources import EnvironmentResources, Resource, Unseen

BUCKET = "gcp:storage/bucket:Bucket"
DESTRUCTIVE = Risk.DESTRUCTIVE
GRANT = {"role": "roles/viewer", "member": "group:g@b.example", "project": "p"}


def bucket(**options: Any) -> Resource:
    """Return a bucket with options."""
    return Resource(BUCKET, "b", {}, options=options)


def texts(before: Resource | None, after: Resource | None) -> list[tuple[str, Risk]]:
    """Return the sentences about two versions of a resource."""
    return [
        (statement.plain, statement.risk)
        for statement in resource_statements([ResourceStep(before, after, "same")])[0]
    ]


def test_only_new_items_of_a_list_are_named() -> None:
    """Of `ignoreChanges`, what was ignored before is no news, unless it is no longer ignored."""
    before, after = (
        bucket(ignoreChanges=["labels", "cors"]),
        bucket(ignoreChanges=["labels", "versioning"]),
    )

    assert texts(before, after) == [
        ("has versioning, which changes what an update does (ignoreChanges)", DESTRUCTIVE)
    ]
    assert texts(bucket(ignoreChanges=["cors"]), bucket())[0][1] is DESTRUCTIVE


def test_equal_options_are_no_change() -> None:
    """Options that stay are not reported, and neither is the end of an import."""
    options = {
        "ignoreChanges": ["a"],
        "aliases": [{"name": "x"}],
        "provider": "gcp",
        "parent": "a:b:C",
    }

    assert texts(bucket(**options), bucket(**options)) == []
    assert texts(bucket(importId="x"), bucket()) == []


@pytest.mark.parametrize(
    ("options", "risk"),
    [
        ({"importId": "x"}, Risk.UNKNOWN),
        ({"ignoreChanges": ["x"]}, Risk.UNKNOWN),
        ({"version": "1"}, Risk.UNKNOWN),
    ],
)
def test_options_of_a_new_resource(options: dict[str, Any], risk: Risk) -> None:
    """The effect of taking over, or of ignoring changes later, is not known."""
    assert [shown for _, shown in texts(None, bucket(**options))] == [risk]


@pytest.mark.parametrize(
    ("options", "risk", "text"),
    [
        ({"aliases": [{"urn": "x"}]}, Risk.UNKNOWN, "takes over x"),
        ({"version": "1"}, Risk.UNKNOWN, "has 1, which changes what an update does (version)"),
        (
            {"tomorrow": "x"},
            Risk.DESTRUCTIVE,
            "has x, which changes what an update does (tomorrow)",
        ),
    ],
)
def test_option_of_an_existing_resource(options: dict[str, Any], risk: Risk, text: str) -> None:
    """Each option has its effect, and one that no row knows is destructive."""
    ((sentence, actual),) = texts(bucket(), bucket(**options))
    assert actual is risk
    assert text in sentence


@pytest.mark.parametrize(
    ("name", "risks"),
    [
        *((name, []) for name in ("additionalSecretOutputs", "replacementTrigger", "parent")),
        ("tomorrow", [Risk.UNKNOWN]),
    ],
)
def test_option_of_a_created_resource(name: str, risks: list[Risk]) -> None:
    """An option that no row knows is unknown."""
    assert [risk for _, risk in texts(None, bucket(**{name: "x"}))] == risks


def test_retention_of_data_and_of_access() -> None:
    """A bucket that is left behind is safe; a grant that is left behind is access without a trace."""
    kept, grant = Resource(BUCKET, "b", {}, retain=True), Resource("t", "g", GRANT)

    assert texts(kept, bucket())[0][1] is Risk.DESTRUCTIVE
    assert texts(bucket(), kept) == []
    assert texts(None, kept) == []
    assert texts(grant, grant._replace(retain=True))[0][1] is Risk.ACCESS
    assert texts(None, grant._replace(retain=True))[0][1] is Risk.ACCESS
    for resource in (grant, Resource("gcp:projects/service:Service", "s", {})):
        assert [risk for _, risk in texts(resource._replace(retain=True), resource)] == [
            DESTRUCTIVE
        ]
    assert (
        texts(grant._replace(retain=True), None)[0][0] == "stays in the cloud: the access remains"
    )


def test_shared_grants_stay_with_the_command_that_takes_them_away() -> None:
    """Other stacks can declare them too, so that their retention is no added access."""
    inputs = {
        "cryptoKeyId": "projects/p/locations/l/keyRings/r/cryptoKeys/k",
        "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter",
        "member": "serviceAccount:service-1@gs-project-accounts.iam.gserviceaccount.com",
    }
    grant = Resource(KEY_GRANT, "g", inputs)
    kept = grant._replace(retain=True)

    assert texts(grant, kept) == []
    [(text, risk)] = texts(kept, None)

    assert risk is Risk.CAUTION
    assert text == "stays in the cloud: objects that the key encrypted cannot be read without it"
    [(text, risk)] = texts(grant, None)
    assert (text, risk) == (
        "can make objects unreadable: those that the key encrypted",
        DESTRUCTIVE,
    )
    person = Resource(KEY_GRANT, "g", {**inputs, "member": "user:someone@example.com"})
    assert texts(person, person._replace(retain=True))[0][1] is Risk.ACCESS


def test_what_owns_a_role_removes_the_members_that_it_does_not_list() -> None:
    """A binding or a policy of one's own would take the grants of the stack away."""
    inputs = {"bucket": "b", "role": "roles/storage.objectUser", "members": ["group:a@example.com"]}
    binding = Resource("gcp:storage/bucketIAMBinding:BucketIAMBinding", "own", inputs)

    (text, risk), *_ = texts(None, binding)

    assert risk is DESTRUCTIVE
    assert text == (
        "takes roles/storage.objectUser on the bucket b from every member that it does not list, whoever granted it"
    )
    assert texts(binding, binding) == []
    (text, risk), *_ = texts(binding, None)
    assert (text.partition(" from ")[2], risk) == ("every member, whoever granted it", DESTRUCTIVE)
    emptied = Resource(
        "gcp:storage/bucketIAMPolicy:BucketIAMPolicy", "own", {"bucket": "b", "policyData": "{}"}
    )
    assert texts(None, emptied)[0][1] is DESTRUCTIVE


def test_images_of_a_released_member_are_taken_from_all() -> None:
    """A release, and the removal after it, is a caution: other stacks can need the grant."""
    inputs = {
        "project": "p",
        "location": "us",
        "repository": "train",
        "role": "roles/artifactregistry.reader",
        "member": "serviceAccount:nodes@p.iam.gserviceaccount.com",
    }
    released = Resource(IMAGE_GRANT, "g", inputs)
    for before, after in ((released._replace(retain=True), released), (released, None)):
        [(text, risk)] = texts(before, after)
        assert text.startswith("is taken from every stack that declares it")
        assert risk is Risk.CAUTION


def _environment(
    *resources: Resource, providers: Any = (), unseen: Any = ()
) -> EnvironmentResources:
    return EnvironmentResources(_Dev(), resources, {}, providers, unseen)  # type: ignore[arg-type] # only its name


class _Dev:
    name = "dev"


def test_identity_includes_the_parents() -> None:
    """With another parent, a bucket is deleted and created; with an alias, the review names the condition."""
    old, new = bucket(parent="a:b:C"), bucket(parent="a:b:D")
    aliased = bucket(parent="a:b:D", aliases=[{"parent": "urn:pulumi:s::p::a:b:C::c"}])

    assert sorted(
        change.op for change in program_changes(_environment(old), _environment(new))
    ) == ["create", "delete"]
    (change,) = program_changes(_environment(old), _environment(aliased))
    assert (change.op, change.destructive) == ("same", True)


def test_alias_names_the_resource_it_continues() -> None:
    """A resource that is renamed with an alias is compared with the old one, and not deleted."""
    renamed = Resource(BUCKET, "new", {"labels": {"a": "b"}}, options={"aliases": [{"name": "b"}]})

    (change,) = program_changes(_environment(bucket()), _environment(renamed))

    assert (change.op, [statement.plain for statement in change.statements]) == (
        "update",
        [],
    )


def test_many_aliases_and_items_are_compared_in_linear_time() -> None:
    """Each alias is looked up among the removed resources, and each item among those of the base."""
    old, new = (
        [
            *(
                Resource(BUCKET, f"{name}{i}", {}, options={"aliases": [{"name": f"a{i}"}]})
                for i in range(4_000)
            ),
            Resource(
                "a:b:C", "c", {}, options={"ignoreChanges": [f"{name}{i}" for i in range(4_000)]}
            ),
        ]
        for name in "ab"
    )

    changes = program_changes(_environment(*old), _environment(*new))

    assert {change.op for change in changes} == {"same"}


def declaration(before: EnvironmentResources, after: EnvironmentResources) -> list[Any]:
    """Return the statements about providers and features."""
    return [
        located.statement for located in declaration_statements({"dev": before}, {"dev": after})
    ]


def provider(**inputs: Any) -> Resource:
    """Return a provider."""
    return Resource(
        "pulumi:providers:gcp",
        "gcp",
        {"project": "p", **inputs},
        secrets=dict.fromkeys({"accessToken"} & inputs.keys(), "f00d"),
    )


def test_inputs_of_a_provider_are_named() -> None:
    """Endpoint, account and token are named, without their values; the project is not, and what is gone is not."""
    before = _environment(providers=(provider(billingProject="b"),))
    after = _environment(
        providers=(
            provider(project="q", storageCustomEndpoint="https://x", accessToken="[secret]"),
        )
    )

    (statement,) = declaration(before, after)

    assert statement.plain == (
        "declares storageCustomEndpoint of the provider gcp, accessToken of the provider gcp otherwise than the base: "
        "only an update shows the effect"
    )
    assert statement.risk is Risk.UNKNOWN


def test_another_provider_is_destructive() -> None:
    """Another provider can have other credentials."""
    expected = (
        "gets the provider the default one instead of gcp, and with it other credentials (provider)"
    )
    assert texts(bucket(provider="gcp"), bucket()) == [(expected, DESTRUCTIVE)]
    assert texts(None, bucket(provider="gcp")) == []


def test_features_of_the_engine_are_named_once() -> None:
    """Only what head adds is reported."""
    known, new = Unseen("read", "a"), (Unseen("read", "b"), Unseen("read", "c"))

    statements = declaration(_environment(unseen=(known,)), _environment(unseen=(known, *new)))

    assert [statement.values for statement in statements] == [("read b, read c",)]
