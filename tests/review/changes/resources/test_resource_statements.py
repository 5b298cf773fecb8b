"""Sentences about changed resources: their property, their risk, and silence about harmless changes."""

from collections.abc import Mapping
from typing import Any

import pytest

from tpucfg.changes.statements import Risk
from tpucfg.infra.resources import Resource
from tpucfg.review.changes.resources.resource_change import BUCKET, UNKNOWN, Op, Step
from tpucfg.review.changes.resources.resource_diff import resource_changes

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


def bucket(name: str = "data", *, protect: bool = False, retain: bool = False, **changed: Any) -> Resource:
    """Return a bucket with some inputs changed, and those of None left out."""
    inputs = {key: value for key, value in {**INPUTS, **changed}.items() if value is not None}
    return Resource(BUCKET, name, inputs, protect, retain)


def delete_rule(**condition: Any) -> list[Any]:
    """Return the bucket's rules with one more that deletes."""
    return [TMP, {"action": {"type": "Delete"}, "condition": condition}]


def sentences(*steps: Step) -> list[tuple[Risk, str]]:
    """Return the risk and the text of every sentence about the steps."""
    changes = resource_changes("dev", steps)
    return [(statement.risk, statement.plain) for change in changes for statement in change.statements]


@pytest.mark.parametrize(
    ("changed", "risk", "text"),
    [
        ({"lifecycleRules": delete_rule(age=3)}, DELETE, "deletes all objects 3 days after their creation"),
        ({"lifecycleRules": delete_rule(age="3")}, DELETE, "deletes all objects 3 days after their creation"),
        ({"lifecycleRules": "[secret]"}, UNCLEAR, "sets lifecycleRules to a value that is not known here"),
        ({"lifecycleRules": [{"action": {"type": "delete"}}]}, UNCLEAR, "has a rule with the unknown action delete"),
        ({"softDeletePolicy": {"retentionDurationSeconds": 0}}, DELETE, "for 0 days, previously for 30 days"),
        ({"softDeletePolicy": {"retentionDurationSeconds": "604800"}}, DELETE, "for 7 days, previously for 30 days"),
        ({"softDeletePolicy": UNKNOWN}, UNCLEAR, "sets softDeletePolicy.retentionDurationSeconds"),
        ({"softDeletePolicy": None}, CAUTION, "no longer declares how long deleted objects can be restored"),
        ({"forceDestroy": True}, DELETE, "would be deleted together with everything in it (forceDestroy)"),
        ({"forceDestroy": "true"}, DELETE, "would be deleted together with everything in it (forceDestroy)"),
        ({"versioning": {"enabled": False}}, DELETE, "no longer keeps old versions of its objects (versioning)"),
        ({"versioning": None}, DELETE, "no longer keeps old versions of its objects (versioning)"),
        ({"encryption": None}, ACCESS, "encrypts new objects with Google's keys instead of your own, k (encryption)"),
        ({"encryption": {"defaultKmsKeyName": "x"}}, CAUTION, "encrypts new objects with another key, x"),
        ({"logging": None}, CAUTION, "no longer logs access to l (logging)"),
        ({"logging": {"logBucket": "{x}"}}, CAUTION, "logs access to another bucket, {x} (logging)"),
        ({"storageClass": "ARCHIVE"}, CAUTION, "stores new objects as ARCHIVE: each read has a price (storageClass)"),
        ({"requesterPays": True}, CAUTION, "refuses readers who do not pay for their requests (requesterPays)"),
        ({"cors": [{"origins": ["*"]}]}, CAUTION, "can be read by web pages of other origins than before (cors)"),
        ({"website": {"mainPageSuffix": "x"}}, CAUTION, "serves a web site (website)"),
    ],
)
def test_weakened_bucket_is_a_sentence_with_its_property(changed: dict[str, Any], risk: Risk, text: str) -> None:
    """Each change that makes a bucket worse has one sentence with its risk, which names the property."""
    ((actual_risk, sentence),) = sentences(Step(bucket(), bucket(**changed), "update"))
    assert actual_risk is risk
    assert text in sentence
    assert next(iter(changed)) in sentence


@pytest.mark.parametrize(
    "changed",
    [
        {"lifecycleRules": [TMP, ABORT]},
        {"lifecycleRules": []},
        {"lifecycleRules": [{**TMP, "condition": {"age": 30, "matchesPrefixes": ["tmp/a/", "tmp/b/"]}}]},
        {"softDeletePolicy": {"retentionDurationSeconds": 7_776_000}},
        {"labels": {"a": "b"}},
        {"retentionPolicy": {"retentionPeriod": 10}},
        {"cors": []},
    ],
)
def test_safer_bucket_needs_no_sentence(changed: dict[str, Any]) -> None:
    """Less deletion, longer retention and labels are no risk."""
    assert sentences(Step(bucket(), bucket(**changed), "update")) == []


