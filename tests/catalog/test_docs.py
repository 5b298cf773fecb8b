"""The facts on the documentation's page about sizes are those of the data."""

import itertools
import re
from pathlib import Path

import pytest

from tpucfg.catalog import Catalog, Slice

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/catalog.md").read_text()
CATALOG = Catalog()

Row = tuple[str, ...]


def table(header: str) -> list[Row]:
    """The rows of the page's table with that first header cell row."""
    lines = PAGE.partition(f"{header}\n")[2].splitlines()[1:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows]


CLAIMS = table("| Size | Who | Chips | Topology | Hosts |")
ZONES = table("| Size | Zone | Who names it | In tpucfg |")


def find(size: str) -> Slice:
    """The slice of a size that the page names, which must exist."""
    slice_ = CATALOG.find(size)
    assert slice_ is not None, size
    return slice_


@pytest.mark.parametrize("size", sorted({row[0] for row in CLAIMS}))
def test_our_line_is_the_data_and_somebody_differs(size: str) -> None:
    """Each disputed size has one line equal to the data, and at least one line that differs."""
    claims = {who: (chips, topology, hosts) for name, who, chips, topology, hosts in CLAIMS if name == size}
    slice_ = find(size)
    ours = claims.pop("tpucfg")
    assert ours == (str(slice_.chips), slice_.topology, str(slice_.hosts))
    assert any(claim != ours for claim in claims.values())


@pytest.mark.parametrize("claim", [row for row in CLAIMS if row[1] != "tpucfg"], ids=lambda row: f"{row[0]} {row[1]}")
def test_a_claim_is_sound_in_itself(claim: Row) -> None:
    """The others' lines are copied right: chips are the product of the topology, and a source is linked."""
    _, who, chips, topology, _ = claim
    assert re.search(r"\]\[[\w-]+\]", who)
    if topology:
        first, *rest = (int(axis) for axis in topology.split("x"))
        for axis in rest:
            first *= axis
        assert int(chips) == first


def test_the_smaller_machine_is_what_the_others_mean() -> None:
    """The two-host v6e-8 and v5litepod-8 of other tools are ours on the 4-chip machine."""
    for size, machine in (("v6e-8", "ct6e-standard-4t"), ("v5litepod-8", "ct5lp-hightpu-4t")):
        hosts = {row[4] for row in CLAIMS if row[0] == size}
        assert hosts == {str(find(size).hosts), str(find(size).on_machine(machine).hosts)}


@pytest.mark.parametrize(("size", "zone", "kind"), [(row[0], row[1], row[3]) for row in ZONES])
def test_a_zone_is_listed_as_the_page_says(size: str, zone: str, kind: str) -> None:
    """Each zone of the page is in the data with that kind, or marked as omitted."""
    kinds = {entry.name: entry.kind for entry in find(size).zones}
    assert kinds.get(zone, "left out") == kind


def test_the_names_of_the_generations() -> None:
    """The table of names is the data's: prefix, what the number counts, cores per chip, how many sizes."""
    names = table("| Generation | A size is | The number counts | Cores per chip | Sizes |")
    assert names == [
        (g.name, f"`{g.prefix}-N`", g.counts, str(g.cores_per_chip), str(len(g.slices)))
        for g in tuple(CATALOG.generations())
    ]


def test_our_figures() -> None:
    """The disputed figures that the page calls ours are in the data."""
    figures = table("| What | Who | Value |")
    ours = {what: int(value) for what, who, value in figures if who == "tpucfg"}
    machine = find("v6e-1").machine
    assert machine is not None
    assert ours == {
        "memory of a ct6e-standard-1t host, GB": machine.memory_gb,
        "peak bf16 TFLOP/s of a v3 chip": CATALOG.generation("v3").peak_bf16_tflops_per_chip,
        "peak bf16 TFLOP/s of a v2 chip": CATALOG.generation("v2").peak_bf16_tflops_per_chip,
        "HBM of a v5p chip, GiB": CATALOG.generation("v5p").hbm_gib_per_chip,
    }


def test_the_counts_in_the_text() -> None:
    """Eleven shapes of v5p are Google's, 83 are other tools', and 40 sizes of v4 have none."""
    v5p = CATALOG.generation("v5p").slices
    official = [slice_ for slice_ in v5p if slice_.sources == ("tpu-v5p",)]
    assert (len(official), len(v5p) - len(official)) == (11, 83)
    assert "states eleven. For the other 83" in PAGE
    unknown = [slice_.size for slice_ in CATALOG.all() if slice_.topology is None]
    assert f"The shape of {len(unknown)} sizes of TPU v4, from `{unknown[0]}` to `{unknown[-1]}`" in PAGE


def test_the_hints_of_the_page_are_given() -> None:
    """The suggestions that the page shows for misspelt sizes are those of `nearest`."""
    paragraph = PAGE.partition("Other spellings are")[2].partition("\n\n")[0]
    hints = re.findall(r"`([a-z0-9]+-\d+)`.*?([a-z0-9]+-\d+)[`\"]", paragraph, re.DOTALL)
    assert hints == [("v5e-32", "v5litepod-32"), ("7x-8", "tpu7x-8"), ("v3-16", "v3-32")]
    assert [CATALOG.nearest(text) for text, _ in hints] == [meant for _, meant in hints]


def test_every_link_of_the_page_is_defined_and_used() -> None:
    """No dangling reference, no unused one, and code is cited by commit."""
    defined = dict(re.findall(r"^\[([\w-]+)\]: (https://\S+)$", PAGE, re.MULTILINE))
    assert set(re.findall(r"\]\[([\w-]+)\]", PAGE)) == set(defined)
    for url in defined.values():
        if "github.com" in url and "/issues/" not in url and "/pull/" not in url:
            assert re.search(r"/(blob|tree)/[0-9a-f]{40}/", url), url


def test_the_readme_names_the_generations_that_each_target_takes() -> None:
    """The README's table of targets has, for each of them, the generations with a size that it takes, and no other."""
    rows = re.findall(r"^\| \[`([a-z-]+)`\].*\| ([^|]+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    expected = {target: {*re.findall(r"\b(v\d+[a-z]*|tpu7x)\b", takes.lower())} for target, takes in rows}

    assert len(expected) == 4
    for target, generations in expected.items():
        assert generations == {slice_.generation for slice_ in CATALOG.all() if target in slice_.targets}, target
