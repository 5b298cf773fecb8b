"""Changes to the stack program, its Pulumi project and the specs of stacks, which are not changes to resources."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from tpucfg.changes.statements import LocatedStatement, Risk, Statement, group_by_environment
from tpucfg.git.program_files import FileVersion
from tpucfg.infra.pulumi_files import PulumiFiles
from tpucfg.infra.stack_program import StackProgram
from tpucfg.review.changes.program.config_changes import config_statements
from tpucfg.review.changes.program.program_file_changes import ReadFiles, file_statements
from tpucfg.review.changes.program.pulumi_settings import project_setting_statements, stack_setting_statements
from tpucfg.text_format import listed

_MAX_SETTINGS: Final = 12
"""Changed settings of one file that have a sentence of their own."""
_OWN_SPEC: Final = "the spec under review"


class StackSetup(NamedTuple):
    """The stack program of one revision, and the specs that its stacks read."""

    program: StackProgram
    other_specs: Mapping[str, str]
    """By environment, the spec that its stack reads, if it is another one than the spec under review."""
    pulumi: PulumiFiles = PulumiFiles()
    """The settings in the project file and the stack files."""
    files: tuple[FileVersion, ...] = ()
    """The files that `pulumi up` may read."""

    @property
    def toolchain(self) -> str:
        """The tool that installs the program's packages; empty if Pulumi chooses it."""
        return str(self.pulumi.settings.get("runtime.options.toolchain", ""))


def stack_statements(before: StackSetup, after: StackSetup) -> Iterator[LocatedStatement]:
    """Yield the changes to program, project, specs, settings and files, whose effects the resources do not show."""
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
    for statement in _limited(project_setting_statements(before.pulumi, after.pulumi)):
        yield LocatedStatement("", statement)
    yield from group_by_environment(_stack_settings(before.pulumi, after.pulumi))
    read = ReadFiles(
        (*before.pulumi.other_code, *after.pulumi.other_code),
        {before.toolchain, after.toolchain},
        {*before.pulumi.files, *after.pulumi.files},
        new.is_own,
    )
    for statement in file_statements(before.files, after.files, read):
        yield LocatedStatement("", statement)


def _stack_settings(before: PulumiFiles, after: PulumiFiles) -> Iterator[tuple[str, Statement]]:
    """Yield the changed settings and config of each stack of head."""
    for stack, file in after.stacks.items():
        old = before.stacks.get(stack)
        settings = stack_setting_statements(old, file)
        config = config_statements(old.config if old else {}, file.config, {before.namespace, after.namespace})
        yield from ((stack, statement) for statement in _limited([*settings, *config]))


def _limited(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the statements with the highest risk, and one about the others, so that no file can fill a comment."""
    ranked = sorted(statements, key=lambda statement: -statement.risk)
    yield from ranked[:_MAX_SETTINGS]
    if more := ranked[_MAX_SETTINGS:]:
        names = listed([statement.values[0] for statement in more])
        yield Statement(f"{len(more):,} more settings changed: {{}}", (names,), more[0].risk, more[0].headline)


def _program_removed(program: StackProgram) -> Statement:
    template = (
        "stack program {0} removed: this review used the program bundled with tpucfg instead, and the result of {1} "
        "is unknown. To restore it, run {2}"
    )
    values = (program.shown, "pulumi up", f"git checkout BASE -- {program.shown}")
    return Statement(template, values, risk=Risk.DESTRUCTIVE, headline="stack program removed")


def _project_renamed(old: StackProgram, new: StackProgram) -> Statement:
    template = (
        "Pulumi project renamed from {0} to {1}: the next {2} starts with an empty stack, and the resources of {0} "
        "remain and conflict with the new ones"
    )
    values = (old.namespace, new.namespace, "pulumi up")
    return Statement(template, values, risk=Risk.DESTRUCTIVE, headline="Pulumi project renamed")


def _spec_changed(old: str, new: str) -> Statement:
    template = "stack reads {1} instead of {0}: this review does not include the effect on its resources"
    values = (old or _OWN_SPEC, new or _OWN_SPEC)
    return Statement(template, values, risk=Risk.DESTRUCTIVE, headline="stack with another spec")
