"""The command `tpucfg sizes`."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

from tpucfg.catalog import Catalog, Generation, Slice
from tpucfg.cli.options import TakenByOption, format_option, option
from tpucfg.cli.table import Cell, known, text_table
from tpucfg.refusal import RefusalError, UsageError
from tpucfg.text_format import format_value, json_text, listed, suggestion

_CURRENT: Final = ("v5e", "v5p", "v6e", "tpu7x")
"""The generations that are listed unless the command names another, or asks for all."""
_MAX_ZONES: Final = 4
"""Limit for the zones in a row of the table; more are only counted."""

_FIELDS: Final = (
    *(
        "size",
        "generation",
        "chips",
        "cores",
        "devices",
        "topology",
        "topologies",
        "hosts",
        "chips_per_host",
    ),
    *("targets", "hbm_gib", "peak_8bit_tflops", "hbm_gbps", "ici_gbps", "runtime_version"),
)
"""The fields of a slice that the JSON has by the same name."""
_NOT_KNOWN: Final = "not known"
"""A value that no source states."""


def sizes(
    target: TakenByOption = None,
    region: Annotated[
        str | None, option("--region REGION", "Show only sizes that this region offers.")
    ] = None,
    generation: Annotated[
        str | None, option("--generation GENERATION", "Show only sizes of it, such as v6e.")
    ] = None,
    all_: Annotated[
        bool, option("--all", "Show all generations, and every number of chips.")
    ] = False,
    format: Annotated[str, format_option("text|json")] = "text",
) -> None:
    """List the catalog of TPU sizes: chips, topology and memory, targets, zones, and the sources of these facts.

    As text and without a filter, these are the sizes of v5e, v5p, v6e and TPU7x with a power of two chips.

    SIZExN, such as v6e-256x2, is N slices of a size; gke and cloud-tpu take it for sizes of several hosts from v4 on.

    Example: tpucfg sizes --target vertex-ai --region europe-west4
    """
    catalog = Catalog()
    all_sizes = catalog.all() if generation is None else _generation(catalog, generation).slices
    taken = [
        slice_.on_target(target or "")
        for slice_ in all_sizes
        if target is None or target in slice_.targets
    ]
    if target is not None and not taken:
        raise RefusalError(
            f"{target} has no size of {generation}",
            f"list them all: tpucfg sizes --generation {generation}",
        )
    chosen = [slice_ for slice_ in taken if region is None or region in slice_.regions()]
    if region is not None and not chosen:
        raise _unknown_region(
            region, target, sorted({name for slice_ in taken for name in slice_.regions()})
        )
    if format == "json":
        sys.stdout.write(json_text([_entry(catalog, slice_) for slice_ in chosen]))
        return
    is_filtered = all_ or target or region or generation
    usual = [each for each in chosen if each.generation in _CURRENT and each.chips.bit_count() == 1]
    shown = chosen if is_filtered else usual
    for line in _text(catalog, shown, region, len(chosen) - len(shown)):
        print(line)


def _generation(catalog: Catalog, name: str) -> Generation:
    """Return the generation with a name of the catalog.

    Raises:
        UsageError: There is none; if the name is the prefix of a size or close to one, the help suggests it.
    """
    if name in catalog.generation_names:
        return catalog.generation(name)
    names = catalog.generation_names
    hint = suggestion(
        catalog.nearest_generation(name) or name, names, f"the generations are: {', '.join(names)}"
    )
    raise UsageError(f"there is no generation {format_value(name, quoted=False)}", hint)


def _unknown_region(region: str, target: str | None, known: Sequence[str]) -> RefusalError:
    """Return the error for a region that offers no size; if it is a zone, the help suggests its region."""
    for_target = f" for {target}" if target else ""
    hint = suggestion(region, known, f"regions with TPUs{for_target}: {', '.join(known)}")
    return RefusalError(
        f"no size is offered in {format_value(region, quoted=False)}{for_target}", hint
    )


def _text(
    catalog: Catalog, chosen: Sequence[Slice], region: str | None, others: int
) -> Iterator[str]:
    lines = [*text_table([[*_cells(slice_, region)] for slice_ in chosen])]
    yield from (*lines, "")
    if others:
        yield f"{others:,} other sizes: tpucfg sizes --all"
    if any("*" in line for line in lines):
        yield "* a zone that is not in Google's current public list"
    used = dict.fromkeys(source for slice_ in chosen for source in _sources(slice_))
    for id_ in used:
        source = catalog.sources[id_]
        yield f"{source.url} ({source.title}, read {source.read})"


def _cells(slice_: Slice, region: str | None) -> Iterator[Cell]:
    yield "size", slice_.size
    yield "chips", f"{slice_.chips:,}"
    yield "cores", f"{slice_.cores:,}"
    yield "topology", slice_.topology or _NOT_KNOWN
    yield "hosts", f"{slice_.hosts:,}"
    yield "HBM GiB", known(slice_.hbm_gib, "{:,}".format) or _NOT_KNOWN
    yield "bf16 TFLOP/s", known(slice_.peak_tflops, "{:,}".format) or _NOT_KNOWN
    yield "targets", ", ".join(slice_.targets)
    yield "zones", _zones(slice_, region)


def _zones(slice_: Slice, region: str | None) -> str:
    zones = [zone for zone in slice_.zones if region in (None, zone.region)]
    return (
        listed([zone.name + ("" if zone.official else "*") for zone in zones], _MAX_ZONES)
        or _NOT_KNOWN
    )


def _sources(slice_: Slice) -> Iterator[str]:
    yield from slice_.sources
    yield from slice_.chip_sources
    yield from (zone.source for zone in slice_.zones)


def _entry(catalog: Catalog, slice_: Slice) -> dict[str, Any]:
    return {
        **{name: getattr(slice_, name) for name in _FIELDS},
        "peak_bf16_tflops": slice_.peak_tflops,
        "machines": [machine.name for machine in (*slice_.machines, *slice_.named_machines)],
        "zones": [
            {"zone": zone.name, "kind": zone.kind, "source": zone.source} for zone in slice_.zones
        ],
        "derived": dict(slice_.derived),
        "sources": [
            {"id": id_, "url": catalog.sources[id_].url, "read": catalog.sources[id_].read}
            for id_ in dict.fromkeys(_sources(slice_))
        ],
    }
