"""Jobs and faults drawn by chance, and their ends by the sentences of docs/targets/gke.md: `promised`."""

import os
from collections.abc import Mapping
from random import Random
from typing import Any, Final

NUMBER: Final = int(os.environ.get("TPUCFG_CHANCE", "6"))
SEED: Final = int(os.environ.get("TPUCFG_CHANCE_SEED", "0"))
_JOBS: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"size": "v5litepod-8"}, "plain"),
    ({"size": "v5litepod-8x2"}, "plain"),
    ({"size": "v6e-8", "capacity": "on-demand"}, "plain"),
    ({"size": "v6e-8x3", "capacity": "on-demand"}, "plain"),
    ({"size": "v4-8", "capacity": "spot"}, "spot"),
    ({"size": "v5p-16", "capacity": {"reservation": "r"}}, "reservation/r"),
    ({"size": "v5p-16x2", "capacity": {"reservation": "r"}}, "reservation/r"),
    ({"size": "tpu7x-16", "gke": {"compute_class": "c"}}, "class/c"),
    ({"size": "tpu7x-16x2", "gke": {"compute_class": "c"}}, "class/c"),
    ({"size": "v6e-8", "queue": "parts-2x4"}, "part of v6e-64"),
    ({"size": "v6e-8x2", "queue": "parts-2x4"}, "part of v6e-64"),
)
"""The jobs, with the kind of node pool on which the page places each slice."""
_RESTARTS: Final = (
    None,
    0,
    1,
    2,
    5,
    {"times": 2, "exit_codes": [42]},
    {"times": 3, "exit_codes": [42, "127-255"]},
)
_FAULTS: Final = (
    "none",
    "a host fails with 1",
    "a host fails with 42",
    "a host fails in each attempt",
    "a host is evicted",
    "a node is lost",
    "deadline",
    "quota",
    "suspended",
)


def drawn() -> list[dict[str, Any]]:
    """Return rows as those of the table of outcomes, with the kind of pool of each."""
    random = Random(SEED)  # noqa: S311 - the same draws each time
    return [_draw(random, f"chance-{SEED}-{index}") for index in range(NUMBER)]


def _draw(random: Random, case: str) -> dict[str, Any]:
    job, kind = random.choice(_JOBS)
    fault, restarts = random.choice(_FAULTS), random.choice(_RESTARTS)
    row = {"case": case, **job, "fault": fault, "kind": kind}
    if "queue" not in row and random.random() < 1 / 3:
        row["queue"] = "any"
    trainer = {"restarts": restarts, "max_run_duration": "45s" if fault == "deadline" else None}
    return row | {"trainer": {key: value for key, value in trainer.items() if value is not None}}


def promised(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page has of a job: its end, its restarts, those that count, and the pools of its slices."""
    fault, restarts = row["fault"], row["trainer"].get("restarts")
    codes = restarts["exit_codes"] if isinstance(restarts, dict) else None
    times = restarts["times"] if isinstance(restarts, dict) else restarts or 0
    _, _, slices = row["size"].rpartition("-")[2].partition("x")
    result = {
        "placed": [row["kind"]] * int(slices or 1),
        "end": "Completed",
        "restarts": 0,
        "counted": 0,
    }
    if fault == "deadline":
        return result | {
            "end": "suspended" if "queue" in row else "Failed"
        }  # or Failed, if the jobs are seen first
    if fault in {"none", "quota", "suspended"}:
        return result
    if fault == "a node is lost" and row.get("queue", "").startswith("parts"):
        return result  # Kueue moves the job
    if fault in {"a host is evicted", "a node is lost"}:
        return result | ({"restarts": 1} if times else {"end": "Failed"})
    if not times or (codes and fault != "a host fails with 42"):
        return result | {"end": "Failed"}
    number = times if fault == "a host fails in each attempt" else 1
    end = {"end": "Failed"} if fault == "a host fails in each attempt" else {}
    return result | {"restarts": number, "counted": number} | end
