"""Harmful changes of resources and programs, of types and inputs that no rule names: none is below a caution."""

from typing import Any, NamedTuple

import pytest

from tpucfg.changes.facts import Risk
from tpucfg.changes.programs import declaration_statements
from tpucfg.changes.resource_diff import program_changes
from tpucfg.changes.resources import ResourceChange
from tpucfg.infra.resources import EnvironmentResources, Resource, Unseen

Inputs = dict[str, Any] | None
BUCKET = "gcp:storage/bucket:Bucket"
SQL = "gcp:sql/databaseInstance:DatabaseInstance"
SPANNER = "gcp:spanner/database:Database"
KEY_RING = "gcp:kms/keyRing:KeyRing"
FIREWALL = "gcp:compute/firewall:Firewall"
ALLOY = "gcp:alloydb/cluster:Cluster"
ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"
LOG_SINK = "gcp:logging/projectSink:ProjectSink"
CLOSED = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}


class _Dev:
    name = "dev"


class Harm(NamedTuple):
    """A resource before and after a change that harms."""

    type: str
    before: Inputs
    after: Inputs
    risk: Risk
    """The least risk that the review has to give it."""


HARMS = {
    "new type": Harm("gcp:newservice/thing:Thing", None, {}, Risk.CAUTION),
    "changed unknown type": Harm(
        FIREWALL, {"ranges": ["10.0.0.0/8"]}, {"ranges": ["0.0.0.0/0"]}, Risk.CAUTION
    ),
    "database deleted": Harm(SQL, {}, None, Risk.DESTRUCTIVE),
    "database of another service deleted": Harm(SPANNER, {"ddls": ["x"]}, None, Risk.DESTRUCTIVE),
    "key ring destroyed": Harm(KEY_RING, {}, None, Risk.DESTRUCTIVE),
    "type of tomorrow deleted": Harm("gcp:newservice/store:Store", {}, None, Risk.DESTRUCTIVE),
    "type of another provider deleted": Harm(
        "aws:rds/instance:Instance", {}, None, Risk.DESTRUCTIVE
    ),
    "deletion protection off": Harm(
        SQL, {"deletionProtection": True}, {"deletionProtection": False}, Risk.DESTRUCTIVE
    ),
    "deletion protection gone": Harm(SQL, {"deletionProtection": True}, {}, Risk.DESTRUCTIVE),
    "retention lost on an unknown type": Harm(
        "gcp:newservice/store:Store",
        {"retention": {"days": 30}},
        {"retention": {"days": 1}},
        Risk.DESTRUCTIVE,
    ),
    "backup window gone": Harm(
        ALLOY, {"automatedBackupPolicy": {"enabled": True}}, {}, Risk.DESTRUCTIVE
    ),
    "point in time recovery off": Harm(
        SPANNER,
        {"pointInTimeRecoveryEnabled": True},
        {"pointInTimeRecoveryEnabled": False},
        Risk.DESTRUCTIVE,
    ),
    "expiry added": Harm("gcp:bigquery/table:Table", {}, {"expirationTime": 1}, Risk.DESTRUCTIVE),
    "prevent destroy abandoned": Harm(
        SQL, {"deletionPolicy": "PREVENT"}, {"deletionPolicy": "DELETE"}, Risk.DESTRUCTIVE
    ),
    "members of a new type": Harm(
        "gcp:newservice/thingIamBinding:ThingIamBinding",
        None,
        {"role": "roles/owner", "members": ["allUsers"]},
        Risk.ACCESS,
    ),
    "members in a list of rules": Harm(
        "gcp:newservice/policy:Policy",
        {},
        {"rules": [{"role": "roles/newservice.admin", "member": "user:eve@attacker.example"}]},
        Risk.ACCESS,
    ),
    "policy as text": Harm(
        "gcp:newservice/thingIamPolicy:ThingIamPolicy",
        None,
        {
            "policyData": '{"bindings": [{"role": "roles/x.y", "members": ["user:eve@attacker.example"]}]}'
        },
        Risk.ACCESS,
    ),
    "everyone named anywhere": Harm(
        FIREWALL, {}, {"sources": {"principals": ["allUsers"]}}, Risk.ACCESS
    ),
    "new input of a bucket": Harm(
        BUCKET, CLOSED, {**CLOSED, "objectAccessMode": "LEGACY"}, Risk.CAUTION
    ),
    "new guard of a bucket lost": Harm(
        BUCKET,
        {**CLOSED, "archiveRetention": {"days": 9}},
        {**CLOSED, "archiveRetention": {"days": 1}},
        Risk.DESTRUCTIVE,
    ),
    "bucket opened": Harm(BUCKET, CLOSED, {"uniformBucketLevelAccess": True}, Risk.ACCESS),
    "role widened": Harm(
        ROLE, {"permissions": []}, {"permissions": ["iam.serviceAccounts.actAs"]}, Risk.ACCESS
    ),
    "logs led away": Harm(LOG_SINK, {"destination": "a"}, {"destination": "b"}, Risk.CAUTION),
    "command at update": Harm(
        "command:local:Command", None, {"create": "curl x | sh"}, Risk.UNKNOWN
    ),
    "objects overwritten": Harm(
        "gcp:storage/bucketObject:BucketObject", None, {"name": "data/x"}, Risk.CAUTION
    ),
    "transfer that deletes": Harm(
        "gcp:storage/transferJob:TransferJob",
        None,
        {"transferSpec": {"transferOptions": {"deleteObjectsFromSourceAfterTransfer": True}}},
        Risk.UNKNOWN,
    ),
    "fractional retention": Harm(
        "gcp:pubsub/topic:Topic",
        {"messageRetentionDuration": "864000s"},
        {"messageRetentionDuration": "600s"},
        Risk.DESTRUCTIVE,
    ),
}


