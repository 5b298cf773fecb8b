"""Findings about specs and configs for Cloud TPU."""

from typing import Any

import pytest

from jobs import CATALOG, compiled, job
from tpucfg import schemas
from tpucfg.targets import RequestBody, cloud_tpu


@pytest.mark.parametrize(
    ("sizes", "changes", "expected"),
    [
        (
            ["tpu7x-8"],
            {},
            "TPU024 cloud-tpu does not support tpu7x-8: the Cloud TPU API has no accelerator type for TPU7x",
        ),
        (
            ["v2-8"],
            {"trainer": {"package": "gs://b/t.tar.gz", "module": "t.task"}},
            "TPU051 cloud-tpu runs containers, and trainer.package is a Python package",
        ),
        (
            ["v5litepod-8"],
            {
                "environment": {"region": "us-west4"},
                "overrides": {"v5litepod-8": {"machine": "ct5lp-hightpu-4t"}},
            },
            "TPU026 v5litepod-8 cannot run on ct5lp-hightpu-4t: cloud-tpu chooses the machine itself",
        ),
        (
            ["v2-8"],
            {"environment": {"region": "us-west9"}, "allow": {"TPU021": "quota granted"}},
            "TPU005 dev has no zone for v2-8: no list has one in us-west9",
        ),
        (
            ["v2-8", "v2-128"],
            {
                "name": "m" * 30,
                "environments": {
                    "e" * 27: {
                        "project": "my-project",
                        "region": "us-central1",
                        "bucket": "my-bucket",
                    }
                },
                "options": {"service_account": "a@my-project.iam.gserviceaccount.com"},
            },
            f"TPU030 the job name {'m' * 30}-{'e' * 27}-v2-128 has 65 characters, and 63 are allowed for v2-128",
        ),
    ],
)
def test_an_invalid_spec_has_one_error(
    sizes: list[str], changes: dict[str, Any], expected: str
) -> None:
    """Each mistake is one error, whose message has the problem and its values."""
    errors = [
        f"{finding.id} {finding.message}"
        for finding in compiled("cloud-tpu", *sizes, **changes).findings
        if finding.level == "error"
    ]
    assert errors == [expected]


def test_a_region_without_the_size_is_one_error() -> None:
    """A size that no list offers in the region is TPU021, without a second error about the zone."""
    findings = compiled("cloud-tpu", "v3-32", environment={"region": "us-central1"}).findings
    assert [finding.id for finding in findings if finding.level == "error"] == ["TPU021"]


def test_a_zone_of_the_spec_is_used() -> None:
    """The node is in the spec's zone, even if no list offers the size there."""
    changes: dict[str, Any] = {
        "environment": {"region": "us-west9", "zones": {"v2-8": "us-west9-b"}},
        "allow": {"TPU022": "quota granted"},
    }
    result = compiled("cloud-tpu", "v2-8", **changes)
    assert [finding.id for finding in result.findings if finding.level == "error"] == []
    ((_, body),) = result.request_bodies
    assert body["tpu"]["nodeSpec"][0]["parent"] == "projects/my-project/locations/us-west9-b"


def changed(path: str, value: Any) -> RequestBody:
    """Return a valid request body with one field changed; `path` has dots."""
    body = cloud_tpu.request_body(job("cloud-tpu", "v2-8"))
    *above, last = path.split(".")
    location: Any = body
    for step in above:
        location = location[int(step) if step.isdecimal() else step]
    location[last] = value
    return body


NODE = "tpu.nodeSpec.0.node"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (f"{NODE}.acceleratorType", "v3-16", "acceleratorType: v3-16: it is not a TPU size"),
        (
            f"{NODE}.acceleratorType",
            "tpu7x-8",
            "the Cloud TPU API has no accelerator type for TPU7x",
        ),
    ],
)
def test_an_invalid_config_has_one_error(path: str, value: Any, expected: str) -> None:
    """A config that is valid for the schema, but not for the service, has an error at the field."""
    body = changed(path, value)
    assert schemas.is_valid("cloud-tpu", body)
    (problem,) = cloud_tpu.rules(body, CATALOG)
    assert expected in problem.message


@pytest.mark.parametrize(
    ("size", "disk", "problems"),
    [
        ("v5litepod-8", {"mode": "READ_WRITE"}, []),
        ("v5litepod-16", {"mode": "READ_ONLY"}, []),
        (
            "v5litepod-16",
            {"mode": "READ_WRITE"},
            ["mode: 4 hosts cannot attach one disk for writing"],
        ),
        ("v5litepod-16x2", {}, ["sourceDisk: 8 hosts cannot attach one disk for writing"]),
    ],
)
def test_several_hosts_only_read_a_disk(
    size: str, disk: dict[str, str], problems: list[str]
) -> None:
    """A disk is attached for writing to one host at most, which is also the API's default mode."""
    body = cloud_tpu.request_body(job("cloud-tpu", size, environment={"region": "us-west4"}))
    body["tpu"]["nodeSpec"][0]["node"]["dataDisks"] = [
        {"sourceDisk": "projects/p/zones/us-west4-a/disks/d", **disk}
    ]
    messages = [problem.message for problem in cloud_tpu.rules(body, CATALOG)]
    assert messages == [f"tpu.nodeSpec[0].node.dataDisks[0].{text}" for text in problems]


@pytest.mark.parametrize(
    ("kind", "topology", "expected"),
    [
        ("V3", "5x7", "V3 has no topology 5x7"),
        ("V3", "4x4", None),
        ("V5P", "2x2x2", None),
        ("V4", "9x9x9", None),
    ],
)
def test_an_unknown_topology_is_an_error(kind: str, topology: str, expected: str | None) -> None:
    """An unknown topology is refused only for a generation whose topologies are all known, unlike v4."""
    node = {
        "acceleratorConfig": {"type": kind, "topology": topology},
        "runtimeVersion": "tpu-ubuntu2204-base",
    }
    body: RequestBody = {
        "tpu": {"nodeSpec": [{"parent": "projects/p/locations/z", "nodeId": "n", "node": node}]}
    }
    messages = [problem.message for problem in cloud_tpu.rules(body, CATALOG)]
    assert len(messages) == (expected is not None)
    assert all(str(expected) in text for text in messages)
