"""Find the specs that a change affects, and build their reviews from programs, previews and rules about resources."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tpucfg.changes.config_diff import Difference, config_difference
from tpucfg.changes.costs import NO_COSTS, compute_costs
from tpucfg.changes.fits import NO_FIT_CHANGES, FitChanges, RunFits, compute_fits
from tpucfg.changes.impact import compute_impact, impact_of_broken_spec
from tpucfg.changes.previews import Preview
from tpucfg.changes.programs import (
    ProgramProblem,
    ProgramRuns,
    ResourceFiles,
    changes_of_programs,
    declared_resources,
)
from tpucfg.changes.records import read_revision_records
from tpucfg.changes.repository_changes import (
    build_paths,
    build_statements,
    ci_paths,
    ci_statements,
    requirements_paths,
)
from tpucfg.changes.resource_diff import complete_preview, program_changes, redacted_resources
from tpucfg.changes.revisions import CompiledRevision, open_compiled_revisions
from tpucfg.changes.statements import LocatedStatement
from tpucfg.findings import Finding
from tpucfg.git.changed_files import (
    TreeChange,
    changed_below,
    find_affected_specs,
    included_paths,
    other_paths,
    read_tree_change,
)
from tpucfg.git.repository import RevisionError
from tpucfg.git.snapshots import CompareRequest, resolve_commits
from tpucfg.infra.resource_rules import resource_findings
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.infra.stack_files import PROJECT_FILES
from tpucfg.plan import Selection
from tpucfg.redaction import redact
from tpucfg.review.review import EnvironmentReview, Review, Source
from tpucfg.spec import SPEC_NAME


class ReviewScope(NamedTuple):
    """The comparisons of a review."""

    requests: Mapping[PurePosixPath, CompareRequest]
    """By the spec's path in the repository."""
    others: tuple[PurePosixPath, ...]
    """The specs that are not affected."""
    tree: TreeChange
    """The files of both revisions."""
    is_of_repository: bool
    """True if the specs were found in the repository, and not given."""

    @property
    def has_stack_elsewhere(self) -> bool:
        """True if either revision has a Pulumi project in a folder without a spec."""
        files = self.tree.before | self.tree.after
        with_spec = {
            path.parent for path in files if path.name == SPEC_NAME or path in self.requests
        }
        return any(path.name in PROJECT_FILES and path.parent not in with_spec for path in files)


def find_review_scope(request: CompareRequest, specs: Sequence[Path] = ()) -> ReviewScope:
    """Return the scope of a review.

    Args:
        request: the revisions to compare. Its spec is the one to review in a repository without a spec, so that the
            error names it.
        specs: the specs to review; if empty, those that the change affects.

    Raises:
        RevisionError: A revision does not exist, or two of the specs are the same.
    """
    given = _requests_by_path(request, specs)
    repository = request.open_repository(*specs[:1])
    commits = resolve_commits(repository, request)
    tree = read_tree_change(
        repository, commits.base, commits.head if request.head is not None else None
    )
    if specs:
        return ReviewScope(given, (), tree, is_of_repository=False)
    scope = find_affected_specs(tree)
    root = repository.folder
    current = Path.cwd().resolve()
    requests = {
        path: request._replace(spec=Path(os.path.relpath(root / path, current)))
        for path in scope.affected
    }
    if not requests and not scope.others:
        requests = dict(_requests_by_path(request, [request.spec]))
    return ReviewScope(requests, scope.others, tree, is_of_repository=True)


