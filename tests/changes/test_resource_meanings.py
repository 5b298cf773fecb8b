"""Sentences about changed resources: their property, their risk, and silence about harmless changes."""

from collections.abc import Mapping
from typing import Any

import pytest

from tpucfg.changes.facts import Risk
from tpucfg.changes.resource_meanings import resource_statements
from tpucfg.changes.resources import UNKNOWN, Op, ResourceStep
from tpucfg.infra.resources import BUCKET, Resource

TMP = {"action": {"type": "Delete"}, "condition": {"age": 14, "matchesPrefixes": ["tmp/"]}}
ABORT = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 1}}
INPUTS: Mapping[str, Any] = {
    "name": "b",
    "publicAccessPrevention": "enforced",
    "uniformBucketLevelAccess": True,
    "forceDestroy": False,
    "softDeletePolicy": {"retentionDurationSeconds": 2_592_000},
    "versioning": {"enabled": True},
    "storageClass": "STANDARD",
    "lifecycleRules": [TMP],
    "encryption": {"defaultKmsKeyName": "k"},
    "logging": {"logBucket": "l"},
}
DELETE, CAUTION, ACCESS, UNCLEAR = Risk.DESTRUCTIVE, Risk.CAUTION, Risk.ACCESS, Risk.UNKNOWN


def bucket(
    name: str = "data", *, protect: bool = False, retain: bool = False, **changed: Any
) -> Resource:
    """Return a bucket with some inputs changed, and those of None left out."""
    inputs = {key: value for key, value in {**INPUTS, **changed}.items() if value is not None}
    return Resource(BUCKET, name, inputs, protect, retain)


def delete_rule(**condition: Any) -> list[Any]:
    """Return the bucket's rules with one more that deletes."""
    return [TMP, {"action": {"type": "Delete"}, "condition": condition}]


def sentences(*steps: ResourceStep) -> list[tuple[Risk, str]]:
    """Return the risk and the text of every sentence about the steps, apart from grants."""
    return [
        (statement.risk, statement.plain)
        for each in resource_statements(steps)
        for statement in each
    ]


@pytest.mark.parametrize(
    ("changed", "risk", "text"),
    [
        (
            {"lifecycleRules": delete_rule(age=3)},
            DELETE,
            "has another lifecycle rule, Delete: every object, age 3 (",
        ),
        (
            {"lifecycleRules": delete_rule(age="3")},
            DELETE,
            "has another lifecycle rule, Delete: every object, age 3 (",
        ),
        (
            {"lifecycleRules": "[secret]"},
            DELETE,
            "sets lifecycleRules to a value that is not known here",
        ),
        (
            {"lifecycleRules": [{"action": {"type": "delete"}}]},
            DELETE,
            "rule, delete: every object",
        ),
        (
            {"softDeletePolicy": {"retentionDurationSeconds": 0}},
            DELETE,
            "Seconds is 0, previously 2592000",
        ),
        (
            {"softDeletePolicy": {"retentionDurationSeconds": "604800"}},
            DELETE,
            "Seconds is 604800, previously 2592000",
        ),
        ({"softDeletePolicy": UNKNOWN}, DELETE, "sets softDeletePolicy to a value"),
        ({"softDeletePolicy": None}, DELETE, "Seconds is 604800, previously 2592000"),
        ({"forceDestroy": True}, DELETE, "can lose data: forceDestroy is true, previously false"),
        ({"forceDestroy": "true"}, DELETE, "can lose data: forceDestroy is true, previously false"),
        ({"versioning": {"enabled": False}}, DELETE, "can lose data: versioning.enabled is false"),
        ({"versioning": None}, DELETE, "can lose data: versioning.enabled is not set"),
        (
            {"encryption": None},
            CAUTION,
            "encrypts new objects with Google's own keys, previously with k (encryption)",
        ),
        (
            {"logging": {"logBucket": "{x}"}},
            UNCLEAR,
            "has another logging.logBucket: {x}, previously l; no rule knows",
        ),
        (
            {"retentionPolicy": {"isLocked": True}},
            UNCLEAR,
            "has another retentionPolicy.isLocked: true, previously",
        ),
        ({"defaultEventBasedHold": False}, DELETE, "can lose data: defaultEventBasedHold is false"),
        (
            {"storageClass": "ARCHIVE"},
            CAUTION,
            "stores new objects as ARCHIVE, previously as STANDARD (storageClass)",
        ),
        ({"cors": [{"origins": ["*"]}]}, UNCLEAR, "has another cors"),
    ],
)
def test_weakened_bucket_is_a_sentence_with_its_property(
    changed: dict[str, Any], risk: Risk, text: str
) -> None:
    """Each change that makes a bucket worse has one sentence with its risk, which names the property."""
    actual = sentences(ResourceStep(bucket(), bucket(**changed), "update"))
    assert max(found_risk for found_risk, _ in actual) is risk
    assert text in "\n".join(sentence for _, sentence in actual)
    assert all(next(iter(changed)) in sentence for _, sentence in actual)


