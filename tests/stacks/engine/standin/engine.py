"""Run a Pulumi program on the real engine, in this process, and return the outcome.

The Automation API runs the program inline and needs only the `pulumi` binary: no language host, no project on disk, no
account. The state is in a folder. Source: https://www.pulumi.com/docs/iac/automation-api/
"""

import gc
import json
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final, Protocol, TypedDict, Unpack

from pulumi import automation
from pulumi.automation import events
from pulumi.automation._server import LanguageServer
from pulumi.automation._stack import StackInitMode
from pulumi.automation.errors import CommandError

# The SDK's server logs there that the engine disconnected; the log records would keep the program's objects alive.
logging.getLogger("grpc._server").setLevel(logging.CRITICAL)

Program = Callable[[], None]
"""Declares resources; the return value is ignored."""

STEPS_OF_A_REPLACEMENT = {
    "create-replacement",
    "delete-replaced",
    "discard-replaced",
    "remove-pending-replace",
}


class UnexpectedOutcomeError(AssertionError):
    """An operation failed unexpectedly, or passed unexpectedly; the message has the engine's output."""


@dataclass(frozen=True, slots=True)
class Step:
    """The engine's operation on one resource, done or planned."""

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
    """All events of the engine."""
    text: str
    """The printed output."""

    @property
    def steps(self) -> list[Step]:
        """Each resource once, sorted by type and name; a replacement counts as `replace`, not as its three parts."""
        steps = [
            _step(event.resource_pre_event.metadata)
            for event in self.events
            if event.resource_pre_event
        ]
        own = [step for step in steps if step.operation not in STEPS_OF_A_REPLACEMENT]
        return sorted(own, key=lambda step: (step.type, step.name))

    @property
    def changes(self) -> dict[str, str]:
        """Operation by logical name, without unchanged resources."""
        return {
            step.name: step.operation
            for step in self.steps
            if step.operation not in {"same", "refresh", "read"}
        }

    def step(self, name: str) -> Step:
        """Return the step of the resource with that logical name."""
        return next(step for step in self.steps if step.name == name)

    @property
    def order(self) -> list[tuple[str, str]]:
        """Operation and logical name of every step, in the order of their start, with replacements in parts."""
        steps = [
            _step(event.resource_pre_event.metadata)
            for event in self.events
            if event.resource_pre_event
        ]
        return [
            (step.operation, step.name) for step in steps if step.operation not in {"same", "read"}
        ]

    @property
    def errors(self) -> list[str]:
        """The texts of the error messages."""
        diagnostics = [event.diagnostic_event for event in self.events if event.diagnostic_event]
        return [message.message for message in diagnostics if message.severity == "error"]


class Options(TypedDict, total=False):
    """Options of the Automation API; not every operation has every option."""

    expect_no_changes: bool
    """Fail if there is any change."""
    preview_only: bool
    """Of `destroy` and `refresh`: only preview."""
    run_program: bool
    """Of `destroy`: run the program, which registers the error hooks."""
    refresh: bool
    """Of `up`, `preview` and `destroy`: refresh first."""
    replace: list[str]
    """Of `up` and `preview`: URNs to replace."""
    target: list[str]
    """URNs to limit the operation to."""


class Stack:
    """A stack with its state in a folder, and its program."""

    def __init__(self, stack: automation.Stack) -> None:
        self.automation = stack
        """The Automation API's object, for operations that this class does not wrap."""

    def up(self, *, fails: bool = False, **options: Unpack[Options]) -> Outcome:
        """Run `pulumi up`."""
        return self._run(self.automation.up, fails, options)

    def preview(self, *, fails: bool = False, **options: Unpack[Options]) -> Outcome:
        """Run `pulumi preview`."""
        return self._run(self.automation.preview, fails, options)

    def refresh(self, *, fails: bool = False, **options: Unpack[Options]) -> Outcome:
        """Run `pulumi refresh`."""
        return self._run(self.automation.refresh, fails, options)

    def destroy(self, *, fails: bool = False, **options: Unpack[Options]) -> Outcome:
        """Run `pulumi destroy`, without its preview, or only the preview with `preview_only=True`."""
        return self._run(self.automation.destroy, fails, options)

    def resources(self) -> dict[str, dict[str, Any]]:
        """Return the resources in the state, by logical name."""
        deployment: Any = self.automation.export_stack().deployment
        return {
            entry["urn"].rpartition("::")[2]: entry for entry in deployment.get("resources", [])
        }

    def outputs(self) -> dict[str, Any]:
        """Return the outputs of the last `up`."""
        outputs = self.automation.workspace.stack_outputs(self.automation.name)
        return {name: output.value for name, output in outputs.items()}

    def change_program(self, program: Program) -> None:
        """Replace the stack's program."""
        self.automation.workspace.program = program

    def _run(
        self, operation: Callable[..., Any], fails: bool, options: Options, tries: int = 2
    ) -> Outcome:
        events_: list[events.EngineEvent] = []
        lines: list[str] = []
        try:
            operation(
                on_event=events_.append,
                on_output=lines.append,
                on_error=lines.append,
                color="never",
                **options,
            )
        except CommandError as error:
            if tries > 1 and _failed_to_start(events_, lines):
                return self._run(operation, fails, options, tries - 1)
            if not fails:
                raise UnexpectedOutcomeError("\n".join(lines) or str(error)) from None
            return Outcome(events_, "\n".join(lines))
        if fails:
            raise UnexpectedOutcomeError(
                "expected a failure, but the operation passed:\n" + "\n".join(lines)
            )
        return Outcome(events_, "\n".join(lines))


