"""Run the stack program under Pulumi's mocks: no engine, no cloud, no credentials.

Pulumi passes only a resource's inputs to mocks; `protect` and `retainOnDelete` are read from the surrounding request.
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
    """The stack program failed or is missing; the message is shown to the user."""


def run_under_mocks(
    program: Path, *, environment: Environment, project: str, config: Mapping[str, str], preview: bool = False
) -> EnvironmentResources:
    """Return the resources that the program declares for one environment.

    Args:
        program: the program's folder, which contains `__main__.py`.
        environment: an environment of the spec; its name is the stack's name.
        project: the Pulumi project's name.
        config: the stack's config by full key, as the engine passes it: lists as JSON.
        preview: leave values unknown that only Google can provide.

    Raises:
        ProgramError: The program raised `pulumi.RunError`.
        ImportError: Pulumi's packages are not installed.
    """
    # The SDK keeps config and root resource in context variables: a copied context leaves the caller's untouched.
    context = contextvars.copy_context()
    with _program_modules(program), _event_loop():
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
    monitor = _recording_monitor(environment, recorded)
    logger = logging.getLogger("tpucfg.program")
    pulumi.runtime.set_mocks(monitor.mocks, project, environment.name, preview, logger, monitor, "organization")

    @pulumi.runtime.test  # type: ignore[untyped-decorator] # as the SDK has it
    def run_main() -> Any:
        runpy.run_path(str(program), run_name="__main__")
        exported = getattr(pulumi.runtime.get_root_resource(), "outputs", {})
        return pulumi.Output.from_input(exported).apply(outputs.update)

    try:
        run_main()
    except pulumi.RunError as error:
        raise ProgramError(str(error)) from None
    return EnvironmentResources(
        environment, tuple(sorted(recorded, key=lambda resource: (resource.type, resource.name))), outputs
    )


# Pulumi takes seconds to import, and only this function needs the classes: they are defined inside it.
def _recording_monitor(environment: Environment, recorded: list[Resource]) -> "MockMonitor":
    """Return a monitor that answers like Google with placeholders and appends each resource to `recorded`."""
    from pulumi.runtime import mocks, rpc

    class GoogleMocks(mocks.Mocks):
        """Answers look-ups with placeholders that name the value they replace."""

        def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
            project_id = str(args.args.get("projectId") or environment.project)
            return {"id": project_id, "projectId": project_id, "number": f"[number of {project_id}]"}, []

        def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
            return f"{args.name}-id", dict(args.inputs)

    class RecordingMonitor(mocks.MockMonitor):
        """Records each resource with its options."""

        def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
            if request.custom and not request.type.startswith("pulumi:"):
                inputs = _restore_integers(rpc.deserialize_properties(request.object))
                options = {"protect": bool(request.protect), "retain": bool(request.retainOnDelete)}
                recorded.append(Resource(request.type, request.name, inputs, **options))
            return super().RegisterResource(request)  # type: ignore[no-untyped-call] # as the SDK has it

    return RecordingMonitor(GoogleMocks())


def _restore_integers(value: Any) -> Any:
    """Return whole numbers as integers: the protocol has only floats, which turns 14 into 14.0."""
    if isinstance(value, dict):
        return {key: _restore_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_restore_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@contextmanager
def _event_loop() -> Iterator[None]:
    """Set an event loop for the SDK: earlier use of asyncio may have left this thread without one."""
    import asyncio

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_ignore_exception)
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        loop.close()
        asyncio.set_event_loop(None)


def _ignore_exception(_: Any, __: Any) -> None:
    """Print nothing: the caller receives the exception, and the loop would repeat it with a traceback."""


@contextmanager
def _program_modules(program: Path) -> Iterator[None]:
    """Import the program's modules from its folder and unload them afterwards, as other programs reuse their names."""
    names = {path.stem for path in program.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    # A folder with one of these names must not unload the packages that run the program.
    names -= {"__main__", "tpucfg", "pulumi", "pulumi_gcp"}

    def unload() -> dict[str, ModuleType]:
        return {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] in names}

    previous_modules = unload()
    sys.path.insert(0, str(program))
    try:
        yield
    finally:
        sys.path.remove(str(program))
        unload()
        sys.modules.update(previous_modules)