def test_first_declaration_is_compared_with_the_default() -> None:
    """A bucket without a policy keeps deleted objects for seven days, by Google's default."""
    undeclared = bucket(softDeletePolicy=None)
    assert sentences(Step(undeclared, bucket(), "update")) == []
    off = bucket(softDeletePolicy={"retentionDurationSeconds": 0})
    assert sentences(Step(undeclared, off, "update")) == [
        (DELETE, "keeps deleted objects for 0 days, previously for 7 days (softDeletePolicy)")
    ]


def test_many_rules_are_summed_up() -> None:
    """A list of rules is cut after those that reach the jobs."""
    rules = [TMP, *(delete_rule(matchesPrefixes=[f"x{number}/"])[1] for number in range(20)), delete_rule(age=9)[1]]
    texts = [text for _, text in sentences(Step(bucket(), bucket(lifecycleRules=rules), "update"))]
    assert len(texts) == 7
    assert texts[0] == "deletes all objects 9 days after their creation (lifecycleRules)"
    assert texts[-1] == "has 15 more such rules (lifecycleRules)"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"age": 3, "matchesPrefixes": ["tmp/x"]}, []),
        ({"age": 3}, []),  # TPU096 reports it
        (
            {"age": 3, "matchesPrefixes": ["checkpoints/"]},
            [(CAUTION, "deletes objects below checkpoints/ 3 days after their creation (lifecycleRules)")],
        ),
    ],
)
def test_new_bucket_names_what_it_deletes(condition: dict[str, Any], expected: list[Any]) -> None:
    """A new bucket has no data to lose: its rules are a caution, unless they are temporary or already a finding."""
    assert sentences(Step(None, bucket(lifecycleRules=delete_rule(**condition)), "create")) == expected


def test_moved_bucket_is_compared_with_the_one_that_it_replaces() -> None:
    """A bucket that moves is another resource, but it has to guard its data as before."""
    old = bucket("data-a", protect=True, retain=True)
    new = bucket("data-b", forceDestroy=True, lifecycleRules=delete_rule(age=1))
    texts = [text for _, text in sentences(Step(old, None, "delete"), Step(None, new, "create"))]
    assert texts == [
        "does not have protect, unlike the bucket that it replaces",
        "does not have retainOnDelete, unlike the bucket that it replaces",
        "would be deleted together with everything in it (forceDestroy)",
        "deletes all objects 1 days after their creation (lifecycleRules)",
    ]


STORED = "gcp:secretmanager/secret:Secret"
SQL_TYPE = "gcp:sql/databaseInstance:DatabaseInstance"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
ROLE, SERVICE = "gcp:projects/iAMCustomRole:IAMCustomRole", "gcp:projects/service:Service"
GRANT = "gcp:projects/iAMMember:IAMMember"
PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
ACCOUNT, KEY, DENY = "gcp:serviceaccount/account:Account", "gcp:serviceaccount/key:Key", "gcp:iam/denyPolicy:DenyPolicy"
TRANSFER = "gcp:storage/transferJob:TransferJob"


