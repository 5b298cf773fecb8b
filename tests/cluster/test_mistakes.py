"""Configs with one mistake each: the findings of `check`, and the refusals of a real server, which `submit` asks."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from gke_specs import rendered
from running_cluster import Cluster
from tables import written

from goldens import Goldens
from spec_factory import CATALOG, document
from tpucfg.render.pipeline import config_findings
from tpucfg.targets.gke.commands import trial_jobs

TABLE: Final = Path(__file__).parent / "mistakes.yaml"
ROWS: Final[list[dict[str, Any]]] = yaml.safe_load(TABLE.read_text())
TELLING: Final = {
    "a field that does not exist": "a field of a new template that the API does not have",
    "the wrong number of pods": "a slice that starts incomplete, which only `check` finds",
    "exit codes out of order": "a policy that only the pods' Job is refused for",
}
"""The mistakes of the gate, and the bug that each would catch."""
_NOISE: Final = re.compile(
    r'^admission webhook "\S+" denied the request: |\S+ "[^"]*" is invalid: |<nil>: '
    r'|(?<=Invalid value: )"[^"]*": |: supported values.*'
)
"""Parts of a refusal: who it is from, names that the server makes up, and lists in no order."""
_JOB: Final = ("spec", "replicatedJobs", 0, "template", "spec")
_STARTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "job": _JOB,
    "pod": (*_JOB, "template", "spec"),
    "container": (*_JOB, "template", "spec", "containers", 0),
}


@pytest.fixture(scope="module")
def body() -> Mapping[str, Any]:
    """Return a JobSet with every policy."""
    (config,) = rendered(
        sizes=["v6e-16"],
        trainer__restarts={"times": 3, "exit_codes": [42, 43]},
        trainer__max_run_duration="12h",
        trainer__mounts={"/data": "${bucket}/data"},
        targets={"gke": {"service_account": "default"}},
    )
    return config.request_body


@pytest.fixture(scope="module", autouse=True)
def _written(cluster: Cluster, body: Mapping[str, Any], goldens: Goldens) -> None:
    """Write the table, if that is asked for."""
    if goldens.are_written:
        rows = [{**row, "found": dict(_finders(cluster, _with_mistake(body, row)))} for row in ROWS]
        TABLE.write_text(written(TABLE, rows, "found"))


def _with_mistake(body: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    changed: Any = deepcopy(dict(body))
    start: str = row["at"][0]
    path: list[Any] = [*_STARTS.get(start, (start,)), *row["at"][1:]]
    *parents, last = path
    inner = changed
    for key in parents:
        inner = inner[key] if isinstance(inner, list) else inner.setdefault(key, {})
    if "value" in row:
        inner[last] = row["value"]
    else:
        del inner[last]
    result: dict[str, Any] = changed
    return result


def _finders(cluster: Cluster, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if ids := sorted({finding.id for finding in config_findings(document(body), "gke", CATALOG)}):
        yield "check", ids
    asked = [("server", body), *(("job", job) for job in trial_jobs(body))]
    for finder, asked_for in asked:
        if reason := cluster.refusal(asked_for):
            yield finder, _NOISE.sub("", " ".join(reason.split()))[:110]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row,
            id=row["mistake"],
            marks=[pytest.mark.telling] if row["mistake"] in TELLING else [],
        )
        for row in ROWS
    ],
)
def test_a_mistake_is_found_by_whom_the_table_has(
    cluster: Cluster, body: Mapping[str, Any], row: Mapping[str, Any]
) -> None:
    """The findings of `check`, and the refusals of the server."""
    assert dict(_finders(cluster, _with_mistake(body, row))) == row["found"]
