"""Look-ups of sizes, their results, and the files that they read."""

import shutil
from pathlib import Path

import pytest

from tpucfg.catalog import Catalog
from tpucfg.catalog.catalog import DATA

CATALOG = Catalog()


def test_v3_32_is_sixteen_chips_on_four_hosts() -> None:
    """The example of the documentation: 32 cores, 16 chips, 4x4, four hosts of four chips."""
    slice_ = CATALOG.find("v3-32")
    assert slice_ is not None
    assert (slice_.cores, slice_.chips, slice_.topology, slice_.hosts, slice_.chips_per_host) == (
        32,
        16,
        "4x4",
        4,
        4,
    )
    assert (slice_.hbm_gib, slice_.peak_tflops) == (512, 1968)
    assert slice_.machine is not None
    assert slice_.machine.gke_label == "tpu-v3-slice"
    assert slice_.accelerators == {"vertex-ai": "TPU_V3", "cloud-tpu": "V3"}
    assert slice_.vertex_machine_type == "cloud-tpu"


def test_ai_platform_supports_eight_cores_only() -> None:
    """AI Platform Training supports v2-8 and v3-8, and every other size has a reason."""
    supported = [slice_.size for slice_ in CATALOG.all() if "ai-platform" in slice_.targets]
    assert supported == ["v2-8", "v3-8"]
    larger = CATALOG.find("v3-32")
    assert larger is not None
    assert "8 TPU cores" in larger.refusals["ai-platform"].reason


def test_each_target_omits_the_sizes_that_its_sources_omit() -> None:
    """vertex-ai has no v4 and v5p and nine sizes of TPU7x, cloud-tpu no TPU7x, gke no v2 and no v4 without a shape."""
    by_target = {
        target: [slice_ for slice_ in CATALOG.all() if target in slice_.targets]
        for target in ("vertex-ai", "cloud-tpu", "gke")
    }
    generations = {
        target: {slice_.generation for slice_ in slices} for target, slices in by_target.items()
    }
    assert generations["vertex-ai"] >= {"v2", "v3", "v5e", "v6e", "tpu7x"}
    assert generations["vertex-ai"].isdisjoint({"v4", "v5p"})
    assert [slice_.topology for slice_ in by_target["vertex-ai"] if slice_.generation == "tpu7x"] == [
        "2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16",
    ]  # fmt: skip
    assert generations["cloud-tpu"] >= {"v2", "v3", "v4", "v5e", "v5p", "v6e"}
    assert "tpu7x" not in generations["cloud-tpu"]
    assert all(slice_.topology and slice_.generation != "v2" for slice_ in by_target["gke"])


@pytest.mark.parametrize(
    "size", ["v3-16", "v3", "v3-", "-8", "", "v3-032", "V3-32", "v5e-32", "v3-32 ", "v9-8"]
)
def test_only_googles_exact_spelling_is_a_size(size: str) -> None:
    """A size that does not exist, or has another spelling, is not found."""
    assert CATALOG.find(size) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("v5e-32", "v5litepod-32"),
        ("v5lite-16", "v5litepod-16"),
        ("7x-8", "tpu7x-8"),
        ("ironwood-16", "tpu7x-16"),
        ("trillium-4", "v6e-4"),
        ("tpu-v3-32", "v3-32"),
        ("tpuv4-8", "v4-8"),
        ("V3_32", "v3-32"),
        ("v3-16", "v3-32"),
        ("v3-9", "v3-8"),
        ("v3-99999", "v3-2048"),
        ("v5litepo-32", "v5litepod-32"),
        ("v6e8", "v6e-8"),
        ("v3-32", "v3-32"),
        ("V6E-256x2", "v6e-256x2"),
        ("v5e-300x4", "v5litepod-256x4"),
        ("2xv6e-256", "v6e-256x2"),
        ("1xv6e-256", "v6e-256"),
        ("v6e-512", "v6e-256x2"),
        ("v6e-500", "v6e-256"),
        ("v3-4096", "v3-2048"),
        ("tpu7x-4x4x4", "tpu7x-128"),
    ],
)
def test_a_misspelt_size_has_a_suggestion(text: str, size: str) -> None:
    """For names of other tools, absent numbers and typing errors, the suggestion is the nearest real size."""
    assert CATALOG.nearest(text) == size


@pytest.mark.parametrize(
    "text", ["", "a100-8", "n1-standard-8", "europe-west4", "v3-\N{SUPERSCRIPT TWO}"]
)
def test_any_text_has_a_real_suggestion_or_none(text: str) -> None:
    """For any text, the suggestion is an existing size or None, and there is no error."""
    nearest = CATALOG.nearest(text)
    assert nearest is None or CATALOG.find(nearest)


def test_a_two_by_four_slice_is_one_host_unless_the_small_machine_is_chosen() -> None:
    """v6e-8 is one 8-chip host by default and two 4-chip hosts on request; nothing else changes."""
    default = CATALOG.find("v6e-8")
    assert default is not None
    small = default.on_machine("ct6e-standard-4t")
    assert (default.hosts, default.chips_per_host) == (1, 8)
    assert (small.hosts, small.chips_per_host) == (2, 4)
    assert (small.chips, small.topology, small.machines) == (
        default.chips,
        default.topology,
        default.machines,
    )
    assert small.on_machine("ct6e-standard-8t") == default


