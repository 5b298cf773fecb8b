"""Run stack programs in processes of their own, so that none can alter this process or make it wait for ever.

This module is also the program of such a process: `python -m tpucfg.infra.program_process SPEC ENVIRONMENT...`. It
writes a document of a resource file for each environment, which the stack program could have written itself: a reader
believes nothing but its form. A process can read and write what its user can. It gets no credentials by variables or
the user's folders, but it is not confined: the program of a stranger belongs in a job without permissions.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from tpucfg.infra.resources import Declared, ProgramFailure, document_data, read_resource_file
from tpucfg.infra.stack_program import ProgramError, require_packages, run_stack_program
from tpucfg.redaction import redact
from tpucfg.spec import Project
from tpucfg.spec.parse import parse_project
from tpucfg.text_format import format_count, printable
from tpucfg.yamldoc.reader import read_file

TIMEOUT_SECONDS: Final = 120.0
"""Timeout for all programs: forty times the time to import Pulumi and run sixteen environments."""
MAX_RESULT_BYTES: Final = 32 * 2**20
"""Limit of a program's results: a thousand times the size of eight environments."""
MAX_LOG_BYTES: Final = 2**16
"""Limit of what a log shows of a program's prints: hundreds of warnings."""
_PASSED_VARIABLES: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONPATH")
"""The only variables of this process that a program gets."""
_FOLDER_VARIABLES: Final = (
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "CLOUDSDK_CONFIG",
    "PULUMI_HOME",
    "TMPDIR",
    "TEMP",
    "TMP",
)
"""Folders in which tools look for credentials and settings, or write; a program gets an empty one for all of them."""
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


class _Run(NamedTuple):
    """A running program, and the files that it writes to."""

    request: ProgramRequest
    process: "subprocess.Popen[bytes]"
    results: IO[bytes]
    log: IO[bytes]


def run_programs(requests: Sequence[ProgramRequest], timeout: float = TIMEOUT_SECONDS) -> list[ProgramResults]:
    """Run the stack program of each spec, all at once; return the resources by environment, and print what they print.

    Raises:
        PackagesMissingError: Pulumi's packages are not installed.
    """
    require_packages()
    deadline = time.monotonic() + timeout
    with ExitStack() as stack:
        runs = [stack.enter_context(_running(request)) if request.names else None for request in requests]
        results = [_results(run, _wait(run, deadline, timeout)) if run else {} for run in runs]
        # Only now, as the lines of programs that run in parallel would mix.
        sys.stderr.writelines(f"{line}\n" for run in runs if run for line in _printed_lines(run.log))
    return results


@contextmanager
def _running(request: ProgramRequest) -> Iterator[_Run]:
    """Start a program, and kill it with its process group in the end, also after an interrupt."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="tpucfg-program-"))
    # -P: no module of the current folder shadows one of tpucfg's. -B: no `__pycache__` in a user's work tree.
    command = [sys.executable, "-PBu", "-m", "tpucfg.infra.program_process", os.fspath(request.spec), *request.names]
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
            yield _Run(request, process, results, log)
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
    return passed | {"PYTHONUSERBASE": site.getuserbase()} | dict.fromkeys(_FOLDER_VARIABLES, folder)


def _wait(run: _Run, deadline: float, timeout: float) -> str:
    """Wait for a program and stop what it left behind; return the reason why results may be missing."""
    try:
        status = run.process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"the stack program was stopped after the timeout of {timeout:g} seconds"
    finally:
        _kill_group(run.process)
    cause = f"by signal {-status}" if status < 0 else f"with status {status}"
    return f"the stack program ended its process {cause} before its results were complete"


def _results(run: _Run, reason: str) -> ProgramResults:
    """Return the results of a program that has ended; an environment without a complete line has failed."""
    request = run.request
    run.results.seek(0)
    output = run.results.read(MAX_RESULT_BYTES + 1)
    if len(output) > MAX_RESULT_BYTES:
        output, reason = b"", f"the stack program declares more than {MAX_RESULT_BYTES // 2**20} MiB"
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
    return [_COMMAND_AT_START.sub(r"\1: :", line.replace("##[", "# #[")) for line in lines if line.strip()]


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
