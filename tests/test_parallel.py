"""Work that is shared with a second process."""

import os
import signal
from collections.abc import Callable

import pytest

from tpucfg.parallel import MIN_SHARED_ITEMS, map_shared

ITEMS = range(MIN_SHARED_ITEMS)
LAST = MIN_SHARED_ITEMS - 1
HERE = os.getpid()


def squares(function: Callable[[int], int]) -> list[int]:
    """Return the results of all items."""
    return list(map_shared(function, ITEMS, lambda result: result))


def test_results_are_in_order() -> None:
    """Both halves are complete, and the second one is from another process."""
    assert squares(lambda item: item * item) == [item * item for item in ITEMS]
    if len(os.sched_getaffinity(0)) > 1:
        assert len(set(squares(lambda _: os.getpid()))) == 2


def test_few_items_stay_in_this_process() -> None:
    """A fork would cost more than it saves."""
    assert set(map_shared(lambda _: os.getpid(), ITEMS[1:], lambda result: result)) == {HERE}


def test_what_is_not_portable_is_computed_here() -> None:
    """A result that is not sent is computed by the first process."""
    assert set(map_shared(lambda _: os.getpid(), ITEMS, lambda _: None)) == {HERE}


def test_a_killed_process_loses_nothing() -> None:
    """The work of a process that is killed is done here."""

    def kill_the_other(item: int) -> int:
        if os.getpid() != HERE and item == LAST:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    assert squares(kill_the_other) == list(ITEMS)


def test_an_exception_is_raised_at_its_turn() -> None:
    """An exception of the second half is raised after the results before it."""

    def fail(item: int) -> int:
        if item == LAST:
            raise ValueError(item)
        return item

    results = map_shared(fail, ITEMS, lambda result: result)
    assert [next(results) for _ in range(LAST)] == list(range(LAST))
    with pytest.raises(ValueError, match=str(LAST)):
        next(results)
