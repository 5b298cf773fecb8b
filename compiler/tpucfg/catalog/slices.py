"""The records of the catalog, as immutable values.

They are NamedTuples and not dataclasses: a dataclass generates code when it is imported, which would slow down the
start of every command.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from tpucfg.catalog.target_facts import TARGET_FACTS, SizeRefusal
from tpucfg.named_tuple import NamedTuple


class Source(NamedTuple):
    """The public page or file that a fact is taken from."""

    id: str
    """The id that rows of the data refer to, such as `tpu-v3`."""

    url: str
    """Its public address."""

    title: str
    """The publisher and the page or file."""

    read: str
    """The day on which the data was last compared with it, `YYYY-MM-DD`."""


class Machine(NamedTuple):
    """A type of host (VM) that carries TPU chips."""

    name: str
    """The machine type, such as `ct6e-standard-4t`."""

    chips: int
    """Chips of one host."""

    gke_label: str
    """The value of the node label `cloud.google.com/gke-tpu-accelerator`."""

    vcpus: int | None
    """Virtual CPUs of one host; None if no source states them."""

    memory_gb: int | None
    """Memory of one host in GB, without the chips' HBM; None if no source states it."""

    sources: tuple[str, ...]
    """Ids of the sources of this row."""

    only_named: bool = False
    """True if GKE provides it only for a pod that names it."""


class Zone(NamedTuple):
    """A zone that a published list names for a size."""

    name: str
    """The zone, such as `us-central1-a`."""

    source: str
    """Id of the source that publishes the list."""

    kind: str
    """`official` is Google's current list; `older-docs` and `single-tenant` are lists of Google too, but not offers to
    every customer; `third-party` is another tool's list."""

    @property
    def official(self) -> bool:
        """True if Google's current list offers the zone to every customer."""
        return self.kind == "official"

    @property
    def region(self) -> str:
        """The zone's region, which is its name without the last part: `us-south1` for the AI zone `us-south1-ai1b`."""
        return self.name.rpartition("-")[0]


WITHOUT_MULTISLICE: Final = ("v2", "v3")
"""Generations whose slices cannot be joined over the data centre's network."""
OLD_GENERATION: Final = SizeRefusal("several slices need TPU v4 or newer", ("gke-multislice",))
SINGLE_HOST: Final = SizeRefusal("only sizes of several hosts can be joined", ("gke-multislice",))


