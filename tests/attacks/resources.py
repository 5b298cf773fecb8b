"""Attacks on data: deletion rules, protection that is weakened, and resources that delete objects themselves."""

import json
from typing import Final

from attacks.attack import (
    BUCKET,
    MAIN,
    Attack,
    Edit,
    before_deploy,
    declare,
    edit,
    together,
    transform,
    write,
)

_CONDITION: Final = 'inputs["lifecycle_rules"][0]["condition"]'
"""The condition of the only rule that deletes objects."""
_KEY: Final = 'inputs["encryption"] = {"default_kms_key_name": "projects/p/locations/l/keyRings/r/cryptoKeys/k"}'
_LOGGING: Final = 'inputs["logging"] = {"log_bucket": "audit"}'
_PREVENTED: Final = 'inputs["deletion_policy"] = "PREVENT"'


def _rule(condition: str, action: str = '"type": "Delete"') -> Edit:
    """Add a lifecycle rule to the bucket."""
    rule = f'{{"action": {{{action}}}, "condition": {{{condition}}}}},'
    return _bucket(f'inputs["lifecycle_rules"] = [{rule} *inputs["lifecycle_rules"]]')


def _bucket(statement: str) -> Edit:
    """Change the bucket."""
    return transform(BUCKET, statement)


def _without(statement: str) -> Edit:
    return edit(MAIN, (statement, "pass"))


_PREFIXES: Final = ", ".join(f'"a{number}/"' for number in range(40))
_STATEFUL: Final = (
    'gcp.secretmanager.Secret("token", project=settings.project, '
    'secret_id="token", replication={"auto": {}}'
)
_BUCKET_STATE: Final = {
    "project": "my-project-dev",
    "name": "my-project-dev-mnist-dev-us-central1",
    "location": "US-CENTRAL1",
    "publicAccessPrevention": "enforced",
    "uniformBucketLevelAccess": True,
}
_URN: Final = (
    "urn:pulumi:dev::mnist::tpucfg:index:Environment$gcp:storage/bucket:Bucket"
    "::data-my-project-dev-mnist-dev-us-central1"
)


def _preview(before: dict[str, object], after: dict[str, object]) -> Edit:
    """Write a preview of dev beside the repository, in which the bucket is updated."""
    states = {
        key: {
            "custom": True,
            "type": "gcp:storage/bucket:Bucket",
            "inputs": {**_BUCKET_STATE, **inputs},
        }
        for key, inputs in (("oldState", before), ("newState", after))
    }
    document = {"steps": [{"op": "update", "urn": _URN, **states}], "changeSummary": {"update": 1}}
    return write("../preview.json", json.dumps(document))


_PREVIEW: Final = ("--preview", "dev=../preview.json")
_ANYTHING: Final = [{"action": {"type": "Delete"}, "condition": {"age": 3}}]

