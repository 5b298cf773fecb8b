"""The stack program of a spec, its own or the bundled one, and its run under Pulumi's mocks.

A run needs no engine, no cloud and no credentials. It imports the program, so that each program has a process of its
own, `python -m tpucfg.infra.stack_program SPEC ENVIRONMENT...`: none can alter this process or make it wait for ever.
The process writes a document of a resource file for each environment, which the stack program could have written
itself: a reader believes nothing but its form. It can read and write what its user can. It gets no credentials by
variables or the user's folders, but it is not confined: a stranger's program belongs in a job without permissions.
"""

import contextlib
import contextvars
import json
import logging
import os
import re
import runpy
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path, PurePath
from types import ModuleType
from typing import IO, Any, Final, NamedTuple

from tpucfg.fs import has_equal_bytes, is_file
from tpucfg.infra.resources import (
    MAX_FILE_BYTES,
    Declared,
    EnvironmentResources,
    ProgramFailure,
    document_data,
    read_resource_file,
    sort_resources,
)
from tpucfg.infra.stack_files import effective_config, other_spec, pulumi_project
from tpucfg.package_data import data_folder
from tpucfg.redaction import SECRET, redact
from tpucfg.refusal import RefusalError
from tpucfg.scaffold import INSTALL_INFRA
from tpucfg.spec import Environment, Project
from tpucfg.spec.parse import parse_project
from tpucfg.text_format import format_count, printable
from tpucfg.yamldoc.reader import read_file

_PACKAGES: Final = ("pulumi", "pulumi_gcp")
_BUNDLED: Final = data_folder("templates") / "infra" / "stacks"
"""The folder of the program that `tpucfg init` writes."""


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
    shown: str
    """The path of `__main__.py`, relative to the spec's folder."""


def find_program(spec: Path) -> StackProgram:
    """Return the program beside a spec, or the bundled one."""
    pulumi = pulumi_project(spec.parent)
    is_own = pulumi is not None and is_file(pulumi.program / "__main__.py")
    folder = pulumi.program if pulumi and is_own else _BUNDLED
    shown = os.path.relpath(folder / "__main__.py", spec.parent) if is_own else "stacks/__main__.py"
    return StackProgram(folder.resolve(), pulumi.name if pulumi else "tpucfg", is_own, shown)


def is_bundled(spec: Path, files: Iterable[str]) -> bool:
    """Return True if a spec has the program that `tpucfg init` writes, with nothing added, or none of its own.

    Args:
        spec: the spec.
        files: the files that `pulumi up` may read, by path relative to the spec's folder.
    """
    program = find_program(spec)
    if not program.is_own:
        return True
    folder = PurePath(program.shown).parent
    # Any other file could be imported in place of a package's module.
    paths = (os.path.relpath(file, folder) for file in files)
    names = {path for path in paths if not path.startswith((os.pardir, "Pulumi."))}
    main, own = _BUNDLED / "__main__.py", program.folder / "__main__.py"
    return names <= {main.name, "requirements.txt"} and has_equal_bytes(
        str(own), str(main), MAX_FILE_BYTES
    )


def run_stack_program(spec: Path, project: Project, name: str) -> EnvironmentResources:
    """Return the resources of one environment.

    Raises:
        ProgramError: The program failed.
    """
    pulumi = pulumi_project(spec.parent)
    program = find_program(spec)
    if other := other_spec(spec, name):
        raise ProgramError(
            f"the stack {name} reads another spec, {other}: select it with --spec {other}"
        )
    config = effective_config(pulumi, name) if pulumi else {}
    config[f"{program.namespace}:spec"] = str(spec.resolve())
    environment = project.environments[name]
    try:
        return run_under_mocks(
            program.folder,
            environment=environment,
            project=program.namespace,
            config=config,
            root=spec.parent.resolve(),
        )
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
    program: Path,
    *,
    environment: Environment,
    project: str,
    config: Mapping[str, str],
    root: Path | None = None,
    preview: bool = False,
) -> EnvironmentResources:
    """Return the resources that the program declares for one environment.

    Args:
        program: the program's folder, which contains `__main__.py`.
        environment: an environment of the spec; its name is the stack's name.
        project: the Pulumi project's name.
        config: the stack's config by full key, as the engine passes it: lists as JSON.
        root: the folder of the Pulumi project; by default the one that contains the program's folder.
        preview: leave values unknown that only Google can provide.

    Raises:
        ProgramError: The program raised `pulumi.RunError`.
        ImportError: Pulumi's packages are not installed.
    """
    # The SDK keeps config and root resource in context variables: a copied context leaves the caller's untouched.
    context = contextvars.copy_context()
    with _program_modules(program), _event_loop():
        return context.run(
            _run, program, root or program.parent, environment, project, dict(config), preview
        )


