"""The regional bucket of an environment: data and checkpoints in the TPUs' region."""

from typing import Final

import pulumi_gcp as gcp
from pulumi import Resource

from resource_options import ResourceOptionsFactory
from settings import Settings

TMP_PREFIX: Final = "tmp/"
TMP_DAYS: Final = 14
"""Age at which objects below tmp/ are deleted; no other object is ever deleted by a rule."""
UPLOAD_DAYS: Final = 7
"""Age at which an incomplete upload is aborted: its parts are billed but cannot be read."""


def logical_name(region: str) -> str:
    """Return the bucket's name in the stack, which contains the region.

    A bucket replaced under one logical name is deleted before the new one is created. Two names are a creation followed
    by a deletion, and the old bucket can be left behind with its objects.
    """
    return f"data-{region}"


def create_bucket(settings: Settings, options: ResourceOptionsFactory, apis: list[Resource]) -> gcp.storage.Bucket:
    """Declare the bucket."""
    return gcp.storage.Bucket(
        logical_name(settings.region),
        name=settings.bucket,
        project=settings.project,
        location=settings.region.upper(),
        storage_class="STANDARD",
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        # Objects are deleted with the bucket only if the spec does not require keeping them.
        force_destroy=not settings.keep_data and not settings.protect,
        # Always set: without it, Google's default of seven days would apply, which it may change.
        soft_delete_policy={"retention_duration_seconds": settings.soft_delete_days * 86_400},
        # Versions of checkpoints would double the bill; soft delete covers mistakes.
        versioning={"enabled": False},
        lifecycle_rules=[
            # Every deletion has a prefix, so that no rule ever applies to data or checkpoints.
            {"action": {"type": "Delete"}, "condition": {"age": TMP_DAYS, "matches_prefixes": [TMP_PREFIX]}},
            {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": UPLOAD_DAYS}},
        ],
        labels=dict(settings.labels),
        opts=options.create(apis, retain_on_delete=settings.keep_data),
    )