ATTACKS: Final = (
    Attack(
        "deletion-without-prefix",
        _bucket(f'del {_CONDITION}["matches_prefixes"]'),
        (
            "has another lifecycle rule, `Delete: every object, age 14` (`lifecycleRules`)",
            "`TPU096`",
        ),
    ),
    Attack(
        "deletion-by-an-empty-prefix",
        _bucket(f'{_CONDITION}["matches_prefixes"].append("")'),
        (
            "has another lifecycle rule, `Delete: every object, age 14, matchesPrefixes tmp/` (`lifecycleRules`)",
            "`TPU096`",
        ),
    ),
    Attack(
        "deletion-at-once",
        _bucket(f'{_CONDITION}["age"] = 0'),
        ("has another lifecycle rule, `Delete: matchesPrefixes tmp/` (`lifecycleRules`)",),
    ),
    Attack(
        "deletion-earlier",
        before_deploy("import tpucfg.stack.bucket as bucket\n\nbucket.TMP_DAYS = 1"),
        ("has another lifecycle rule, `Delete: age 1, matchesPrefixes tmp/` (`lifecycleRules`)",),
    ),
    Attack(
        "deletion-of-checkpoints",
        _rule('"age": 3, "matches_prefixes": ["checkpoints/"]'),
        (
            "has another lifecycle rule, `Delete: age 3, matchesPrefixes checkpoints/` (`lifecycleRules`)",
        ),
    ),
    Attack(
        "deletion-hidden-in-many-prefixes",
        _rule(f'"age": 3, "matches_prefixes": [{_PREFIXES}, "jobs/"]'),
        (
            "has another lifecycle rule, `Delete: age 3, matchesPrefixes a0/",
            "checkpoints below jobs/ would be lost",
        ),
    ),
    Attack(
        "deletion-by-suffix",
        _rule('"age": 1, "matches_suffixes": [".ckpt"]'),
        (
            "has another lifecycle rule, `Delete: age 1, matchesSuffixes .ckpt` (`lifecycleRules`)",
            "`TPU096`",
        ),
    ),
    Attack(
        "deletion-by-date",
        _rule('"created_before": "2030-01-01"'),
        (
            "has another lifecycle rule, `Delete: every object, createdBefore 2030-01-01` (`lifecycleRules`)",
            "`TPU096`",
        ),
    ),
    Attack(
        "deletion-of-old-versions",
        _rule('"num_newer_versions": 1, "with_state": "ARCHIVED"'),
        (
            "has another lifecycle rule, `Delete: every object, numNewerVersions 1, withState ARCHIVED`",
        ),
    ),
    Attack(
        "storage-class-that-costs",
        _rule('"age": 1', '"type": "SetStorageClass", "storage_class": "ARCHIVE"'),
        ("has another lifecycle rule, `SetStorageClass ARCHIVE: every object, age 1`",),
        status=0,
    ),
    Attack(
        "soft-delete-off",
        _bucket('inputs["soft_delete_policy"] = {"retention_duration_seconds": 0}'),
        (
            "can lose data: `softDeletePolicy.retentionDurationSeconds` is `0`, previously `2592000`",
            "`TPU097` storage.Bucket data-my-project-prod-mnist-prod-us-central1 keeps no deleted objects",
        ),
    ),
    Attack(
        "soft-delete-shortened",
        _bucket('inputs["soft_delete_policy"] = {"retention_duration_seconds": 7 * 86_400}'),
        (
            "**prod**",
            "`softDeletePolicy.retentionDurationSeconds` is `604800`, previously `2592000`",
        ),
    ),
    Attack(
        "soft-delete-no-longer-declared",
        _bucket('inputs["soft_delete_policy"] = None'),
        ("can lose data: `softDeletePolicy.retentionDurationSeconds` is `604800`",),
    ),
    Attack(
        "force-destroy",
        _bucket('inputs["force_destroy"] = True'),
        (
            "can lose data: `forceDestroy` is `true`",
            "`TPU097` storage.Bucket data-my-project-prod-mnist-prod-us-central1 would be deleted with all its ",
            "(forceDestroy)",
        ),
    ),
    Attack(
        "no-longer-left-behind",
        _bucket("options.retain_on_delete = False"),
        (
            "is no longer left behind when it is removed from the stack: its data would be deleted (`retainOnDelete`)",
        ),
    ),
    Attack(
        "versioning-off",
        edit(MAIN, ('{"enabled": True}', '{"enabled": False}')),
        ("no longer keeps old versions of its objects (`versioning`)",),
        base=_bucket('inputs["versioning"] = {"enabled": True}'),
    ),
    Attack(
        "retention-shortened",
        edit(MAIN, ('"retention_period": 864000', '"retention_period": 86400')),
        ("can lose data: `retentionPolicy.retentionPeriod` is `86400`, previously `864000`",),
        base=_bucket('inputs["retention_policy"] = {"retention_period": 864000}'),
    ),
    Attack(
        "own-key-taken-away",
        _without(_KEY),
        ("encrypts new objects with `Google's own keys`, previously with `projects/p/",),
        status=0,
        base=_bucket(_KEY),
    ),
    Attack(
        "logging-taken-away",
        _without(_LOGGING),
        ("has another `logging.logBucket`: `not set`, previously `audit`",),
        status=0,
        base=_bucket(_LOGGING),
    ),
    Attack(
        "networks-opened",
        edit(MAIN, ('"mode": "Enabled"', '"mode": "Disabled"')),
        ("has another `ipFilter.mode`: `Disabled`, previously `Enabled`",),
        status=0,
        base=_bucket(
            'inputs["ip_filter"] = {"mode": "Enabled", '
            '"public_network_source": {"allowed_ip_cidr_ranges": ["10.0.0.0/8"]}}'
        ),
    ),
    Attack(
        "deletion-policy",
        _without(_PREVENTED),
        ("deletionPolicy",),
        base=_bucket(_PREVENTED),
    ),
    Attack(
        "move-that-loses-the-retention-and-adds-a-deletion",
        together(
            edit(
                "tpucfg.yaml", ("    region: us-central1          #", "    region: europe-west4 #")
            ),
            _rule('"age": 3, "matches_prefixes": ["jobs/mnist/"]'),
        ),
        (
            "has another lifecycle rule, `Delete: age 3, matchesPrefixes jobs/mnist/` (`lifecycleRules`)",
        ),
    ),
    Attack(
        "new-bucket-that-deletes",
        declare(
            'gcp.storage.Bucket("more", name=f"{settings.bucket}-more", project=settings.project, '
            'location=settings.region, uniform_bucket_level_access=True, public_access_prevention="enforced", '
            'lifecycle_rules=[{"action": {"type": "Delete"}, "condition": {"age": 3}}], '
            "opts=ResourceOptions(protect=True))"
        ),
        ("`TPU096` storage.Bucket more has the lifecycle rule Delete: every object, age 3",),
        status=0,
    ),
    Attack(
        "secret-no-longer-left-behind",
        edit(MAIN, (", opts=ResourceOptions(retain_on_delete=True)", "")),
        ("`secretmanager.Secret` `token` is no longer left behind", "(`retainOnDelete`)"),
        base=declare(f"{_STATEFUL}, opts=ResourceOptions(retain_on_delete=True))"),
    ),
    Attack(
        "secret-no-longer-protected-by-its-service",
        edit(MAIN, ("deletion_protection=True", "deletion_protection=False")),
        ("can lose data: `deletionProtection`",),
        base=declare(f"{_STATEFUL}, deletion_protection=True)"),
    ),
    Attack(
        "transfer-that-deletes",
        declare(
            'gcp.storage.TransferJob("sync", project=settings.project, description="sync", transfer_spec={'
            '"gcs_data_source": {"bucket_name": "empty"}, "gcs_data_sink": {"bucket_name": settings.bucket}, '
            '"transfer_options": {"delete_objects_unique_in_sink": True}})'
        ),
        (
            "is of the type `gcp:storage/transferJob:TransferJob`, about which this review has no rules",
        ),
        status=0,
    ),
    Attack(
        "command-during-the-update",
        declare(
            "import pulumi\n\n"
            'pulumi.CustomResource("command:local:Command", "sweep", {"create": "gcloud storage rm gs://x/**"})'
        ),
        ("`command:local.Command` `sweep` is of the type `command:local:Command`",),
        status=0,
    ),
    Attack(
        "deletion-in-a-preview",
        _preview({}, {"lifecycleRules": _ANYTHING}),
        (
            "has another lifecycle rule, `Delete: every object, age 3` (`lifecycleRules`)",
            "`TPU096`",
        ),
        arguments=_PREVIEW,
    ),
    Attack(
        "rules-judge-previews-too",
        _preview({}, {"location": "US", "publicAccessPrevention": "inherited"}),
        (
            "`TPU090`",
            "`TPU091`",
            "no longer prevents public access to its objects: `publicAccessPrevention`",
        ),
        status=0,
        arguments=_PREVIEW,
    ),
)
