"""Runs of the stack programs of both revisions, and changes of what `pulumi up` reads and runs besides resources.

No resource shows the effect of program, settings, config, providers and features, so each is said with its consequence.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from tpucfg.changes.facts import ABSENT, Fact, FactChange, Scope, by_name, compare
from tpucfg.changes.impact import effect_of, effect_statements, environments_of
from tpucfg.changes.meanings import Comparison, Meaning, always, changed, judge, loss, removed
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Risk, Statement
from tpucfg.git.changed_files import FileVersion
from tpucfg.infra.resources import EnvironmentResources, ProgramFailure, ResourceFile
from tpucfg.infra.stack_files import (
    KEYS,
    PLAIN_KEY,
    PROJECT_FILES,
    ConfigValue,
    PulumiFiles,
    StackFile,
    other_spec,
    project_file,
    pulumi_project,
    read_pulumi_files,
)
from tpucfg.infra.stack_program import (
    PackagesMissingError,
    ProgramRequest,
    ProgramResults,
    StackProgram,
    find_program,
    run_programs,
)
from tpucfg.text_format import listed

# The meaning of each change.

_SETTINGS: Final = "settings of Pulumi changed"
_CONFIG: Final = "config of providers or of Pulumi changed"
_NO_RULE: Final = "no rule knows its effect"
_SECRETS_KEYS: Final = ("secretsprovider", "encryptionsalt", "encryptedkey")
"""Keys of a stack file that Pulumi itself writes when a stack gets its first secrets provider."""


def _first_secrets(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a stack that gets its first secrets provider."""
    return not any((change.scope, ("setting of the stack", key)) in comparison.before for key in _SECRETS_KEYS)


def _other_spec(change: FactChange, _: Comparison) -> tuple[str, ...]:
    """Return the specs that a stack reads; only another one than the one under review is a fact."""
    own = "the spec under review"
    return tuple(own if spec is ABSENT else str(spec) for spec in (change.after, change.before))


def _unread(change: FactChange, _: Comparison) -> bool | tuple[str, ...]:
    """Return the file and its problem; its name has a digest of its content beside it."""
    return False if change.after is ABSENT else (str(change.name[1]), str(change.after))


def _rows() -> Iterator[Meaning]:
    """Yield the rows by the kind and the name of a fact.

    https://www.pulumi.com/docs/iac/concepts/projects/project-file/,
    https://www.pulumi.com/docs/iac/concepts/config/#pulumi-configuration-options and, where these pages are silent,
    Project in https://github.com/pulumi/pulumi/blob/master/sdk/go/common/workspace/project.go.
    """
    for key in _SECRETS_KEYS:
        yield Meaning(f"setting of the stack.{key}", Risk.NONE, "it encrypts the stack's secrets", _first_secrets)
    yield Meaning("own config.**", consequence="the program reads it", subject="config")
    for pattern, consequence, headline in (
        *((f"setting of Pulumi.{key}", _OTHER_CODE, _SETTINGS) for key in _CODE_SETTINGS),
        *((f"setting of the stack.{key}", _OTHER_KEY, _SETTINGS) for key in ("environment", *_SECRETS_KEYS)),
        ("config.pulumi:autonaming", "Pulumi gives resources other names, which replaces them", _CONFIG),
        ("config.pulumi:disable-default-providers", _PROVIDER, _CONFIG),
        ("config.pulumi:*", "", ""),
        ("config.**", _PROVIDER, _CONFIG),
        *((f"{kind}.**", _NOT_SHOWN, "") for kind in ("transform", "component", "dynamic", "parameters")),
    ):
        if consequence:
            yield Meaning(pattern, Risk.DESTRUCTIVE, consequence, headline=headline)
        else:
            yield Meaning(pattern, Risk.UNKNOWN, _NO_RULE)
    for kind in ("setting of Pulumi", "setting of the stack", "call", "read"):
        yield Meaning(f"{kind}.**", Risk.UNKNOWN, _NO_RULE)
    for kind, headline, when, text in (
        ("encrypted config", "encrypted config changed", always, _ENCRYPTED),
        ("config of a part", _SETTINGS, always, _PART),
        ("unreadable file", _SETTINGS, _unread, "{} cannot be read by this review: {}"),
        ("project file", _SETTINGS, changed, _OTHER_FILE),
        ("stack program", "stack program removed", removed, _NO_PROGRAM),
        ("Pulumi project", "Pulumi project renamed", changed, _RENAMED),
        ("spec of the stack", "stack with another spec", _other_spec, _OTHER_SPEC),
        ("provider", "", always, "{label} of a provider is {after}, previously {before}: updates act through it"),
        ("secret of a provider", "", always, "{label} of a provider is another secret: updates act through it"),
    ):
        yield loss(f"{kind}.**", text, headline, when)
        yield Meaning(f"{kind}.**")


