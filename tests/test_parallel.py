"""One function over many things, by several processes: in their order, as it would be in one."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from spec_factory import ROOT
from tpucfg import parallel as processes
from tpucfg.parallel import LostWorkerError, parallel_map

if TYPE_CHECKING:
    from collections.abc import Iterator

FEW, MANY = range(79), range(500)
"""Too few to be worth a second process, and enough for six."""
WITHOUT_SEMAPHORES: Final = """
import os, sys
sys.modules["_multiprocessing"] = None
from tpucfg.parallel import parallel_map
print(len({pid for pid in parallel_map(lambda _: os.getpid(), range(500))}))
"""


@pytest.fixture(params=[1, 2, 6])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """As many cores as this process may use; that there are fewer only makes it slower."""
    count = int(request.param)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)))
    return count


def where(number: int) -> tuple[int, int]:
    """A thing, and the process that had it."""
    return number, os.getpid()


def test_in_order_and_shared_out(cores: int) -> None:
    """Every thing comes out where it went in; all cores take part where there is enough to do."""
    made = list(parallel_map(where, MANY))
    assert [number for number, _ in made] == list(MANY)
    assert len({process for _, process in made} - {os.getpid()}) in ({0} if cores == 1 else range(1, cores + 1))


@pytest.mark.usefixtures("cores")
def test_few_things_stay_here() -> None:
    """A second process would take longer to start than to help."""
    assert {process for _, process in parallel_map(where, FEW)} == {os.getpid()}
    assert list(parallel_map(where, [])) == []


def refusing(number: int) -> int:
    """All but one."""
    if number == 333:
        raise LookupError(number)
    return number


@pytest.mark.usefixtures("cores")
def test_an_exception_comes_where_its_result_would() -> None:
    """What was made before it is had, and no process is left."""
    made: Iterator[int] = parallel_map(refusing, MANY)
    assert [next(made) for _ in range(333)] == list(range(333))
    with pytest.raises(LookupError, match="333"):
        next(made)
    assert not children()


def dying(number: int) -> int:
    """One of them does not come back."""
    if number == 333:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_process_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and not waited for."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(LostWorkerError):
        list(parallel_map(dying, MANY))
    assert not children()


def test_whoever_stops_listening_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a command does that ends at the first spec with an error."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    made = parallel_map(where, MANY)
    assert next(made)[0] == 0
    assert next(made)[0] == 1
    made.close()
    assert not children()


def test_where_the_system_has_no_means(tmp_path: Path) -> None:
    """Without semaphores, as in some containers, everything is made here."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "compiler")}
    words = [sys.executable, "-c", WITHOUT_SEMAPHORES]
    ended = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("1\n", "")


def children() -> list[str]:
    """The processes that this one has started and that still run."""
    threads = Path(f"/proc/{os.getpid()}/task")
    if not threads.is_dir():
        pytest.skip("the system does not tell the children of a process")
    return [child for thread in threads.iterdir() for child in (thread / "children").read_text().split()]


def test_the_number_of_processes_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may show a hundred cores that it may not use."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(100)))
    things = range(100 * processes._WORTH_IT)  # noqa: SLF001 - enough for all of them
    assert len({process for _, process in parallel_map(where, things)} - {os.getpid()}) <= processes._MOST  # noqa: SLF001
