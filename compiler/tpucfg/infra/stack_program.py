"""The stack program of a spec: the project's own, beside the spec, or the one bundled with the package."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.fs import is_file
from tpucfg.infra.mock_runner import ProgramError, run_under_mocks
from tpucfg.infra.pulumi_project import pulumi_project
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.infra.stack_config import effective_config, other_spec
from tpucfg.package_data import data_folder
from tpucfg.spec.project import Project

_PACKAGES: Final = ("pulumi", "pulumi_gcp")


class PackagesMissingError(Exception):
    """Pulumi's packages are not installed; the message is shown to the user, and INSTALL_INFRA is the command."""


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
            raise PackagesMissingError(f"the stack program needs the package {name}, which is not installed")


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
    """Return the resources of one environment; the program's prints go to stderr.

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
        with redirect_stdout(sys.stderr), _without_bytecode():
            return run_under_mocks(program.folder, environment=environment, project=program.namespace, config=config)
    except ProgramError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a project's own program may raise anything
        raise ProgramError(_failure_message(error, program.folder)) from None


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Write no `__pycache__` into the program's folder, which may be a user's work tree."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


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
