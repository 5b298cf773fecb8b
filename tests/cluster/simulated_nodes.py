"""Nodes without machines: KWOK answers for their kubelets, and they have the labels and chips of GKE's node pools.

`pools.yaml` has the pools. A pod runs as soon as a node has it, and ends with the exit code of its annotation `END`. As
from a kubelet, a pod that is deleted while it runs fails with 143 first.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from processes import free_ports, is_listening, running, wait_until
from running_cluster import Cluster

from spec_factory import CATALOG
from tpucfg.catalog import Machine
from tpucfg.targets.gke import nodes as labels

STAGES: Final = Path(__file__).parent / "stages.yaml"
END: Final = "tests.tpucfg/exit-code"
"""The annotation by which a test ends the program of a pod."""
_KINDS: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "spot": {labels.SPOT: "true", labels.PROVISIONING: "spot"},
    "flex-start": {labels.FLEX_START: "true", labels.MAX_RUN_DURATION: "600"},
}
"""The labels of the nodes of each capacity; a reservation, a class and a policy have a name, as `reservation/r`."""
_NAMED: Final[dict[str, str]] = {
    "reservation": labels.RESERVATION_NAME,
    "class": labels.COMPUTE_CLASS,
    "policy": labels.PLACEMENT_POLICY,
}


class Pool(NamedTuple):
    """One node pool."""

    name: str
    size: str
    kind: str
    """Such as `plain`, `spot` or `reservation/r`."""
    taint: str = ""
    """The taint of a pool that GKE creates, as `key=value`."""
    machine: str = ""
    parts: str = ""
    """The topology of the parts into which a queue divides the pool; the pool then has none of its own."""


def read_pools() -> list[Pool]:
    """Return the pools of the cluster; a row of the file is several alike."""
    rows = yaml.safe_load((Path(__file__).parent / "pools.yaml").read_text())
    return [
        Pool(
            f"{row['size']}-{row['kind'].replace('/', '-')}-{index}-{number}",
            *(row[key] for key in ("size", "kind")),
            *(str(row.get(key, "")) for key in ("taint", "machine", "parts")),
        )
        for index, row in enumerate(rows)
        for number in range(row["pools"])
    ]


def nodes_of(pool: Pool) -> list[dict[str, Any]]:
    """Return the nodes of a pool, one for each host of its slice."""
    slice_ = CATALOG.find(pool.size)
    assert slice_, pool
    slice_ = slice_.on_machine(pool.machine) if pool.machine else slice_.on_target("gke")
    machine = slice_.machine
    assert machine, pool
    kind, _, name = pool.kind.partition("/")
    own = {
        labels.ACCELERATOR: machine.gke_label,
        labels.INSTANCE: machine.name,
        labels.NODE_POOL: pool.name,
        **({_NAMED[kind]: name} if name else _KINDS[kind]),
        **({labels.RESERVATION_AFFINITY: "specific"} if kind == "reservation" else {}),
    }
    key, _, value = pool.taint.partition("=")
    taints = [
        {"key": labels.CHIPS, "value": "present"},
        *([{"key": key, "value": value}] if key else []),
    ]
    return [
        _node(
            f"{pool.name}-{host}",
            own | _place(pool, str(slice_.topology), host, machine.chips),
            taints,
            machine,
        )
        for host in range(slice_.hosts)
    ]


def _place(pool: Pool, topology: str, host: int, chips: int) -> dict[str, str]:
    """Return the label of a host's slice: that of its pool, or of its part of the pool."""
    if not pool.parts:
        return {labels.TOPOLOGY: topology}
    level = labels.DOMAINS["v6e"].level
    assert level
    part = host * chips // prod(map(int, pool.parts.split("x")))
    return {level.format(topology=pool.parts): f"{pool.name}-part-{part}"}


def _node(
    name: str, own: Mapping[str, str], taints: Iterable[Mapping[str, str]], machine: Machine
) -> dict[str, Any]:
    resources = {labels.CHIPS: str(machine.chips), "cpu": "200", "memory": "700Gi", "pods": "110"}
    resources["ephemeral-storage"] = "100Gi"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own, "kubernetes.io/hostname": name}},
        "spec": {"taints": [{**taint, "effect": "NoSchedule"} for taint in taints]},
        "status": {
            "phase": "Running",
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Simulated", "message": "no machine"}
            ],
        },
    }


@contextmanager
def running_nodes(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Create the nodes of all pools, and run KWOK for them."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    options = [
        f"--config={STAGES}",
        "--manage-all-nodes=true",
        "--node-ip=127.0.0.1",
        "--enable-crds=",
    ]
    options += [
        f"--server-address={address}",
        f"--node-port={port}",
        f"--kubeconfig={cluster.kubeconfig}",
    ]
    for pool in read_pools():
        for node in nodes_of(pool):
            cluster.request("POST", "/api/v1/nodes", node)
    with running([str(cluster.programs / "kwok"), *options], folder / "kwok.log") as process:
        wait_until(lambda: is_listening(port), process, folder / "kwok.log")
        yield
