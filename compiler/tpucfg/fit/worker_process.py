"""One process that compiles one rung: started, read without blocking, and ended with everything that it has started.

The process runs the user's program, which may crash, hang, print without end, close its pipes, or start daemons. What
it prints is kept only in part, and shown only if it fails.
"""

import json
import os
import re
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple

from tpucfg import schemas
from tpucfg.fit.fit_file import Compiler, Figures, contradiction, parse_figures
from tpucfg.fit.machine import (
    container_command,
    kill_container,
    kill_marked,
    main_process,
    prefer_for_out_of_memory,
    session_memory,
)
from tpucfg.strict_json import AmbiguousJsonError, parse_strict_json, small_integer
from tpucfg.text_format import format_value

# The answers. The user's program runs in the process and could write them, so all is checked.

_SCHEMA: Final = "fit-answer"
_MAX_FILES: Final = 5000
"""The files of a program that a result keeps: as many as the schema of the file of results allows."""
_FILE: Final = re.compile(r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[^\x00-\x1f\x7f\\\ud800-\udfff]{1,1000}")
"""A path below the spec's folder that a result can name."""


class Phase(NamedTuple):
    """A phase of the compilation that has begun."""

    name: str
    """`import`, `trace`, `lower` or `compile`."""


class StepResult(NamedTuple):
    """A compiled step, or one that is equal to a known one and was not compiled again."""

    compiler: Compiler
    files: tuple[str, ...]
    """The files that the program imports and opens, relative to the spec's folder."""
    stablehlo: str
    figures: Figures | None
    """None for a step that is known."""
    lower_seconds: float | None = None
    compile_seconds: float | None = None
    """None too for a step that is known."""


class Frame(NamedTuple):
    """A line of the user's program that an exception passed."""

    file: str
    line: int
    name: str
    """The function."""
    code: str
    """The source line."""


class StepFailure(NamedTuple):
    """A failure that the process has recognized itself."""

    kind: str
    message: str
    frames: tuple[Frame, ...]
    """The innermost last."""


Answer = Phase | StepResult | StepFailure


class AnswerError(ValueError):
    """A line that is no answer."""


def parse_answer(line: bytes) -> Answer:
    """Parse one line.

    Raises:
        AnswerError: It does not match the schema of an answer, or contradicts itself.
    """
    try:
        data = parse_strict_json(line.decode(), small_integer)
    except (AmbiguousJsonError, json.JSONDecodeError, UnicodeDecodeError):
        data = None
    if not schemas.is_valid(_SCHEMA, data):
        raise AnswerError(format_value(line.decode("utf-8", "replace"), quoted=False))
    if "phase" in data:
        return Phase(data["phase"])
    if "error" in data:
        return _failure(data["error"])
    result = _result(data["result"])
    if result.figures and (problem := contradiction(result.figures.memory, fits=result.figures.fits)):
        raise AnswerError(problem)
    return result


def _failure(data: Any) -> StepFailure:
    frames = (Frame(row["file"], int(row["line"]), row["name"], row["code"]) for row in data["frames"])
    return StepFailure(data["kind"], data["message"], tuple(frames))


def _result(data: Any) -> StepResult:
    # A file with an odd name cannot be compared later; a step that uses one is compiled all the same. Imported files
    # come first, and are kept where a program opens too many others.
    files = [name for name in data["files"] if _FILE.fullmatch(name)]
    result = StepResult(
        Compiler(data["jax"], data["libtpu"], data.get("framework", "")),
        tuple(sorted(list(dict.fromkeys(files))[:_MAX_FILES])),
        data["stablehlo"],
        None,
    )
    if data["known"]:
        return result
    return result._replace(
        figures=parse_figures(data),
        lower_seconds=float(data["seconds"]["lower"]),
        compile_seconds=float(data["seconds"]["compile"]),
    )


# The process.

WORKER: Final = Path(__file__).parent / "worker" / "compile_step.py"
"""The program that compiles a step in the user's Python."""

MAX_ANSWER_BYTES: Final = 16 << 20
"""Limit of all answers of a process: a hundred thousand files with long names."""
MAX_OUTPUT_BYTES: Final = 32 << 10
"""The last bytes that a process prints are kept."""
_MARKER: Final = "TPUCFG_FIT_PROCESS"
"""The variable by which the descendants of a process are recognized."""
_GRACE_SECONDS: Final = 10.0
"""Time for a process to end by itself after its last answer."""
_CHUNK_BYTES: Final = 1 << 16
_MAX_LAST_CHUNKS: Final = 300
"""Chunks that are read after the end of a process: enough for all answers, although a daemon may print without end."""

Cause = Literal["answered", "exited", "timeout", "memory", "mute", "malformed"]


class Launch(NamedTuple):
    """The values that a process is started with."""

    python: str
    """The path of the user's Python."""
    folder: Path
    """The spec's folder, in which the process runs."""
    env: Mapping[str, str]
    request: Mapping[str, Any]
    image: str = ""
    """The image in which the process runs; empty for a process of this machine."""


class ProcessEnd(NamedTuple):
    """The end of a process, and what it reported."""

    cause: Cause
    """`answered` if it gave a result or an error. Else it exited without, took too long or too much memory, closed its
    pipe (`mute`), or wrote something that is no answer."""
    answer: StepResult | StepFailure | None
    phase: str
    """The phase that had begun last; empty if none had."""
    status: int
    """The exit status; negative for the number of a signal."""
    output: str
    """The end of what it printed."""
    seconds: float
    detail: str = ""
    """The line that is no answer."""


class WorkerProcess:
    """A running compilation. Its pipes have to be read whenever they are ready, and `check` called in between."""

    def __init__(self, launch: Launch, time_limit: float) -> None:
        """Start the process.

        Raises:
            OSError: The Python cannot be started.
            ValueError: A variable has a name or a value that no process can have.
        """
        self.started = time.monotonic()
        self.phase = ""
        self._deadline = self.started + time_limit
        self._cause_at_deadline: Cause = "timeout"
        self._answer: StepResult | StepFailure | None = None
        self._malformed: str | None = None
        self._line = bytearray()
        self._answer_bytes = 0
        self._output = bytearray()
        self._marker = f"{_MARKER}={secrets.token_hex(16)}"
        self._container = f"tpucfg-fit-{self._marker[-16:]}" if launch.image else ""
        self._session: int | None = None
        self._answers, answers_end = os.pipe()
        try:
            self._process = _start(launch, answers_end, self._marker, self._container, time_limit)
        except BaseException:
            os.close(self._answers)
            raise
        finally:
            os.close(answers_end)
        self._printed: IO[bytes] = self._process.stdout or self._process.stderr  # type: ignore[assignment] # a pipe
        self.pipes = (self._answers, self._printed.fileno())
        """The descriptors to read."""
        for pipe in self.pipes:
            os.set_blocking(pipe, False)

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return time.monotonic() - self.started

    def memory(self) -> int:
        """Return the resident bytes of the process and those that it has started."""
        if self._session is None:
            self._session = main_process(self._container) if self._container else self._process.pid
        return session_memory(self._session) if self._session else 0

    def read(self, pipe: int) -> bool:
        """Read what a pipe has; return False at its end."""
        try:
            chunk = os.read(pipe, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if pipe != self._answers:
            self._output += chunk
            del self._output[:-MAX_OUTPUT_BYTES]
        elif chunk:
            self._add_answers(chunk)
        elif self._answer is None:
            self._expect_end("mute")
        return bool(chunk)

    def check(self) -> Cause | None:
        """Return the cause if the process has ended, or has to be ended now; None while it runs."""
        if _has_exited(self._process.pid):
            return "exited"
        if self._malformed is not None:
            return "malformed"
        return self._cause_at_deadline if time.monotonic() > self._deadline else None

    def end(self, cause: Cause) -> ProcessEnd:
        """End the process with all that it has started, and return what it reported."""
        for pipe in self.pipes:
            for _ in range(_MAX_LAST_CHUNKS):
                if not self.read(pipe):
                    break
        seconds = self.seconds
        self.kill()
        if self._malformed is not None:
            cause = "malformed"
        elif self._answer:
            cause = "answered"
        return ProcessEnd(
            cause,
            self._answer if cause == "answered" else None,
            self.phase,
            self._process.returncode,
            self._output.decode("utf-8", "replace"),
            seconds,
            self._malformed or "",
        )

    def kill(self) -> None:
        """End the process with all that it has started, and close the pipes; a second call does nothing."""
        if self._process.returncode is not None:
            return
        if self._container:
            kill_container(self._container)
        with suppress(ProcessLookupError, PermissionError):
            # The process was not waited for yet, so no other one can have its id.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        kill_marked(self._marker)
        os.close(self._answers)
        self._printed.close()

    def _add_answers(self, chunk: bytes) -> None:
        self._answer_bytes += len(chunk)
        if self._answer_bytes > MAX_ANSWER_BYTES:
            self._malformed = f"more than {MAX_ANSWER_BYTES:,} bytes"
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            # Appended in place, as a copy of a long line for each chunk would take quadratic time.
            self._line += end
            if self._malformed is None:
                self._add_answer(bytes(self._line))
            self._line.clear()
        self._line += rest

    def _add_answer(self, line: bytes) -> None:
        try:
            answer = parse_answer(line)
        except AnswerError as error:
            self._malformed = str(error)
            return
        if self._answer:
            self._malformed = "an answer after the last one"
        elif isinstance(answer, Phase):
            self.phase = answer.name
        else:
            self._answer = answer
            self._expect_end("answered")

    def _expect_end(self, cause: Cause) -> None:
        self._cause_at_deadline = cause
        self._deadline = min(self._deadline, time.monotonic() + _GRACE_SECONDS)


def _start(launch: Launch, answers: int, marker: str, name: str, seconds: float) -> "subprocess.Popen[bytes]":
    command, env = [launch.python, "-B", str(WORKER), str(answers)], dict(launch.env)
    if name:
        # Docker's own variables, such as DOCKER_HOST, are the caller's.
        command = container_command(launch.image, name, launch.folder, WORKER.parent, launch.env, seconds)
        env = dict(os.environ)
    # A file and not a pipe: writing to a pipe could wait for a process that reads nothing.
    with tempfile.TemporaryFile() as request:
        request.write(json.dumps(launch.request).encode())
        request.seek(0)
        process = subprocess.Popen(
            command,
            stdin=request,
            stdout=answers if name else subprocess.PIPE,
            stderr=subprocess.PIPE if name else subprocess.STDOUT,
            cwd=launch.folder,
            env={**env, **dict([marker.split("=")])},
            pass_fds=(answers,),
            # A session of its own, so that Ctrl-C in a terminal reaches only tpucfg, which then ends all of it.
            start_new_session=True,
            bufsize=0,
        )
    prefer_for_out_of_memory(process.pid)
    return process


def _has_exited(pid: int) -> bool:
    """Return True if a child has exited; its status stays, and so does its id."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
