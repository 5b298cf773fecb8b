"""Invariants of the loaded catalog: each fact agrees with the others."""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from tpucfg.catalog import Catalog, Generation, Slice
from tpucfg.targets import TARGETS

CATALOG = Catalog()

_Row = TypeVar("_Row")
_Test = Callable[[], None]


def _for_each(
    rows: Sequence[_Row], to_name: Callable[[_Row], str]
) -> Callable[[Callable[[_Row], None]], _Test]:
    """Decorate a test to check all rows at once: two hundred tests for each invariant take seconds to collect."""

    def decorate(test: Callable[[_Row], None]) -> _Test:
        def check_all() -> None:
            for row in rows:
                try:
                    test(row)
                except AssertionError as error:
                    error.add_note(f"of {to_name(row)}")
                    raise

        check_all.__doc__ = test.__doc__
        return check_all

    return decorate


each_generation = _for_each(tuple(CATALOG.generations()), lambda generation: generation.name)
each_size = _for_each(CATALOG.all(), lambda slice_: slice_.size)


def test_a_source_is_public_and_dated() -> None:
    """Each source has a public address, a dated comparison, and, where it is code, a commit or a release."""
    for source in CATALOG.sources.values():
        assert re.match(
            r"https://(docs\.cloud\.google\.com|cloud\.google\.com|docs\.jax\.dev|github\.com)/",
            source.url,
        ), source
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", source.read), source
        if "github.com" in source.url:
            assert re.search(r"/(blob|tree)/([0-9a-f]{40}|v\d+\.\d+\.\d+)/", source.url), source


@each_generation
def test_sizes_are_in_ascending_order(generation: Generation) -> None:
    """The sizes of a generation are in ascending order, without duplicates."""
    numbers = [slice_.number for slice_ in generation.slices]
    assert numbers == sorted(set(numbers))


@each_generation
def test_the_slices_grow_with_the_number(generation: Generation) -> None:
    """A larger number is a larger slice: chips, hosts and memory never shrink along the rows."""
    for attribute in ("chips", "hosts", "hbm_gib"):
        values = [getattr(slice_, attribute) for slice_ in generation.slices]
        assert values == sorted(values)


@each_size
def test_chips_follow_from_the_name_and_from_the_topology(slice_: Slice) -> None:
    """The number in the name, the chips of the row and the product of the topology agree."""
    generation = CATALOG.generation(slice_.generation)
    assert slice_.size == f"{generation.prefix}-{slice_.number}"
    assert slice_.number == (slice_.cores if generation.counts == "cores" else slice_.chips)
    assert slice_.cores == slice_.chips * generation.cores_per_chip
    assert slice_.devices in {slice_.chips, slice_.cores}
    if slice_.topology:
        assert slice_.chips == math.prod(int(axis) for axis in slice_.topology.split("x"))


@each_size
def test_hosts_have_all_chips_on_every_machine(slice_: Slice) -> None:
    """On each machine type the hosts have the slice's chips, and the machine's name has their number per host."""
    assert slice_.hosts * slice_.chips_per_host == slice_.chips
    for machine in slice_.machines:
        on = slice_.on_machine(machine.name)
        assert on.hosts * on.chips_per_host == slice_.chips
        assert machine.name.endswith(f"-{on.chips_per_host}t")


@each_size
def test_the_default_machine_has_the_fewest_hosts(slice_: Slice) -> None:
    """The first of two machine types of a size is the larger one."""
    hosts = [slice_.on_machine(machine.name).hosts for machine in slice_.machines]
    assert hosts == sorted(hosts)


@each_size
def test_every_target_supports_a_size_or_has_a_reason(slice_: Slice) -> None:
    """Each target either supports the size or has a reason why not."""
    assert {*slice_.targets, *slice_.refusals} == {*TARGETS}
    assert not {*slice_.targets} & {*slice_.refusals}


@each_size
def test_a_supported_size_has_the_values_that_its_target_needs(slice_: Slice) -> None:
    """Gke needs label and topology, vertex-ai a name or machine and topology, and cloud-tpu name and runtime."""
    if "gke" in slice_.targets:
        assert slice_.machine
        assert slice_.topology
    if "vertex-ai" in slice_.targets:
        assert "vertex-ai" in slice_.accelerators or (slice_.machine and slice_.topology)
    if "cloud-tpu" in slice_.targets:
        assert "cloud-tpu" in slice_.accelerators
        assert slice_.runtime_version
    if "ai-platform" in slice_.targets:
        assert slice_.accelerators["ai-platform"] in {"TPU_V2", "TPU_V3"}


