"""Run each stack program in its own process, so it cannot forge another's output.

A program may end its process, replace imported modules or loop forever; none of that affects the caller.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.infra.stack_program import PackagesMissingError
from tpucfg.spec.project import Project

TIMEOUT_SECONDS: Final = 120.0
"""Timeout for all environments of a spec: forty times the time to import Pulumi and run sixteen environments."""
MAX_OUTPUT_BYTES: Final = 32 * 2**20
"""Size limit of a program's results: a thousand times the size of eight environments."""
_MAX_INPUT_DEPTH: Final = 64
"""Nesting limit of a resource's inputs; Google's deepest type has a dozen levels."""
_SECRET_NAME_PARTS: Final = ("TOKEN", "SECRET", "PASSPHRASE", "PASSWORD", "CREDENTIAL", "PRIVATE_KEY", "API_KEY")
"""Parts of a variable's name that mark its value as a secret."""
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


class ProgramFailure(NamedTuple):
    """The reason why the resources of an environment are unknown."""

    reason: str


class ProgramRequest(NamedTuple):
    """The environments of one spec to run the stack program for."""

    spec: Path
    project: Project
    names: tuple[str, ...]


ProgramResults = Mapping[str, EnvironmentResources | ProgramFailure]


def run_isolated(requests: Sequence[ProgramRequest], timeout: float = TIMEOUT_SECONDS) -> list[ProgramResults]:
    """Run the stack program of each spec, all specs in parallel, and return the resources by environment.

    Raises:
        PackagesMissingError: Pulumi's packages are not installed.
    """
    with ThreadPoolExecutor(max(1, len(requests))) as pool:
        return list(pool.map(lambda request: _run_request(request, timeout), requests))


def variables_without_secrets() -> dict[str, str]:
    """Return the environment variables without secrets and without access to later steps of a workflow."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_WORKFLOW_PREFIXES) and not any(part in name.upper() for part in _SECRET_NAME_PARTS)
    }


def _run_request(request: ProgramRequest, timeout: float) -> ProgramResults:
    if not request.names:
        return {}
    output, failure = _run_worker(request, timeout)
    results: dict[str, EnvironmentResources | ProgramFailure] = {}
    # Fewer lines than names: the process ended early, and `failure` is the reason for the rest.
    for name, line in zip(request.names, _complete_lines(output), strict=False):
        results[name] = _parse_result(request, name, line)
    return results | {name: ProgramFailure(failure) for name in request.names if name not in results}


def _complete_lines(output: bytes) -> Iterator[bytes]:
    """Yield the lines with a line break: a line without one was cut off."""
    return (line for line in output.splitlines(keepends=True) if line.endswith(b"\n"))


def _run_worker(request: ProgramRequest, timeout: float) -> tuple[bytes, str]:
    """Return the output of the worker process, and the reason why it ended before its last line, if it did."""
    read_end, write_end = os.pipe()
    try:
        # -P: no module of the current folder shadows one of tpucfg's.
        command = [sys.executable, "-P", "-m", "tpucfg.infra.worker"]
        process = subprocess.Popen(
            [*command, os.fspath(request.spec), str(write_end), *request.names],
            stdin=subprocess.DEVNULL,
            # The program's own prints must not mix with the command's output on stdout.
            stdout=2,
            pass_fds=(write_end,),
            env=variables_without_secrets(),
            # A process group of its own, so that _kill also ends processes that the program started.
            start_new_session=True,
        )
    except OSError as error:
        os.close(read_end)
        return b"", f"the stack program could not be started: {error.strerror or error}"
    finally:
        os.close(write_end)
    try:
        output, failure = _read_pipe(read_end, timeout)
        return output, failure or _exit_reason(process)
    finally:
        os.close(read_end)
        _kill(process)


def _read_pipe(pipe: int, timeout: float) -> tuple[bytes, str]:
    """Read until the end of the pipe; return the output, and the reason for stopping earlier, if any."""
    deadline = time.monotonic() + timeout
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return bytes(output), f"the stack program was stopped after the timeout of {timeout:g} seconds"
            chunk = os.read(pipe, 2**16)
            if not chunk:
                return bytes(output), ""
            output += chunk
            if len(output) > MAX_OUTPUT_BYTES:
                return b"", f"the stack program declares more than {MAX_OUTPUT_BYTES // 2**20} MiB"


def _exit_reason(process: "subprocess.Popen[bytes]") -> str:
    try:
        status = process.wait(1.0)
    except subprocess.TimeoutExpired:
        return "the stack program closed the pipe for its results"
    cause = f"by signal {-status}" if status < 0 else f"with status {status}"
    return f"the stack program ended its process {cause} before its results were complete"


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process and every process that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _parse_result(request: ProgramRequest, name: str, line: bytes) -> EnvironmentResources | ProgramFailure:
    """Parse one line of the pipe, which the program could have written itself: every field is checked."""
    try:
        result = json.loads(line, parse_constant=_reject_constant)
        if isinstance(result, dict) and result.get("environment") == name:
            if set(result) == {"environment", "missing"}:
                raise PackagesMissingError(str(result["missing"]))
            if set(result) == {"environment", "error"}:
                return ProgramFailure(str(result["error"]))
            if set(result) == {"environment", "resources", "outputs"} and isinstance(result["outputs"], dict):
                # By type and name only: inputs of two resources with equal names do not compare.
                resources = sorted(map(_parse_resource, result["resources"]), key=lambda item: (item.type, item.name))
                return EnvironmentResources(request.project.environments[name], tuple(resources), result["outputs"])
    except (ValueError, TypeError, RecursionError):
        pass
    return ProgramFailure("the result of the stack program's process is malformed")


def _reject_constant(constant: str) -> Any:
    """Reject NaN and infinities, which are not JSON."""
    raise ValueError(constant)


def _parse_resource(fields: Any) -> Resource:
    if not isinstance(fields, dict) or set(fields) != set(Resource._fields) or not isinstance(fields["inputs"], dict):
        raise ValueError
    texts, flags = (fields["type"], fields["name"]), (fields["protect"], fields["retain"])
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(flag, bool) for flag in flags):
        raise ValueError
    _check_depth(fields["inputs"], _MAX_INPUT_DEPTH)
    return Resource(**fields)


def _check_depth(value: Any, levels_left: int) -> None:
    if not levels_left:
        raise ValueError
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(item, levels_left - 1)
