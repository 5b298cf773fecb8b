"""The facts in `docs/catalog.md` equal the data."""

import itertools
import math
import operator
import re
from pathlib import Path

import pytest

from tpucfg.catalog import Catalog, Slice

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/catalog.md").read_text()
CATALOG = Catalog()

Row = tuple[str, ...]


def table(header: str) -> list[Row]:
    """Return the rows of the page's table with this header row."""
    lines = PAGE.partition(f"{header}\n")[2].splitlines()[1:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows]


CLAIMS = table("| Size | Who | Chips | Topology | Hosts |")
ZONES = table("| Size | Zone | Who names it | In tpucfg |")


def find(size: str) -> Slice:
    """Return the slice of a size, which must exist."""
    slice_ = CATALOG.find(size)
    assert slice_ is not None, size
    return slice_


@pytest.mark.parametrize("size", sorted({row[0] for row in CLAIMS}))
def test_our_line_equals_the_data_and_another_line_differs(size: str) -> None:
    """Each disputed size has one line equal to the data, and at least one line that differs."""
    claims = {
        who: (chips, topology, hosts)
        for name, who, chips, topology, hosts in CLAIMS
        if name == size
    }
    slice_ = find(size)
    our_claim = claims.pop("tpucfg")
    assert our_claim == (str(slice_.chips), slice_.topology, str(slice_.hosts))
    assert any(claim != our_claim for claim in claims.values())


@pytest.mark.parametrize(
    "claim", [row for row in CLAIMS if row[1] != "tpucfg"], ids=lambda row: f"{row[0]} {row[1]}"
)
def test_a_claim_is_consistent_and_has_a_source(claim: Row) -> None:
    """In the lines of other sources, the chips are the product of the topology, and the source is linked."""
    _, who, chips, topology, _ = claim
    assert re.search(r"\]\[[\w-]+\]", who)
    if topology:
        assert int(chips) == math.prod(int(axis) for axis in topology.split("x"))


def test_other_tools_have_the_smaller_machine() -> None:
    """The two-host v6e-8 and v5litepod-8 of other tools equal ours on the 4-chip machine."""
    for size, machine in (("v6e-8", "ct6e-standard-4t"), ("v5litepod-8", "ct5lp-hightpu-4t")):
        hosts = {row[4] for row in CLAIMS if row[0] == size}
        assert hosts == {str(find(size).hosts), str(find(size).on_machine(machine).hosts)}


@pytest.mark.parametrize(("size", "zone", "kind"), [(row[0], row[1], row[3]) for row in ZONES])
def test_a_zone_has_the_kind_on_the_page(size: str, zone: str, kind: str) -> None:
    """Each zone of the page is in the data with that kind, or marked as omitted."""
    kinds = {entry.name: entry.kind for entry in find(size).zones}
    assert kinds.get(zone, "left out") == kind


def test_the_table_of_generations_equals_the_data() -> None:
    """Name, prefix, counted unit, cores per chip and number of sizes equal the data."""
    names = table("| Generation | A size is | The number counts | Cores per chip | Sizes |")
    assert names == [
        (g.name, f"`{g.prefix}-N`", g.counts, str(g.cores_per_chip), str(len(g.slices)))
        for g in tuple(CATALOG.generations())
    ]


def test_our_figures_are_those_of_the_data() -> None:
    """The disputed figures in the lines of tpucfg equal the data."""
    figures = table("| What | Who | Value |")
    our_claim = {name: int(value) for name, who, value in figures if who == "tpucfg"}
    machine = find("v6e-1").machine
    assert machine is not None
    assert our_claim == {
        "memory of a ct6e-standard-1t host, GB": machine.memory_gb,
        "peak bf16 TFLOP/s of a v3 chip": CATALOG.generation("v3").peak_bf16_tflops_per_chip,
        "HBM bandwidth of a v3 chip, GB/s": CATALOG.generation("v3").hbm_gbps_per_chip,
        "HBM bandwidth of a v5e chip, GB/s": CATALOG.generation("v5e").hbm_gbps_per_chip,
        "HBM bandwidth of a v5p chip, GB/s": CATALOG.generation("v5p").hbm_gbps_per_chip,
        "peak 8-bit TFLOP/s of a v5p chip": CATALOG.generation("v5p").peak_8bit_tflops_per_chip,
    }


def test_the_table_of_peaks_equals_the_data() -> None:
    """The figures of a chip, with an empty cell for each that no source states."""
    peaks = table(
        "| Generation | bf16 TFLOP/s | 8-bit TFLOP/s | HBM GiB | HBM GB/s | Interconnect GB/s | Page |"
    )
    figures = operator.attrgetter(
        "peak_bf16_tflops_per_chip", "peak_8bit_tflops_per_chip", "hbm_gib_per_chip", "hbm_gbps_per_chip",
        "ici_gbps_per_chip",
    )  # fmt: skip
    assert [row[:-1] for row in peaks] == [
        (g.name, *("" if figure is None else str(figure) for figure in figures(g)))
        for g in CATALOG.generations()
    ]


def test_the_counts_in_the_text_equal_the_data() -> None:
    """Google lists eleven shapes of v5p, other tools list 83 more, and 40 sizes of v4 have no known shape."""
    v5p = CATALOG.generation("v5p").slices
    official = [slice_ for slice_ in v5p if slice_.sources == ("tpu-v5p",)]
    assert (len(official), len(v5p) - len(official)) == (11, 83)
    assert "states eleven. For the other 83" in PAGE
    unknown = [slice_.size for slice_ in CATALOG.all() if slice_.topology is None]
    assert (
        f"The shape of {len(unknown)} sizes of TPU v4, from `{unknown[0]}` to `{unknown[-1]}`"
        in PAGE
    )


def test_the_suggestions_on_the_page_are_real() -> None:
    """The suggestions that the page shows for misspelt sizes are those of `nearest`."""
    paragraph = PAGE.partition("Other spellings are")[2].partition("\n\n")[0]
    hints = re.findall(r"`([a-z0-9]+-\d+)`.*?([a-z0-9]+-\d+)[`\"]", paragraph, re.DOTALL)
    assert hints == [("v5e-32", "v5litepod-32"), ("7x-8", "tpu7x-8"), ("v3-16", "v3-32")]
    assert [CATALOG.nearest(text) for text, _ in hints] == [meant for _, meant in hints]


def test_every_link_of_the_page_is_defined_and_used() -> None:
    """There is no dangling and no unused reference, and code is cited by commit."""
    defined = dict(re.findall(r"^\[([\w-]+)\]: (https://\S+)$", PAGE, re.MULTILINE))
    assert set(re.findall(r"\]\[([\w-]+)\]", PAGE)) == set(defined)
    for url in defined.values():
        if "github.com" in url and "/issues/" not in url and "/pull/" not in url:
            assert re.search(r"/(blob|tree)/[0-9a-f]{40}/", url), url


def test_the_readme_names_the_generations_that_each_target_supports() -> None:
    """The README's table has exactly the generations of which each target supports a size."""
    rows = re.findall(
        r"^\| \[`([a-z-]+)`\].*\| ([^|]+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    expected = {
        target: {*re.findall(r"\b(v\d+[a-z]*|tpu7x)\b", cell.lower())} for target, cell in rows
    }

    assert len(expected) == 5
    for target, generations in expected.items():
        assert generations == {
            slice_.generation for slice_ in CATALOG.all() if target in slice_.targets
        }, target