def test_a_machine_that_does_not_offer_the_size_is_refused() -> None:
    """The error names the size, the refused machine and the offered ones."""
    slice_ = CATALOG.find("v6e-16")
    assert slice_ is not None
    with pytest.raises(
        ValueError, match="v6e-16 is not offered on ct6e-standard-8t, only on ct6e-standard-4t"
    ):
        slice_.on_machine("ct6e-standard-8t")


def test_a_size_without_machine_types_has_hosts() -> None:
    """TPU v2 has no public machine type, so its machine is None, but its number of hosts is known."""
    slice_ = CATALOG.find("v2-32")
    assert slice_ is not None
    assert (slice_.machine, slice_.machines, slice_.hosts) == (None, (), 4)
    with pytest.raises(ValueError, match="only on no named machine type"):
        slice_.on_machine("ct3-hightpu-4t")


def test_a_value_without_a_source_is_none() -> None:
    """v4-640 is listed by the API without a shape: chips and hosts follow from the name, and the topology is None."""
    slice_ = CATALOG.find("v4-640")
    assert slice_ is not None
    assert slice_.topology is None
    assert (slice_.chips, slice_.hosts) == (320, 80)
    assert slice_.targets == ("cloud-tpu",)


def test_a_derived_value_has_a_derivation() -> None:
    """Topology and peaks of v2, which no primary source states, have a derivation; those of v3 have none."""
    older, newer = CATALOG.find("v2-8"), CATALOG.find("v3-8")
    assert older is not None
    assert newer is not None
    assert set(older.derived) == {"topology", "peak_bf16_tflops_per_chip", "hbm_gbps_per_chip"}
    assert newer.derived == {}


def test_regions_can_be_restricted_to_googles_own_list() -> None:
    """v3-32 is officially in europe-west4 only; another list also names us-east1."""
    assert CATALOG.regions("v3-32", official=True) == ("europe-west4",)
    assert CATALOG.regions("v3-32") == ("europe-west4", "us-east1")
    assert CATALOG.regions("v3-16") == ()


def test_a_region_has_its_zones_of_a_size() -> None:
    """The zones of a size in a region include AI zones; an unknown region has none."""
    slice_ = CATALOG.find("v6e-8")
    assert slice_ is not None
    assert {zone.name: zone.official for zone in slice_.zones_in("us-south1")} == {
        "us-south1-ai1b": True,
        "us-south1-a": False,
        "us-south1-c": False,
    }
    assert slice_.zones_in("mars-north1") == ()


def test_all_sizes_are_sorted_by_generation_and_number() -> None:
    """`all` has the order of the generations, and of the numbers within each generation."""
    order = [generation.name for generation in tuple(CATALOG.generations())]
    keys = [(order.index(slice_.generation), slice_.number) for slice_ in CATALOG.all()]
    assert keys == sorted(keys)


def test_an_unknown_generation_is_a_key_error() -> None:
    """`generation` takes the generation's name, not the prefix of its sizes."""
    assert CATALOG.generation("v5e").prefix == "v5litepod"
    with pytest.raises(KeyError):
        CATALOG.generation("v5litepod")


def test_a_slice_is_a_value() -> None:
    """Slices of one size from two catalogs are equal, and immutable."""
    slice_, other = CATALOG.find("v3-8"), Catalog().find("v3-8")
    assert slice_ is not None
    assert slice_ == other
    with pytest.raises(AttributeError):
        slice_.chips = 8  # type: ignore[misc]


def test_a_run_reads_only_the_generation_it_uses(tmp_path: Path) -> None:
    """With only the index and v3.yaml on disk, v3's sizes are found, so no other file is read."""
    for name in ("index.yaml", "v3.yaml"):
        shutil.copy(DATA / name, tmp_path)
    catalog = Catalog(tmp_path)
    assert catalog.find("v3-32") == CATALOG.find("v3-32")
    assert catalog.find("v3-16") is None
    assert catalog.nearest("v3-16") == "v3-32"
    with pytest.raises(FileNotFoundError):
        catalog.find("v2-8")


def test_a_new_generation_needs_only_data(tmp_path: Path) -> None:
    """A new generation is a file and a line in the index, without code."""
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    text = (
        (DATA / "v6e.yaml")
        .read_text()
        .replace("generation: v6e", "generation: v9")
        .replace("v6e-", "v9-")
    )
    (tmp_path / "v9.yaml").write_text(text)
    with (tmp_path / "index.yaml").open("a") as index:
        index.write("v9: {prefix: v9, aliases: [next]}\n")
    catalog = Catalog(tmp_path)
    slice_ = catalog.find("v9-16")
    assert slice_ is not None
    assert (slice_.generation, slice_.hosts) == ("v9", 4)
    assert catalog.nearest("next-16") == "v9-16"
    assert catalog.all()[-1].generation == "v9"


def test_a_source_has_a_url() -> None:
    """The source ids of a size have public URLs."""
    slice_ = CATALOG.find("v3-32")
    assert slice_ is not None
    assert [CATALOG.sources[source].url for source in slice_.sources] == [
        "https://docs.cloud.google.com/tpu/docs/v3",
        "https://docs.cloud.google.com/tpu/docs/regions-zones",
    ]


@pytest.mark.parametrize("size", ["v2-" + "9" * 5000, "v2-0", "v2-²", "9" * 5000])
def test_a_huge_number_is_no_error(size: str) -> None:
    """Python refuses to parse thousands of digits, but the look-up returns an existing size or None."""
    assert Catalog().nearest(size) in (None, *(slice_.size for slice_ in Catalog().all()))
