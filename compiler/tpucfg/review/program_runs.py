"""Runs of the stack programs of both revisions, and what changes in the programs themselves."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, group_by_environment
from tpucfg.infra.isolation.isolated_runner import ProgramRequest, run_isolated
from tpucfg.infra.isolation.worker_results import ProgramFailure
from tpucfg.infra.program_source import read_uses
from tpucfg.infra.pulumi_files import read_pulumi_files
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.infra.stack_config import other_spec
from tpucfg.infra.stack_program import PackagesMissingError, find_program
from tpucfg.review.changes.program.provider_changes import provider_statements
from tpucfg.review.changes.program.source_changes import source_statements
from tpucfg.review.changes.program.stack_changes import StackSetup, stack_statements
from tpucfg.review.changes.program.unseen_changes import unseen_statements
from tpucfg.review.review import Problem

Declared = EnvironmentResources | Problem
"""The resources that a stack program declares for an environment, or the reason why they are unknown."""


class ProgramRuns(NamedTuple):
    """The results of the stack programs of both revisions."""

    before: Mapping[str, Declared]
    """By environment of head that the revision has."""
    after: Mapping[str, Declared]
    missing_packages: str = ""
    """The reason why no program could be run: a package that is not installed."""
    statements: tuple[LocatedStatement, ...] = ()
    """Changes of the programs themselves."""
    revisions_with_bundled_program: tuple[str, ...] = ()
    """The titles of the revisions without a program of their own, for which the bundled one was run."""


def run_programs(before: CompiledRevision, after: CompiledRevision) -> ProgramRuns:
    """Run the stack programs of both revisions for the environments of head.

    They run for those with a preview too: one that failed shows only the first error, and one that is of something else
    is found by comparing it with the programs.
    """
    # Before any program runs: where the system does not prevent it, a program could change these files.
    statements, bundled = _program_changes(before, after)
    names = [*after.environments]
    revisions = [revision for revision in (before, after) if revision.project]
    try:
        results = run_isolated([_program_request(revision, names) for revision in revisions])
    except PackagesMissingError as error:
        return ProgramRuns({}, {}, str(error), statements, bundled)
    declared = {
        revision.snapshot: {name: _declared(revision, result) for name, result in by_name.items()}
        for revision, by_name in zip(revisions, results, strict=True)
    }
    old, new = declared.get(before.snapshot, {}), declared.get(after.snapshot, {})
    return ProgramRuns(old, new, "", (*statements, *_declaration_statements(old, new)), bundled)


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


def _declaration_statements(
    before: Mapping[str, Declared], after: Mapping[str, Declared]
) -> Iterator[LocatedStatement]:
    """Yield what the programs declare beside resources; equal changes of several environments are grouped."""
    owned = []
    for name, new in after.items():
        old = before.get(name)
        if isinstance(new, EnvironmentResources) and not isinstance(old, Problem):
            statements = (*provider_statements(old, new), *unseen_statements(old, new))
            owned += [(name, statement) for statement in statements]
    yield from group_by_environment(owned)


def _program_changes(
    before: CompiledRevision, after: CompiledRevision
) -> tuple[tuple[LocatedStatement, ...], tuple[str, ...]]:
    """Return the changes of the programs themselves, and the titles of the revisions that have none of their own."""
    if not after.snapshot.exists:
        return (), ()
    names = after.environments
    new = _stack_setup(after, names)
    if not before.snapshot.exists:
        return tuple(source_statements((), read_uses(new.program))), ()
    old = _stack_setup(before, names)
    programs = ((before, old), (after, new))
    bundled = tuple(revision.snapshot.title for revision, setup in programs if not setup.program.is_own)
    statements = (*stack_statements(old, new), *source_statements(read_uses(old.program), read_uses(new.program)))
    return statements, bundled


def _stack_setup(revision: CompiledRevision, names: Collection[str]) -> StackSetup:
    spec = revision.snapshot.spec
    others = {name: other for name in names if (other := other_spec(spec, name))}
    files = revision.snapshot.program_files
    return StackSetup(find_program(spec), others, read_pulumi_files(spec.parent, names), files)
