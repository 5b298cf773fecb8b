"""The content of a review, independent of its output format."""

from typing import Literal, NamedTuple

from tpucfg.diff.change import Difference
from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.findings import Finding
from tpucfg.infra.resources import Resource
from tpucfg.review.changes.impact import Impact
from tpucfg.review.changes.resource_change import ResourceChange
from tpucfg.review.preview.reader import Violation

Source = Literal["program", "head", "preview", "none"]
"""The source of an environment's resources.

`program`: the stack programs of both revisions. `head`: only the program of head, because the spec of base has
errors. `preview`: a preview by Pulumi. `none`: unknown, because the programs cannot be run.
"""


class Problem(NamedTuple):
    """The reason why the changes to an environment's resources are unknown or incomplete."""

    reason: str
    """One sentence."""
    output: tuple[str, ...] = ()
    """Lines that the program or Pulumi printed."""


class EnvironmentReview(NamedTuple):
    """The changes to the resources of one environment."""

    environment: str
    source: Source
    changes: tuple[ResourceChange, ...] = ()
    problem: Problem | None = None
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Findings about the resources of head, without those that base is known to have too."""
    declared: tuple[Resource, ...] = ()
    """The resources of head, if there is nothing to compare them with."""
    has_no_stack: bool = False
    """True if Pulumi reports that the stack does not exist yet."""
    is_new: bool = False
    """True if no resource existed before. Grants on new resources do not widen access to existing data."""


class Review(NamedTuple):
    """Two revisions and the differences between them."""

    before: CompiledRevision
    after: CompiledRevision
    difference: Difference
    """The difference between the configs; empty if a revision is broken."""
    impact: Impact
    """The consequences for training, location and data; mostly empty if a revision is broken."""
    environments: tuple[EnvironmentReview, ...]
    """Sorted by name."""
    missing_packages: str = ""
    """The reason why stack programs cannot be run: a package that is not installed."""
    revisions_with_bundled_program: tuple[str, ...] = ()
    """The titles of the revisions without a stack program of their own."""
    notes: tuple[str, ...] = ()
    """Sentences about previews that are not shown."""

    @property
    def is_broken(self) -> bool:
        """True if errors in a spec prevent a comparison."""
        return self.before.is_broken or self.after.is_broken

    @property
    def resources(self) -> tuple[ResourceChange, ...]:
        """The changed resources of all environments."""
        return tuple(change for environment in self.environments for change in environment.changes)

    @property
    def is_known(self) -> bool:
        """True if all changes to resources are known."""
        has_problem = any(environment.problem for environment in self.environments)
        return not (self.is_broken or self.missing_packages or has_problem)

    @property
    def is_destructive(self) -> bool:
        """True if data is deleted or loses its protection."""
        has_destructive_statement = any(located.statement.destructive for located in self.impact.statements)
        return has_destructive_statement or any(change.destructive for change in self.resources)

    @property
    def is_change(self) -> bool:
        """True if anything changes."""
        return bool(self.difference or self.resources or self.impact.statements or self.is_broken)
