"""Runs of the stack programs of both revisions, and what changes in them besides the resources that they declare."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tpucfg import __version__
from tpucfg.changes.facts import ABSENT, Risk
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Statement, format_environments
from tpucfg.fs import open_regular_file
from tpucfg.infra.resources import EnvironmentResources, ProgramFailure, ResourceFile
from tpucfg.infra.stack_files import other_spec, project_file, pulumi_project
from tpucfg.infra.stack_program import (
    PackagesMissingError,
    ProgramRequest,
    ProgramResults,
    find_program,
    is_bundled,
    run_programs,
)
from tpucfg.paths import grouped
from tpucfg.plan.identities import deletes_its_slice, identities, image_pulls
from tpucfg.text_format import listed

REQUIREMENTS: Final = "stacks/requirements.txt"
"""The file from which Pulumi installs tpucfg in a project that `tpucfg init` wrote."""
_MAX_REQUIREMENTS: Final = 2**16
_MAX_FILES: Final = 6
_MAX_DECLARATIONS: Final = 6
_DEFAULT_INPUTS: Final = ("project", "region", "zone")
"""Inputs of Google's provider that are only defaults; each resource of the bundled program sets its own."""
_CODE_OPTIONS: Final = ("pluginDownloadURL", "version", "envVarMappings")
"""Options by which a provider is other code."""


class ProgramProblem(NamedTuple):
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


Declared = EnvironmentResources | ProgramProblem
"""The resources that a stack program declares for an environment, or the reason why they are unknown."""
_MAY_NOT_RUN: Final = NotRun(
    "a revision of --head runs no stack program", "tpucfg review --run-program"
)


class ProgramRuns(NamedTuple):
    """The results of the stack programs of both revisions."""

    before: Mapping[str, Declared]
    """By environment of head that the revision has."""
    after: Mapping[str, Declared]
    not_run: NotRun | None = None
    """The reason why no program was run; None if they were, or if neither revision has one."""
    statements: tuple[LocatedStatement, ...] = ()
    """Changes of the programs themselves."""
    unchanged: tuple[str, ...] = ()
    """The environments of head if nothing was run, because nothing that decides their resources differs."""
    revisions_with_bundled_program: tuple[str, ...] = ()
    """The titles of the revisions without a program of their own, for which the bundled one was run."""


ResourceFiles = tuple[ResourceFile, ResourceFile]
"""The resources of base and head, as `tpucfg infra` wrote them elsewhere."""


# What changes besides resources


def program_statements(
    before: CompiledRevision, after: CompiledRevision
) -> Iterator[LocatedStatement]:
    """Yield one caution with the changed files that `pulumi up` reads, and one about a project with another name."""
    old, new = before.snapshot.program_files, after.snapshot.program_files
    # Two files without an identity may have different contents.
    changed = [
        path for path in sorted({*old, *new}) if old.get(path) != new.get(path) or not new[path]
    ]
    asked = _requirement(after) if changed == [REQUIREMENTS] else ""
    if asked and asked != _requirement(before):
        text = (
            "resources are those of the installed tpucfg {}, unless each revision's own was run; "
            "the change asks for {}"
        )
        yield LocatedStatement("", Statement(text, (__version__, asked), Risk.UNKNOWN))
    elif changed:
        text = "stack program changed in {}: this review knows only the resources that it declares under mocks"
        yield LocatedStatement("", Statement(text, (listed(changed, _MAX_FILES),), Risk.UNKNOWN))
    names = [
        project.name
        for revision in (before, after)
        if (project := pulumi_project(revision.snapshot.spec.parent))
    ]
    if len({*names}) > 1:
        text = (
            "Pulumi project renamed from {} to {}: the next pulumi up starts with an empty stack, and the resources of "
            "the old one remain and conflict with the new ones"
        )
        yield LocatedStatement(
            "", Statement(text, tuple(names), Risk.DESTRUCTIVE, "Pulumi project renamed")
        )


def _requirement(revision: CompiledRevision) -> str:
    """Return the line by which a revision's stack program installs tpucfg; empty if there is none."""
    file = revision.snapshot.spec.parent / REQUIREMENTS
    try:
        with open_regular_file(file, follow_links=False) as opened:
            text = opened.read(_MAX_REQUIREMENTS).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line.startswith("tpucfg")), "")


def declaration_statements(
    before: Mapping[str, Declared], after: Mapping[str, Declared]
) -> Iterator[LocatedStatement]:
    """Yield what the programs of head declare beside resources, and those of the base do not; both must be known."""
    new: list[tuple[str, str]] = []
    for name, declared in after.items():
        old = before.get(name)
        if isinstance(declared, EnvironmentResources) and not isinstance(old, ProgramProblem):
            known = dict(_declarations(old)) if old else {}
            new += [
                (text, name)
                for text, value in _declarations(declared)
                if known.get(text, ABSENT) != value
            ]
    for names, texts in grouped(
        (tuple(names), text) for text, names in grouped(new).items()
    ).items():
        text = "declares {} otherwise than the base: only an update shows the effect"
        statement = Statement(text, (listed(texts, _MAX_DECLARATIONS),), Risk.UNKNOWN)
        yield LocatedStatement(format_environments(names), statement)