@pytest.mark.parametrize(
    "changed",
    [
        {"lifecycleRules": [TMP, ABORT]},
        {"lifecycleRules": []},
        {"lifecycleRules": [{**TMP, "condition": {"age": 30, "matchesPrefixes": ["tmp/"]}}]},
        {"softDeletePolicy": {"retentionDurationSeconds": 7_776_000}},
        {"labels": {"a": "b"}},
        {"versioning": {"enabled": True}},
        {"cors": []},
    ],
)
def test_safer_bucket_needs_no_sentence(changed: dict[str, Any]) -> None:
    """Less deletion, longer retention and labels are no risk."""
    assert sentences(ResourceStep(bucket(), bucket(**changed), "update")) == []


def test_first_declaration_is_compared_with_the_default() -> None:
    """A bucket without a policy keeps deleted objects for seven days, by Google's default."""
    undeclared = bucket(softDeletePolicy=None)
    assert sentences(ResourceStep(undeclared, bucket(), "update")) == []
    seconds = "softDeletePolicy.retentionDurationSeconds"
    off = bucket(softDeletePolicy={"retentionDurationSeconds": 0})
    assert sentences(ResourceStep(undeclared, off, "update")) == [
        (DELETE, f"can lose data: {seconds} is 0, previously 604800 (softDeletePolicy)")
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"age": 3, "matchesPrefixes": ["tmp/"]}, []),
        (
            {"age": 3},
            [(CAUTION, "has another lifecycle rule, Delete: every object, age 3 (lifecycleRules)")],
        ),
    ],
)
def test_new_bucket_names_what_it_deletes(condition: dict[str, Any], expected: list[Any]) -> None:
    """A new bucket has no data to lose: its rules are a caution, but for the one about temporary objects."""
    new = bucket(lifecycleRules=delete_rule(**condition), encryption=None, logging=None)
    assert sentences(ResourceStep(None, new, "create")) == expected


STORED = "gcp:secretmanager/secret:Secret"
SQL_TYPE = "gcp:sql/databaseInstance:DatabaseInstance"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
ROLE, SERVICE = "gcp:projects/iAMCustomRole:IAMCustomRole", "gcp:projects/service:Service"
GRANT = "gcp:projects/iAMMember:IAMMember"
ACCOUNT, KEY = "gcp:serviceaccount/account:Account", "gcp:serviceaccount/key:Key"
TRANSFER = "gcp:storage/transferJob:TransferJob"
NO_RULES = "about which this review has no rules"