def without_renamed_specs(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """Return the reviews without those of specs that another spec was renamed from: they seem to be removed."""
    all_reviews = tuple(reviews)
    renamed_from = {review.before.snapshot.renamed_from for review in all_reviews}
    return tuple(
        review
        for review in all_reviews
        if review.after.snapshot.exists or review.path not in renamed_from
    )


def _requests_by_path(
    request: CompareRequest, specs: Sequence[Path]
) -> Mapping[PurePosixPath, CompareRequest]:
    requests: dict[PurePosixPath, CompareRequest] = {}
    for spec in specs:
        path = request.open_repository(spec).prefix / spec.name
        if path in requests:
            raise RevisionError(f"--spec {spec} is given twice", "give each spec once")
        requests[path] = request._replace(spec=spec)
    return requests


# The review of one spec, and of the repository


class GivenFiles(NamedTuple):
    """Results of other jobs of the run about one spec: previews, compiled rungs, declared resources."""

    previews: Mapping[str, Preview] = {}
    """By environment."""
    run_fits: RunFits | None = None
    resources: ResourceFiles | None = None
    """The declarations of the stack programs of base and head, of all specs; None to run them."""
    runs_programs: bool = True
    """False to run nothing: without `resources`, the resources are not known."""
    has_stack_elsewhere: bool = False
    """True if the repository has a Pulumi project in a folder without a spec: its stacks can read any spec."""


def review_spec(request: CompareRequest, given: GivenFiles) -> Review:
    """Open and compile both revisions of a spec, and return their review.

    Raises:
        RevisionError: A revision cannot be read.
    """
    with open_compiled_revisions(request, Selection()) as (before, after):
        return build_review(before, after, given)


def repository_changes(scope: ReviewScope) -> tuple[tuple[LocatedStatement, ...], tuple[str, ...]]:
    """Return the changes that concern no single spec, of the workflow and of images, and the files without a rule.

    Raises:
        RevisionError: A revision cannot be read.
    """
    tree = scope.tree
    if tree.base is None:
        return (), ()
    of_ci = changed_below(tree, ci_paths(tree.before | tree.after))
    requirements = requirements_paths(tree.before | tree.after) if tree.changed else ()
    named = {path for side, _ in tree.trees for path in included_paths(side, requirements)}
    builds = sorted({*build_paths(tree.changed), *named.intersection(tree.changed)})
    unjudged = other_paths(tree, (*scope.requests, *scope.others), (*of_ci, *builds))
    statements = (*ci_statements(of_ci), *build_statements(builds))
    return statements, tuple(redact(str(path)) for path in sorted(unjudged))


def build_review(before: CompiledRevision, after: CompiledRevision, given: GivenFiles) -> Review:
    """Return the review of two revisions, whose files have to exist while their stack programs run."""
    # Before any program runs, which could change what the results are compared with.
    fits = NO_FIT_CHANGES if after.is_broken else compute_fits(before, after, given.run_fits)
    if after.is_broken:
        runs = ProgramRuns({}, {}, None, changes_of_programs(before, after)[0])
    else:
        # A preview proves that there is a stack, wherever its project is.
        needs_stack = not (given.previews or given.has_stack_elsewhere)
        runs = declared_resources(
            before,
            after,
            given.resources,
            runs_programs=given.runs_programs,
            needs_stack=needs_stack,
        )
    return join_review(before, after, runs, given.previews, fits)


def join_review(
    before: CompiledRevision,
    after: CompiledRevision,
    runs: ProgramRuns,
    previews: Mapping[str, Preview],
    fits: FitChanges = NO_FIT_CHANGES,
) -> Review:
    """Return the review of two revisions whose stack programs have been run."""
    if before.is_broken or after.is_broken:
        difference, impact, costs = (
            Difference((), (), (), ()),
            impact_of_broken_spec(before, after),
            NO_COSTS,
        )
        skipped: dict[str, str] = {}
    else:
        difference = config_difference(before.configs, after.configs)
        records = read_revision_records(before), read_revision_records(after)
        impact = compute_impact(before, after, difference, records)
        costs = compute_costs(before, after, records)
        known = {*before.environments, *after.environments}
        reasons = (
            (name, _reason_to_skip(previews[name], known, after)) for name in sorted(previews)
        )
        skipped = {name: reason for name, reason in reasons if reason}
    names = sorted({*runs.before, *runs.after, *previews, *after.environments} - {*skipped})
    reviews = (_review_environment(name, before, after, runs, previews.get(name)) for name in names)
    environments = tuple(review for review in reviews if review)
    statements = (
        *runs.statements,
        *impact.statements,
        *costs.statements,
        *fits.statements,
        *fits.notices,
    )
    is_unknown = any(environment.source == "none" for environment in environments)
    return Review(
        before,
        after,
        difference,
        impact._replace(statements=statements),
        environments,
        runs.not_run if is_unknown else None,
        runs.revisions_with_bundled_program,
        (*skipped.values(), *_uncompared_previews(environments, runs)),
        costs,
        fits,
    )


def _reason_to_skip(preview: Preview, known: Collection[str], after: CompiledRevision) -> str:
    """Return the reason why a preview is irrelevant for the change; empty if it is relevant."""
    name = preview.environment
    if name not in known:
        return (
            f"The preview of {name} is not shown: neither revision has an environment of that name."
        )
    if preview.failure and name not in after.environments:
        return (
            f"The preview of {name} failed, and this change removes that environment from the spec."
        )
    return ""


def _uncompared_previews(
    environments: Sequence[EnvironmentReview], runs: ProgramRuns
) -> Iterator[str]:
    """Yield the reasons why previews are not compared with the stack programs, if the change is not to blame."""
    names = [
        environment.environment for environment in environments if environment.source == "preview"
    ]
    if names and runs.not_run:
        yield f"The previews are not compared with the stack programs: {runs.not_run.reason}."
    for name in names:
        declared = runs.before.get(name)
        if isinstance(declared, ProgramProblem):
            yield f"The preview of {name} is not compared with the stack programs: {redact(declared.reason)} (base)."


# The review of one environment


def _review_environment(
    name: str,
    before: CompiledRevision,
    after: CompiledRevision,
    runs: ProgramRuns,
    preview: Preview | None,
) -> EnvironmentReview | None:
    """Return the review of an environment; None if it is not in head and has no preview."""
    declared = _review_programs(name, before, after, runs)
    if preview is None:
        return declared or (EnvironmentReview(name, "none") if name in after.environments else None)
    review = _review_preview(preview, before, after)
    if declared is None or (preview.failure and declared.problem):
        return review
    if preview.failure is None:
        return _compare_with_programs(review, declared, runs)
    # Pulumi stops at the first error, so the changes are those of the programs.
    return declared._replace(
        problem=None if preview.has_no_stack else review.problem, preview=preview
    )


def _review_preview(
    preview: Preview, before: CompiledRevision, after: CompiledRevision
) -> EnvironmentReview:
    name, failure = preview.environment, preview.failure
    return EnvironmentReview(
        name,
        "preview",
        preview.changes,
        ProgramProblem(f"{failure.reason} ({failure.location})", failure.lines)
        if failure
        else None,
        _new_findings(
            _preview_findings(name, preview.before, before),
            _preview_findings(name, preview.after, after),
        ),
        is_new=preview.is_new,
        preview=preview,
    )


def _compare_with_programs(
    review: EnvironmentReview, declared: EnvironmentReview, runs: ProgramRuns
) -> EnvironmentReview:
    """Add to the review of a preview what only the programs declare, or that they could not be run."""
    if declared.problem:
        # A program that already failed in base cannot run without an engine, which is no news about this change.
        is_new = not isinstance(runs.before.get(review.environment), ProgramProblem)
        return review._replace(unverified=declared.problem.reason) if is_new else review
    by_text = {
        (finding.id, finding.message): finding for finding in (*review.findings, *declared.findings)
    }
    return review._replace(
        changes=complete_preview(review.changes, declared.changes), findings=tuple(by_text.values())
    )


def _review_programs(
    name: str, before: CompiledRevision, after: CompiledRevision, runs: ProgramRuns
) -> EnvironmentReview | None:
    """Return the review based on both stack programs, or only on that of head if the spec of base has errors.

    None if no program was run for the environment although its resources may have changed.
    """
    if name not in runs.after:
        return EnvironmentReview(name, "unchanged") if name in runs.unchanged else None
    source: Source = "head" if before.is_broken else "program"
    old, new = runs.before.get(name), runs.after[name]
    for revision, declared in ((before, old), (after, new)):
        if isinstance(declared, ProgramProblem):
            problem = declared._replace(reason=f"{declared.reason} ({revision.snapshot.title})")
            return EnvironmentReview(name, source, problem=problem)
    base = old if isinstance(old, EnvironmentResources) else None
    head = new if isinstance(new, EnvironmentResources) else None
    findings = _new_findings(_findings_about(base, before), _findings_about(head, after))
    if source == "head":
        return EnvironmentReview(
            name, source, findings=findings, declared=redacted_resources(head) if head else ()
        )
    is_new = not (base and base.resources)
    return EnvironmentReview(
        name, source, program_changes(base, head), findings=findings, is_new=is_new
    )


def _new_findings(before: Sequence[Finding], after: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the warnings and errors of head that base does not have; a location that moved makes no new finding."""
    known = {(finding.id, finding.message) for finding in before}
    return tuple(
        finding
        for finding in after
        if finding.level != "note" and (finding.id, finding.message) not in known
    )


def _preview_findings(
    name: str, resources: tuple[Resource, ...], revision: CompiledRevision
) -> Sequence[Finding]:
    """Return the findings about the resources of a preview, if the revision's spec has the environment."""
    environment = revision.environments.get(name)
    return (
        _findings_about(EnvironmentResources(environment, resources, {}), revision)
        if environment
        else ()
    )


def _findings_about(
    declared: EnvironmentResources | None, revision: CompiledRevision
) -> tuple[Finding, ...]:
    return resource_findings(declared, revision.project) if declared and revision.project else ()
