"""One step of a change: a resource before and after it."""

from typing import NamedTuple

from tpucfg.infra.resources import Resource
from tpucfg.review.changes.resources.resource_change import Op


class Step(NamedTuple):
    """One resource before and after, and the operation between the two."""

    before: Resource | None
    after: Resource | None
    op: Op
    because: tuple[str, ...] = ()
    """The inputs that force a replacement."""
    differs: tuple[str, ...] = ()
    """The properties that differ according to the engine."""