@pytest.mark.parametrize(
    ("type_", "before", "after", "risk", "text"),
    [
        (
            STORED,
            {"deletionProtection": True},
            {"deletionProtection": False},
            DELETE,
            "can lose data: deletion",
        ),
        (
            STORED,
            {"versionDestroyTtl": "864000s"},
            {"versionDestroyTtl": "86400s"},
            DELETE,
            "is 86400s, previously",
        ),
        (
            STORED,
            {},
            {"expireTime": "2026-01-01T00:00:00Z"},
            DELETE,
            "can lose data: expireTime is 2026-01-01",
        ),
        (
            SQL_TYPE,
            {},
            {"deletionProtection": False},
            DELETE,
            "deletionProtection is false, previously not set",
        ),
        (SQL_TYPE, {}, {"deletionProtection": True}, UNCLEAR, NO_RULES),
        (
            SQL_TYPE,
            {"settings": {"backupConfiguration": {"enabled": True}}},
            {"settings": {"backupConfiguration": {"enabled": False}}},
            DELETE,
            "settings.backupConfiguration.enabled is false, previously true",
        ),
        (
            REPOSITORY,
            {"deletionPolicy": "PREVENT"},
            {},
            DELETE,
            "deletionPolicy is not set, previously PREVENT",
        ),
        (REPOSITORY, {}, {"deletionPolicy": "PREVENT"}, UNCLEAR, NO_RULES),
        (
            REPOSITORY,
            {},
            {"cleanupPolicies": [{"id": "x"}]},
            DELETE,
            "can lose data: cleanupPolicies",
        ),
        (
            ROLE,
            {"permissions": ["a.b"]},
            {"permissions": ["a.b", "c.d"]},
            ACCESS,
            "everyone who has the role c.d",
        ),
        (
            ROLE,
            {"permissions": ["a.b", "tpu.nodes.delete"]},
            {"permissions": ["a.b", "c.d"]},
            ACCESS,
            "everyone who has the role c.d, and no longer tpu.nodes.delete (permissions): let running slices end",
        ),
        (
            ROLE,
            {"permissions": ["tpu.nodes.delete"]},
            {"permissions": []},
            CAUTION,
            "loses tpu.nodes.delete: let running slices end first",
        ),
        (
            ROLE,
            {"permissions": ["a.b", "compute.instances.delete"]},
            None,
            CAUTION,
            "loses a.b, compute.instances.delete",
        ),
        (
            GRANT,
            {"role": "projects/p/roles/tpu.chat.dev", "member": "serviceAccount:a@p"},
            {"role": "projects/p/roles/tpu.chat.dev", "member": "serviceAccount:b@p"},
            CAUTION,
            "has the member serviceAccount:b@p instead of serviceAccount:a@p: let running slices end first",
        ),
        (
            ACCOUNT,
            {"disabled": True},
            {},
            UNCLEAR,
            "has another disabled: not set, previously true",
        ),
        (ACCOUNT, {}, {"disabled": True}, UNCLEAR, "has another disabled: true"),
        (ACCOUNT, {}, None, CAUTION, "grants to it end everywhere"),
        (ACCOUNT, {}, {"newInput": 1}, UNCLEAR, "no rule knows its effect"),
        (KEY, None, {"serviceAccountId": "a@b"}, UNCLEAR, NO_RULES),
        (SERVICE, {}, None, CAUTION, "is disabled for the whole project (disableOnDestroy)"),
        (
            SERVICE,
            {"disableOnDestroy": False},
            {},
            CAUTION,
            "is disabled for the whole project when it is removed",
        ),
        (
            SERVICE,
            {},
            {"disableDependentServices": True},
            UNCLEAR,
            "has another disableDependentServices",
        ),
        (
            TRANSFER,
            None,
            {"transferOptions": {"deleteObjectsUniqueInSink": True}},
            UNCLEAR,
            NO_RULES,
        ),
        ("command:local:Command", None, {}, UNCLEAR, "is of the type command:local:Command"),
        ("aws:s3/bucket:Bucket", None, {}, UNCLEAR, "is of the type aws:s3/bucket:Bucket"),
        ("gcp:compute/firewall:Firewall", None, {}, UNCLEAR, NO_RULES),
        ("gcp:compute/firewall:Firewall", {}, {"a": 1}, UNCLEAR, NO_RULES),
    ],
)
def test_other_types_have_sentences_too(
    type_: str, before: dict[str, Any] | None, after: dict[str, Any] | None, risk: Risk, text: str
) -> None:
    """Guards of any type, and types that no rule is about, are reported with their risk."""
    old, new = (
        None if inputs is None else Resource(type_, "x", inputs) for inputs in (before, after)
    )
    op: Op = "create" if old is None else "delete" if new is None else "update"
    actual = sentences(ResourceStep(old, new, op))
    assert max(found_risk for found_risk, _ in actual) is risk
    assert text in "\n".join(sentence for _, sentence in actual)