@each_size
def test_every_size_has_an_official_zone(slice_: Slice) -> None:
    """Google's current list names at least one zone for every size, and no zone is listed twice."""
    names = [zone.name for zone in slice_.zones]
    assert len(names) == len(set(names))
    assert slice_.regions(official=True)


@each_size
def test_googles_own_lists_come_first(slice_: Slice) -> None:
    """The zones are ordered from Google's current list to other sources."""
    kinds = ["official", "single-tenant", "older-docs", "third-party"]
    ranks = [kinds.index(zone.kind) for zone in slice_.zones]
    assert ranks == sorted(ranks)


def test_a_region_is_the_zone_without_its_last_part() -> None:
    """Every region in the data looks like one, including those of the AI zones."""
    regions = {zone.region for slice_ in CATALOG.all() for zone in slice_.zones}
    assert [region for region in regions if not re.fullmatch(r"[a-z]+-[a-z]+[0-9]+", region)] == []
    assert {"us-south1", "us-central1"} <= regions


def test_cores_of_a_megacore_chip_are_one_device() -> None:
    """JAX shows each TensorCore of TPU v2, v3 and TPU7x, and each chip of the generations between them.

    The table of https://docs.jax.dev/en/latest/_autosummary/jax.experimental.pallas.tpu.ChipVersion.html.
    """
    by_generation = {slice_.generation: slice_.devices // slice_.chips for slice_ in CATALOG.all()}
    assert (
        by_generation | {"v2": 2, "v3": 2, "v4": 1, "v5e": 1, "v5p": 1, "v6e": 1, "tpu7x": 2}
        == by_generation
    )


class ChipFigures(NamedTuple):
    """Memory in GiB, peaks in TFLOP/s and bandwidths in GB/s of one chip."""

    hbm: int
    bf16: int
    eight_bit: int | None
    hbm_bandwidth: int
    ici_bandwidth: int | None


PUBLISHED = {
    # https://github.com/jax-ml/jax/blob/cec06d116c05f0d52adfceee3d3b730fdbcb0ce5/jax/_src/tpu_info.py
    "v2": ChipFigures(16, 46, None, 716, None),
    # https://docs.cloud.google.com/tpu/docs/v3: 123 teraflops, 32 GiB, 900 GBps
    "v3": ChipFigures(32, 123, None, 900, None),
    # https://cloud.google.com/tpu/docs/v4: 275 teraflops (bf16 or int8), 32 GiB, 1200 GBps
    "v4": ChipFigures(32, 275, 275, 1200, None),
    # https://docs.cloud.google.com/tpu/docs/v5e: 197 TFLOPs, 393 TOPs, 16 GB, 819 GBps, bidirectional 400 GBps
    "v5e": ChipFigures(16, 197, 393, 819, 400),
    # https://docs.cloud.google.com/tpu/docs/tpu7x compares these three; int8 of v5p is JAX's, of v6e the v6e page's
    "v5p": ChipFigures(95, 459, 918, 2765, 1200),
    "v6e": ChipFigures(32, 918, 1836, 1638, 800),
    "tpu7x": ChipFigures(192, 2307, 4614, 7380, 1200),
}
"""The figures of a chip, typed from the pages and not from the data."""


@each_generation
def test_the_figures_of_a_chip_are_the_published_ones(generation: Generation) -> None:
    """Memory, peaks and bandwidths of each generation equal the list typed from the pages."""
    assert (
        ChipFigures(
            generation.hbm_gib_per_chip or 0,
            generation.peak_bf16_tflops_per_chip or 0,
            generation.peak_8bit_tflops_per_chip,
            generation.hbm_gbps_per_chip or 0,
            generation.ici_gbps_per_chip,
        )
        == PUBLISHED[generation.name]
    )


@each_size
def test_the_figures_of_a_slice_are_those_of_its_chips(slice_: Slice) -> None:
    """Each figure of a slice is the published one times its chips, and a device has an equal share of its chip."""
    chip = PUBLISHED[slice_.generation]
    assert (slice_.hbm_gib, slice_.peak_tflops) == (
        chip.hbm * slice_.chips,
        chip.bf16 * slice_.chips,
    )
    assert slice_.hbm_gbps == chip.hbm_bandwidth * slice_.chips
    assert slice_.peak_8bit_tflops == (
        None if chip.eight_bit is None else chip.eight_bit * slice_.chips
    )
    assert slice_.ici_gbps == (
        None if chip.ici_bandwidth is None else chip.ici_bandwidth * slice_.chips
    )
    assert slice_.devices_per_chip * slice_.chips == slice_.devices
    assert {*slice_.chip_sources} <= {*CATALOG.sources}
