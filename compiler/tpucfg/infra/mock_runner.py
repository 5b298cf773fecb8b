"""Runs the stack program under Pulumi's mocks: no engine, no cloud, no credentials.

Mocks are handed a resource's inputs only; what protects and retains it is read from the request around them.
"""

import contextvars
import logging
import runpy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.spec.project import Environment

if TYPE_CHECKING:
    from pulumi.runtime.mocks import MockMonitor


class ProgramError(Exception):
    """The program refused, or is not there; the message is for people."""


def run_program(
    program: Path, *, environment: Environment, project: str, config: Mapping[str, str], preview: bool = False
) -> EnvironmentResources:
    """What the program declares for one environment.

    Args:
        program: its folder, which holds `__main__.py`.
        environment: the spec's; its name is the stack's.
        project: the Pulumi project's name.
        config: the stack's config by full key, as the engine passes it: lists as JSON.
        preview: leave unknown what only Google can know.

    Raises:
        ProgramError: The program refused to run.
        ImportError: Pulumi's packages are not installed.
    """
    context = contextvars.copy_context()
    with _modules_of(program), _event_loop():
        return context.run(_run, program, environment, project, dict(config), preview)


def _run(
    program: Path, environment: Environment, project: str, config: dict[str, str], preview: bool
) -> EnvironmentResources:
    import pulumi
    from pulumi.runtime.config import set_all_config

    recorded: list[Resource] = []
    outputs: dict[str, Any] = {}
    pulumi.runtime.settings.ROOT.set(None)
    set_all_config(config)
    monitor = _monitor(environment, recorded)
    logger = logging.getLogger("tpucfg.program")
    pulumi.runtime.set_mocks(monitor.mocks, project, environment.name, preview, logger, monitor, "organization")

    @pulumi.runtime.test  # type: ignore[untyped-decorator] # as the SDK has it
    def whole() -> Any:
        runpy.run_path(str(program), run_name="__main__")
        exported = getattr(pulumi.runtime.get_root_resource(), "outputs", {})
        return pulumi.Output.from_input(exported).apply(outputs.update)

    try:
        whole()
    except pulumi.RunError as error:
        raise ProgramError(str(error)) from None
    return EnvironmentResources(environment, tuple(sorted(recorded)), outputs)


def _monitor(environment: Environment, recorded: list[Resource]) -> "MockMonitor":
    from pulumi.runtime import mocks, rpc

    class Google(mocks.Mocks):
        """Answers what is asked of it with a placeholder that says what it stands for."""

        def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
            asked = str(args.args.get("projectId") or environment.project)
            return {"id": asked, "projectId": asked, "number": f"[number of {asked}]"}, []

        def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
            return f"{args.name}-id", dict(args.inputs)

    class Recorder(mocks.MockMonitor):
        """Keeps each resource with its options."""

        def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
            if request.custom and not request.type.startswith("pulumi:"):
                inputs = _whole_numbers(rpc.deserialize_properties(request.object))
                options = {"protect": bool(request.protect), "retain": bool(request.retainOnDelete)}
                recorded.append(Resource(request.type, request.name, inputs, **options))
            return super().RegisterResource(request)  # type: ignore[no-untyped-call] # as the SDK has it

    return Recorder(Google())


def _whole_numbers(value: Any) -> Any:
    """The protocol has one kind of number, and 14 comes back as 14.0."""
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _say_once(_: Any, __: Any) -> None:
    """What ends a program comes to whoever runs it; the loop would print it a second time, with its traceback."""


@contextmanager
def _event_loop() -> Iterator[None]:
    """The SDK wants a loop of this thread, and who has used asyncio before may have taken it away."""
    import asyncio

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_say_once)
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        loop.close()
        asyncio.set_event_loop(None)


@contextmanager
def _modules_of(program: Path) -> Iterator[None]:
    """The program's own modules are imported from its folder, and forgotten afterwards: others may have such names."""
    names = {path.stem for path in program.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    names -= {"__main__", "tpucfg", "pulumi", "pulumi_gcp"}

    def set_aside() -> dict[str, ModuleType]:
        return {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] in names}

    others = set_aside()
    sys.path.insert(0, str(program))
    try:
        yield
    finally:
        sys.path.remove(str(program))
        set_aside()
        sys.modules.update(others)
