"""Attacks on data: deletion rules, protection that is weakened, and resources that delete objects themselves."""

import json
from typing import Final

from attacks.attack import Attack, Edit, append, edit, together, write

_RULES: Final = "        lifecycle_rules=[\n"
_LABELS: Final = "        labels=dict(settings.labels),\n"
_RETAIN: Final = "retain_on_delete=settings.keep_data"
_IMPORTS: Final = "\nimport pulumi_gcp as gcp\nfrom pulumi import ResourceOptions\n\n"


def _rule(condition: str, action: str = '"type": "Delete"') -> Edit:
    """Add a lifecycle rule to the bucket."""
    rule = f'{{"action": {{{action}}}, "condition": {{{condition}}}}},'
    return edit("stacks/bucket.py", (_RULES, f"{_RULES}            {rule}\n"))


def _argument(text: str) -> Edit:
    """Add an argument to the bucket."""
    return edit("stacks/bucket.py", (_LABELS, f"{_LABELS}        {text},\n"))


def _declare(code: str) -> Edit:
    """Declare another resource."""
    return append("stacks/__main__.py", f"{_IMPORTS}{code}\n")


def _without(text: str) -> Edit:
    return edit("stacks/bucket.py", (text, ""))


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
    "urn:pulumi:dev::mnist::tpucfg:index:Environment$gcp:storage/bucket:Bucket::data-us-central1"
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
        edit("stacks/bucket.py", (', "matches_prefixes": [TMP_PREFIX]', "")),
        (
            "has another lifecycle rule, `Delete: every object, age 14` (`lifecycleRules`)",
            "`TPU096`",
        ),
    ),
    Attack(
        "deletion-by-an-empty-prefix",
        edit("stacks/bucket.py", ("[TMP_PREFIX]", '[TMP_PREFIX, ""]')),
        (
            "has another lifecycle rule, `Delete: every object, age 14, matchesPrefixes tmp/` (`lifecycleRules`)",
            "`TPU096`",
        ),
    ),
    Attack(
        "deletion-at-once",
        edit(
            "stacks/bucket.py",
            ('"age": TMP_DAYS, "matches_prefixes"', '"age": 0, "matches_prefixes"'),
        ),
        ("has another lifecycle rule, `Delete: matchesPrefixes tmp/` (`lifecycleRules`)",),
    ),
    Attack(
        "deletion-earlier",
        edit("stacks/bucket.py", ("TMP_DAYS: Final = 14", "TMP_DAYS: Final = 1")),
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
        edit("stacks/bucket.py", ("settings.soft_delete_days * 86_400", "0")),
        (
            "can lose data: `softDeletePolicy.retentionDurationSeconds` is `0`, previously `2592000`",
            "`TPU097` storage.Bucket data-us-central1 keeps no deleted objects",
        ),
    ),
    Attack(
        "soft-delete-shortened",
        edit("stacks/bucket.py", ("settings.soft_delete_days * 86_400", "7 * 86_400")),
        (
            "**prod**",
            "`softDeletePolicy.retentionDurationSeconds` is `604800`, previously `2592000`",
        ),
    ),
    Attack(
        "soft-delete-no-longer-declared",
        edit(
            "stacks/bucket.py",
            (
                '        soft_delete_policy={"retention_duration_seconds": settings.soft_delete_days * 86_400},\n',
                "",
            ),
        ),
        ("can lose data: `softDeletePolicy.retentionDurationSeconds` is `604800`",),
    ),
    Attack(
        "force-destroy",
        edit(
            "stacks/bucket.py",
            ("force_destroy=not settings.keep_data and not settings.protect", "force_destroy=True"),
        ),
        (
            "can lose data: `forceDestroy` is `true`",
            "`TPU097` storage.Bucket data-us-central1 would be deleted with all its objects (forceDestroy)",
        ),
    ),
    Attack(
        "no-longer-left-behind",
        edit("stacks/bucket.py", (_RETAIN, "retain_on_delete=False")),
        (
            "is no longer left behind when it is removed from the stack: its data would be deleted (`retainOnDelete`)",
        ),
    ),
    Attack(
        "versioning-off",
        edit("stacks/bucket.py", ('versioning={"enabled": True}', 'versioning={"enabled": False}')),
        ("no longer keeps old versions of its objects (`versioning`)",),
        base=edit(
            "stacks/bucket.py", ('versioning={"enabled": False}', 'versioning={"enabled": True}')
        ),
    ),
    Attack(
        "retention-shortened",
        edit("stacks/bucket.py", ('"retention_period": 864000', '"retention_period": 86400')),
        ("can lose data: `retentionPolicy.retentionPeriod` is `86400`, previously `864000`",),
        base=_argument('retention_policy={"retention_period": 864000}'),
    ),
    Attack(
        "own-key-taken-away",
        _without(
            '        encryption={"default_kms_key_name": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},\n'
        ),
        ("encrypts new objects with `Google's own keys`, previously with `projects/p/",),
        status=0,
        base=_argument(
            'encryption={"default_kms_key_name": "projects/p/locations/l/keyRings/r/cryptoKeys/k"}'
        ),
    ),
    Attack(
        "logging-taken-away",
        _without('        logging={"log_bucket": "audit"},\n'),
        ("has another `logging.logBucket`: `not set`, previously `audit`",),
        status=0,
        base=_argument('logging={"log_bucket": "audit"}'),
    ),
    Attack(
        "networks-opened",
        edit("stacks/bucket.py", ('"mode": "Enabled"', '"mode": "Disabled"')),
        ("has another `ipFilter.mode`: `Disabled`, previously `Enabled`",),
        status=0,
        base=_argument(
            'ip_filter={"mode": "Enabled", "public_network_source": {"allowed_ip_cidr_ranges": ["10.0.0.0/8"]}}'
        ),
    ),
    Attack(
        "deletion-policy",
        _without('        deletion_policy="PREVENT",\n'),
        ("deletionPolicy",),
        base=_argument('deletion_policy="PREVENT"'),
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
        _declare(
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
        edit("stacks/__main__.py", (", opts=ResourceOptions(retain_on_delete=True)", "")),
        ("`secretmanager.Secret` `token` is no longer left behind", "(`retainOnDelete`)"),
        base=_declare(f"{_STATEFUL}, opts=ResourceOptions(retain_on_delete=True))"),
    ),
    Attack(
        "secret-no-longer-protected-by-its-service",
        edit("stacks/__main__.py", ("deletion_protection=True", "deletion_protection=False")),
        ("can lose data: `deletionProtection`",),
        base=_declare(f"{_STATEFUL}, deletion_protection=True)"),
    ),
    Attack(
        "transfer-that-deletes",
        _declare(
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
        _declare(
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
