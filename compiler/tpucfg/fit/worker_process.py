"""The processes that compile rungs: each is started, read without blocking, and ended with all that it has started.

A process runs the user's program, which may crash, hang, print without end, close its pipes, or start daemons. What it
prints is kept only in part, and shown only if it fails. They run side by side, and end if the caller stops waiting.
"""

import json
import os
import secrets
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from tpucfg.fit.answers import (
    AnswerError,
    Cause,
    FitFailure,
    Phase,
    ProcessEnd,
    StepResult,
    parse_answer,
)
from tpucfg.fit.machine import (
    container_command,
    kill_container,
    kill_marked,
    main_process,
    prefer_for_out_of_memory,
    session_memory,
)

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
        self._answer: StepResult | FitFailure | None = None
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


def _start(
    launch: Launch, answers: int, marker: str, name: str, seconds: float
) -> "subprocess.Popen[bytes]":
    command, env = [launch.python, "-B", str(WORKER), str(answers)], dict(launch.env)
    if name:
        # Docker's own variables, such as DOCKER_HOST, are the caller's.
        command = container_command(launch.image, name, launch.folder, WORKER, launch.env, seconds)
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


# Compilations side by side, as many as memory allows. One thread reads all processes.

_POLL_SECONDS: Final = 0.1
_MEMORY_SECONDS: Final = 1.0
"""Interval of measuring the memory, which reads a file for each process of the machine."""


class Limits(NamedTuple):
    """The limits of compilations."""

    jobs: int
    """Compilations side by side."""
    seconds: float
    """The longest that one may take."""
    memory: int
    """The bytes that all of them together may use."""


class Task(NamedTuple):
    """A compilation that has to be done."""

    name: str
    """Its name in messages."""
    launch: Callable[[], Launch | None]
    """Returns the values for its process when its turn comes; None if it is not needed any more."""
    lane: Hashable
    """Tasks of one lane run one after the other: a later one uses the results of an earlier one."""


class Running(NamedTuple):
    """A compilation that is being done."""

    task: Task
    process: WorkerProcess


TaskEnd = ProcessEnd | None
"""The end of a task: None if it was not needed any more."""
Observer = Callable[[Sequence[Running]], None]
"""Called several times a second with the compilations that run; an exception that it raises ends them."""


def run_tasks(
    tasks: Sequence[Task], limits: Limits, observe: Observer
) -> Generator[tuple[Task, TaskEnd], None, None]:
    """Run the tasks, and yield the end of each; closing the iterator ends those that still run."""
    schedule = _TaskScheduler(tasks, limits)
    try:
        while schedule.is_busy:
            yield from schedule.start()
            observe(schedule.running)
            schedule.read()
            yield from schedule.ended()
            yield from schedule.ended_for_memory()
    finally:
        schedule.close()


class _TaskScheduler:
    def __init__(self, tasks: Sequence[Task], limits: Limits) -> None:
        self.running: list[Running] = []
        self._pending = list(tasks)
        self._limits = limits
        self._jobs = limits.jobs
        self._selector = selectors.DefaultSelector()
        self._memory_measured = time.monotonic()

    @property
    def is_busy(self) -> bool:
        return bool(self._pending or self.running)

    def start(self) -> Iterator[tuple[Task, TaskEnd]]:
        """Start as many tasks as may run; yield those that end at once."""
        while len(self.running) < self._jobs and (task := self._next()):
            self._pending.remove(task)
            launch = task.launch()
            if launch is None:
                yield task, None
                continue
            try:
                process = WorkerProcess(launch, self._limits.seconds)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                yield task, ProcessEnd("no-start", None, "", 0, "", 0.0, reason)
                continue
            self.running.append(Running(task, process))
            for pipe in process.pipes:
                self._selector.register(pipe, selectors.EVENT_READ, process)

    def read(self) -> None:
        """Read what the processes have written, and wait a moment if they have not."""
        for key, _ in self._selector.select(_POLL_SECONDS):
            if not key.data.read(key.fd):
                self._selector.unregister(key.fd)

    def ended(self) -> Iterator[tuple[Task, TaskEnd]]:
        """Yield the tasks whose process has ended, or has to be ended."""
        for running in tuple(self.running):
            if cause := running.process.check():
                yield running.task, self._end(running, cause)

    def ended_for_memory(self) -> Iterator[tuple[Task, TaskEnd]]:
        """Yield the task that needs too much memory alone; of several, the last one is started again later."""
        if time.monotonic() - self._memory_measured < _MEMORY_SECONDS:
            return
        self._memory_measured = time.monotonic()
        if (
            not self.running
            or sum(running.process.memory() for running in self.running) <= self._limits.memory
        ):
            return
        last = self.running[-1]
        if len(self.running) == 1:
            yield last.task, self._end(last, "memory")
            return
        self._jobs = len(self.running) - 1
        self._remove(last)
        last.process.kill()
        self._pending.insert(0, last.task)

    def close(self) -> None:
        """End all processes."""
        for running in self.running:
            running.process.kill()
        self._selector.close()

    def _next(self) -> Task | None:
        """Return the first task whose lane is free."""
        busy = {running.task.lane for running in self.running}
        return next((task for task in self._pending if task.lane not in busy), None)

    def _end(self, running: Running, cause: Cause) -> ProcessEnd:
        self._remove(running)
        return running.process.end(cause)

    def _remove(self, running: Running) -> None:
        self.running.remove(running)
        for pipe in running.process.pipes:
            if pipe in self._selector.get_map():
                self._selector.unregister(pipe)
