"""The name and the options by which the topology API knows a slice."""

import json
import subprocess
from typing import Any

import pytest

from tpucfg.catalog import Catalog, Slice
from tpucfg.fit.inputs import Topology, UnknownTopology, compiler_topology

CATALOG = Catalog()
MEGACORE = "megacore"


def found(size: str) -> Slice:
    """Return a size of the catalog."""
    slice_ = CATALOG.find(size)
    assert slice_ is not None
    return slice_


@pytest.mark.parametrize(
    ("size", "name", "bounds", "devices", "chip_config"),
    [
        # https://github.com/AI-Hypercomputer/maxtext/blob/e591f30cbbf217ed67ef71263ec0538239f9c3b8/src/maxtext/utils/accelerator_to_spec_map.py
        ("tpu7x-2", "tpu7x:1x1x1", [1, 1, 1], 2, None),
        ("tpu7x-8", "tpu7x:2x2x1", [2, 2, 1], 8, None),
        ("tpu7x-896", "tpu7x:4x4x28", [2, 2, 1], 896, None),
        ("v6e-1", "v6e:1x1", [1, 1, 1], 1, None),
        ("v6e-4", "v6e:2x2", [2, 2, 1], 4, None),
        ("v6e-8", "v6e:2x4", [2, 4, 1], 8, None),
        ("v6e-256", "v6e:16x16", [2, 2, 1], 256, None),
        ("v5litepod-1", "v5e:1x1", [1, 1, 1], 1, None),
        ("v5litepod-32", "v5e:4x8", [2, 2, 1], 32, None),
        ("v5p-8", "v5p:2x2x1", [2, 2, 1], 4, MEGACORE),
        ("v5p-12288", "v5p:16x16x24", [2, 2, 1], 6144, MEGACORE),
        ("v4-8", "v4:2x2x1", [2, 2, 1], 4, MEGACORE),
        ("v4-1536", "v4:8x8x12", [2, 2, 1], 768, MEGACORE),
        # MaxText has neither of these; both TensorCores of a chip are devices, as on TPU7x.
        ("v3-32", "v3:4x4", [2, 2, 1], 32, None),
        ("v2-8", "v2:2x2", [2, 2, 1], 8, None),
    ],
)
def test_a_size_has_the_name_and_the_options_of_maxtext(
    size: str, name: str, bounds: list[int], devices: int, chip_config: str | None
) -> None:
    """Name, bounds of a host, devices and chip configuration of one slice equal MaxText's table."""
    options: dict[str, Any] = {"chips_per_host_bounds": bounds}
    if chip_config:
        options["chip_config_name"] = chip_config
    assert compiler_topology(found(size)) == Topology(name, options, devices)


def test_the_selected_machine_topology_and_slices_count() -> None:
    """Another machine changes the host, another topology the name, and several slices the number of devices."""
    small = compiler_topology(found("v6e-8").on_machine("ct6e-standard-4t"))
    assert small == Topology("v6e:2x4", {"chips_per_host_bounds": [2, 2, 1]}, 8)
    several = compiler_topology(found("v6e-256x3"))
    assert several == Topology(
        "v6e:16x16", {"chips_per_host_bounds": [2, 2, 1], "num_slices": 3}, 768
    )
    other = next(slice_ for slice_ in CATALOG.all() if len(slice_.topologies) > 1)
    asked = compiler_topology(other.on_topology(other.topologies[1]))
    assert isinstance(asked, Topology)
    assert asked.name == f"{other.generation}:{other.topologies[1]}"


def test_the_options_are_json() -> None:
    """A worker process in another Python gets name, options and devices as JSON."""
    asked = compiler_topology(found("v4-16x2"))
    assert isinstance(asked, Topology)
    assert json.loads(json.dumps(asked._asdict())) == asked._asdict()


def test_every_size_with_a_topology_has_a_name() -> None:
    """Only the sizes of v4 whose shape no source states have none, and their reason names the size."""
    for slice_ in CATALOG.all():
        asked = compiler_topology(slice_)
        assert isinstance(asked, Topology) == (slice_.topology is not None), slice_.size
    assert compiler_topology(found("v4-640x2")) == UnknownTopology(
        "no source states the topology of v4-640"
    )


@pytest.mark.parametrize(
    ("chips_per_host", "shape", "reason"),
    [
        (2, "4x4", "no source states how the 2 chips of a host are connected"),
        (8, "2x2x4", "a topology of 2x2x4 cannot be divided into hosts of 2x4x1 chips"),
        (4, "1x16", "a topology of 1x16 cannot be divided into hosts of 2x2x1 chips"),
    ],
)
def test_hosts_that_do_not_fill_a_slice_have_a_reason(
    chips_per_host: int, shape: str, reason: str
) -> None:
    """The reason names the number of chips of a host, or the host that does not fit."""
    slice_ = found("v6e-16")._replace(chips_per_host=chips_per_host, topology=shape)
    assert compiler_topology(slice_) == UnknownTopology(reason)


PROGRAM = """
import json, os, sys
os.environ |= {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu"}
from jax.experimental.topologies import get_topology_desc
for name, options, _ in json.load(sys.stdin):
    devices = get_topology_desc(name, "tpu", **options).devices
    slices = {getattr(device, "slice_index", None) or 0 for device in devices}
    hosts = {(getattr(device, "slice_index", None), device.process_index) for device in devices}
    print(json.dumps([len(devices), len(slices), len(hosts)]))
"""


def test_the_real_api_makes_several_slices(tpu_python: str) -> None:
    """For two and three slices of a size of each generation that joins them, the devices and hosts are ours."""
    sizes = ("v4-16x2", "v5litepod-16x3", "v5p-16x2", "v6e-32x2", "tpu7x-16x3")
    answers = subprocess.run(
        [tpu_python, "-c", PROGRAM],
        input=json.dumps([compiler_topology(found(size)) for size in sizes]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    expected = [[slice_.devices, slice_.slices, slice_.hosts] for slice_ in map(found, sizes)]
    assert [json.loads(line) for line in answers.stdout.splitlines()] == expected
