"""Every rendered job is accepted by a real API server with JobSet, and so are the pods' Jobs."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from gke_specs import objects, rendered
from running_cluster import SECRET_KINDS, Cluster, definition

from spec_factory import CATALOG
from tpucfg.render.config import Config

_V6E: Final[dict[str, Any]] = {"sizes": ["v6e-16"]}
_NODES: Final = "nodes@my-project-dev.iam.gserviceaccount.com"
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "spot": {**_V6E, "capacity": "spot"},
    "on-demand": {**_V6E, "capacity": "on-demand"},
    "reservation": {**_V6E, "capacity": {"reservation": "r"}},
    "shared-reservation": {
        **_V6E,
        "capacity": {"reservation": "projects/other-project/reservations/r"},
    },
    "flex-start": {**_V6E, "capacity": "flex-start", "trainer__max_run_duration": "12h"},
    "slices": {"sizes": ["v6e-16x4"]},
    "two-hosts-of-four-chips": {
        "sizes": ["v6e-8"],
        "overrides": {"v6e-8": {"machine": "ct6e-standard-4t"}},
    },
    "queue": {**_V6E, "targets": {"gke": {"queue": "tpu", "priority": "high"}}},
    "topology": {**_V6E, "targets": {"gke": {"queue": "tpu", "topology_aware": True}}},
    "topology-of-slices": {
        "sizes": ["v6e-16x2"],
        "targets": {"gke": {"queue": "tpu", "topology_aware": True}},
    },
    "host-network": {
        **_V6E,
        "targets": {
            "gke": {"host_network": True, "node_service_account": "n@p.iam.gserviceaccount.com"}
        },
    },
    "mounts": {**_V6E, "trainer__mounts": {"/data": "${bucket}/data"}},
    "secrets": {**_V6E, "trainer__secrets": {"HF_TOKEN": "hf/1"}},
    "restarts": {**_V6E, "trainer__restarts": 3},
    "exit-codes": {**_V6E, "trainer__restarts": {"times": 3, "exit_codes": [42, "127-255"]}},
    "deadline": {**_V6E, "trainer__max_run_duration": "12h", "targets": {"gke": {"ttl": None}}},
    "compute-class": {**_V6E, "targets": {"gke": {"compute_class": "c"}}},
    "containers": {"sizes": ["tpu7x-16"], "targets": {"gke": {"containers_per_host": 2}}},
    "xla-flags": {
        **_V6E,
        "trainer__xla_flags": {"v6e": ["--xla_a=true"]},
        "trainer__env": {"A": "$(B) ${size}"},
    },
}
TELLING: Final = {
    "secrets": "a companion that the cluster would refuse after the job was started",
    "topology-of-slices": "annotations that Kueue and JobSet take from each other",
    "exit-codes": "a pod failure policy that Kubernetes refuses",
    "mounts": "a volume of Cloud Storage that a pod may not have",
}
"""The settings of the gate, and the bug that each would catch."""


def refusals(cluster: Cluster, config: Config) -> list[str]:
    """Return the server's reasons against the objects of a config."""
    return [reason for each in objects(config) if (reason := cluster.refusal(each))]


@pytest.fixture(scope="module", autouse=True)
def _companions(cluster: Cluster) -> Iterator[None]:
    """Install the kinds of the secrets' companions."""
    cluster.define(*map(definition, SECRET_KINDS))
    yield
    for plural, (group, _, _) in SECRET_KINDS.items():
        cluster.kubectl("delete", "crd", f"{plural}.{group}")


@pytest.mark.parametrize("generation", ["v3", "v4", "v5e", "v5p", "v6e", "tpu7x"])
def test_a_cluster_takes_the_jobs_of_every_generation(cluster: Cluster, generation: str) -> None:
    """The smallest size, one of several hosts and the largest are accepted."""
    slices = [each for each in CATALOG.generation(generation).slices if "gke" in each.targets]
    several = next(each for each in slices if each.hosts > 1)
    for size in dict.fromkeys((slices[0].size, several.size, slices[-1].size)):
        (config,) = rendered(sizes=[size])
        assert refusals(cluster, config) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.telling] if name in TELLING else [])
        for name in VARIANTS
    ],
)
def test_a_cluster_takes_each_setting(cluster: Cluster, name: str) -> None:
    """Each setting of gke gives objects that the server and JobSet's webhooks accept."""
    (config,) = rendered(**VARIANTS[name])
    assert refusals(cluster, config) == []
