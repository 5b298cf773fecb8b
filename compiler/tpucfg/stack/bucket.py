"""The regional bucket of an environment: data and checkpoints in the TPUs' region."""

from typing import Final

import pulumi
import pulumi_gcp as gcp
from pulumi import Resource

from tpucfg.infra.grants import ENCRYPTER, KEY_GRANT
from tpucfg.stack.resource_options import ResourceOptionsFactory
from tpucfg.stack.settings import StackSettings

TMP_PREFIX: Final = "tmp/"
TMP_DAYS: Final = 14
"""Age at which objects below tmp/ are deleted; no other object is ever deleted by a rule."""
BUCKET_READER: Final = "roles/storage.legacyBucketReader"
"""Reads the bucket's own properties (`storage.buckets.get`), which checkpoint managers ask for before they write:
https://github.com/AI-Hypercomputer/maxtext/blob/main/src/maxtext/utils/gcs_utils.py."""
UPLOAD_DAYS: Final = 7
"""Age at which an incomplete upload is aborted: its parts are billed but cannot be read."""


def logical_name(bucket: str) -> str:
    """Return the bucket's name in the stack, which contains its name in the cloud.

    A bucket replaced under one logical name is deleted before the new one is created. Two names are a creation followed
    by a deletion, and the old bucket can be left behind with its objects.
    """
    return f"data-{bucket}"


def former_logical_name(settings: StackSettings) -> str:
    """Return the bucket's name in the stacks of earlier versions."""
    return f"data-{settings.region}"


def check_existing_bucket(settings: StackSettings, provider: gcp.Provider) -> None:
    """Check that a bucket that the stack does not make is fit for the jobs.

    Raises:
        pulumi.RunError: It cannot be read, is in another region, or single objects of it can be granted.
    """
    path = f"environments.{settings.environment}.bucket"
    try:
        actual = gcp.storage.get_bucket(
            name=settings.bucket, opts=pulumi.InvokeOptions(provider=provider)
        )
    except Exception as error:  # noqa: BLE001 - the SDK has no exception type of its own for a failed look-up
        raise _refusal(
            f"the bucket {settings.bucket} cannot be read: {str(error).strip()}",
            f"correct {path}, set {path}.create to true to make it, or grant the caller of pulumi the role "
            f"{BUCKET_READER} on it",
        ) from None
    if actual.location.lower() != settings.region:
        raise _refusal(
            f"the bucket {settings.bucket} is in {actual.location.lower()}, and the TPUs of {settings.environment} are "
            f"in {settings.region}: every read and checkpoint would cross regions",
            f"set {path}.name to a bucket in {settings.region}",
        )
    if not actual.uniform_bucket_level_access:
        raise _refusal(
            f"the bucket {settings.bucket} has no uniform access: single objects could be open to others",
            f"run: gcloud storage buckets update gs://{settings.bucket} --uniform-bucket-level-access",
        )
    if actual.public_access_prevention != "enforced":
        pulumi.log.warn(
            f"the bucket {settings.bucket} does not prevent public access itself\nhelp: run: gcloud storage buckets "
            f"update gs://{settings.bucket} --public-access-prevention"
        )


def _grant_key(
    settings: StackSettings,
    options: ResourceOptionsFactory,
    provider: gcp.Provider,
    apis: list[Resource],
) -> Resource:
    """Let Cloud Storage encrypt with the key, as its own agent of the project."""
    agent = gcp.storage.get_project_service_account(
        project=settings.project, opts=pulumi.InvokeOptions(provider=provider)
    )
    member = f"serviceAccount:{agent.email_address}"
    inputs = {"cryptoKeyId": settings.kms_key, "role": ENCRYPTER, "member": member}
    return gcp.kms.CryptoKeyIAMMember(
        f"storage-agent-on-key-{settings.kms_key}",
        crypto_key_id=settings.kms_key,
        role=ENCRYPTER,
        member=member,
        # Objects that were written with the key stay unreadable without the grant, in every bucket of the project.
        opts=options.create_shared(KEY_GRANT, inputs, apis, former_name="storage-agent-on-key"),
    )


def _refusal(message: str, help: str) -> pulumi.RunError:
    return pulumi.RunError(f"{message}. Nothing was changed\nhelp: {help}")


def create_bucket(
    settings: StackSettings,
    options: ResourceOptionsFactory,
    provider: gcp.Provider,
    apis: list[Resource],
) -> gcp.storage.Bucket:
    """Declare the bucket."""
    if settings.kms_key:
        apis = [*apis, _grant_key(settings, options, provider, apis)]
    return gcp.storage.Bucket(
        logical_name(settings.bucket),
        name=settings.bucket,
        project=settings.project,
        location=settings.region.upper(),
        storage_class="STANDARD",
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        encryption={"default_kms_key_name": settings.kms_key} if settings.kms_key else None,
        # Objects are deleted with the bucket only if the spec does not require keeping them.
        force_destroy=not settings.keep_data and not settings.protect,
        # Always set: without it, Google's default of seven days would apply, which it may change.
        soft_delete_policy={"retention_duration_seconds": settings.soft_delete_days * 86_400},
        # Versions of checkpoints would double the bill; soft delete covers mistakes.
        versioning={"enabled": False},
        lifecycle_rules=[
            # Every deletion has a prefix, so that no rule ever applies to data or checkpoints.
            {
                "action": {"type": "Delete"},
                "condition": {"age": TMP_DAYS, "matches_prefixes": [TMP_PREFIX]},
            },
            {
                "action": {"type": "AbortIncompleteMultipartUpload"},
                "condition": {"age": UPLOAD_DAYS},
            },
        ],
        labels=dict(settings.labels),
        opts=options.create(
            apis,
            retain_on_delete=settings.keep_data,
            former_name=former_logical_name(settings),
        ),
    )