_STACK: Final = "pulumi:pulumi:Stack"
_DISCONNECTED: Final = ("Connection refused", "Resource monitor has terminated")
"""The engine's messages when it and the program's server lose their connection, as on a busy machine."""


def _failed_to_start(events_: Sequence[events.EngineEvent], lines: Sequence[str]) -> bool:
    """Return True if engine and program lost their connection before any resource was changed."""
    lost = any(text in line for line in lines for text in _DISCONNECTED)
    started = [
        _step(event.resource_pre_event.metadata) for event in events_ if event.resource_pre_event
    ]
    return lost and all(step.type == _STACK or step.operation == "refresh" for step in started)


class _Operations(automation.Stack):
    """Operations alone: the Automation API asks for outputs and history after each, by three processes."""

    def outputs(self) -> automation.OutputMap:
        """Return nothing; `Stack.outputs` asks the engine."""
        return {}

    def info(self, show_secrets: bool = True) -> automation.UpdateSummary:
        """Return a summary of no operation."""
        return automation.UpdateSummary("update", datetime.now(UTC), "", {}, {}, "succeeded")


@cache
def _command() -> automation.PulumiCommand:
    """Return the command on the PATH, which is asked for its version once."""
    return automation.PulumiCommand()


def create_stack(
    program: Program,
    *,
    folder: Path,
    environment: Mapping[str, str],
    name: str = "dev",
    config: Mapping[str, object] | None = None,
) -> Stack:
    """Create a stack of an inline program, or select it.

    Args:
        program: declares the resources; each operation calls it again.
        folder: the working folder.
        environment: the engine's environment variables; see `projects.engine_environment`.
        name: the stack's name.
        config: stack configuration: `key` or `namespace:key`; a value that is not a string is set as a structure.
    """
    project = automation.ProjectSettings(name="tpucfg", runtime="python", main=str(folder))
    workspace = automation.LocalWorkspace(
        work_dir=str(folder),
        program=program,
        env_vars=environment,
        project_settings=project,
        pulumi_command=_command(),
    )
    try:
        stack = _Operations(name, workspace, StackInitMode.CREATE)
    except automation.StackAlreadyExistsError:
        stack = _Operations(name, workspace, StackInitMode.SELECT)
    if config:
        settings = json.dumps({key: _setting(value) for key, value in config.items()})
        arguments = ["config", "set-all", "--stack", name, "--json", settings]
        _command().run(arguments, str(folder), environment)
    return Stack(stack)


class NewStack(Protocol):
    """Type of the fixture `new_stack`, which creates a stack in the world of the test."""

    def __call__(
        self,
        program: Program,
        *,
        name: str = "dev",
        config: Mapping[str, object] | None = None,
    ) -> Stack:
        """Create a stack, with the arguments of `create_stack`, in a folder of its own."""


def collect_abandoned_programs() -> None:
    """Wait for programs that the engine abandoned, and collect their coroutines.

    The SDK abandons its coroutines when the engine disconnects. Collected later, they raise an exception that cannot be
    caught, in the middle of another test, and before Python 3.11.8 they can break a running `ast.parse`:
    https://github.com/python/cpython/issues/106905.
    """
    deadline = time.monotonic() + 5
    frames = sys._current_frames  # noqa: SLF001 - documented
    while any(map(_serves_a_program, frames().values())) and time.monotonic() < deadline:
        time.sleep(0.01)
    gc.collect()


def _serves_a_program(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is LanguageServer.Run.__code__:
            return True
        frame = frame.f_back
    return False


def _setting(value: object) -> dict[str, Any]:
    # The format of `pulumi config --json`: a text, and for a list or mapping also its structure.
    if isinstance(value, str):
        return {"value": value}
    text = json.dumps(value)
    return (
        {"value": text, "objectValue": value} if isinstance(value, list | dict) else {"value": text}
    )


def _step(metadata: events.StepEventMetadata) -> Step:
    changes = {
        path: str(diff.diff_kind.value) for path, diff in (metadata.detailed_diff or {}).items()
    }
    old = (metadata.old and metadata.old.inputs) or {}
    new = (metadata.new and metadata.new.inputs) or {}
    return Step(
        str(metadata.op.value), metadata.type, metadata.urn.rpartition("::")[2], changes, old, new
    )
