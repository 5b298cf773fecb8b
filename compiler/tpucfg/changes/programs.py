"""Runs of the stack programs of both revisions, and what changes in the programs themselves."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tpucfg.changes.program_changes import StackSetup, declaration_statements, setup_statements
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement
from tpucfg.infra.resources import EnvironmentResources, ProgramFailure, ResourceFile
from tpucfg.infra.stack_files import other_spec, project_file, pulumi_project, read_pulumi_files
from tpucfg.infra.stack_program import PackagesMissingError, ProgramRequest, ProgramResults, find_program, run_programs


class Problem(NamedTuple):
    """The reason why the changes to an environment's resources are unknown or incomplete."""

    reason: str
    """One sentence."""
    output: tuple[str, ...] = ()
    """Lines that the program or Pulumi printed."""


class NotRun(NamedTuple):
    """The reason why no stack program was run."""

    reason: str
    """A clause."""
    command: str
    """The command that changes this."""


Declared = EnvironmentResources | Problem
"""The resources that a stack program declares for an environment, or the reason why they are unknown."""
_MAY_NOT_RUN: Final = NotRun("a revision of --head runs no stack program", "tpucfg review --run-program")


class ProgramRuns(NamedTuple):
    """The results of the stack programs of both revisions."""

    before: Mapping[str, Declared]
    """By environment of head that the revision has."""
    after: Mapping[str, Declared]
    not_run: NotRun | None = None
    """The reason why no program was run; None if they were, or if neither revision has one."""
    statements: tuple[LocatedStatement, ...] = ()
    """Changes of the programs themselves."""
    revisions_with_bundled_program: tuple[str, ...] = ()
    """The titles of the revisions without a program of their own, for which the bundled one was run."""


ResourceFiles = tuple[ResourceFile, ResourceFile]
"""The resources of base and head, as `tpucfg infra` wrote them elsewhere."""


def declared_resources(
    before: CompiledRevision,
    after: CompiledRevision,
    files: ResourceFiles | None,
    *,
    runs_programs: bool,
    needs_stack: bool,
) -> ProgramRuns:
    """Return what the stack programs of both revisions declare for the environments of head.

    They matter for environments with a preview too: one that failed shows only the first error, and one that is of
    something else is found by comparing it with the programs.

    Args:
        before: the base.
        after: the head.
        files: the resources; None to run the programs here.
        runs_programs: False to run nothing, so that the resources are not known without files.
        needs_stack: True if only a Pulumi project beside the spec has resources to change. Without one, no program
            is run, and none is missing.
    """
    # Before any program runs, which could change these files.
    statements, bundled = _program_changes(before, after)
    if needs_stack and not any(project_file(revision.snapshot.spec.parent) for revision in (before, after)):
        return ProgramRuns({}, {}, None, statements)
    names = [*after.environments]
    revisions = [revision for revision in (before, after) if revision.project]
    requests = [_program_request(revision, names) for revision in revisions]
    has_stack = any(pulumi_project(revision.snapshot.spec.parent) for revision in revisions)
    try:
        if files:
            chosen = [file for file, revision in zip(files, (before, after), strict=True) if revision.project]
            results = [*map(_read, chosen, revisions, requests)]
        elif runs_programs:
            results = [*run_programs(requests)]
        else:
            return ProgramRuns({}, {}, _MAY_NOT_RUN if has_stack else None, statements, bundled)
    except PackagesMissingError as error:
        not_run = NotRun(str(error), error.help) if has_stack else None
        return ProgramRuns({}, {}, not_run, statements, bundled)
    declared = {
        revision.snapshot: {name: _declared(revision, result) for name, result in by_name.items()}
        for revision, by_name in zip(revisions, results, strict=True)
    }
    old, new = declared.get(before.snapshot, {}), declared.get(after.snapshot, {})
    return ProgramRuns(old, new, None, (*statements, *_declaration_statements(old, new)), bundled)


def _program_request(revision: CompiledRevision, names: Sequence[str]) -> ProgramRequest:
    assert revision.project is not None  # noqa: S101 - revisions without a project are filtered out
    own_names = tuple(name for name in names if name in revision.project.environments)
    return ProgramRequest(revision.snapshot.spec, revision.project, own_names)


def _read(file: ResourceFile, revision: CompiledRevision, request: ProgramRequest) -> ProgramResults:
    """Return what a file has about the spec of a revision, which is named by its path in the repository."""
    snapshot = revision.snapshot
    path = snapshot.renamed_from or snapshot.repository_path
    return file.declared(path, [request.project.environments[name] for name in request.names])


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
    """Yield what the programs declare beside resources, where both are known."""
    old, new = (
        {name: item for name, item in declared.items() if isinstance(item, EnvironmentResources)}
        for declared in (before, after)
    )
    unknown = {name for name, item in before.items() if isinstance(item, Problem)}
    yield from declaration_statements(old, {name: item for name, item in new.items() if name not in unknown})


def _program_changes(
    before: CompiledRevision, after: CompiledRevision
) -> tuple[tuple[LocatedStatement, ...], tuple[str, ...]]:
    """Return the changes of the programs themselves, and the titles of the revisions that have none of their own."""
    if not (before.snapshot.exists and after.snapshot.exists):
        return (), ()
    old, new = (_stack_setup(revision, after.environments) for revision in (before, after))
    programs = ((before, old), (after, new))
    bundled = tuple(revision.snapshot.title for revision, setup in programs if not setup.program.is_own)
    return tuple(setup_statements(old, new)), bundled


def _stack_setup(revision: CompiledRevision, names: Collection[str]) -> StackSetup:
    spec = revision.snapshot.spec
    others = {name: other for name in names if (other := other_spec(spec, name))}
    files = revision.snapshot.program_files
    return StackSetup(find_program(spec), others, read_pulumi_files(spec.parent, names), files)
