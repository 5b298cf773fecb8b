"""Jobs on a real scheduler with JobSet and Kueue end as `outcomes.yaml` has it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from drawn_jobs import drawn, promised
from job_faults import FAULTS, run_all
from running_cluster import Cluster
from simulated_nodes import read_pools
from tables import written

from goldens import Goldens
from spec_factory import ROOT

TABLE: Final = Path(__file__).parent / "outcomes.yaml"
ROWS: Final[list[dict[str, Any]]] = yaml.safe_load(TABLE.read_text())
_COMMON: Final = (
    "none",
    "a host fails with 1",
    "a host fails with 42",
    "a host is evicted",
    "a higher priority",
    "a node is lost",
    "deadline",
    "quota",
    "suspended",
)
"""The faults that every kind of job meets."""


TELLING: Final = {
    "on-demand-ends": "slices that share a node pool",
    "parts-of-two-slices": "a slice across two parts of a node pool",
    "reservation-quota": "a job that starts before Kueue has a place for it",
    "restarts-used-up": "restarts without an end",
    "exit-codes-evicted": "a disruption that counts as a failure of the program",
    "other-exit-code": "a wrong flag that starts again and again",
    "deadline-no-restarts": "a job that runs beyond its longest duration",
    "ttl-ends": "an ended job that stays for ever",
    "unset-preempted": "a job that loses its place and does not come back",
}
"""The rows of the gate, and the bug that each would catch. A lost node is none: its pods take a minute to go."""
JOBS: Final = {row["case"]: row for row in (*ROWS, *drawn())}


@pytest.fixture(scope="module")
def seen(
    cluster: Cluster, goldens: Goldens, request: pytest.FixtureRequest
) -> dict[str, dict[str, Any]]:
    """Run the selected cases at the same time."""
    # Tests of other modules have a fixture of this name, too.
    items = (item for item in request.session.items if item.path == Path(__file__))
    cases = {
        str(item.callspec.params["case"])
        for item in items
        if isinstance(item, pytest.Function) and "seen" in item.fixturenames
    }
    outcomes = run_all(cluster, read_pools(), [JOBS[case] for case in sorted(cases)])
    if goldens.are_written:
        rows = [{**row, "seen": outcomes.get(row["case"], row["seen"])} for row in ROWS]
        TABLE.write_text(written(TABLE, rows, "seen"))
    return outcomes


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(row["case"], marks=[pytest.mark.telling] if row["case"] in TELLING else [])
        for row in ROWS
    ],
)
def test_a_job_ends_as_the_table_has_it(seen: dict[str, dict[str, Any]], case: str) -> None:
    """It starts, is placed, restarts, ends and leaves what its row has."""
    assert seen[case] == JOBS[case]["seen"]


@pytest.mark.parametrize("case", [row["case"] for row in drawn()])
def test_a_job_drawn_by_chance_ends_as_the_page_has_it(
    seen: dict[str, dict[str, Any]], case: str
) -> None:
    """A row that ends otherwise is shown whole."""
    outcome = {**seen[case], "end": seen[case].get("end", "").partition(" ")[0]}
    assert {**outcome, "row": JOBS[case]} == {**outcome, **promised(JOBS[case]), "row": JOBS[case]}


@pytest.mark.parametrize("case", ["many-hosts"])
@pytest.mark.usefixtures("seen", "case")
def test_a_host_waits_for_the_first_one_of_its_slice(cluster: Cluster) -> None:
    """JobSet refuses its pod with the text of the page until the node pool of the slice is known."""
    text = "follower pod node selector for topology domain not found"
    assert text in (ROOT / "docs" / "targets" / "gke.md").read_text().replace("\n", " ")
    # Of any job: where the first host is placed at once, the others of its slice are not refused.
    events = cluster.items("/api/v1/events")
    assert [each["message"] for each in events if text in each["message"]]


def _values(row: Mapping[str, Any]) -> Iterable[str]:
    """Yield the kinds of a row's job."""
    capacity, gke = row.get("capacity", "unset"), row.get("gke", {})
    if "compute_class" in gke:
        yield "compute class"
    else:
        yield next(iter(capacity)) if isinstance(capacity, dict) else str(capacity)
    yield "queue" if "queue" in row else "no queue"
    if row.get("queue", "").startswith("parts"):
        yield "topology-aware"
    yield "several slices" if "x" in row["size"].rpartition("-")[2] else "one slice"


def test_each_kind_of_job_meets_each_fault() -> None:
    """No value of a setting is left out, and no fault."""
    met = {(value, row["fault"]) for row in ROWS for value in _values(row)}
    kinds = {value for value, _ in met} - {
        "flex-start"
    }  # placed like spot: a label that the selector has
    assert len(kinds) == 10
    assert {(kind, fault) for kind in kinds for fault in _COMMON} - met == set()
    assert {row["fault"] for row in ROWS} == {*FAULTS}
