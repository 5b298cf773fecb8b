"""Reasons why a target does not support a size, or several slices of one."""

from typing import Final, NamedTuple


class Refusal(NamedTuple):
    """The reason why a target does not support a size."""

    reason: str
    """A clause to follow a colon, without a final full stop."""

    sources: tuple[str, ...]
    """Ids of the sources that state the reason, or that list the supported sizes without this one."""


ONE_SLICE: Final = Refusal("a job there has exactly one slice", ("vertex-compute",))
ONE_SLICE_OF_A_GROUP: Final = Refusal("a group of hosts there is exactly one slice", ("compute-groups",))
OLD_GENERATION: Final = Refusal("several slices need TPU v4 or newer", ("gke-multislice",))
SINGLE_HOST: Final = Refusal("only sizes of several hosts can be joined", ("gke-multislice",))
