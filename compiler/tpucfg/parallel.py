"""One function over many things, on as many cores as there are."""

import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Thing = TypeVar("Thing")
Made = TypeVar("Made")

_WORTH_IT: Final = 40
"""Things for each process: a process takes about as long to start as a dozen specs to render."""
_MOST: Final = 16
"""Processes: a container may show more cores than it may use."""
_HANDED_OVER: Final = 16
"""Things at a time: few enough that no process is idle while another has much left."""


class _Raised(NamedTuple):
    """What came of a thing instead."""

    error: Exception


_work: Callable[[Any], Any]
"""What this process does; it is born with it, so that nothing of it is sent."""


class LostWorkerError(Exception):
    """One of the processes was ended by somebody else."""


def parallel_map(work: Callable[[Thing], Made], things: Sequence[Thing]) -> Generator[Made, None, None]:
    """What `work` makes of each thing, in their order: the same as `map` does, sooner.

    The first is made here: what that imports and remembers, the processes are born with. Close it to end them early.

    Args:
        work: depends on the thing alone; what it raises is raised here, and what it returns or raises can be pickled.
        things: can be pickled, too.

    Raises:
        LostProcessError: One of the processes was ended by somebody else, for want of memory say.
    """
    first = 0
    if (workers := min(_cores(), _MOST, len(things) // _WORTH_IT)) > 1:
        yield work(things[0])
        first = 1
        with _pool(workers, work) as pool:
            if pool:
                yield from _made(pool, things[1:])
                return
    yield from map(work, things[first:])


def _cores() -> int:
    """Those that this process may use; one where a process cannot be safely doubled (macOS) or made at all."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


@contextmanager
def _pool(workers: int, work: Callable[[Any], Any]) -> "Iterator[ProcessPoolExecutor | None]":
    """The processes, gone in the end whatever happens; None where the system has no means for them."""
    pool = None
    try:
        with _undisturbed():
            pool = _started(workers, work)
        yield pool
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits until all processes are there, and are known here."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _started(workers: int, work: Callable[[Any], Any]) -> "ProcessPoolExecutor | None":
    try:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        pool = ProcessPoolExecutor(workers, get_context("fork"), _begin, (work,))
        pool.submit(os.getpid)  # starts them all
    except (OSError, NotImplementedError, ImportError):  # no semaphores, or no more processes
        return None
    return pool


def _made(pool: "ProcessPoolExecutor", things: Sequence[Any]) -> Iterator[Any]:
    from concurrent.futures.process import BrokenProcessPool

    try:
        for made in pool.map(_one, things, chunksize=_HANDED_OVER):
            if isinstance(made, _Raised):
                raise made.error
            yield made
    except BrokenProcessPool:
        raise LostWorkerError from None


def _begin(work: Callable[[Any], Any]) -> None:
    """In a new process: Ctrl-C reaches all of them, and the first one, whose end is this one's too, says so."""
    global _work  # noqa: PLW0603 - a process has one work in its life
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_first, daemon=True).start()
    _work = work


def _end_with_the_first() -> None:
    from multiprocessing import parent_process

    if first := parent_process():
        first.join()
        os._exit(1)


def _one(thing: Any) -> Any:
    try:
        return _work(thing)
    except Exception as error:  # noqa: BLE001 - handed over, as what was made before it in the same hand is wanted still
        return _Raised(error)
