"""What becomes of the stack program, its Pulumi project and the specs that stacks read: what no resource tells."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tpucfg.infra.stack_program import StackProgram
from tpucfg.review.changes.statements import LocatedStatement, Statement


class StackPrograms(NamedTuple):
    """What one side has."""

    program: StackProgram
    others: Mapping[str, str]
    """By environment, the spec that its stack reads where that is not the one under review."""


def program_statements(before: StackPrograms, after: StackPrograms) -> Iterator[LocatedStatement]:
    """All of them grave: what they are about is not seen in the resources."""
    old, new = before.program, after.program
    if old.is_own and not new.is_own:
        said = (
            "the stack program {} is gone, and the one that tpucfg carries was run for this side: what pulumi up would "
            "do without it is not known; {} brings it back"
        )
        values = (old.shown, f"git checkout BASE -- {old.shown}")
        yield LocatedStatement("", Statement(said, values, destructive=True, headline="stack program gone"))
    if old.has_project and new.has_project and old.namespace != new.namespace:
        said = (
            "the Pulumi project is renamed from {0} to {1}: the next pulumi up begins with an empty stack, and what "
            "{0} made stays where it is and is in its way"
        )
        fact = Statement(said, (old.namespace, new.namespace), destructive=True, headline="Pulumi project renamed")
        yield LocatedStatement("", fact)
    for name in sorted({*before.others, *after.others}):
        one, other = before.others.get(name, ""), after.others.get(name, "")
        if one != other:
            said = "its stack reads {1} instead of {0}: what that changes is not reviewed here"
            own = "the spec under review"
            yield LocatedStatement(
                name, Statement(said, (one or own, other or own), destructive=True, headline="stack with another spec")
            )
