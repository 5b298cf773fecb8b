"""Run each stack program in a process of its own, so it can neither forge another's output nor outlive the run.

A program may end its process, replace imported modules, start others or loop forever; none of that affects the caller.
"""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.infra.isolation import kernel, landlock
from tpucfg.infra.isolation.program_output import BoundedOutput
from tpucfg.infra.isolation.supervisor import NOT_STOPPED, SIGNAL_BASE
from tpucfg.infra.isolation.worker_results import ProgramFailure, complete_lines, parse_result
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.infra.stack_program import require_packages
from tpucfg.redaction import SECRET, redact
from tpucfg.secret_names import is_secret_name
from tpucfg.spec.project import Project

TIMEOUT_SECONDS: Final = 120.0
"""Timeout for all environments of a spec: forty times the time to import Pulumi and run sixteen environments."""
MAX_OUTPUT_BYTES: Final = 32 * 2**20
"""Size limit of a program's results: a thousand times the size of eight environments."""
_POLL_SECONDS: Final = 0.2
"""Interval of looking for the end of a process whose pipes stay open, on systems that cannot stop its orphans."""
_STOP_SECONDS: Final = 20.0
"""Time for the supervisor to stop all processes of a program; it gives up earlier itself."""
_SECRET_NAME_PARTS: Final = ("TOKEN", "SECRET", "PASSPHRASE", "PASSWORD", "CREDENTIAL", "PRIVATE_KEY", "API_KEY")
"""Parts of a variable's name that mark its value as a secret, even if it is only the secret's location."""
_WORKFLOW_PREFIXES: Final = (
    "ACTIONS_",
    "INPUT_",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
)
"""Prefixes of variables with which a step requests an identity token from GitHub, or sets values for later steps:
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands#environment-files."""


class ProgramRequest(NamedTuple):
    """The environments of one spec to run the stack program for."""

    spec: Path
    project: Project
    names: tuple[str, ...]


ProgramResults = Mapping[str, EnvironmentResources | ProgramFailure]


class _Limits(NamedTuple):
    """The conditions under which a program is stopped."""

    timeout: float
    """Seconds."""
    interrupted: threading.Event
    """Set when the caller no longer waits for the results."""


class _Run(NamedTuple):
    """The output of a worker process."""

    results: bytes
    failure: str
    """The reason why it ended before its last result, if it did."""
    printed: Sequence[str]
    """Lines for the log."""


def run_isolated(requests: Sequence[ProgramRequest], timeout: float = TIMEOUT_SECONDS) -> list[ProgramResults]:
    """Run the stack program of each spec and return the resources by environment; what they print goes to stderr.

    All specs run in parallel. Where the kernel does not limit what a program writes, they run one after the other, so
    that no program can alter the files of one that precedes it.

    Raises:
        PackagesMissingError: Pulumi's packages are not installed.
    """
    require_packages()
    parallel = len(requests) if landlock.version() else 1
    limits = _Limits(timeout, threading.Event())
    with kernel.hidden_memory(), ThreadPoolExecutor(max(1, parallel)) as pool:
        try:
            runs = list(pool.map(lambda request: _run_request(request, limits), requests))
        finally:
            # After Ctrl-C, the pool would wait for its threads, and they for programs that may never end.
            limits.interrupted.set()
    # Only now, as the lines of programs that run in parallel would mix.
    sys.stderr.writelines(f"{line}\n" for run in runs for line in run.printed)
    return [_results(request, run) for request, run in zip(requests, runs, strict=True)]


