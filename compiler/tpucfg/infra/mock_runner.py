"""Run the stack program under Pulumi's mocks: no engine, no cloud, no credentials."""

import contextvars
import logging
import runpy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tpucfg.infra.resources import EnvironmentResources, sort_resources
from tpucfg.redaction import SECRET
from tpucfg.spec.project import Environment


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
    # Pulumi takes seconds to import, and most commands do not need it.
    import pulumi
    from pulumi.runtime.config import set_all_config

    from tpucfg.infra.recording_monitor import RecordingMonitor

    outputs: dict[str, Any] = {}
    pulumi.runtime.settings.ROOT.set(None)
    set_all_config(config)
    monitor = RecordingMonitor(environment)
    logger = logging.getLogger("tpucfg.program")
    pulumi.runtime.set_mocks(monitor.mocks, project, environment.name, preview, logger, monitor, "organization")

    async def read_outputs() -> None:
        for name, value in getattr(pulumi.runtime.get_root_resource(), "outputs", {}).items():
            output: pulumi.Output[Any] = pulumi.Output.from_input(value)
            outputs[name] = SECRET if await output.is_secret() else await output.future()

    @pulumi.runtime.test  # type: ignore[untyped-decorator] # as the SDK has it
    def run_main() -> Any:
        runpy.run_path(str(program), run_name="__main__")
        return read_outputs()

    try:
        run_main()
    except pulumi.RunError as error:
        raise ProgramError(str(error)) from None
    if monitor.duplicates:
        # Two with equal names: only one of them could be compared.
        raise ProgramError(f"the stack program declares {monitor.duplicates[0]} twice, which Pulumi refuses")
    return EnvironmentResources(
        environment,
        sort_resources(monitor.recorded.values()),
        outputs,
        sort_resources(monitor.providers),
        tuple(sorted(monitor.unseen)),
    )


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
