"""Run compilations side by side, as many as memory allows, and end all of them if the caller stops waiting.

One thread reads all processes. The observer, which it calls several times a second, may raise an exception to end them.
"""

import selectors
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from tpucfg.fit.worker_process import Cause, Launch, ProcessEnd, WorkerProcess

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


class StartFailure(NamedTuple):
    """The reason why a process could not be started."""

    reason: str


TaskEnd = ProcessEnd | StartFailure | None
"""The end of a task: None if it was not needed any more."""
Observer = Callable[[Sequence[Running]], None]
"""Called several times a second with the compilations that run; an exception that it raises ends them."""


def run_tasks(tasks: Sequence[Task], limits: Limits, observe: Observer) -> Generator[tuple[Task, TaskEnd], None, None]:
    """Run the tasks, and yield the end of each; closing the iterator ends those that still run."""
    schedule = _Schedule(tasks, limits)
    try:
        while schedule.is_busy:
            yield from schedule.start()
            observe(schedule.running)
            schedule.read()
            yield from schedule.ended()
            yield from schedule.ended_for_memory()
    finally:
        schedule.close()


class _Schedule:
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
                yield task, StartFailure(getattr(error, "strerror", None) or str(error))
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
        if not self.running or sum(running.process.memory() for running in self.running) <= self._limits.memory:
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