def _run(
    program: Path,
    root: Path,
    environment: Environment,
    project: str,
    config: dict[str, str],
    preview: bool,
) -> EnvironmentResources:
    # Pulumi takes seconds to import, and most commands do not need it.
    import pulumi
    from pulumi.runtime.config import set_all_config

    from tpucfg.infra.recording_monitor import RecordingMonitor

    outputs: dict[str, Any] = {}
    pulumi.runtime.settings.ROOT.set(None)
    set_all_config(config)
    number = config.get(f"{project}:projectNumber", "")
    monitor = RecordingMonitor(environment, _event_loop, number)
    logger = logging.getLogger("tpucfg.program")
    pulumi.runtime.set_mocks(
        monitor.mocks, project, environment.name, preview, logger, monitor, "organization"
    )
    pulumi.runtime.settings.SETTINGS.root_directory = str(root)

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
        raise ProgramError(
            f"the stack program declares {monitor.duplicates[0]} twice, which Pulumi refuses"
        )
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
    names = {
        path.stem
        for path in program.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    # A folder with one of these names must not unload the packages that run the program.
    names -= {"__main__", "tpucfg", "pulumi", "pulumi_gcp"}

    def unload() -> dict[str, ModuleType]:
        return {
            name: sys.modules.pop(name)
            for name in [*sys.modules]
            if name.partition(".")[0] in names
        }

    previous_modules = unload()
    sys.path.insert(0, str(program))
    try:
        yield
    finally:
        sys.path.remove(str(program))
        unload()
        sys.modules.update(previous_modules)


# The processes

TIMEOUT_SECONDS: Final = 120.0
"""Timeout for all programs: forty times the time to import Pulumi and run sixteen environments."""
MAX_RESULT_BYTES: Final = 32 * 2**20
"""Limit of a program's results: a thousand times the size of eight environments."""
MAX_LOG_BYTES: Final = 2**16
"""Limit of what a log shows of a program's prints: hundreds of warnings."""
_PASSED_VARIABLES: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONPATH")
"""The only variables of this process that a program gets."""
_FOLDER_VARIABLES: Final = ("HOME", "TMPDIR")
"""A program gets an empty folder for both. Without variables of their own, tools look for credentials and settings, and
write, below the first: gcloud, Pulumi, and what follows the XDG base directories."""
_MALFORMED: Final = "the result of the stack program's process is malformed"
_PREFIX: Final = "  | "
# GitHub's runner reads a command from `##[` anywhere in a line, but from `::` only after leading spaces:
# https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_COMMAND_AT_START: Final = re.compile(r"^(\s*)::")


class ProgramRequest(NamedTuple):
    """The environments of one spec to run the stack program for."""

    spec: Path
    project: Project
    names: tuple[str, ...]


ProgramResults = Mapping[str, Declared]
"""The resources by environment, or the reason why they are unknown."""


class _RunningProgram(NamedTuple):
    """A running program, and the files that it writes to."""

    request: ProgramRequest
    process: "subprocess.Popen[bytes]"
    results: IO[bytes]
    log: IO[bytes]


def run_programs(
    requests: Sequence[ProgramRequest], timeout: float = TIMEOUT_SECONDS
) -> list[ProgramResults]:
    """Run the stack program of each spec, all at once; return the resources by environment, and print what they print.

    Raises:
        PackagesMissingError: Pulumi's packages are not installed.
    """
    require_packages()
    deadline = time.monotonic() + timeout
    with ExitStack() as stack:
        runs = [
            stack.enter_context(_running(request)) if request.names else None
            for request in requests
        ]
        results = [_results(run, _wait(run, deadline, timeout)) if run else {} for run in runs]
        # Only now, as the lines of programs that run in parallel would mix.
        sys.stderr.writelines(
            f"{line}\n" for run in runs if run for line in _printed_lines(run.log)
        )
    return results


@contextmanager
def _running(request: ProgramRequest) -> Iterator[_RunningProgram]:
    """Start a program, and kill it with its process group in the end, also after an interrupt."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="tpucfg-program-"))
    # -P: no module of the current folder shadows one of tpucfg's. -B: no `__pycache__` in a user's work tree.
    command = [
        sys.executable,
        "-PBu",
        "-m",
        "tpucfg.infra.stack_program",
        os.fspath(request.spec),
        *request.names,
    ]
    # Files and no pipes: the system limits their size, and they need no reader while the program runs.
    with tempfile.TemporaryFile() as results, tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=results,
            stderr=log,
            env=_variables(folder),
            start_new_session=True,
        )
        try:
            yield _RunningProgram(request, process, results, log)
        finally:
            _kill_group(process)
            process.wait()
            # A program can nest folders deeper than they can be deleted.
            with contextlib.suppress(RecursionError):
                shutil.rmtree(folder, ignore_errors=True)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _variables(folder: str) -> dict[str, str]:
    """Return the environment of a program, without credentials and without access to later steps of a workflow."""
    passed = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    # An installation in the user's home would not be found in another one.
    return (
        passed | {"PYTHONUSERBASE": site.getuserbase()} | dict.fromkeys(_FOLDER_VARIABLES, folder)
    )


def _wait(run: _RunningProgram, deadline: float, timeout: float) -> str:
    """Wait for a program and stop what it left behind; return the reason why results may be missing."""
    try:
        status = run.process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"the stack program was stopped after the timeout of {timeout:g} seconds"
    finally:
        _kill_group(run.process)
    cause = f"by signal {-status}" if status < 0 else f"with status {status}"
    return f"the stack program ended its process {cause} before its results were complete"


def _results(run: _RunningProgram, reason: str) -> ProgramResults:
    """Return the results of a program that has ended; an environment without a complete line has failed."""
    request = run.request
    run.results.seek(0)
    output = run.results.read(MAX_RESULT_BYTES + 1)
    if len(output) > MAX_RESULT_BYTES:
        output, reason = (
            b"",
            f"the stack program declares more than {MAX_RESULT_BYTES // 2**20} MiB",
        )
    # A line without a line break was cut off.
    file = read_resource_file("", output[: output.rfind(b"\n") + 1])
    if file.problem:
        return dict.fromkeys(request.names, ProgramFailure(_MALFORMED))
    spec, environments = str(request.spec), request.project.environments
    known = [environments[name] for name in request.names if (spec, name) in file.environments]
    return dict.fromkeys(request.names, ProgramFailure(reason)) | file.declared(spec, known)


def _printed_lines(log: IO[bytes]) -> Iterator[str]:
    """Yield what a program printed, within a limit, each line with a prefix."""
    size = log.seek(0, os.SEEK_END)
    log.seek(0)
    for line in log_lines(log.read(MAX_LOG_BYTES).decode("utf-8", "replace")):
        yield f"{_PREFIX}{redact(line)}"
    if size > MAX_LOG_BYTES:
        yield f"{_PREFIX}… {format_count(size - MAX_LOG_BYTES, 'more byte')}"


def log_lines(text: str) -> list[str]:
    """Return the lines of a text that a program wrote, none of which a log takes as a command."""
    lines = (printable(line) for line in text.replace("\r", "\n").split("\n"))
    return [
        _COMMAND_AT_START.sub(r"\1: :", line.replace("##[", "# #["))
        for line in lines
        if line.strip()
    ]


# The process of a program.


def main(spec: str, *names: str) -> None:
    """Run the stack program of a spec once per environment, and write each result to stdout."""
    _limit_files()
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What the program prints belongs in the log.
    os.dup2(2, 1)
    project = parse_project(read_file(Path(spec))).project
    for name in names:
        results.write(f"{_result_line(Path(spec), project, name)}\n")
        # A program that ends the process takes down only the environments after this one.
        results.flush()


def _limit_files() -> None:
    """Limit the size of each file that this process and those below it write, the results among them."""
    import resource

    limit = MAX_RESULT_BYTES + 1
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def _result_line(spec: Path, project: Project | None, name: str) -> str:
    declared: Declared
    if project is None or name not in project.environments:
        declared = ProgramFailure(f"the spec has no environment {name}")
    else:
        try:
            declared = run_stack_program(spec, project, name)
        except ProgramError as error:
            declared = ProgramFailure(str(error))
    try:
        return json.dumps(document_data(str(spec), {name: declared}), default=_asset_fields)
    except (RecursionError, TypeError, ValueError) as error:
        reason = f"the stack program declares a value without a JSON form: {type(error).__name__}: {error}"
        return json.dumps(document_data(str(spec), {name: ProgramFailure(reason)}))


def _asset_fields(value: Any) -> Any:
    """Return an asset or archive as its fields, so that two with equal content compare equal."""
    return {type(value).__name__: vars(value)}


if __name__ == "__main__":
    main(*sys.argv[1:])
