"""Run a Pulumi program on the real engine, in this process, and say what happened.

The Automation API takes the program inline, so that nothing but the `pulumi` binary is needed: no language host, no
project on disk, no account. State is a folder. Source: https://www.pulumi.com/docs/iac/automation-api/
"""

import gc
import json
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, Protocol, TypedDict, Unpack

from pulumi import automation
from pulumi.automation import events
from pulumi.automation._server import LanguageServer
from pulumi.automation.errors import CommandError

# The SDK's server reports there that the engine went away, as engines do; the records would keep the program alive.
logging.getLogger("grpc._server").setLevel(logging.CRITICAL)

Program = Callable[[], None]
"""Declares resources; what it returns is not looked at."""

STEPS_OF_A_REPLACEMENT = {"create-replacement", "delete-replaced", "discard-replaced", "remove-pending-replace"}


class UnexpectedOutcomeError(AssertionError):
    """An operation failed that should pass, or the other way round; the message holds the engine's own words."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the engine did, or would do, with one resource."""

    operation: str
    """`create`, `update`, `replace`, `delete`, `same`, `refresh`, ..."""
    type: str
    name: str
    """The logical name."""
    changes: dict[str, str]
    """Kind of change by property path, such as `{"location": "update-replace"}`."""
    old: Mapping[str, Any]
    """The inputs before."""
    new: Mapping[str, Any]
    """The inputs after; an unknown value is Pulumi's unknown marker."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One `up`, `preview`, `refresh` or `destroy`."""

    events: list[events.EngineEvent]
    """Everything that the engine said, typed."""
    text: str
    """What a user would see."""
    outputs: dict[str, Any]
    """The stack's outputs; empty where the operation has none."""

    @property
    def steps(self) -> list[Step]:
        """Each resource once, sorted by type and name; a replacement counts as `replace`, not as its three parts."""
        found = [_step(event.resource_pre_event.metadata) for event in self.events if event.resource_pre_event]
        own = [step for step in found if step.operation not in STEPS_OF_A_REPLACEMENT]
        return sorted(own, key=lambda step: (step.type, step.name))

    @property
    def changes(self) -> dict[str, str]:
        """Operation by logical name, without what stays the same."""
        return {step.name: step.operation for step in self.steps if step.operation not in {"same", "refresh", "read"}}

    def step(self, name: str) -> Step:
        """Return what was done with the resource of that logical name."""
        return next(step for step in self.steps if step.name == name)

    @property
    def order(self) -> list[tuple[str, str]]:
        """Operation and logical name of every step, as the engine began them, with replacements in parts."""
        steps = [_step(event.resource_pre_event.metadata) for event in self.events if event.resource_pre_event]
        return [(step.operation, step.name) for step in steps if step.operation not in {"same", "read"}]

    @property
    def errors(self) -> list[str]:
        """The texts of the error messages."""
        said = [event.diagnostic_event for event in self.events if event.diagnostic_event]
        return [message.message for message in said if message.severity == "error"]


class Options(TypedDict, total=False):
    """Options of the operations, those of the Automation API; not every operation knows every one."""

    expect_no_changes: bool
    """Fail where there is anything to do."""
    preview_only: bool
    """Of `destroy` and `refresh`: only say what they would do."""
    run_program: bool
    """Of `destroy`: run the program, whose error hooks are there only then."""
    refresh: bool
    """Of `up`, `preview` and `destroy`: refresh first."""
    replace: list[str]
    """Of `up` and `preview`: URNs to replace."""
    target: list[str]
    """URNs to leave it at."""


class Stack:
    """A stack that lives in a folder, and the program that it is made from."""

    def __init__(self, stack: automation.Stack) -> None:
        self.automation = stack
        """The Automation API's own handle, for what this class leaves out."""

    def up(self, *, fails: bool = False, **options: Unpack[Options]) -> Outcome:
        """Make it so."""
        return self._run(self.automation.up, fails, options)

    def preview(self, *, fails: bool = False, **options: Unpack[Options]) -> Outcome:
        """Say what `up` would do."""
        return self._run(self.automation.preview, fails, options)

    def refresh(self, *, fails: bool = False, **options: Unpack[Options]) -> Outcome:
        """Take over into the state what is really there."""
        return self._run(self.automation.refresh, fails, options)

    def destroy(self, *, fails: bool = False, **options: Unpack[Options]) -> Outcome:
        """Remove everything, as `pulumi destroy --skip-preview` does; `preview_only=True` only asks."""
        return self._run(self.automation.destroy, fails, options)

    def resources(self) -> dict[str, dict[str, Any]]:
        """Return the state: each resource as the engine wrote it down, by logical name."""
        deployment: Any = self.automation.export_stack().deployment
        return {entry["urn"].rpartition("::")[2]: entry for entry in deployment.get("resources", [])}

    def change_program(self, program: Program) -> None:
        """Put another program in place of the one that the stack was made from."""
        self.automation.workspace.program = program

    def _run(self, operation: Callable[..., Any], fails: bool, options: Options, tries: int = 2) -> Outcome:
        heard: list[events.EngineEvent] = []
        said: list[str] = []
        try:
            result = operation(
                on_event=heard.append, on_output=said.append, on_error=said.append, color="never", **options
            )
        except CommandError as error:
            if tries > 1 and _never_began(heard, said):
                return self._run(operation, fails, options, tries - 1)
            if not fails:
                raise UnexpectedOutcomeError("\n".join(said) or str(error)) from None
            return Outcome(heard, "\n".join(said), {})
        if fails:
            raise UnexpectedOutcomeError("expected a refusal, but it passed:\n" + "\n".join(said))
        return Outcome(heard, "\n".join(said), _plain_outputs(result))


