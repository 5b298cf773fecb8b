"""Reads the catalogue's data: one generation's file when one of its sizes is asked for, and no other."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tpucfg.catalog.slices import Generation, Machine, Refusal, Slice, Source, Zone

DATA = Path(__file__).parent / "data"
_NUMBER = r"0*[1-9][0-9]{0,8}"
"""What a size may have been meant by; Python itself turns no text of thousands of digits into a number."""


class Catalog:
    """The sizes of every generation, read as they are asked for."""

    def __init__(self, directory: Path = DATA) -> None:
        self._directory = directory
        self._files: dict[str, dict[str, Any]] = {}
        self._slices: dict[str, Slice] = {}

    @cached_property
    def _index(self) -> dict[str, Any]:
        return _read(self._directory / "index.yaml")

    @cached_property
    def _by_prefix(self) -> dict[str, str]:
        return {entry["prefix"]: name for name, entry in self._index.items()}

    def _file(self, generation: str) -> dict[str, Any]:
        if generation not in self._files:
            self._files[generation] = _shared(self._directory / f"{generation}.yaml")
        return self._files[generation]

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Every source by its id."""
        entries = _read(self._directory / "sources.yaml")
        return MappingProxyType({key: Source(id=key, **entry) for key, entry in entries.items()})

    def generations(self) -> Iterator[Generation]:
        """The generations, oldest first, each read when it is reached."""
        return (self.generation(name) for name in self._index)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The generations' own names, oldest first."""
        return tuple(self._index)

    def named(self, text: str) -> str | None:
        """The generation that a text names, by its own name, its sizes' or another tool's: `v5e` for `v5litepod`."""
        return next(self._meant(text.strip().lower().replace("_", "-")), None)

    def find(self, size: str) -> Slice | None:
        """The slice of a size exactly as Google writes it, on its default machine; None where there is none."""
        if size not in self._slices:
            generation = self._by_prefix.get(size.rpartition("-")[0])
            if generation is None or size not in self._file(generation)["sizes"]:
                return None
            self._slices[size] = _slice(size, self._file(generation))
        return self._slices[size]

    def generation(self, name: str) -> Generation:
        """One generation by its own name (`v5e`, not `v5litepod`).

        Raises:
            KeyError: There is no such generation.
        """
        prefix = self._index[name]["prefix"]
        data = self._file(name)
        slices = (self.find(size) for size in data["sizes"])
        return _generation(prefix, data, tuple(found for found in slices if found))

    def all(self) -> tuple[Slice, ...]:
        """Every size, by generation and number."""
        return tuple(s for generation in self.generations() for s in generation.slices)

    def regions(self, size: str, *, official: bool = False) -> tuple[str, ...]:
        """Regions with a zone for a size; empty for an unknown one. See `Slice.regions`."""
        found = self.find(size)
        return found.regions(official=official) if found else ()

    def nearest(self, text: str) -> str | None:
        """The size that a misspelt or borrowed name most likely means; None where nothing is near.

        A name that another tool uses (`v5e-32`) becomes Google's (`v5litepod-32`); a number that the generation lacks
        (`v3-16`) becomes the nearest by ratio, the larger of two equally near; the rest is compared letter by letter.
        """
        plain = text.strip().lower().replace("_", "-")
        if found := self.find(plain):
            return found.size
        prefix, _, number = plain.rpartition("-")
        for name in self._meant(prefix):
            if re.fullmatch(_NUMBER, number):
                return _closest(self.generation(name).slices, int(number)).size
        from difflib import get_close_matches

        return next(iter(get_close_matches(plain, [s.size for s in self.all()], n=1)), None)

    def _meant(self, prefix: str) -> Iterator[str]:
        """Generations that a prefix names, its own or another tool's, with or without a leading `tpu`."""
        for name, entry in self._index.items():
            names = (entry["prefix"], *entry["aliases"])
            if prefix in names or prefix.removeprefix("tpu-") in names or prefix.removeprefix("tpu") in names:
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
        chip_sources=tuple(data["chip_sources"]),
        slices=slices,
    )


def _slice(size: str, data: Mapping[str, Any]) -> Slice:
    row: Mapping[str, Any] = data["sizes"][size]
    chips: int = row["chips"]
    machines = _machines(row, data)
    chips_per_host: int = machines[0].chips if machines else data["chips_per_host"]
    targets: Mapping[str, Any] = data["targets"]
    taken = tuple(name for name, target in targets.items() if _concerns(size, target))
    return Slice(
        size=size,
        generation=data["generation"],
        number=int(size.rpartition("-")[2]),
        chips=chips,
        cores=chips * data["cores_per_chip"],
        topology=row["topology"],
        machine=machines[0] if machines else None,
        machines=machines,
        chips_per_host=chips_per_host,
        hosts=chips // chips_per_host,
        hbm_gib=_times(chips, data["hbm_gib_per_chip"]),
        peak_tflops=_times(chips, data["peak_bf16_tflops_per_chip"]),
        runtime_version=data["runtime"],
        accelerators={name: targets[name]["accelerator"] for name in taken if "accelerator" in targets[name]},
        vertex_machine_type=targets["vertex-ai"].get("machine"),
        targets=taken,
        refusals={name: target["refusal"] for name, target in targets.items() if name not in taken},
        zones=_zones(size, data["zones"]),
        derived=data.get("derived", {}),
        sources=tuple(row.get("sources", data["sources"])),
    )


@cache
def _shared(path: Path) -> dict[str, Any]:
    """A file's data with the values that many sizes share made once: a hundred sizes, two machines."""
    data = _read(path)
    data["machines"] = {name: _machine(name, row) for name, row in data["machines"].items()}
    for entry in data["zones"]:
        entry["names"] = [Zone(name, entry["source"], entry["kind"]) for name in entry["names"]]
    for target in data["targets"].values():
        if "otherwise" in target:
            target["refusal"] = Refusal(target["otherwise"], tuple(target["sources"]))
    return data


def _machines(row: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[Machine, ...]:
    names = row.get("machines") or ([data["machine"]] if data["machine"] else [])
    return tuple(data["machines"][name] for name in names)


def _machine(name: str, row: Mapping[str, Any]) -> Machine:
    return Machine(name, row["chips"], row["gke_label"], row["vcpus"], row["memory_gb"], tuple(row["sources"]))


def _zones(size: str, lists: list[Mapping[str, Any]]) -> tuple[Zone, ...]:
    """Each zone once, under the first list that names it: the data has the best list first."""
    found: dict[str, Zone] = {}
    for entry in lists:
        if _concerns(size, entry):
            for zone in entry["names"]:
                found.setdefault(zone.name, zone)
    return tuple(found.values())


def _concerns(size: str, entry: Mapping[str, Any]) -> bool:
    """Whether an entry holds for a size: for those it lists, or for all but its exceptions."""
    return size in entry.get("sizes", (size,)) and size not in entry.get("except", ())


def _times(chips: int, per_chip: int | None) -> int | None:
    return None if per_chip is None else chips * per_chip


def _closest(slices: tuple[Slice, ...], number: int) -> Slice:
    """The size whose number is nearest by ratio; the larger where two are equally near."""
    return max(slices, key=lambda s: (min(s.number, number) / max(s.number, number), s.number))


@cache
def _read(path: Path) -> dict[str, Any]:
    """Once in a process: nobody changes the catalogue's data while it runs. A wheel has JSON, which is sooner read."""
    data: dict[str, Any]
    with suppress(FileNotFoundError):
        data = json.loads(path.with_suffix(".json").read_bytes())
        return data
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506  a safe loader, in C where there is one
    return data
