"""Share the work on many items with a second process."""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

MIN_SHARED_ITEMS: Final = 100
"""With fewer items, the start of the process takes a notable part of what it saves."""


def map_shared(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    portable: Callable[[_Result], _Result | None],
) -> Iterator[_Result]:
    """Yield the result for each item, in order; of many items, a second process takes the second half.

    Whatever that process does not deliver is computed here: after an exception, which is raised here at its turn, and
    after a kill.

    Args:
        function: The function to apply; it neither prints nor writes.
        items: The items.
        portable: Returns a result as it is sent from the second process; None for one to compute here instead.
    """
    # A fork needs a core of its own. Only on Linux: elsewhere it may break system libraries.
    if (
        len(items) < MIN_SHARED_ITEMS
        or sys.platform != "linux"
        or len(os.sched_getaffinity(0)) == 1
    ):
        yield from map(function, items)
        return
    # Before the fork, so that only one process loads the modules and the data that the function needs.
    yield function(items[0])
    first, second = items[1 : len(items) // 2], items[len(items) // 2 :]
    with _second_process(lambda: [portable(function(item)) for item in second]) as receive:
        yield from map(function, first)
        received = receive() or [None] * len(second)
    for item, result in zip(second, received, strict=True):
        yield function(item) if result is None else result


@contextmanager
def _second_process(work: Callable[[], _Result]) -> Iterator[Callable[[], _Result | None]]:
    """Do work in a fork; yield the function that waits for its result, which is None if the fork has none."""
    read_end, write_end = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.close(
                read_end
            )  # else the fork would wait for itself to read when this process is killed
            with os.fdopen(write_end, "wb") as outgoing:
                pickle.dump(work(), outgoing)
        finally:
            os._exit(0)  # without any cleanup, which is the first process's task
    os.close(write_end)

    def receive() -> _Result | None:
        try:
            result: _Result = pickle.loads(incoming.read())  # noqa: S301 - written by a fork of this process
        except (EOFError, pickle.UnpicklingError):  # it has sent nothing, or only a part
            return None
        return result

    try:
        with os.fdopen(read_end, "rb") as incoming:
            yield receive
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