_STACK: Final = "pulumi:pulumi:Stack"
_LOST: Final = ("Connection refused", "Resource monitor has terminated")
"""What the engine says, on a busy machine, that did not reach the program's server or left before its last word."""


def _never_began(heard: Sequence[events.EngineEvent], said: Sequence[str]) -> bool:
    """Whether the engine and the program missed each other, so that nothing was done beyond looking."""
    lost = any(words in line for line in said for words in _LOST)
    begun = [_step(event.resource_pre_event.metadata) for event in heard if event.resource_pre_event]
    return lost and all(step.type == _STACK or step.operation == "refresh" for step in begun)


def create_stack(
    program: Program,
    *,
    folder: Path,
    environment: Mapping[str, str],
    name: str = "dev",
    project: str = "tpucfg",
    config: Mapping[str, object] | None = None,
) -> Stack:
    """Create or select a stack of an inline program.

    Args:
        program: declares the resources; called anew by each operation.
        folder: the work folder. One that holds a Pulumi.yaml is used as it is, with the stack files it names.
        environment: what the engine runs with; see `projects.engine_environment`.
        name: the stack's name.
        project: the project's name, where the folder holds no Pulumi.yaml.
        config: stack configuration: `key` or `namespace:key`; a value that is no string is set as a structure.
    """
    own = (folder / "Pulumi.yaml").exists()
    options = automation.LocalWorkspaceOptions(
        work_dir=str(folder),
        env_vars=environment,
        project_settings=None if own else automation.ProjectSettings(name=project, runtime="python", main=str(folder)),
    )
    stack = automation.create_or_select_stack(name, project_name=project, program=program, opts=options)
    if config:
        settings = json.dumps({key: _setting(value) for key, value in config.items()})
        arguments = ["config", "set-all", "--stack", name, "--json", settings]
        stack.workspace.pulumi_command.run(arguments, str(folder), environment)
    return Stack(stack)


class NewStack(Protocol):
    """What the fixture `new_stack` is: makes a stack in the world of the test."""

    def __call__(
        self,
        program: Program,
        *,
        name: str = "dev",
        config: Mapping[str, object] | None = None,
        folder: Path | None = None,
    ) -> Stack:
        """Take what `create_stack` takes; without a folder, the stack has one of its own."""


def collect_refused_programs() -> None:
    """Wait for programs that the engine refused, and collect what is left of them.

    The SDK abandons its coroutines when the engine goes away. Collected at some later moment they end with an exception
    that nobody can catch, in the middle of somebody else's test, and before Python 3.11.8 they can break an `ast.parse`
    that is under way: https://github.com/python/cpython/issues/106905.
    """
    patience = time.monotonic() + 5
    while any(map(_serves_a_program, sys._current_frames().values())) and time.monotonic() < patience:  # noqa: SLF001 - documented
        time.sleep(0.01)
    gc.collect()


def _serves_a_program(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is LanguageServer.Run.__code__:
            return True
        frame = frame.f_back
    return False


def _setting(value: object) -> dict[str, Any]:
    # The form that `pulumi config --json` prints: text, and beside it the structure of what is no scalar.
    if isinstance(value, str):
        return {"value": value}
    text = json.dumps(value)
    return {"value": text, "objectValue": value} if isinstance(value, list | dict) else {"value": text}


def _step(metadata: events.StepEventMetadata) -> Step:
    changes = {path: str(diff.diff_kind.value) for path, diff in (metadata.detailed_diff or {}).items()}
    old = (metadata.old and metadata.old.inputs) or {}
    new = (metadata.new and metadata.new.inputs) or {}
    return Step(str(metadata.op.value), metadata.type, metadata.urn.rpartition("::")[2], changes, old, new)


def _plain_outputs(result: object) -> dict[str, Any]:
    return {name: output.value for name, output in getattr(result, "outputs", {}).items()}