_CODE_SETTINGS: Final = (
    "main",
    "stackConfigDir",
    "backend.**",
    "runtime.name",
    "runtime.options.virtualenv",
    "runtime.options.binary",
    "plugins.**",
    "packages.**",
)
_OTHER_CODE: Final = "Pulumi runs other code, or reads other stack files or another state"
_OTHER_KEY: Final = "another key or service decides the stack's secrets and config"
_PROVIDER: Final = "it decides through which account, project or endpoint an update acts, which this review cannot show"
_NOT_SHOWN: Final = "the engine runs it in an update, and its effect is not shown here"
_ENCRYPTED: Final = "encrypted value of config {label} changed: this review cannot read it"
_PART: Final = "config {label} is {after} instead of {before}: it applies to a part of a value, which is not shown here"
_OTHER_FILE: Final = (
    "Pulumi reads {after} as its project file instead of {before}, and the stack files that end like it"
)
_NO_PROGRAM: Final = (
    "stack program {before} removed: this review used the program bundled with tpucfg instead, and the result of "
    "pulumi up is unknown"
)
_RENAMED: Final = (
    "Pulumi project renamed from {before} to {after}: the next pulumi up starts with an empty stack, and the "
    "resources of the old one remain and conflict with the new ones"
)
_OTHER_SPEC: Final = "stack reads {} instead of {}: this review does not include the effect on its resources"
MEANINGS: Final = (*_rows(),)
"""By the kind and the name of a fact."""


# What changed, as statements.


_MAX_FILES: Final = 6
_PROVIDER_PREFIX: Final = "pulumi:providers:"
_DEFAULT_INPUTS: Final = ("project", "region", "zone")
"""Inputs of Google's provider that are only defaults; each resource of the bundled program sets its own."""
_FEATURES: Final = ("transform", "component", "dynamic", "parameters", "call", "read")
_CODE_OPTIONS: Final = ("pluginDownloadURL", "version", "envVarMappings")
_WITHOUT_EFFECT: Final = ("description", "author", "website", "license", "template")
_COMPILED: Final = frozenset({".pyc", ".pyo", ".pyd", ".so", ".dll", ".dylib"})
_OF_A_FIRST_FILE: Final = ("runtime.options.binary", "plugins", "packages")
"""Settings that matter in a first project file too; all others belong to every project."""


class StackSetup(NamedTuple):
    """The stack program of one revision, and the specs that its stacks read."""

    program: StackProgram
    other_specs: Mapping[str, str]
    """By environment, the spec that its stack reads, if it is another one than the spec under review."""
    pulumi: PulumiFiles = PulumiFiles()
    """The settings in the project file and the stack files."""
    files: tuple[FileVersion, ...] = ()
    """The files that `pulumi up` may read."""


# Facts of what Pulumi reads


def setup_statements(before: StackSetup, after: StackSetup) -> Iterator[LocatedStatement]:
    """Yield the changes of program, project, specs, settings and files, whose effects the resources do not show."""
    names = {before.pulumi.namespace, after.pulumi.namespace}
    is_first = not before.pulumi.file
    old, new = ([*_setup_facts(setup, names, is_first=is_first)] for setup in (before, after))
    yield from _judged_statements(old, new)
    yield from file_statements(before, after)


def _judged_statements(before: Iterable[Fact], after: Iterable[Fact]) -> Iterator[LocatedStatement]:
    """Yield a sentence about each fact that differs; environments with the same one share it."""
    comparison = Comparison(by_name(before), by_name(after))
    changes = compare(comparison.before, comparison.after)
    judgements = [judge(change, MEANINGS, comparison) for change in changes]
    shown = [item for item in judgements if item.meaning.risk or item.meaning.consequence]
    yield from effect_statements(((item.change.scope, effect_of(item)) for item in shown), environments_of)


def _setup_facts(setup: StackSetup, names: Collection[str], *, is_first: bool) -> Iterator[Fact]:
    """Yield the facts of one revision.

    Args:
        setup: what Pulumi reads.
        names: the names of the project in both revisions.
        is_first: True if the base has no project file.
    """
    pulumi, project = setup.pulumi, Scope()
    if setup.program.is_own:
        yield Fact(project, ("stack program", "path"), setup.program.shown)
    # Without a project, the name is a default.
    if setup.program.has_project and pulumi.file:
        yield Fact(project, ("project file", "name"), pulumi.file)
    if setup.program.has_project:
        yield Fact(project, ("Pulumi project", "name"), setup.program.namespace)
    yield from _unreadable(project, pulumi.file, pulumi.problem, pulumi.text)
    for key, value in pulumi.settings.items():
        is_usual = is_first and not key.startswith(_OF_A_FIRST_FILE)
        if not is_usual and key.partition(".")[0] not in _WITHOUT_EFFECT:
            yield Fact(project, ("setting of Pulumi", *key.split(".")), value)
    for name, stack in pulumi.stacks.items():
        yield from _stack_facts(Scope(name), stack, setup.other_specs.get(name, ""), names)


