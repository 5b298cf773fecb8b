"""What the catalogue says of a size, as values; nothing here reads a file."""

from collections.abc import Mapping
from typing import NamedTuple


class Source(NamedTuple):
    """Where a fact comes from."""

    id: str
    """The short name that rows cite, such as `tpu-v3`."""

    url: str
    """A public address."""

    what: str
    """The publisher and the page or file."""

    read: str
    """The day of the last comparison, `YYYY-MM-DD`."""


class Machine(NamedTuple):
    """A type of host (VM) that carries TPU chips."""

    name: str
    """The machine type, such as `ct6e-standard-4t`."""

    chips: int
    """Chips of one host."""

    gke_label: str
    """The value of the node label `cloud.google.com/gke-tpu-accelerator`."""

    vcpus: int | None
    """Virtual CPUs of one host; None where no source says."""

    memory_gb: int | None
    """Memory of one host in GB, without the chips' HBM; None where no source says."""

    sources: tuple[str, ...]
    """Ids of the sources of this row."""


class Zone(NamedTuple):
    """A zone that some list names for a size."""

    name: str
    """The zone, such as `us-central1-a`."""

    source: str
    """Id of the source whose list it is."""

    kind: str
    """`official`: Google's current list; `older-docs`, `single-tenant`: Google's, but no promise; `third-party`."""

    @property
    def official(self) -> bool:
        """Whether Google's current list names the zone for everybody."""
        return self.kind == "official"

    @property
    def region(self) -> str:
        """The zone's region: all but the last part. An AI zone such as `us-south1-ai1b` belongs to `us-south1`."""
        return self.name.rpartition("-")[0]


class Refusal(NamedTuple):
    """Why a target does not take a size."""

    why: str
    """A clause that can follow a colon: no capital, no full stop."""

    sources: tuple[str, ...]
    """Ids of the sources that say so, or that are silent where the others are listed."""


class Slice(NamedTuple):
    """One size, and what it is made of, on one type of machine."""

    size: str
    """The accelerator type as Google writes it, such as `v3-32`."""

    generation: str
    """`v2`, `v3`, `v4`, `v5e`, `v5p`, `v6e`, `tpu7x`."""

    number: int
    """The number in the name: TensorCores or chips, as the generation counts."""

    chips: int
    """Chips of the whole slice."""

    cores: int
    """TensorCores of the whole slice."""

    topology: str | None
    """Chips along each axis, such as `4x4` or `2x2x4`; None where no source says."""

    machine: Machine | None
    """The machine type of the hosts; None where the size has no public machine type (TPU v2)."""

    machines: tuple[Machine, ...]
    """Machine types that the size can be had on; the first is the default, and the only one on cloud-tpu."""

    chips_per_host: int
    """Chips of one host."""

    hosts: int
    """Hosts (VMs) of the slice."""

    hbm_gib: int | None
    """High-bandwidth memory of the whole slice in GiB; None where no source says."""

    peak_tflops: int | None
    """Peak bf16 TFLOP/s of the whole slice; None where no source says."""

    runtime_version: str | None
    """The Cloud TPU runtime that Google names for the generation; None where the API does not take it."""

    accelerators: Mapping[str, str]
    """What a target's API calls the generation (`TPU_V3`, `V5LITE_POD`); a target without such a name is absent."""

    vertex_machine_type: str | None
    """`machineSpec.machineType` where Vertex AI takes an accelerator type and a count; None: the machine's own name."""

    targets: tuple[str, ...]
    """The targets that take the size."""

    refusals: Mapping[str, Refusal]
    """Why the other targets do not."""

    zones: tuple[Zone, ...]
    """Zones that some list names for the size, Google's own first; each zone once, under its best source."""

    derived: Mapping[str, str]
    """What no primary source states, by the data's key, and where the value comes from instead."""

    sources: tuple[str, ...]
    """Ids of the sources of the size, chips and topology."""

    def on(self, machine: str) -> "Slice":
        """The same size on another of its machine types: hosts and chips per host change.

        Raises:
            ValueError: The size cannot be had on that machine type.
        """
        found = next((m for m in self.machines if m.name == machine), None)
        if found is None:
            names = ", ".join(m.name for m in self.machines) or "no named machine type"
            raise ValueError(f"{self.size} is not offered on {machine}, only on {names}")
        return self._replace(machine=found, chips_per_host=found.chips, hosts=self.chips // found.chips)

    def regions(self, *, official: bool = False) -> tuple[str, ...]:
        """Regions with a zone for the size, best source first; with `official`, by Google's current list alone."""
        return tuple(dict.fromkeys(zone.region for zone in self.zones if zone.official or not official))

    def zones_in(self, region: str) -> tuple[Zone, ...]:
        """The size's zones in one region; empty where no list names one."""
        return tuple(zone for zone in self.zones if zone.region == region)


class Generation(NamedTuple):
    """One generation of TPUs and its sizes."""

    name: str
    """The name of the data file, such as `v5e`."""

    title: str
    """The name in sentences, such as `TPU v5e`."""

    prefix: str
    """A size is `<prefix>-<number>`; `v5litepod` for v5e."""

    counts: str
    """What the number counts: `cores` or `chips`."""

    cores_per_chip: int
    """TensorCores of one chip."""

    hbm_gib_per_chip: int | None
    """High-bandwidth memory of one chip in GiB; None where no source says."""

    peak_bf16_tflops_per_chip: int | None
    """Peak bf16 TFLOP/s of one chip; None where no source says."""

    chip_sources: tuple[str, ...]
    """Ids of the sources of these figures; a size has its own."""

    slices: tuple[Slice, ...]
    """The sizes, by number."""
