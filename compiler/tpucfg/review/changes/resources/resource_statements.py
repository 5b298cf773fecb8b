"""Sentences about what the changes of all resources of an environment mean, apart from grants."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.resources import Resource
from tpucfg.review.changes.resources.access_changes import access_statements
from tpucfg.review.changes.resources.bucket_changes import bucket_statements
from tpucfg.review.changes.resources.data_movers import mover_statements
from tpucfg.review.changes.resources.protection_changes import protection_statements
from tpucfg.review.changes.resources.resource_change import BUCKET, Step
from tpucfg.review.changes.resources.unjudged_types import unjudged_statements

_RULES: Final[tuple[Callable[[Step], Iterator[Statement]], ...]] = (
    mover_statements,
    protection_statements,
    bucket_statements,
    access_statements,
)
_OPTIONS: Final[Mapping[str, str]] = {"protect": "protect", "retain": "retainOnDelete"}
"""Options that keep a bucket from being deleted, by the field of a resource."""
_LOST_OPTION: Final = Statement("does not have {}, unlike the bucket that it replaces", (), Risk.DESTRUCTIVE)


def resource_statements(steps: Sequence[Step]) -> list[tuple[Statement, ...]]:
    """Return the sentences about each step."""
    predecessors = _predecessors(steps)
    sentences = [(*_statements(step, predecessors.get(index)),) for index, step in enumerate(steps)]
    unjudged = unjudged_statements(steps, [bool(own) for own in sentences])
    return [own if own or index not in unjudged else (unjudged[index],) for index, own in enumerate(sentences)]


def _statements(step: Step, predecessor: Resource | None) -> Iterator[Statement]:
    if predecessor and step.after:
        for option, name in _OPTIONS.items():
            if getattr(predecessor, option) and not getattr(step.after, option):
                yield _LOST_OPTION._replace(values=(name,))
        step = step._replace(before=predecessor)
    for rule in _RULES:
        yield from rule(step)


def _predecessors(steps: Sequence[Step]) -> Mapping[int, Resource]:
    """Return the bucket that each created bucket replaces, by the index of its step.

    A bucket that moves to another region is created under another name in the stack, and the old one is removed.
    """
    removed = sorted(
        (step.before for step in steps if step.op == "delete" and step.before and step.before.type == BUCKET),
        key=lambda bucket: bucket.name,
    )
    created = sorted(
        (step.after.name, index)
        for index, step in enumerate(steps)
        if step.op == "create" and step.after and step.after.type == BUCKET
    )
    if not removed:
        return {}
    return {index: removed[min(position, len(removed) - 1)] for position, (_, index) in enumerate(created)}
