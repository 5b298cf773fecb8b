"""Jobs on a real scheduler with JobSet and Kueue end as `outcomes.yaml` has it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
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


@pytest.fixture(scope="module")
def seen(cluster: Cluster, goldens: Goldens) -> dict[str, dict[str, Any]]:
    """Run all cases at the same time."""
    outcomes = run_all(cluster, read_pools(), ROWS)
    if goldens.are_written:
        for row in ROWS:
            row["seen"] = outcomes[row["case"]]
        TABLE.write_text(written(TABLE, ROWS, "seen"))
    return outcomes


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"])
def test_a_job_ends_as_the_table_has_it(
    seen: dict[str, dict[str, Any]], row: Mapping[str, Any]
) -> None:
    """It starts, is placed, restarts, ends and leaves what its row has."""
    assert seen[row["case"]] == row["seen"]


@pytest.mark.usefixtures("seen")
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