def test_each_resource_without_rules_has_its_line() -> None:
    """The second resource of a type is as unknown as the first one, and so is one of a type that exists already."""
    rules = [Resource("gcp:compute/firewall:Firewall", f"r{number}", {}) for number in range(3)]
    steps = (
        ResourceStep(rules[0], rules[0], "same"),
        ResourceStep(None, rules[1], "create"),
        ResourceStep(None, rules[2], "create"),
    )
    assert [risk for risk, _ in sentences(*steps)] == [UNCLEAR, UNCLEAR]


def test_changed_secret_is_not_known() -> None:
    """A value that the program wraps as a secret is compared by its digest alone."""
    hidden = {"retentionPolicy": "[secret]"}
    before, after, same = (
        Resource(BUCKET, "data", {**INPUTS, **hidden}, secrets={"retentionPolicy": digest})
        for digest in "aba"
    )
    ((risk, text),) = sentences(ResourceStep(before, after, "update"))
    assert (risk, text) == (DELETE, "sets retentionPolicy to a value that is not known here")
    assert sentences(ResourceStep(before, same, "update")) == []


def test_permissions_that_take_over_accounts_come_first() -> None:
    """A long list of new permissions does not hide the dangerous one."""
    permissions = [*(f"a.b{number}" for number in range(20)), "iam.serviceAccounts.actAs"]
    before, after = (Resource(ROLE, "r", {"permissions": listed}) for listed in ([], permissions))
    ((_, text),) = sentences(ResourceStep(before, after, "update"))
    assert text.startswith("gives everyone who has the role iam.serviceAccounts.actAs, a.b0")


def test_import_is_not_known() -> None:
    """A resource that is taken over has a content that no program shows."""
    actual = sentences(ResourceStep(None, Resource(ACCOUNT, "x", {}), "import"))
    assert actual == [(UNCLEAR, "takes over what exists in the cloud, with all it contains")]
    ((risk, text),) = sentences(ResourceStep(None, Resource("gcp:x/y:Y", "x", {}), "import"))
    assert risk is UNCLEAR
    assert text.startswith("takes over what exists in the cloud, and is of the type gcp:x/y:Y,")


@pytest.mark.parametrize(
    ("type_", "names"),
    [
        (ACCOUNT, ("accountId", "description", "displayName", "project")),
        (ROLE, ("description", "permissions", "project", "roleId", "stage", "title")),
        (
            BUCKET,
            ("location", "name", "project", "publicAccessPrevention", "uniformBucketLevelAccess"),
        ),
        (SERVICE, ("disableOnDestroy", "project", "service")),
        (GRANT, ("member", "project", "role")),
        ("gcp:projects/serviceIdentity:ServiceIdentity", ("project", "service")),
    ],
)
def test_usual_input_of_a_new_resource_needs_no_sentence(
    type_: str, names: tuple[str, ...]
) -> None:
    """Inputs that the bundled program declares are known; any other is not."""
    usual = dict.fromkeys(names, "a")
    assert sentences(ResourceStep(None, Resource(type_, "x", usual), "create")) == []
    if type_ in (ACCOUNT, BUCKET, ROLE):
        assert (
            sentences(
                ResourceStep(None, Resource(type_, "x", {**usual, "tomorrow": "a"}), "create")
            )
            != []
        )
