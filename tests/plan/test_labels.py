"""The labels of jobs, which lists and the bill are read by."""

import re
from typing import Any

import pytest

from jobs import compiled, job, labels
from start_command import start_command
from tpucfg.plan import job_labels
from tpucfg.targets import target_named

PROBE = {"probe": {"steps": 50}}
GOOGLE = re.compile(r"[-_a-z0-9]{0,63}")
"""https://cloud.google.com/resource-manager/docs/labels-overview#requirements"""
KUBERNETES = re.compile(r"([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?")
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"""


def test_a_job_has_the_labels_of_its_environment_size_and_run() -> None:
    """The labels are the spec, the environment, the size and the run, then the spec's own."""
    environment = {"labels": {"team": "vision"}}
    assert job_labels(job("vertex-ai", "v2-8", run="a1", environment=environment)) == {
        "tpucfg-project": "mnist",
        "tpucfg-environment": "dev",
        "tpucfg-size": "v2-8",
        "tpucfg-run": "a1",
        "team": "vision",
    }


@pytest.mark.parametrize(
    ("run", "probes", "label"),
    [
        (None, False, "mnist-dev-v2-8"),
        (None, True, "mnist-dev-v2-8-probe"),
        ("a1", True, "probe-a1"),
    ],
)
def test_each_job_has_a_run(run: str | None, probes: bool, label: str) -> None:
    """Without --run, the job's name is its run; a probe is billed apart from the run that it prepares."""
    ((one, _),) = compiled("vertex-ai", "v2-8", run=run, probes=probes, **PROBE).request_bodies
    assert job_labels(one) == labels("v2-8", label)


@pytest.mark.parametrize("name", ["x" * 62 + "-v5litepod-256x2", "x" * 78, "mnist-dev-v6e-16"])
def test_values_are_valid_for_the_longest_names(name: str) -> None:
    """A job's name may be longer than a label: its end is cut, and Kubernetes accepts what is left."""
    values = job_labels(job("vertex-ai", "v2-8")._replace(name=name)).values()
    assert all(GOOGLE.fullmatch(value) and KUBERNETES.fullmatch(value) for value in values)


def test_vertex_ai_gets_them_as_a_flag() -> None:
    """A CustomJobSpec has no labels, and gcloud has a flag for them."""
    one = job("vertex-ai", "v2-8", environment={"labels": {"team": "vision"}})
    (flag,) = [
        word
        for word in start_command(target_named("vertex-ai").submission(one)).argv
        if word.startswith("--labels=")
    ]
    expected = {**labels("v2-8"), "team": "vision"}
    assert dict(pair.split("=") for pair in flag.removeprefix("--labels=").split(",")) == expected


@pytest.mark.parametrize(
    ("target", "extra"),
    [
        ("gke", {"metadata": {"labels": {"tpucfg-size": "v6e-8"}}}),
        (
            "compute-engine",
            {"instanceTemplate": {"properties": {"labels": {"tpucfg-size": "v6e-8"}}}},
        ),
        ("cloud-tpu", {"tpu": {"nodeSpec": [{"node": {"labels": {"tpucfg-size": "v6e-8"}}}]}}),
    ],
)
def test_extra_cannot_change_them(target: str, extra: dict[str, Any]) -> None:
    """A label of tpucfg is the plan's, so that the bill shows what ran."""
    findings = compiled(
        target, "v6e-16", environment={"region": "us-east5"}, options={"extra": extra}
    ).findings
    assert any(
        "tpucfg-size" in finding.message and finding.level == "error" for finding in findings
    )
