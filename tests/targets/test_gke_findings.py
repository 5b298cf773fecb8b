"""Findings about specs and configs for GKE."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from jobs import CATALOG, compiled, job, parts
from tpucfg import schemas
from tpucfg.targets import RequestBody, gke
from tpucfg.targets.gke.rules import max_name_length

EAST = {"region": "us-east5", "kube_context": "gke_my-project_us-east5_train"}
LONG = {"name": "m" * 20, "options": {"service_account": "trainer"}}


@pytest.mark.parametrize(
    ("sizes", "changes", "expected"),
    [
        (
            ["v2-8"],
            {},
            "TPU024 gke does not support v2-8: GKE has no machine type and no label for TPU v2",
        ),
        (
            ["v6e-8"],
            {"trainer": {"package": "gs://b/t.tar.gz", "module": "t.task"}},
            "TPU051 gke runs containers, and trainer.package is a Python package",
        ),
        (
            ["v6e-8"],
            {"overrides": {"v6e-8": {"machine": "ct6e-standard-1t"}}},
            "TPU026 v6e-8 cannot run on ct6e-standard-1t: v6e-8 runs on ct6e-standard-8t or ct6e-standard-4t",
        ),
        (
            ["v6e-8", "v6e-256"],
            LONG
            | {
                "environments": {"e" * 19: {"project": "my-project", "bucket": "my-bucket", **EAST}}
            },
            f"TPU030 the job name {'m' * 20}-{'e' * 19}-v6e-256 has 48 characters, and 46 are allowed for v6e-256",
        ),
    ],
)
def test_an_invalid_spec_has_one_error(
    sizes: list[str], changes: dict[str, Any], expected: str
) -> None:
    """Each mistake is one error, whose message has the problem and its values."""
    findings = compiled("gke", *sizes, environment=EAST, **changes).findings
    errors = [
        f"{finding.id} {finding.message}"
        for finding in findings
        if finding.level == "error" and finding.id not in {"TPU021", "TPU046"}
    ]
    assert errors == [expected]


@pytest.mark.parametrize(
    ("pods", "replicas", "max_length"),
    [
        (1, 1, 47),
        (10, 1, 47),
        (11, 1, 46),
        (100, 1, 46),
        (101, 1, 45),
        (4, 10, 47),
        (4, 11, 46),
        (11, 101, 44),
    ],
)
def test_the_name_limit_depends_on_pods_and_slices(
    pods: int, replicas: int, max_length: int
) -> None:
    """A pod's name of at most 63 characters has the JobSet's name, the job's name, two indexes and five letters."""
    assert max_name_length(pods, replicas) == max_length
    assert len("j" * max_length + f"-slice-{replicas - 1}-{pods - 1}-abcde") == 63


def changed(path: str, value: Any, size: str = "v6e-16") -> RequestBody:
    """Return a valid request body with one field changed, or removed for None.

    The path begins at the request body (`M`), job (`J`), pod (`P`) or container (`C`); `|` is a slash in a key.
    """
    body = deepcopy(gke.request_body(job("gke", size)))
    job_spec, pod = parts(body)
    roots: dict[str, Any] = {"J": job_spec, "P": pod, "C": pod["containers"][0], "M": body}
    root, *above, last = path.split("/")
    location = roots[root]
    for step in above:
        location = location[int(step) if step.isdecimal() else step]
    key = last.replace("|", "/")
    if value is None:
        del location[key]
    else:
        location[key] = value
    return body


LABEL = "P/nodeSelector/cloud.google.com|gke-tpu-accelerator"
SHAPE = "P/nodeSelector/cloud.google.com|gke-tpu-topology"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("J/parallelism", 3, "parallelism: 3 pods, and the slice has 4 hosts"),
        ("J/parallelism", None, "parallelism: 1 pods, and the slice has 4 hosts"),
        ("J/completions", 5, "completions: 5 pods, and the slice has 4 hosts"),
        (
            "J/completionMode",
            "NonIndexed",
            "completionMode: without an index a pod cannot tell which host it is",
        ),
        (LABEL, "tpu-v6e", "tpu-v6e is not a TPU of GKE"),
        (LABEL, "tpu-v3-podslice", "tpu-v3-podslice is not a TPU of GKE"),
        (SHAPE, "4x3", "tpu-v6e-slice has no topology 4x3"),
        (
            "C/resources",
            {"limits": {"google.com/tpu": 2}},
            "requests 2 chips, and it must request all of its host's",
        ),
        (
            "C/resources/requests",
            {"google.com/tpu": 2},
            "it is 2, and the limit is 4: they must be equal",
        ),
        ("C/resources/limits", {"google.com/tpu": "4.5"}, "4.5 is not a whole number of chips"),
        ("C/resources/limits", {}, "it is 4, and the limit is missing"),
        ("C/resources", {}, "no container requests google.com/tpu"),
        ("M/spec/replicatedJobs", [], "no container requests google.com/tpu"),
    ],
)
def test_an_invalid_config_has_an_error(path: str, value: Any, expected: str) -> None:
    """A config that is valid for the schema, but that a cluster would refuse or never run, has an error."""
    body = changed(path, value)
    assert schemas.is_valid("gke", body)
    assert any(expected in problem.message for problem in gke.rules(body, CATALOG))


def accepted_bodies() -> Iterator[RequestBody]:
    """Yield bodies that a cluster accepts and that this tool would write differently."""
    yield changed("J/completionMode", None)
    yield changed("C/resources/requests", None)
    yield changed("C/resources/limits/google.com|tpu", "4")
    yield changed("P/hostNetwork", True)
    yield changed("C/securityContext", {"privileged": True})
    yield changed("P/nodeSelector", {"cloud.google.com/gke-nodepool": "mine"})
    yield changed("P/restartPolicy", "OnFailure")
    two_containers = changed("C/resources", {"limits": {"google.com/tpu": 2}})
    _, pod = parts(two_containers)
    pod["containers"].append(pod["containers"][0] | {"name": "other"})
    yield two_containers


def test_a_config_that_a_cluster_accepts_has_no_error() -> None:
    """Unusual configs, such as two containers with half of the chips each, have no error."""
    for body in accepted_bodies():
        assert schemas.is_valid("gke", body)
        assert list(gke.rules(body, CATALOG)) == []
