"""The end of a slice on real machines: systemd, docker and the rendered script, while things go wrong."""

import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

import machine_tree
import pytest
from chance import draw
from outcomes import RUNS
from runs import AT_ONCE, STOP, Result, Run, result_of

from required import missing

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
TELLING: Final = {
    "the program ends (1)": "an ended program whose slice is charged until the deadline",
    "the program ends (2)": "the same on Compute Engine, where the host deletes itself by another request",
    "the program runs until SIGTERM": "a deadline that cuts the last checkpoint",
    "several hosts: it fails on another host, and runs on (1)": "a failure that only the first host would report",
    "Docker's client hangs from the first boot on": "a deadline that waits for Docker",
    "the disk is full at the first boot": "a deadline that needs the disk",
    "the host loses its power at any point of the script, which is not delivered again (1)": "a deadline "
    "that does not outlive the boot",
    "the host reboots while the program runs (1)": "a program that a rebooted host starts alone",
    "the clock is a day ahead after a reboot": "a deadline by the time of day",
}
"""The runs of the gate, and the bug that each would catch. They sleep: all together take a minute."""
assert TELLING.keys() <= CASES.keys()


class Runs:
    """The runs of the selected cases, side by side; one that deviates may run again with the machine to itself."""

    def __init__(
        self, pool: ThreadPoolExecutor, cases: list[str], folder: Path, tree: Path
    ) -> None:
        self.folder, self.tree = folder, tree
        self.results = {
            case: pool.submit(self._run, case, f"{number}") for number, case in enumerate(cases)
        }

    def _run(self, case: str, number: str) -> Result:
        return result_of(
            f"tpucfg-{os.getpid()}-{number}", CASES[case], self.folder / number, self.tree
        )

    def again(self, case: str) -> Result:
        """Run a case a second time, after all the others have ended."""
        wait(self.results.values())
        return self._run(case, f"{len(self.results) + [*self.results].index(case)}")


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """Start the selected runs side by side."""
    if reason := machine_tree.missing():
        missing("machine", reason)
    tree, folder = machine_tree.make(), tmp_path_factory.mktemp("machines")
    # Tests of other modules have a fixture of this name, too.
    items = (item for item in request.session.items if item.path == Path(__file__))
    selected = [
        str(item.callspec.params["case"])
        for item in items
        if isinstance(item, pytest.Function) and "runs" in item.fixturenames
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield Runs(pool, sorted(selected, key=lambda case: -CASES[case].longest), folder, tree)
        STOP.set()


TOO_EARLY: Final = "deleted too early"


def deviation(run: Run, result: Result) -> str:
    """Return what a run did other than expected, or an empty text."""
    if not result.calls:
        return "never deleted" if run.at else ""
    first, last = result.calls[0], result.calls[-1]
    # On Compute Engine a deadline counts from the start of the machine.
    early = 1 + (result.boot_seconds if run.target == "compute-engine" else 0)
    expected = {
        TOO_EARLY: bool(run.at) and first.at >= run.at - early,
        f"deleted late, after {first.at:.0f} seconds": first.at <= run.at + run.late,
        f"deleted by host {first.worker}": run.by is None or first.worker in run.by,
        f"answered {last.status}": last.status in (200, 404),
        "logs are missing": not run.log or sum(run.log in log for log in result.saved) >= run.logs,
        f"not in the journal: {run.journal}": run.journal in result.report,
    }
    return ", ".join(text for text, is_met in expected.items() if not is_met)


@pytest.mark.machine
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.telling] if case in TELLING else []) for case in CASES],
)
def test_the_slice_is_deleted_at_its_time(runs: Runs, case: str) -> None:
    """The slice is deleted a minute after the program's end, or at the deadline, and the logs are saved."""
    run, result = CASES[case], runs.results[case].result()
    wrong = deviation(run, result)
    if wrong and TOO_EARLY not in wrong:
        # Thirty machines share the cores and the disk of one: a step that is late may be late for the others' work.
        warnings.warn(f"{case}: {wrong}; it runs again alone", stacklevel=1)
        result = runs.again(case)
        wrong = deviation(run, result)
    assert not wrong, f"{run}\n{result.calls}\n{result.report}"