def _declarations(declared: EnvironmentResources) -> Iterator[tuple[str, Any]]:
    """Yield what a program declares beside resources: features of the engine, and values of its providers."""
    yield from ((f"{feature.kind} {feature.name}", "") for feature in declared.unseen)
    for provider in declared.providers:
        options = {key: value for key, value in provider.options.items() if key in _CODE_OPTIONS}
        for key, value in {**options, **provider.inputs, **provider.secrets}.items():
            if key not in _DEFAULT_INPUTS:
                yield f"{key} of the provider {provider.name}", value


# Runs of the programs


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
    statements, bundled = changes_of_programs(before, after)
    if needs_stack and not any(
        project_file(revision.snapshot.spec.parent) for revision in (before, after)
    ):
        return ProgramRuns({}, {}, None, statements)
    names = [*after.environments]
    if runs_programs and not files and has_equal_inputs(before, after):
        return ProgramRuns({}, {}, None, statements, (*names,), bundled)
    revisions = [revision for revision in (before, after) if revision.project]
    requests = [_program_request(revision, names) for revision in revisions]
    has_stack = any(pulumi_project(revision.snapshot.spec.parent) for revision in revisions)
    try:
        if files:
            chosen = [
                file
                for file, revision in zip(files, (before, after), strict=True)
                if revision.project
            ]
            results = [*map(_read, chosen, revisions, requests)]
        elif runs_programs:
            results = [*run_programs(requests)]
        else:
            return ProgramRuns({}, {}, _MAY_NOT_RUN if has_stack else None, statements, (), bundled)
    except PackagesMissingError as error:
        not_run = NotRun(str(error), error.help) if has_stack else None
        return ProgramRuns({}, {}, not_run, statements, (), bundled)
    declared = (
        {name: _declared(revision, result) for name, result in by_name.items()}
        for revision, by_name in zip(revisions, results, strict=True)
    )
    old, new = (next(declared) if revision.project else {} for revision in (before, after))
    statements += (*declaration_statements(old, new),)
    return ProgramRuns(old, new, None, statements, (), bundled)


def has_equal_inputs(before: CompiledRevision, after: CompiledRevision) -> bool:
    """Return True if the stack programs, and all that they read for the environments of head, are equal.

    Only of the bundled program is it known what it reads of a spec; any other one may read all of it.
    """
    old, new = before.snapshot, after.snapshot
    if before.project is None or after.project is None or old.skipped_files or new.skipped_files:
        return False
    # A file whose content is not known may have changed.
    is_known = all(kind.startswith("file ") for kind in new.program_files.values())
    if old.program_files != new.program_files or not is_known:
        return False
    if not all(is_bundled(item.spec, item.program_files) for item in (old, new)):
        return False
    return all(
        name in before.environments
        and not other_spec(new.spec, name)
        and _program_inputs(before, name) == _program_inputs(after, name)
        for name in after.environments
    )


def _program_inputs(revision: CompiledRevision, name: str) -> tuple[Any, ...]:
    """Return what the bundled program, and the rules about its resources, read of a spec.

    `settings_of` in `tpucfg.stack` reads the same; a test compares the two.
    """
    project = revision.project
    assert project is not None  # noqa: S101 - the caller checks it
    environment = project.environments[name]
    jobs = [job for job in revision.jobs.values() if job.environment.name == name]
    slices = [
        (job.name, job.slice.hosts, deletes_its_slice(job.target, job.settings)) for job in jobs
    ]
    return (
        project.name,
        project.allow,
        environment,
        identities(project, environment),
        image_pulls(jobs),
        slices,
    )


def _program_request(revision: CompiledRevision, names: Sequence[str]) -> ProgramRequest:
    assert revision.project is not None  # noqa: S101 - revisions without a project are filtered out
    own_names = tuple(name for name in names if name in revision.project.environments)
    return ProgramRequest(revision.snapshot.spec, revision.project, own_names)


def _read(
    file: ResourceFile, revision: CompiledRevision, request: ProgramRequest
) -> ProgramResults:
    """Return what a file has about the spec of a revision, which is named by its path in the repository."""
    snapshot = revision.snapshot
    path = snapshot.renamed_from or snapshot.repository_path
    return file.declared(path, [request.project.environments[name] for name in request.names])


def _declared(
    revision: CompiledRevision, result: EnvironmentResources | ProgramFailure
) -> Declared:
    if isinstance(result, EnvironmentResources):
        return result
    snapshot = revision.snapshot
    reason, *output = snapshot.hide_export_path(result.reason).splitlines() or [""]
    if snapshot.skipped_files:
        # The program may have failed because one of them is missing.
        output.append(
            f"{snapshot.skipped_files:,} files of this revision were too large or too many to be exported"
        )
    return ProgramProblem(reason, tuple(output))


def changes_of_programs(
    before: CompiledRevision, after: CompiledRevision
) -> tuple[tuple[LocatedStatement, ...], tuple[str, ...]]:
    """Return the changes of the programs themselves, and the titles of the revisions that have none of their own."""
    revisions = (before, after)
    if not all(revision.snapshot.exists for revision in revisions):
        return (), ()
    snapshots = [revision.snapshot for revision in revisions]
    bundled = tuple(
        snapshot.title for snapshot in snapshots if not find_program(snapshot.spec).is_own
    )
    return tuple(program_statements(before, after)), bundled