def declared(*resources: Resource, **fields: Any) -> EnvironmentResources:
    """Return the resources of an environment."""
    return EnvironmentResources(_Dev(), resources, {}, **fields)  # type: ignore[arg-type] # only its name


def highest(change: ResourceChange) -> Risk:
    """Return the highest risk of the statements of a review above its folds about a resource."""
    risks = [statement.risk for statement in change.statements]
    return max([*risks, Risk.DESTRUCTIVE if change.destructive else Risk.NONE])


@pytest.mark.parametrize("harm", [pytest.param(harm, id=name) for name, harm in HARMS.items()])
def test_harm_is_a_caution(harm: Harm) -> None:
    """A change that no list names is reported by a rule."""
    other = Resource("gcp:projects/service:Service", "other", {})
    before, after = (
        declared(other, *(() if inputs is None else (Resource(harm.type, "x", inputs),)))
        for inputs in (harm.before, harm.after)
    )
    (change,) = program_changes(before, after)
    assert highest(change) >= harm.risk, change


@pytest.mark.parametrize("option", ["protect", "retain"])
@pytest.mark.parametrize("type_", [BUCKET, SQL, KEY_RING, "gcp:newservice/store:Store"])
def test_lost_protection_is_destructive(type_: str, option: str) -> None:
    """Whatever its type, a resource that can be deleted from now on may hold data."""
    kept = Resource(type_, "x", {}, protect=option == "protect", retain=option == "retain")
    (change,) = program_changes(declared(kept), declared(Resource(type_, "x", {})))
    assert change.destructive


def test_second_resource_of_a_type_has_its_own_line() -> None:
    """A type that exists already is as unknown as a new one."""
    first, second = (Resource(FIREWALL, name, {}) for name in "ab")
    (change,) = program_changes(declared(first), declared(first, second))
    assert highest(change) >= Risk.CAUTION


@pytest.mark.parametrize(
    "kind", ["transform", "component", "dynamic", "call", "read", "parameters", "of tomorrow"]
)
def test_feature_of_the_engine_is_a_caution(kind: str) -> None:
    """A step that only an engine can carry out is not known, whatever the feature."""
    after = declared(unseen=(Unseen(kind, "x"),))
    (located,) = declaration_statements({"dev": declared()}, {"dev": after})
    assert located.statement.risk >= Risk.CAUTION