@pytest.mark.parametrize(
    ("type_", "before", "after", "risk", "text"),
    [
        (STORED, {"deletionProtection": True}, {"deletionProtection": False}, DELETE, "(deletionProtection)"),
        (STORED, {"versionDestroyTtl": "864000s"}, {"versionDestroyTtl": "86400s"}, DELETE, "1 day, previously"),
        (STORED, {}, {"expireTime": "2026-01-01T00:00:00Z"}, DELETE, "expires with its content at 2026-01-01"),
        (SQL_TYPE, {}, {"deletionProtection": False}, DELETE, "no longer protected against deletion by its service"),
        (
            SQL_TYPE,
            {"settings": {"backupConfiguration": {"enabled": True}}},
            {"settings": {"backupConfiguration": {"enabled": False}}},
            DELETE,
            "is no longer backed up (settings)",
        ),
        (REPOSITORY, {"deletionPolicy": "PREVENT"}, {}, DELETE, "previously it was kept (deletionPolicy)"),
        (REPOSITORY, {}, {"cleanupPolicies": [{"id": "x"}]}, DELETE, "by other rules than before (cleanupPolicies)"),
        (ROLE, {"permissions": ["a.b"]}, {"permissions": ["a.b", "c.d"]}, ACCESS, "everyone who has the role c.d"),
        (
            ROLE,
            {"permissions": ["tpu.nodes.delete"]},
            {"permissions": []},
            CAUTION,
            "loses tpu.nodes.delete: slices that",
        ),
        (ROLE, {"permissions": ["a.b", "compute.instances.delete"]}, None, CAUTION, "can no longer delete themselves"),
        (
            GRANT,
            {"role": "projects/p/roles/tpu.chat.dev", "member": "serviceAccount:a@p"},
            {"role": "projects/p/roles/tpu.chat.dev", "member": "serviceAccount:b@p"},
            CAUTION,
            "takes the role from serviceAccount:a@p: slices that are running can no longer delete themselves",
        ),
        (PROVIDER, {"attributeCondition": "x"}, {}, ACCESS, "no longer only x (attributeCondition)"),
        (PROVIDER, {"attributeCondition": "x"}, {"attributeCondition": "y"}, ACCESS, "admits other identities"),
        (PROVIDER, None, {"oidc": {"issuerUri": "https://i"}}, ACCESS, "admits every identity of https://i"),
        (ACCOUNT, {"disabled": True}, {}, ACCESS, "can be used again (disabled)"),
        (ACCOUNT, {}, None, CAUTION, "grants to it end everywhere"),
        (KEY, None, {"serviceAccountId": "a@b"}, ACCESS, "is a new key: a copy of it acts as a@b, from anywhere"),
        (DENY, {}, None, ACCESS, "is removed: what it prevented becomes possible"),
        (DENY, {"rules": [1]}, {"rules": []}, ACCESS, "prevents something else than before"),
        (SERVICE, {}, None, CAUTION, "is disabled for the whole project (disableOnDestroy)"),
        (SERVICE, {}, {"disableDependentServices": True}, CAUTION, "(disableDependentServices)"),
        (
            "gcp:storage/batchOperationsJob:BatchOperationsJob",
            None,
            {"deleteObject": {"permanentObjectDeletionEnabled": True}},
            DELETE,
            "deletes the objects of a list or of a prefix (deleteObject)",
        ),
        ("gcp:compute/instance:Instance", None, {}, CAUTION, "is new here, as is its type"),
        (
            "gcp:storage/bucketObject:BucketObject",
            None,
            {"bucket": "b", "name": "data/x"},
            CAUTION,
            "writes the object data/x of the bucket b, over one of that name",
        ),
        (
            "aws:s3/bucket:Bucket",
            None,
            {},
            UNCLEAR,
            "of type aws:s3/bucket:Bucket is not Google's: its effect is unknown",
        ),
        ("gcp:compute/firewall:Firewall", None, {}, CAUTION, "is new here, as is its type: this review has no"),
        ("gcp:compute/firewall:Firewall", {}, {"a": 1}, CAUTION, "changes: this review has no rules about its type"),
        ("gcp:iam/projectAccessPolicy:ProjectAccessPolicy", None, {}, ACCESS, "decides who has access, by other means"),
    ],
)
def test_other_types_have_sentences_too(
    type_: str, before: dict[str, Any] | None, after: dict[str, Any] | None, risk: Risk, text: str
) -> None:
    """Guards of any type, and access that is no grant, are reported with their risk."""
    old, new = (None if inputs is None else Resource(type_, "x", inputs) for inputs in (before, after))
    op: Op = "create" if old is None else "delete" if new is None else "update"
    ((actual_risk, sentence),) = sentences(Step(old, new, op))
    assert actual_risk is risk
    assert text in sentence


def test_transfer_names_both_ends_and_each_deletion() -> None:
    """A transfer copies data and can delete it at either end."""
    spec = {
        "gcsDataSource": {"bucketName": "a"},
        "gcsDataSink": {"bucketName": "b"},
        "transferOptions": {"deleteObjectsUniqueInSink": True, "overwriteObjectsAlreadyExistingInSink": False},
    }
    assert sentences(Step(None, Resource(TRANSFER, "t", {"transferSpec": spec}), "create")) == [
        (ACCESS, "copies objects from a to b"),
        (DELETE, "deletes objects that only its destination has (deleteObjectsUniqueInSink)"),
    ]


def test_types_without_rules_are_named_once() -> None:
    """One line stands for all resources of a type, with their number; a known type is not new."""
    rules = [Resource("gcp:compute/firewall:Firewall", f"r{number}", {}) for number in range(4)]
    assert sentences(*(Step(None, rule, "create") for rule in rules)) == [
        (CAUTION, "is new here, as is its type, with 3 others of its type: this review has no rules about its type")
    ]
    assert sentences(Step(rules[0], rules[0], "same"), Step(None, rules[1], "create")) == []


def test_permissions_that_take_over_accounts_come_first() -> None:
    """A long list of new permissions does not hide the dangerous one."""
    permissions = [*(f"a.b{number}" for number in range(20)), "iam.serviceAccounts.actAs"]
    before, after = (Resource(ROLE, "r", {"permissions": listed}) for listed in ([], permissions))
    ((_, text),) = sentences(Step(before, after, "update"))
    assert text.startswith("gives everyone who has the role iam.serviceAccounts.actAs, a.b0")
