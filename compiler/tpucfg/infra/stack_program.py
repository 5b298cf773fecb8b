"""What the stack program beside a spec declares, or the one that the package carries."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.fs import is_file
from tpucfg.infra import stack_files
from tpucfg.infra.mock_runner import ProgramError, run_program
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.package_data import data_folder
from tpucfg.spec.project import Project

INSTALL: Final = "pip install 'tpucfg[infra]', or from a clone: pip install '/path/to/clone[infra]'"
_PACKAGES: Final = ("pulumi", "pulumi_gcp")


class PackagesMissingError(Exception):
    """Pulumi's packages are not installed; the message is for people, and INSTALL has the command."""


class StackProgram(NamedTuple):
    """The program that would be run for a spec."""

    data_folder: Path
    namespace: str
    """The Pulumi project's name, which is the namespace of the stacks' config."""
    is_own: bool
    """Whether it lies beside the spec; the package carries the other."""
    has_project: bool
    """Whether there is a Pulumi.yaml beside the spec."""
    shown: str
    """Where it lies, as seen from the spec's folder."""


def find_program(spec: Path) -> StackProgram:
    """The program beside a spec, or the one that the package carries."""
    pulumi = stack_files.pulumi_project(spec.parent)
    own = pulumi is not None and is_file(pulumi.program / "__main__.py")
    folder_ = pulumi.program if pulumi and own else data_folder("stacks")
    shown = os.path.relpath(folder_ / "__main__.py", spec.parent) if own else "stacks/__main__.py"
    return StackProgram(folder_.resolve(), pulumi.name if pulumi else "tpucfg", own, pulumi is not None, shown)


def declared_resources(spec: Path, project: Project, name: str) -> EnvironmentResources:
    """The resources of one environment. What the program prints goes to stderr.

    Raises:
        ProgramError: The program refused, or failed.
        PackagesMissingError: There is nothing to run it with.
    """
    pulumi = stack_files.pulumi_project(spec.parent)
    program, namespace, *_ = find_program(spec)
    if other := stack_files.other_spec(spec, name):
        raise ProgramError(f"the stack {name} reads {other}, which is not looked at here: give it with --spec {other}")
    config = stack_files.effective_config(pulumi, name) if pulumi else {}
    config[f"{namespace}:spec"] = str(spec.resolve())
    try:
        with redirect_stdout(sys.stderr), _without_bytecode():
            return run_program(program, environment=project.environments[name], project=namespace, config=config)
    except ProgramError:
        raise
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _PACKAGES:
            raise PackagesMissingError(
                f"the stack program needs the package {error.name}, which is not installed"
            ) from None
        raise ProgramError(_said(error, program)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody's program, which may do anything
        raise ProgramError(_said(error, program)) from None


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """A look at the program leaves no `__pycache__` beside it."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _said(error: BaseException, program: Path) -> str:
    """What happened, and the line of the program where it did."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(program):
            lines.append(f"{path.relative_to(program.parent)}:{trace.tb_lineno}")
        trace = trace.tb_next
    where = f"{lines[-1]}: " if lines else ""
    return f"the stack program failed: {where}{type(error).__name__}: {error}"