def _stack_facts(scope: Scope, stack: StackFile, other_spec: str, names: Collection[str]) -> Iterator[Fact]:
    if other_spec:
        yield Fact(scope, ("spec of the stack", "path"), other_spec)
    yield from _unreadable(scope, stack.name, stack.problem, stack.text)
    for key, value in stack.settings.items():
        yield Fact(scope, ("setting of the stack", key), value)
    for key, config in stack.config.items():
        yield from _config_facts(scope, key, config, names)


def _unreadable(scope: Scope, file: str, problem: str, text: str) -> Iterator[Fact]:
    if problem:
        # Named by its content: another text with the same problem is another file.
        digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]
        yield Fact(scope, ("unreadable file", file, digest), problem)


def _config_facts(scope: Scope, key: str, config: ConfigValue, names: Collection[str]) -> Iterator[Fact]:
    owner, _, name = key.partition(":")
    if config.is_encrypted:
        yield Fact(scope, ("encrypted config", name), config.text)
    elif not PLAIN_KEY.fullmatch(key):
        yield Fact(scope, ("config of a part", name), _data(config.text))
    elif owner not in names:
        yield Fact(scope, ("config", key), _data(config.text))
    elif name not in KEYS:
        # The effect of the bundled program's keys is a change of resources.
        yield Fact(scope, ("own config", name), _data(config.text))


def _data(text: str) -> Any:
    """Return a list or mapping as data, so that names in it are redacted."""
    try:
        return json.loads(text) if text.startswith(("{", "[")) else text
    except (ValueError, RecursionError):
        return text


# Files


def file_statements(before: StackSetup, after: StackSetup) -> Iterator[LocatedStatement]:
    """Yield one caution with the files of the stack program that changed, and one with those that no one can read."""
    compared = {*before.pulumi.files, *after.pulumi.files}
    other_code = [PurePosixPath(path) for path in (*before.pulumi.other_code, *after.pulumi.other_code)]
    old, new = ({file.path: file for file in setup.files} for setup in (before, after))
    changed: list[str] = []
    unread: list[str] = []
    for path in sorted({*old, *new}):
        # Without an id, two equal versions may lead to different contents.
        if old.get(path) == new.get(path) and (path not in new or new[path].id):
            continue
        lineage = {PurePosixPath(path), *PurePosixPath(path).parents}
        kinds = {file.kind for file in (old.get(path), new.get(path)) if file} - {"file"}
        # Settings that can be read are compared by key.
        if path in compared and not kinds:
            continue
        file = PurePosixPath(path)
        # Pulumi reads the project file of another folder instead, if it runs there.
        is_other_project = file.name in PROJECT_FILES and len(file.parts) > 1
        is_code = is_other_project or file.suffix in _COMPILED or any(code in lineage for code in other_code)
        target = new[path].target if path in new and new[path].target else ""
        shown = f"{path} ({', '.join(sorted(kinds))}{f' to {target}' * bool(target)})" if kinds else path
        (unread if kinds or is_code else changed).append(shown)
    if changed and (after.program.is_own or before.program.is_own):
        template = "stack program changed in {}: this review knows only the resources that it declares under mocks"
        yield LocatedStatement("", Statement(template, (listed(changed, _MAX_FILES),), Risk.UNKNOWN))
    if unread:
        template = "Pulumi runs or reads what this review does not: {}"
        headline = "files changed that this review does not read"
        yield LocatedStatement("", Statement(template, (listed(unread, _MAX_FILES),), Risk.DESTRUCTIVE, headline))


# What the programs declare besides resources


def declaration_statements(
    before: Mapping[str, EnvironmentResources], after: Mapping[str, EnvironmentResources]
) -> Iterator[LocatedStatement]:
    """Yield the changes of providers and of features of the engine, of the environments of head."""
    old, new = [], []
    for name, declared in after.items():
        providers = {(provider.type, provider.name) for provider in declared.providers}
        new += [*_declared_facts(name, declared, providers)]
        if name in before:
            old += [*_declared_facts(name, before[name], providers)]
    # A feature that is no longer used has no effect.
    known = {(fact.scope, fact.name) for fact in new}
    yield from _judged_statements(
        [fact for fact in old if fact.name[0] == "provider" or (fact.scope, fact.name) in known], new
    )


def _declared_facts(
    environment: str, declared: EnvironmentResources, providers: Collection[tuple[str, str]]
) -> Iterator[Fact]:
    scope = Scope(environment)
    for feature in declared.unseen:
        # A kind that no version of this program writes has been written by something else.
        yield Fact(scope, (feature.kind if feature.kind in _FEATURES else "dynamic", feature.name), "")
    for provider in declared.providers:
        if (provider.type, provider.name) not in providers:
            continue
        package = provider.type.removeprefix(_PROVIDER_PREFIX)
        values = {
            key: value for key, value in provider.inputs.items() if key not in {*_DEFAULT_INPUTS, *provider.secrets}
        }
        values |= {key: value for key, value in provider.options.items() if key in _CODE_OPTIONS}
        for key, value in values.items():
            yield Fact(scope, ("provider", package, provider.name, key), value)
        for key, digest in provider.secrets.items():
            yield Fact(scope, ("secret of a provider", package, provider.name, key), digest)


# Runs of the programs


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
