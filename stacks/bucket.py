"""The regional bucket of an environment: data and checkpoints beside the TPUs."""

from typing import Final

import pulumi_gcp as gcp
from pulumi import Resource

from resource_options import Family
from settings import Settings

TMP_PREFIX: Final = "tmp/"
TMP_DAYS: Final = 14
"""Days after which what lies below tmp/ is deleted; nothing else ever is."""
UPLOAD_DAYS: Final = 7
"""Days after which an upload that never ended is dropped: its parts are billed and cannot be read."""


def logical_name(region: str) -> str:
    """The bucket's name in the stack.

    It holds the region, because a bucket that is replaced under one name is deleted before the new one is made. Two
    names are a creation and a deletion, in this order, and the old one can be left behind with its objects.
    """
    return f"data-{region}"


def make_bucket(settings: Settings, family: Family, apis: list[Resource]) -> gcp.storage.Bucket:
    """The bucket."""
    return gcp.storage.Bucket(
        logical_name(settings.region),
        name=settings.bucket,
        project=settings.project,
        location=settings.region.upper(),
        storage_class="STANDARD",
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        # Objects go with the bucket only where the spec says that they need not be kept.
        force_destroy=not settings.keep_data and not settings.protect,
        # Leaving the policy out would keep Google's seven days, and nobody would have decided it.
        soft_delete_policy={"retention_duration_seconds": settings.soft_delete_days * 86_400},
        # Versions of checkpoints would double the bill; soft delete covers mistakes.
        versioning={"enabled": False},
        lifecycle_rules=[
            # Every deletion has a prefix: data and checkpoints are never under a rule.
            {"action": {"type": "Delete"}, "condition": {"age": TMP_DAYS, "matches_prefixes": [TMP_PREFIX]}},
            {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": UPLOAD_DAYS}},
        ],
        labels=dict(settings.labels),
        opts=family.options(apis, retain_on_delete=settings.keep_data),
    )
