"""The end of a slice on real machines: systemd, docker and the rendered script, while things go wrong."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import machine_tree
import pytest
from chance import draw
from outcomes import RUNS
from runs import AT_ONCE, STOP, Result, Run, result_of

REQUIRE: Final = "TPUCFG_REQUIRE_MACHINE"
SEEDS: Final = int(os.environ.get("TPUCFG_MACHINE_SEEDS") or 4)
"""The number of configs and faults that are drawn by chance."""
CASES: Final[dict[str, Run]] = {
    **{
        f"{row} ({number})" if len(runs) > 1 else row: run
        for row, runs in RUNS.items()
        for number, run in enumerate(runs, 1)
    },
    **{f"by chance ({seed})": draw(seed) for seed in range(1, SEEDS + 1)},
}


@pytest.fixture(scope="session")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Result]]]:
    """Start the selected runs side by side."""
    if reason := machine_tree.missing():
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    tree, folder = machine_tree.make(), tmp_path_factory.mktemp("machines")
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    selected = [str(item.callspec.params["case"]) for item in items if "results" in item.fixturenames]
    cases = sorted(selected, key=lambda case: -CASES[case].longest)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            case: pool.submit(result_of, f"tpucfg-{os.getpid()}-{number}", CASES[case], folder / str(number), tree)
            for number, case in enumerate(cases)
        }
        STOP.set()


@pytest.mark.machine
@pytest.mark.parametrize("case", CASES)
def test_the_slice_is_deleted_at_its_time(results: dict[str, Future[Result]], case: str) -> None:
    """The slice is deleted a minute after the program's end, or at the deadline, and the logs are saved."""
    run, result = CASES[case], results[case].result()
    shown = f"{run}\n{result.calls}\n{result.report}"
    if not run.at:
        assert result.calls == [], shown
        return
    assert result.calls, shown
    # On Compute Engine a deadline counts from the start of the machine.
    early = 1 + (result.boot_seconds if run.target == "compute-engine" else 0)
    assert run.at - early <= result.calls[0].at <= run.at + run.late, shown
    assert run.by is None or result.calls[0].worker in run.by, shown
    assert result.calls[-1].status in (200, 404), shown
    assert sum(run.log in log for log in result.saved) >= run.logs or not run.log, shown
    assert run.journal in result.report, shown
