"""Look up TPU sizes; a generation's file is read only when one of its sizes is looked up."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tpucfg.catalog.slices import Generation, Machine, Slice, Source, Zone, multiplied
from tpucfg.catalog.target_facts import SizeRefusal
from tpucfg.package_data import read_data

DATA = Path(__file__).parent / "data"
_SIZE_NUMBER = r"0*[1-9][0-9]{0,8}"
"""The number of a misspelt size. Its length is bounded because `int` rejects a text of thousands of digits."""

_SLICES_FIRST = r"(?P<slices>[1-9][0-9]{0,2})x(?P<size>.+-[0-9]+)"
"""Several slices as AXLearn and others write them, `2xv6e-256`; the spec has `v6e-256x2`."""
_TOPOLOGY = r"[1-9][0-9]{0,2}(?:x[1-9][0-9]{0,2}){1,2}"
_SEVERAL_SLICES = r"(?P<size>.+-[0-9]+)x(?P<slices>[2-9]|[1-9][0-9]{1,2})"


class Catalog:
    """The sizes of every generation, each generation read on first use."""

    def __init__(self, directory: Path = DATA) -> None:
        self._directory = directory
        self._files: dict[str, dict[str, Any]] = {}
        self._slices: dict[str, Slice] = {}
        self._generations: dict[str, Generation] = {}

    @cached_property
    def _index(self) -> dict[str, Any]:
        return read_data(self._directory / "index.yaml")

    @cached_property
    def _by_prefix(self) -> dict[str, str]:
        return {entry["prefix"]: name for name, entry in self._index.items()}

    def _file(self, generation: str) -> dict[str, Any]:
        if generation not in self._files:
            self._files[generation] = _read_generation(self._directory / f"{generation}.yaml")
        return self._files[generation]

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Sources by id."""
        entries = read_data(self._directory / "sources.yaml")
        return MappingProxyType({key: Source(id=key, **entry) for key, entry in entries.items()})

    def generations(self) -> Iterator[Generation]:
        """Yield the generations, oldest first, each read when the iterator reaches it."""
        return (self.generation(name) for name in self._index)

    @cached_property
    def generation_names(self) -> tuple[str, ...]:
        """Names of the generations, oldest first."""
        return tuple(self._index)

    def nearest_generation(self, text: str) -> str | None:
        """Return the generation with this prefix or alias, such as `v5e` for `v5litepod`; None if there is none."""
        return next(self._generations_like(text.strip().lower().replace("_", "-")), None)

    def find(self, size: str) -> Slice | None:
        """Return the slice of a size in Google's spelling, on its default machine; None if there is no such size.

        `v6e-256x2` is two slices of `v6e-256`.
        """
        if size not in self._slices:
            generation = self._by_prefix.get(size.rpartition("-")[0])
            if generation and size in self._file(generation)["sizes"]:
                self._slices[size] = _slice(size, self._file(generation))
            elif (several := re.fullmatch(_SEVERAL_SLICES, size)) and (
                one := self.find(several["size"])
            ):
                self._slices[size] = one.times(int(several["slices"]))
        return self._slices.get(size)

    def generation(self, name: str) -> Generation:
        """Return a generation by its name (`v5e`, not `v5litepod`).

        Raises:
            KeyError: No generation has that name.
        """
        if name not in self._generations:
            prefix = self._index[name]["prefix"]
            data = self._file(name)
            slices = (self.find(size) for size in data["sizes"])
            known = tuple(slice_ for slice_ in slices if slice_)
            self._generations[name] = _generation(prefix, data, known)
        return self._generations[name]

    def all(self) -> tuple[Slice, ...]:
        """Return every size, by generation and number."""
        return tuple(slice_ for generation in self.generations() for slice_ in generation.slices)

    def regions(self, size: str, *, official: bool = False) -> tuple[str, ...]:
        """Return the regions with a zone for a size; none for an unknown size. See `Slice.regions`."""
        slice_ = self.find(size)
        return slice_.regions(official=official) if slice_ else ()

    def nearest(self, text: str) -> str | None:
        """Return the size that was most likely meant by a misspelt name; None if no size is similar.

        A name that another tool uses (`v5e-32`, `2xv6e-256`) becomes Google's (`v5litepod-32`, `v6e-256x2`), and a
        topology (`tpu7x-4x4x4`) the size that has it. A number that the generation lacks becomes several slices of its
        largest size (`v6e-512`), or the nearest number by ratio (`v3-16`), the larger of two equally near ones. Any
        other text becomes the size with the most similar spelling.
        """
        normalized = text.strip().lower().replace("_", "-")
        if slice_ := self.find(normalized):
            return slice_.size
        if several := re.fullmatch(_SEVERAL_SLICES, normalized) or re.fullmatch(
            _SLICES_FIRST, normalized
        ):
            one = self.nearest(several["size"])
            return (
                (one if several["slices"] == "1" else f"{one}x{several['slices']}") if one else None
            )
        prefix, _, number = normalized.rpartition("-")
        for name in self._generations_like(prefix):
            slices = self.generation(name).slices
            if re.fullmatch(_SIZE_NUMBER, number):
                return (
                    self._several_of_largest(slices, int(number))
                    or _nearest_number(slices, int(number)).size
                )
            if re.fullmatch(_TOPOLOGY, number):
                return next((slice_.size for slice_ in slices if number in slice_.topologies), None)
        # Imported here, because only a misspelt size needs it.
        from difflib import get_close_matches

        return next(
            iter(get_close_matches(normalized, [slice_.size for slice_ in self.all()], n=1)), None
        )

    def _several_of_largest(self, slices: Sequence[Slice], number: int) -> str | None:
        """Return several slices of the largest size that have a number together; None if a target takes none."""
        largest = max(slices, key=lambda slice_: slice_.number)
        count, rest = divmod(number, largest.number)
        several = None if rest or count < 2 else self.find(f"{largest.size}x{count}")  # noqa: PLR2004 - several
        return several.size if several and several.targets else None

    def _generations_like(self, prefix: str) -> Iterator[str]:
        """Yield the generations with this prefix or alias, with or without a leading `tpu`."""
        for name, entry in self._index.items():
            names = (entry["prefix"], *entry["aliases"])
            if (
                prefix in names
                or prefix.removeprefix("tpu-") in names
                or prefix.removeprefix("tpu") in names
            ):
                yield name