class Slice(NamedTuple):
    """One size on one type of machine: its chips, hosts, zones and targets; all figures count all slices of it."""

    size: str
    """The accelerator type as Google writes it, such as `v3-32`, with the number of slices if there are several:
    `v6e-256x2`."""

    generation: str
    """`v2`, `v3`, `v4`, `v5e`, `v5p`, `v6e`, `tpu7x`."""

    number: int
    """The number in the name: TensorCores or chips, as the generation counts."""

    chips: int
    """Chips of the whole slice."""

    cores: int
    """TensorCores of the whole slice."""

    devices: int
    """JAX devices of the whole slice: its chips, or its TensorCores where JAX makes each a device of its own."""

    device_sources: tuple[str, ...]
    """Ids of the sources of the devices."""

    topology: str | None
    """Chips of one slice along each axis, such as `4x4` or `2x2x4`; None if no source states it."""

    machine: Machine | None
    """The machine type of the hosts; None if the size has no public machine type (TPU v2)."""

    machines: tuple[Machine, ...]
    """Machine types that the size is offered on. The first is the default, and the only one on cloud-tpu."""

    chips_per_host: int
    """Chips of one host."""

    hosts: int
    """Hosts (VMs) of the slice."""

    hbm_gib: int | None
    """High-bandwidth memory of the whole slice in GiB; None if no source states it."""

    peak_tflops: int | None
    """Peak bf16 TFLOP/s of the whole slice; None if no source states it."""

    peak_8bit_tflops: int | None
    """Peak TFLOP/s of the whole slice with 8-bit operands; None if they are no faster, or no source states it."""

    hbm_gbps: int | None
    """HBM bandwidth of all chips together in GB/s; None if no source states it."""

    ici_gbps: int | None
    """Interconnect bandwidth of all chips together in GB/s, both directions counted; None if no source states it for
    one chip."""

    chip_sources: tuple[str, ...]
    """Ids of the sources of the chips' memory, speed and bandwidths."""

    runtime_version: str | None
    """The Cloud TPU runtime that Google names for the generation; None if the API does not accept the generation."""

    accelerators: Mapping[str, str]
    """The generation's name in a target's API (`TPU_V3`, `V5LITE_POD`), by target; absent if the API has none."""

    vertex_machine_type: str | None
    """`machineSpec.machineType` if Vertex AI expects an accelerator type and a count; otherwise None, and the field
    is the machine's own name."""

    targets: tuple[str, ...]
    """The targets that support the size."""

    refusals: Mapping[str, SizeRefusal]
    """For each other target, the reason why it does not support the size."""

    zones: tuple[Zone, ...]
    """Zones that a list names for the size, Google's own list first; each zone once, with its most reliable source."""

    derived: Mapping[str, str]
    """The derivation of each value that no primary source states, by its key in the data."""

    sources: tuple[str, ...]
    """Ids of the sources of the size, chips and topology."""

    slices: int = 1
    """Slices of the size: 2 for `v6e-256x2`."""

    topologies: tuple[str, ...] = ()
    """Every topology that a slice of these chips may have, the default first; empty if no source states any."""

    target_machines: Mapping[str, str] = MappingProxyType({})
    """The machine type by default of the targets that have another one than the first of `machines`."""

    named_machines: tuple[Machine, ...] = ()
    """Machine types that GKE provides only for a pod that names them, beside `machines`."""

    @property
    def devices_per_chip(self) -> int:
        """JAX devices of one chip, by which a chip's memory and bandwidths are divided."""
        return self.devices // self.chips

    @property
    def accelerator_type(self) -> str:
        """The size of one of the slices, such as `v6e-256` of `v6e-256x2`."""
        return self.size.removesuffix(f"x{self.slices}") if self.slices > 1 else self.size

    @property
    def hosts_per_slice(self) -> int:
        """Hosts (VMs) of one slice."""
        return self.hosts // self.slices

    def times(self, slices: int) -> "Slice":
        """Return several slices of this one; `refusals` has the targets that do not take them."""
        refused = {
            target: refusal
            for target in self.targets
            if (refusal := self._refusal_of_several(target))
        }
        return self._replace(
            size=f"{self.size}x{slices}",
            chips=self.chips * slices,
            cores=self.cores * slices,
            devices=self.devices * slices,
            hosts=self.hosts * slices,
            hbm_gib=multiplied(slices, self.hbm_gib),
            peak_tflops=multiplied(slices, self.peak_tflops),
            peak_8bit_tflops=multiplied(slices, self.peak_8bit_tflops),
            hbm_gbps=multiplied(slices, self.hbm_gbps),
            ici_gbps=multiplied(slices, self.ici_gbps),
            targets=tuple(target for target in self.targets if target not in refused),
            refusals={**self.refusals, **refused},
            slices=slices,
        )

    def _refusal_of_several(self, target: str) -> SizeRefusal | None:
        if self.generation in WITHOUT_MULTISLICE:
            return OLD_GENERATION
        return (
            SINGLE_HOST
            if self.on_target(target).hosts == 1
            else TARGET_FACTS[target].one_slice_refusal
        )

    def on_target(self, target: str) -> "Slice":
        """Return the size on the machine type that a target has by default."""
        name = self.target_machines.get(target)
        return self.on_machine(name) if name else self

    def on_machine(self, name: str) -> "Slice":
        """Return the size on another of its machine types, with that machine's hosts and chips per host.

        Raises:
            ValueError: The size is not offered on that machine type.
        """
        machine = next(
            (each for each in (*self.machines, *self.named_machines) if each.name == name), None
        )
        if machine is None:
            names = ", ".join(machine.name for machine in self.machines) or "no named machine type"
            raise ValueError(f"{self.size} is not offered on {name}, only on {names}")
        return self._replace(
            machine=machine, chips_per_host=machine.chips, hosts=self.chips // machine.chips
        )

    def on_topology(self, name: str) -> "Slice":
        """Return the size with another of its topologies.

        Raises:
            ValueError: A slice of these chips does not have that topology.
        """
        if name not in self.topologies:
            raise ValueError(
                f"{self.size} has no topology {name}, only {', '.join(self.topologies) or 'none'}"
            )
        return self._replace(topology=name)

    def regions(self, *, official: bool = False) -> tuple[str, ...]:
        """Return the regions with a zone for the size, most reliable list first; with `official`, Google's only."""
        return tuple(
            dict.fromkeys(zone.region for zone in self.zones if zone.official or not official)
        )

    def zones_in(self, region: str) -> tuple[Zone, ...]:
        """Return the size's zones in a region; none if no list names one."""
        return _zones_in(self.zones, region)


# Cached because a slice cannot be hashed, and each environment and each rule asks for its sizes' zones in one region.
@lru_cache(maxsize=1024)
def _zones_in(zones: tuple[Zone, ...], region: str) -> tuple[Zone, ...]:
    return tuple(zone for zone in zones if zone.region == region)


class Generation(NamedTuple):
    """One generation of TPUs and its sizes."""

    name: str
    """The name of the data file, such as `v5e`."""

    title: str
    """The name for readers, such as `TPU v5e`."""

    prefix: str
    """The first part of each size, `<prefix>-<number>`: `v5litepod` for v5e."""

    counts: str
    """The unit of the number: `cores` or `chips`."""

    cores_per_chip: int
    """TensorCores of one chip."""

    hbm_gib_per_chip: int | None
    """High-bandwidth memory of one chip in GiB; None if no source states it."""

    peak_bf16_tflops_per_chip: int | None
    """Peak bf16 TFLOP/s of one chip; None if no source states it."""

    peak_8bit_tflops_per_chip: int | None
    """Peak TFLOP/s of one chip with 8-bit operands; None if they are no faster, or no source states it."""

    hbm_gbps_per_chip: int | None
    """HBM bandwidth of one chip in GB/s; None if no source states it."""

    ici_gbps_per_chip: int | None
    """Interconnect bandwidth of one chip in GB/s, both directions counted; None if no source states it."""

    chip_sources: tuple[str, ...]
    """Ids of the sources of these figures; each size has sources of its own."""

    slices: tuple[Slice, ...]
    """The sizes, by number."""


def multiplied(count: int, figure: int | None) -> int | None:
    """Return a figure of one chip or slice for several; None remains unknown."""
    return None if figure is None else count * figure
