"""Changes to the stack program, its Pulumi project and the specs of stacks, which are not changes to resources."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tpucfg.infra.stack_program import StackProgram
from tpucfg.review.changes.statements import LocatedStatement, Statement

_OWN_SPEC: Final = "the spec under review"


class StackSetup(NamedTuple):
    """The stack program of one revision, and the specs that its stacks read."""

    program: StackProgram
    other_specs: Mapping[str, str]
    """By environment, the spec that its stack reads, if it is another one than the spec under review."""


def stack_statements(before: StackSetup, after: StackSetup) -> Iterator[LocatedStatement]:
    """Yield the changes to program, project and specs. All are destructive, as the review cannot show their effects."""
    old, new = before.program, after.program
    if old.is_own and not new.is_own:
        yield LocatedStatement("", _program_removed(old))
    # Without a Pulumi.yaml, the namespace is a default, so a different name is not a renamed project.
    if old.has_project and new.has_project and old.namespace != new.namespace:
        yield LocatedStatement("", _project_renamed(old, new))
    for environment in sorted({*before.other_specs, *after.other_specs}):
        old_spec, new_spec = before.other_specs.get(environment, ""), after.other_specs.get(environment, "")
        if old_spec != new_spec:
            yield LocatedStatement(environment, _spec_changed(old_spec, new_spec))


def _program_removed(program: StackProgram) -> Statement:
    template = (
        "stack program {0} removed: this review used the program bundled with tpucfg instead, and the result of {1} "
        "is unknown. To restore it, run {2}"
    )
    values = (program.shown, "pulumi up", f"git checkout BASE -- {program.shown}")
    return Statement(template, values, destructive=True, headline="stack program removed")


def _project_renamed(old: StackProgram, new: StackProgram) -> Statement:
    template = (
        "Pulumi project renamed from {0} to {1}: the next {2} starts with an empty stack, and the resources of {0} "
        "remain and conflict with the new ones"
    )
    values = (old.namespace, new.namespace, "pulumi up")
    return Statement(template, values, destructive=True, headline="Pulumi project renamed")


def _spec_changed(old: str, new: str) -> Statement:
    template = "stack reads {1} instead of {0}: this review does not include the effect on its resources"
    values = (old or _OWN_SPEC, new or _OWN_SPEC)
    return Statement(template, values, destructive=True, headline="stack with another spec")
