"""The stack program of a spec, its own or the bundled one, and its run under Pulumi's mocks.

A run needs no engine, no cloud and no credentials. It imports the program: `program_process` does this elsewhere.
"""

import contextvars
import logging
import os
import runpy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from tpucfg.fs import is_file
from tpucfg.infra.pulumi_project import effective_config, other_spec, pulumi_project
from tpucfg.infra.resources import EnvironmentResources, sort_resources
from tpucfg.package_data import data_folder
from tpucfg.redaction import SECRET
from tpucfg.refusal import RefusalError
from tpucfg.scaffold import INSTALL_INFRA
from tpucfg.spec import Environment, Project

_PACKAGES: Final = ("pulumi", "pulumi_gcp")


class ProgramError(Exception):
    """The stack program failed or is missing; the message is shown to the user."""


class PackagesMissingError(RefusalError):
    """Pulumi's packages are not installed."""


def require_packages() -> None:
    """Check that Pulumi's packages are installed, without importing them.

    Only this decides that they are missing: a program that fails to import something is a program that fails.

    Raises:
        PackagesMissingError: One is not installed.
    """
    for name in _PACKAGES:
        module = find_spec(name)
        # A folder of this name without any code, such as the program's own, is found too, but has no origin.
        if module is None or module.origin is None:
            raise PackagesMissingError(
                f"the stack program needs the package {name}, which is not installed", INSTALL_INFRA
            )


class StackProgram(NamedTuple):
    """The stack program to run for a spec."""

    folder: Path
    namespace: str
    """The Pulumi project's name, which is the namespace of the stacks' config."""
    is_own: bool
    """True for a program beside the spec, False for the bundled one."""
    has_project: bool
    """True if there is a Pulumi project beside the spec."""
    shown: str
    """The path of `__main__.py`, relative to the spec's folder."""


def find_program(spec: Path) -> StackProgram:
    """Return the program beside a spec, or the bundled one."""
    pulumi = pulumi_project(spec.parent)
    is_own = pulumi is not None and is_file(pulumi.program / "__main__.py")
    folder = pulumi.program if pulumi and is_own else data_folder("stacks")
    shown = os.path.relpath(folder / "__main__.py", spec.parent) if is_own else "stacks/__main__.py"
    return StackProgram(folder.resolve(), pulumi.name if pulumi else "tpucfg", is_own, pulumi is not None, shown)


def run_stack_program(spec: Path, project: Project, name: str) -> EnvironmentResources:
    """Return the resources of one environment.

    Raises:
        ProgramError: The program failed.
    """
    pulumi = pulumi_project(spec.parent)
    program = find_program(spec)
    if other := other_spec(spec, name):
        raise ProgramError(f"the stack {name} reads another spec, {other}: select it with --spec {other}")
    config = effective_config(pulumi, name) if pulumi else {}
    config[f"{program.namespace}:spec"] = str(spec.resolve())
    environment = project.environments[name]
    try:
        return run_under_mocks(program.folder, environment=environment, project=program.namespace, config=config)
    except ProgramError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a project's own program may raise anything
        raise ProgramError(_failure_message(error, program.folder)) from None


def _failure_message(error: BaseException, program: Path) -> str:
    """Return the exception with the innermost line of the program in its traceback."""
    location = ""
    trace = error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(program):
            location = f"{path.relative_to(program.parent)}:{trace.tb_lineno}: "
        trace = trace.tb_next
    return f"the stack program failed: {location}{type(error).__name__}: {error}"


# The run under mocks


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
    monitor = RecordingMonitor(environment, _event_loop)
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
    """Set an event loop of this thread for the SDK, and close it.

    The SDK makes one where a thread has none, and closes it never: at the exit, such a loop prints a traceback.
    """
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
