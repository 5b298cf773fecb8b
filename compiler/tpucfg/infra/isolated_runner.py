"""The stack programs of several specs, each in a process of its own, which it cannot leave to speak for another.

A program may end its process, replace what is imported there, or go on for ever: none of that reaches who asks.
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
"""Seconds for all environments of a spec: forty times what the import of Pulumi and sixteen environments take."""
MAX_OUTPUT_BYTES: Final = 32 * 2**20
"""Of what a program declares: a thousand times what eight environments do."""
_DEEPEST: Final = 64
"""Levels of a resource's inputs; Google's deepest type has a dozen."""
_SECRETIVE: Final = ("TOKEN", "SECRET", "PASSPHRASE", "PASSWORD", "CREDENTIAL", "PRIVATE_KEY", "API_KEY")
"""What the name of a variable holds whose value is for nobody else."""
_OF_THE_RUNNER: Final = (
    "ACTIONS_",
    "INPUT_",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
)
"""How names begin by which a step asks GitHub for an identity, or tells later steps what to do:
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands#environment-files."""


class ProgramFailure(NamedTuple):
    """Why it is not known what a program declares for an environment."""

    reason: str


class ProgramRequest(NamedTuple):
    """The environments of one spec."""

    spec: Path
    project: Project
    names: tuple[str, ...]


ProgramResults = Mapping[str, EnvironmentResources | ProgramFailure]


def run_isolated(asked: Sequence[ProgramRequest], limit: float = TIMEOUT_SECONDS) -> list[ProgramResults]:
    """What the program of each spec declares for its environments, all of them run at the same time.

    Raises:
        PackagesMissingError: There is nothing to run one with.
    """
    with ThreadPoolExecutor(max(1, len(asked))) as pool:
        return list(pool.map(lambda one: _answers(one, limit), asked))


def worker_environment() -> dict[str, str]:
    """The variables without those that give rights, or a word in later steps of a workflow."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_OF_THE_RUNNER) and not any(word in name.upper() for word in _SECRETIVE)
    }


def _answers(asked: ProgramRequest, limit: float) -> ProgramResults:
    if not asked.names:
        return {}
    said, why = _run(asked, limit)
    answers: dict[str, EnvironmentResources | ProgramFailure] = {}
    for name, line in zip(asked.names, _lines(said), strict=False):
        answers[name] = _answer(asked, name, line)
    return answers | {name: ProgramFailure(why) for name in asked.names if name not in answers}


def _lines(said: bytes) -> Iterator[bytes]:
    """The whole ones: what was cut off says nothing."""
    return (line for line in said.splitlines(keepends=True) if line.endswith(b"\n"))


def _run(asked: ProgramRequest, limit: float) -> tuple[bytes, str]:
    """What the process wrote, and why there is no more of it."""
    there, here = os.pipe()
    try:
        # -P: a module of the current folder is not taken for one of the tool's.
        command = [sys.executable, "-P", "-m", "tpucfg.infra.worker", os.fspath(asked.spec), str(here), *asked.names]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=(here,),
            env=worker_environment(),
            start_new_session=True,
        )
    except OSError as error:
        os.close(there)
        return b"", f"the stack program could not be started: {error.strerror or error}"
    finally:
        os.close(here)
    try:
        said, why = _read(there, time.monotonic() + limit, limit)
        if not why:
            why = _ended(process)
        return said, why
    finally:
        os.close(there)
        _kill(process)


def _read(pipe: int, end: float, limit: float) -> tuple[bytes, str]:
    said = bytearray()
    with selectors.DefaultSelector() as waiting:
        waiting.register(pipe, selectors.EVENT_READ)
        while True:
            if not waiting.select(max(0.0, end - time.monotonic())):
                return bytes(said), f"the stack program had not ended after {limit:g} seconds, and was stopped"
            piece = os.read(pipe, 2**16)
            if not piece:
                return bytes(said), ""
            said += piece
            if len(said) > MAX_OUTPUT_BYTES:
                return b"", f"the stack program declares more than {MAX_OUTPUT_BYTES // 2**20} MiB"


def _ended(process: "subprocess.Popen[bytes]") -> str:
    try:
        status = process.wait(1.0)
    except subprocess.TimeoutExpired:
        return "the stack program closed the pipe by which it is asked what it declares"
    by = f"by the signal {-status}" if status < 0 else f"with status {status}"
    return f"the stack program ended its process {by}, before it had said what it declares"


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """It, and whatever it started and left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answer(asked: ProgramRequest, name: str, line: bytes) -> EnvironmentResources | ProgramFailure:
    try:
        told = json.loads(line, parse_constant=_refused)
        if isinstance(told, dict) and told.get("environment") == name:
            if set(told) == {"environment", "missing"}:
                raise PackagesMissingError(str(told["missing"]))
            if set(told) == {"environment", "error"}:
                return ProgramFailure(str(told["error"]))
            if set(told) == {"environment", "resources", "outputs"} and isinstance(told["outputs"], dict):
                resources = tuple(sorted(map(_resource, told["resources"]), key=lambda it: (it.type, it.name)))
                return EnvironmentResources(asked.project.environments[name], resources, told["outputs"])
    except (ValueError, TypeError, RecursionError):
        pass
    return ProgramFailure("what the stack program's process says it declares is not in the form that was asked for")


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def _resource(told: Any) -> Resource:
    if not isinstance(told, dict) or set(told) != set(Resource._fields) or not isinstance(told["inputs"], dict):
        raise ValueError
    words, marks = (told["type"], told["name"]), (told["protect"], told["retain"])
    if not all(isinstance(it, str) for it in words) or not all(isinstance(it, bool) for it in marks):
        raise ValueError
    _not_too_deep(told["inputs"], _DEEPEST)
    return Resource(**told)


def _not_too_deep(value: Any, left: int) -> None:
    if not left:
        raise ValueError
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _not_too_deep(item, left - 1)
