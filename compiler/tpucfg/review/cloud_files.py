"""Files that jobs with credentials have read from the cloud."""

from collections.abc import Mapping
from typing import NamedTuple

from tpucfg.review.preview.policy import BucketPolicy
from tpucfg.review.preview.reader import Preview


class CloudFiles(NamedTuple):
    """Previews by Pulumi, and policies of buckets, by environment."""

    previews: Mapping[str, Preview] = {}
    policies: Mapping[str, BucketPolicy] = {}
