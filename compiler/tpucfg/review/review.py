"""The content of a review, independent of its output format."""

from typing import Literal, NamedTuple

from tpucfg.changes.config_diff import Difference
from tpucfg.changes.costs import NO_COSTS, CostChanges
from tpucfg.changes.fits import NO_FIT_CHANGES, FitChanges
from tpucfg.changes.impact import Impact
from tpucfg.changes.previews import Preview
from tpucfg.changes.programs import NotRun, ProgramProblem
from tpucfg.changes.resources import ResourceChange
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement
from tpucfg.findings import Finding
from tpucfg.infra.resources import Resource

Source = Literal["program", "unchanged", "head", "preview", "none"]
"""The source of an environment's resources.

`program`: the stack programs of both revisions. `head`: only the program of head, because the spec of base has
errors. `preview`: a preview by Pulumi. `none`: unknown, because the programs cannot be run.
"""


class EnvironmentReview(NamedTuple):
    """The changes to the resources of one environment."""

    environment: str
    source: Source
    changes: tuple[ResourceChange, ...] = ()
    problem: ProgramProblem | None = None
    findings: tuple[Finding, ...] = ()
    """Findings about the resources of head, without those that base is known to have too."""
    declared: tuple[Resource, ...] = ()
    """The resources of head, if there is nothing to compare them with."""
    is_new: bool = False
    """True if no resource existed before. Grants on new resources do not widen access to existing data."""
    unverified: str = ""
    """The reason why a preview could not be compared with the stack programs: the program of head fails."""
    preview: Preview = Preview("")
    """The preview by Pulumi, with warnings, violated policies and drift; empty if there is none."""


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
    not_run: NotRun | None = None
    """The reason why no stack program was run, if resources are therefore unknown."""
    revisions_with_bundled_program: tuple[str, ...] = ()
    """The titles of the revisions without a stack program of their own."""
    notes: tuple[str, ...] = ()
    """Sentences about previews that are not shown."""
    costs: CostChanges = NO_COSTS
    """Empty if a revision is broken."""
    fits: FitChanges = NO_FIT_CHANGES
    """Empty if the head is broken."""

    @property
    def path(self) -> str:
        """The path of the spec in the repository."""
        return self.after.snapshot.repository_path

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
        has_problem = any(
            environment.problem or environment.unverified for environment in self.environments
        )
        return not (self.is_broken or self.not_run or has_problem)

    @property
    def is_destructive(self) -> bool:
        """True if data is deleted or loses its protection."""
        has_destructive_statement = any(
            located.statement.destructive for located in self.impact.statements
        )
        return has_destructive_statement or any(change.destructive for change in self.resources)

    @property
    def has_drift(self) -> bool:
        """True if a resource differs in the cloud."""
        return any(environment.preview.drift for environment in self.environments)

    @property
    def is_change(self) -> bool:
        """True if anything changes."""
        has_effect = any(located not in self.fits.notices for located in self.impact.statements)
        return bool(
            self.difference or self.resources or has_effect or self.fits.is_change or self.is_broken
        )

    def with_statements(self, statements: tuple[LocatedStatement, ...]) -> "Review":
        """Return the review with further statements before its own."""
        return self._replace(
            impact=self.impact._replace(statements=(*statements, *self.impact.statements))
        )


class SpecFailure(NamedTuple):
    """A spec that cannot be reviewed at all, such as a symbolic link."""

    path: str
    """The spec's path in the repository."""
    reason: str
    help: str


class RepositoryReview(NamedTuple):
    """The reviews of several specs of a repository."""

    reviews: tuple[Review, ...]
    """In the order of their paths."""
    failures: tuple[SpecFailure, ...] = ()
    others: tuple[str, ...] = ()
    """The paths of the specs that the change cannot affect."""
    is_of_repository: bool = False
    """True if the specs were found in the repository, and not given."""
    statements: tuple[LocatedStatement, ...] = ()
    """Changes that concern no single spec."""
    unjudged: tuple[str, ...] = ()
    """The changed files that no rule reads."""

    @property
    def only(self) -> Review | None:
        """The only review, with the changes that concern no single spec; None if there are several specs."""
        if len(self.reviews) != 1 or self.failures:
            return None
        return self.reviews[0].with_statements(self.statements)

    @property
    def is_broken(self) -> bool:
        """True if a spec of head has errors or cannot be read."""
        return bool(self.failures) or any(review.after.is_broken for review in self.reviews)

    @property
    def is_known(self) -> bool:
        """True if all changes to resources are known."""
        return not self.failures and all(review.is_known for review in self.reviews)

    @property
    def is_destructive(self) -> bool:
        """True if data is deleted or loses its protection."""
        has_destructive_statement = any(
            located.statement.destructive for located in self.statements
        )
        return has_destructive_statement or any(review.is_destructive for review in self.reviews)

    @property
    def is_change(self) -> bool:
        """True if anything changes."""
        return bool(self.failures or self.statements) or any(
            review.is_change for review in self.reviews
        )
