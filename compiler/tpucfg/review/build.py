"""Build a review from the stack programs of both revisions, the previews, and the rules about resources."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tpucfg.diff.change import Difference
from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.diff.config_diff import config_difference
from tpucfg.findings import Finding
from tpucfg.fs import open_regular_file
from tpucfg.infra.isolated_runner import ProgramFailure, ProgramRequest, run_isolated
from tpucfg.infra.resource_rules import resource_findings
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.infra.stack_files import other_spec
from tpucfg.infra.stack_program import PackagesMissingError, find_program
from tpucfg.review.changes.impact import compute_impact, impact_of_broken_spec
from tpucfg.review.changes.program_diff import program_changes, redacted_resources
from tpucfg.review.changes.stack_changes import StackSetup, stack_statements
from tpucfg.review.changes.statements import LocatedStatement
from tpucfg.review.preview.reader import MAX_PREVIEW_BYTES, Preview, read_preview
from tpucfg.review.review import EnvironmentReview, Problem, Review, Source

Declared = EnvironmentResources | Problem
"""The resources that a stack program declares for an environment, or the reason why they are unknown."""


class ProgramRuns(NamedTuple):
    """The results of the stack programs of both revisions."""

    before: Mapping[str, Declared]
    """By environment, for the environments of the revision that no successful preview covers."""
    after: Mapping[str, Declared]
    missing_packages: str = ""
    """The reason why no program could be run: a package that is not installed."""
    statements: tuple[LocatedStatement, ...] = ()
    """Changes of the programs themselves."""
    revisions_with_bundled_program: tuple[str, ...] = ()
    """The titles of the revisions without a program of their own, for which the bundled one was run."""


def read_previews(files: Mapping[str, Path]) -> dict[str, Preview]:
    """Read the preview of each environment.

    Raises:
        OSError: A file cannot be read; its `filename` is set.
    """
    previews = {}
    for name, path in files.items():
        try:
            with open_regular_file(path) as file:
                # One byte more than the limit, so that the reader can detect a file that exceeds it.
                content = file.read(MAX_PREVIEW_BYTES + 1)
        except OSError as error:
            error.filename = str(path)
            raise
        # Only the file's name: its folder differs between machines, but equal reviews must have equal text.
        previews[name] = read_preview(name, path.name, content)
    return previews


def build_review(before: CompiledRevision, after: CompiledRevision, previews: Mapping[str, Preview]) -> Review:
    """Return the review of two revisions, whose files have to exist while their stack programs run."""
    runs = ProgramRuns({}, {})
    if not after.is_broken:
        # A preview that failed shows only the first error, so the program is run for that environment too.
        previewed = [name for name, preview in previews.items() if preview.failure is None]
        runs = _with_program_changes(_run_programs(before, after, previewed), before, after)
    return join_review(before, after, runs, previews)


def join_review(
    before: CompiledRevision, after: CompiledRevision, runs: ProgramRuns, previews: Mapping[str, Preview]
) -> Review:
    """Return the review of two revisions whose stack programs have been run."""
    if before.is_broken or after.is_broken:
        difference, impact = Difference((), (), (), ()), impact_of_broken_spec(before, after)
        skipped: dict[str, str] = {}
    else:
        difference, impact = config_difference(before.configs, after.configs), compute_impact(before, after)
        known = {*_environment_names(before), *_environment_names(after)}
        reasons = ((name, _reason_to_skip(previews[name], known, after)) for name in sorted(previews))
        skipped = {name: reason for name, reason in reasons if reason}
    names = sorted({*runs.before, *runs.after, *previews, *_environment_names(after)} - {*skipped})
    reviews = (_review_environment(name, before, after, runs, previews.get(name)) for name in names)
    environments = tuple(review for review in reviews if review)
    is_unknown = any(environment.source == "none" for environment in environments)
    return Review(
        before,
        after,
        difference,
        impact._replace(statements=(*runs.statements, *impact.statements)),
        environments,
        runs.missing_packages if is_unknown else "",
        runs.revisions_with_bundled_program,
        tuple(skipped.values()),
    )


def _environment_names(revision: CompiledRevision) -> Collection[str]:
    return revision.project.environments if revision.project else ()


def _reason_to_skip(preview: Preview, known: Collection[str], after: CompiledRevision) -> str:
    """Return the reason why a preview is irrelevant for the change; empty if it is relevant."""
    name = preview.environment
    if name not in known:
        return f"The preview of {name} is not shown: neither revision has an environment of that name."
    if preview.failure and name not in _environment_names(after):
        return f"The preview of {name} failed, and this change removes that environment from the spec."
    return ""


# Stack programs


def _run_programs(before: CompiledRevision, after: CompiledRevision, previewed: Collection[str]) -> ProgramRuns:
    """Run the stack programs of both revisions for the environments of head that no preview covers."""
    names = [name for name in _environment_names(after) if name not in previewed]
    revisions = [revision for revision in (before, after) if revision.project]
    try:
        results = run_isolated([_program_request(revision, names) for revision in revisions])
    except PackagesMissingError as error:
        return ProgramRuns({}, {}, str(error))
    declared = {
        revision.snapshot: {name: _declared(revision, result) for name, result in by_name.items()}
        for revision, by_name in zip(revisions, results, strict=True)
    }
    return ProgramRuns(declared.get(before.snapshot, {}), declared.get(after.snapshot, {}))


def _program_request(revision: CompiledRevision, names: Sequence[str]) -> ProgramRequest:
    assert revision.project is not None  # noqa: S101 - revisions without a project are filtered out
    own_names = tuple(name for name in names if name in revision.project.environments)
    return ProgramRequest(revision.snapshot.spec, revision.project, own_names)


def _declared(revision: CompiledRevision, result: EnvironmentResources | ProgramFailure) -> Declared:
    if isinstance(result, EnvironmentResources):
        return result
    snapshot = revision.snapshot
    reason, *output = snapshot.hide_export_path(result.reason).splitlines() or [""]
    if snapshot.skipped_files:
        # The program may have failed because one of them is missing.
        output.append(f"{snapshot.skipped_files:,} files of this revision were too large or too many to be exported")
    return Problem(reason, tuple(output))


def _with_program_changes(runs: ProgramRuns, before: CompiledRevision, after: CompiledRevision) -> ProgramRuns:
    """Add the changes of the programs themselves, if both revisions have a spec, even one with errors."""
    if not (before.snapshot.exists and after.snapshot.exists):
        return runs
    names = _environment_names(after)
    programs = [(revision, _stack_programs(revision, names)) for revision in (before, after)]
    (_, old), (_, new) = programs
    bundled = tuple(revision.snapshot.title for revision, setup in programs if not setup.program.is_own)
    return runs._replace(statements=tuple(stack_statements(old, new)), revisions_with_bundled_program=bundled)


def _stack_programs(revision: CompiledRevision, names: Collection[str]) -> StackSetup:
    spec = revision.snapshot.spec
    return StackSetup(find_program(spec), {name: other for name in names if (other := other_spec(spec, name))})


# The review of one environment


def _review_environment(
    name: str, before: CompiledRevision, after: CompiledRevision, runs: ProgramRuns, preview: Preview | None
) -> EnvironmentReview | None:
    """Return the review of an environment; None if it is not in head and has no preview."""
    if preview:
        return _review_preview(preview, before, after, runs)
    if name in runs.after:
        return _review_programs(name, before, after, runs)
    return EnvironmentReview(name, "none") if name in _environment_names(after) else None


def _review_preview(
    preview: Preview, before: CompiledRevision, after: CompiledRevision, runs: ProgramRuns
) -> EnvironmentReview:
    """Return the review based on a preview, or if the preview failed, on the programs, with the preview's problem.

    Pulumi stops at the first error, so a failed preview is incomplete.
    """
    name, failure = preview.environment, preview.failure
    review = EnvironmentReview(
        name,
        "preview",
        preview.changes,
        Problem(f"{failure.reason} ({failure.location})", failure.lines) if failure else None,
        preview.violations,
        preview.warnings,
    )
    if failure is None or name not in runs.after:
        return review
    program_review = _review_programs(name, before, after, runs)
    if program_review.problem:
        return review
    if preview.has_no_stack:
        return program_review._replace(has_no_stack=True)
    return program_review._replace(problem=review.problem, violations=review.violations, warnings=review.warnings)


def _review_programs(
    name: str, before: CompiledRevision, after: CompiledRevision, runs: ProgramRuns
) -> EnvironmentReview:
    """Return the review based on both stack programs, or only on that of head if the spec of base has errors."""
    source: Source = "head" if before.is_broken else "program"
    old, new = runs.before.get(name), runs.after[name]
    for revision, declared in ((before, old), (after, new)):
        if isinstance(declared, Problem):
            problem = declared._replace(reason=f"{declared.reason} ({revision.snapshot.title})")
            return EnvironmentReview(name, source, problem=problem)
    base = old if isinstance(old, EnvironmentResources) else None
    head = new if isinstance(new, EnvironmentResources) else None
    findings = _new_findings(_findings_about(base, before), _findings_about(head, after))
    if source == "head":
        return EnvironmentReview(name, source, findings=findings, declared=redacted_resources(head) if head else ())
    is_new = not (base and base.resources)
    return EnvironmentReview(name, source, program_changes(base, head), findings=findings, is_new=is_new)


def _new_findings(before: Sequence[Finding], after: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the warnings and errors of head that base does not have; a location that moved makes no new finding."""
    known = {(finding.id, finding.message) for finding in before}
    return tuple(finding for finding in after if finding.level != "note" and (finding.id, finding.message) not in known)


def _findings_about(declared: EnvironmentResources | None, revision: CompiledRevision) -> tuple[Finding, ...]:
    return resource_findings(declared, revision.project) if declared and revision.project else ()