def variables_without_secrets() -> dict[str, str]:
    """Return the environment variables without secrets and without access to later steps of a workflow."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_WORKFLOW_PREFIXES) and not _is_secret(name, value)
    }


def _is_secret(name: str, value: str) -> bool:
    has_secret_part = any(part in name.upper() for part in _SECRET_NAME_PARTS)
    return has_secret_part or is_secret_name(name) or SECRET in redact(value)


def _results(request: ProgramRequest, run: _Run) -> ProgramResults:
    # Fewer lines than names: the process ended early, and the failure is the reason for the rest.
    pairs = zip(request.names, complete_lines(run.results), strict=False)
    results = {name: parse_result(request.project.environments[name], line) for name, line in pairs}
    return {name: results.get(name, ProgramFailure(run.failure)) for name in request.names}


def _run_request(request: ProgramRequest, limits: _Limits) -> _Run:
    if not request.names:
        return _Run(b"", "", ())
    with _temporary_folder() as folder, contextlib.ExitStack() as stack:
        (results, results_end), (printed, printed_end) = pipes = os.pipe(), os.pipe()
        for read_end, _ in pipes:
            stack.callback(os.close, read_end)
        try:
            process = _start(request, folder, results_end, printed_end)
        except OSError as error:
            return _Run(b"", f"the stack program could not be started: {error.strerror or error}", ())
        finally:
            os.close(results_end)
            os.close(printed_end)
        return _collect(process, results, printed, limits)


def _start(request: ProgramRequest, folder: str, results: int, printed: int) -> "subprocess.Popen[bytes]":
    # -P: no module of the current folder shadows one of tpucfg's.
    command = [sys.executable, "-P", "-m", "tpucfg.infra.isolation.supervisor"]
    return subprocess.Popen(
        [*command, os.fspath(request.spec), str(results), *request.names],
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=printed,
        pass_fds=(results,),
        env=variables_without_secrets() | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder),
        # Ctrl-C in a terminal reaches only this process, which then stops the program with all that it started.
        start_new_session=True,
    )


@contextmanager
def _temporary_folder() -> Iterator[str]:
    """Create the only folder that the program can write to, and delete it afterwards."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="tpucfg-program-"))
    try:
        yield folder
    finally:
        # A program can nest folders deeper than they can be deleted.
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)


def _collect(process: "subprocess.Popen[bytes]", results: int, printed: int, limits: _Limits) -> _Run:
    """Read both pipes until the process ends, and stop it if it takes too long or too much."""
    output, log, failure = bytearray(), BoundedOutput(), ""
    try:
        for pipe, chunk in _chunks(process, (results, printed), limits):
            if pipe == printed:
                log.add(chunk)
                continue
            output += chunk
            if len(output) > MAX_OUTPUT_BYTES:
                output.clear()
                failure = f"the stack program declares more than {MAX_OUTPUT_BYTES // 2**20} MiB"
                break
    except TimeoutError:
        failure = f"the stack program was stopped after the timeout of {limits.timeout:g} seconds"
    finally:
        if failure or sys.exc_info()[0]:
            process.terminate()
        stopped = _is_stopped(process)
    if not stopped:
        return _Run(b"", "the stack program started processes that could not be stopped", log.lines())
    return _Run(bytes(output), failure or _exit_reason(process.returncode), log.lines())


def _chunks(process: "subprocess.Popen[bytes]", pipes: Sequence[int], limits: _Limits) -> Iterator[tuple[int, bytes]]:
    """Yield what the process writes to each pipe, until it ends.

    Raises:
        TimeoutError: It takes too long.
    """
    deadline = time.monotonic() + limits.timeout
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            has_ended = process.poll() is not None
            if time.monotonic() > deadline or limits.interrupted.is_set():
                raise TimeoutError
            ready = selector.select(_POLL_SECONDS)
            if has_ended and not ready:
                return
            for key, _ in ready:
                chunk = os.read(key.fd, 2**16)
                if not chunk:
                    selector.unregister(key.fd)
                yield key.fd, chunk


def _is_stopped(process: "subprocess.Popen[bytes]") -> bool:
    """Wait for the supervisor, which ends after all other processes; return False if some could not be stopped."""
    try:
        return process.wait(_STOP_SECONDS) != NOT_STOPPED
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def _exit_reason(status: int) -> str:
    signal_number = -status if status < 0 else status - SIGNAL_BASE
    cause = f"by signal {signal_number}" if signal_number > 0 else f"with status {status}"
    return f"the stack program ended its process {cause} before its results were complete"
