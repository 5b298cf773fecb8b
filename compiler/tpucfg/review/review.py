"""Everything that a review says, before it is laid out."""

from typing import Literal, NamedTuple

from tpucfg.diff.change import Difference
from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.findings import Finding
from tpucfg.infra.resources import Resource
from tpucfg.review.changes.impact import Impact
from tpucfg.review.changes.resource_change import ResourceChange
from tpucfg.review.preview.reader import Violation

Source = Literal["program", "head", "preview", "none"]
"""Who says what happens to resources: the stack program of both sides, or Pulumi.

`head`: only the program of head, as the base does not hold. `none`: the environment is gone, or cannot be shown.
"""


class Problem(NamedTuple):
    """Why what happens to an environment's resources is not known, or not wholly."""

    reason: str
    """In one sentence."""
    said: tuple[str, ...] = ()
    """The words of the program or the engine, line by line."""


class Part(NamedTuple):
    """What happens to the resources of one environment."""

    environment: str
    source: Source
    changes: tuple[ResourceChange, ...] = ()
    problem: Problem | None = None
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    new: tuple[Finding, ...] = ()
    """What is wrong with the resources, and was not before, as far as that is known."""
    declared: tuple[Resource, ...] = ()
    """What there is in head, where that is all that can be said."""
    has_no_stack: bool = False
    """Pulumi says that nothing was brought up yet, so the program alone tells what changes."""

    is_first: bool = False
    """Whether nothing of it was there before: access to what is made anew takes nothing from anybody."""


class Review(NamedTuple):
    """Both sides, and what lies between them."""

    before: CompiledRevision
    after: CompiledRevision
    difference: Difference
    """Of the configs; empty where a side is broken."""
    meaning: Impact
    """Likewise."""
    parts: tuple[Part, ...]
    """By environment."""
    missing: str = ""
    """Why no resources can be shown without a preview: what is not installed."""
    uses_bundled_program: tuple[str, ...] = ()
    """The sides without a stack program of their own, by title."""
    notes: tuple[str, ...] = ()
    """Sentences about previews that are not shown."""

    @property
    def is_broken(self) -> bool:
        """Whether an error in a spec keeps the sides from being compared."""
        return self.before.is_broken or self.after.is_broken

    @property
    def resources(self) -> tuple[ResourceChange, ...]:
        """Of all environments."""
        return tuple(change for part in self.parts for change in part.changes)

    @property
    def is_known(self) -> bool:
        """Whether everything that happens to resources is known."""
        return not (self.is_broken or self.missing or any(part.problem for part in self.parts))

    @property
    def is_destructive(self) -> bool:
        """Whether data goes, or what keeps it from going."""
        lifted = any(remark.statement.destructive for remark in self.meaning.statements)
        return lifted or any(change.destructive for change in self.resources)

    @property
    def is_change(self) -> bool:
        """Whether anything is not afterwards as it was before."""
        return bool(self.difference or self.resources or self.meaning.statements or self.is_broken)
