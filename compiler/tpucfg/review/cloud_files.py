"""Files that other jobs of the run have made: what jobs with credentials read from the cloud, and compiled rungs."""

from collections.abc import Mapping
from typing import NamedTuple

from tpucfg.review.changes.fits.revision_fits import RunFits
from tpucfg.review.preview.policy import BucketPolicy
from tpucfg.review.preview.reader import Preview


class CloudFiles(NamedTuple):
    """Previews by Pulumi, and policies of buckets, by environment; and the results of compilations."""

    previews: Mapping[str, Preview] = {}
    policies: Mapping[str, BucketPolicy] = {}
    fits: Mapping[str, RunFits] = {}
    """By the folder of the spec; those of one spec are under an empty name."""

    @property
    def run_fits(self) -> RunFits | None:
        """The results of the only spec; None if there are none."""
        return self.fits.get("")