def _generation(prefix: str, data: Mapping[str, Any], slices: tuple[Slice, ...]) -> Generation:
    return Generation(
        name=data["generation"],
        title=data["title"],
        prefix=prefix,
        counts=data["counts"],
        cores_per_chip=data["cores_per_chip"],
        hbm_gib_per_chip=data["hbm_gib_per_chip"],
        peak_bf16_tflops_per_chip=data["peak_bf16_tflops_per_chip"],
        peak_8bit_tflops_per_chip=data["peak_8bit_tflops_per_chip"],
        hbm_gbps_per_chip=data["hbm_gbps_per_chip"],
        ici_gbps_per_chip=data["ici_gbps_per_chip"],
        chip_sources=tuple(data["chip_sources"]),
        slices=slices,
    )


def _slice(size: str, data: Mapping[str, Any]) -> Slice:
    row: Mapping[str, Any] = data["sizes"][size]
    chips: int = row["chips"]
    machines = _machines(row, data)
    chips_per_host: int = machines[0].chips if machines else data["chips_per_host"]
    targets: Mapping[str, Any] = data["targets"]
    supported = tuple(name for name, target in targets.items() if _applies(size, target))
    return Slice(
        size=size,
        generation=data["generation"],
        number=int(size.rpartition("-")[2]),
        chips=chips,
        cores=chips * data["cores_per_chip"],
        devices=chips * data["devices_per_chip"],
        device_sources=tuple(data["device_sources"]),
        topology=row["topology"],
        machine=machines[0] if machines else None,
        machines=machines,
        chips_per_host=chips_per_host,
        hosts=chips // chips_per_host,
        hbm_gib=multiplied(chips, data["hbm_gib_per_chip"]),
        peak_tflops=multiplied(chips, data["peak_bf16_tflops_per_chip"]),
        peak_8bit_tflops=multiplied(chips, data["peak_8bit_tflops_per_chip"]),
        hbm_gbps=multiplied(chips, data["hbm_gbps_per_chip"]),
        ici_gbps=multiplied(chips, data["ici_gbps_per_chip"]),
        chip_sources=tuple(data["chip_sources"]),
        runtime_version=data["runtime"],
        accelerators={
            name: targets[name]["accelerator"]
            for name in supported
            if "accelerator" in targets[name]
        },
        vertex_machine_type=targets["vertex-ai"].get("machine"),
        targets=supported,
        target_machines=row.get("target_machines", {}),
        refusals={
            name: target["refusal"] for name, target in targets.items() if name not in supported
        },
        zones=_zones(size, data["zones"]),
        derived=data.get("derived", {}),
        sources=tuple(row.get("sources", data["sources"])),
        topologies=(row["topology"], *row.get("topologies", ())) if row["topology"] else (),
        named_machines=tuple(
            each
            for each in data["machines"].values()
            if each.only_named and chips % each.chips == 0
        ),
    )


@cache
def _read_generation(path: Path) -> dict[str, Any]:
    """Read a generation's file, and build the values that its sizes share: a hundred sizes may have two machines."""
    data = read_data(path)
    data["machines"] = {name: _machine(name, row) for name, row in data["machines"].items()}
    for entry in data["zones"]:
        entry["names"] = [Zone(name, entry["source"], entry["kind"]) for name in entry["names"]]
    for target in data["targets"].values():
        if "otherwise" in target:
            target["refusal"] = SizeRefusal(target["otherwise"], tuple(target["sources"]))
    return data


def _machines(row: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[Machine, ...]:
    names = row.get("machines") or ([data["machine"]] if data["machine"] else [])
    return tuple(data["machines"][name] for name in names)


def _machine(name: str, row: Mapping[str, Any]) -> Machine:
    sources, only_named = tuple(row["sources"]), row.get("only_named", False)
    return Machine(
        name, row["chips"], row["gke_label"], row["vcpus"], row["memory_gb"], sources, only_named
    )


def _zones(size: str, zone_lists: list[Mapping[str, Any]]) -> tuple[Zone, ...]:
    """Return each zone once, from the first list that names it: the data has the most reliable list first."""
    zones: dict[str, Zone] = {}
    for entry in zone_lists:
        if _applies(size, entry):
            for zone in entry["names"]:
                zones.setdefault(zone.name, zone)
    return tuple(zones.values())


def _applies(size: str, entry: Mapping[str, Any]) -> bool:
    """Return True if an entry applies to a size: it lists the size, or every size but its exceptions."""
    return size in entry.get("sizes", (size,)) and size not in entry.get("except", ())


def _nearest_number(slices: tuple[Slice, ...], number: int) -> Slice:
    """Return the size whose number is nearest by ratio, the larger of two equally near ones."""
    return max(
        slices,
        key=lambda slice_: (min(slice_.number, number) / max(slice_.number, number), slice_.number),
    )
