"""Sizes of several slices: what is counted for all of them, what for one, and which targets take them."""

import pytest

from tpucfg.catalog import Catalog, Slice
from tpucfg.catalog.target_facts import TARGET_FACTS

CATALOG = Catalog()
COUNTED = (
    "chips",
    "cores",
    "devices",
    "hosts",
    "hbm_gib",
    "peak_tflops",
    "peak_8bit_tflops",
    "hbm_gbps",
    "ici_gbps",
)
"""The figures that count all slices; every other one is that of a single slice."""
JOINING = {target for target, facts in TARGET_FACTS.items() if facts.one_slice_refusal is None}
OF_THE_NAME = ("size", "slices", "targets", "refusals")


def found(size: str) -> Slice:
    """Return a size of the catalog."""
    slice_ = CATALOG.find(size)
    assert slice_ is not None
    return slice_


@pytest.mark.parametrize("count", [2, 3, 4, 16, 128, 999])
def test_every_figure_counts_all_slices(count: int) -> None:
    """Each size of the catalog times a number: the counted figures are multiples, and all others stay."""
    for one in CATALOG.all():
        several = found(f"{one.size}x{count}")
        for field in Slice._fields:
            value, single = getattr(several, field), getattr(one, field)
            if field in COUNTED:
                assert value == (None if single is None else single * count), (one.size, field)
            elif field not in OF_THE_NAME:
                assert value == single, (one.size, field)
        assert (several.size, several.slices) == (f"{one.size}x{count}", count)
        assert several.accelerator_type == one.accelerator_type == one.size
        assert several.hosts_per_slice == one.hosts_per_slice == one.hosts


def test_every_target_takes_or_refuses_them() -> None:
    """A target takes several slices only if it takes one; every other has a reason with a source of the catalog."""
    for one in CATALOG.all():
        several = found(f"{one.size}x2")
        assert {*several.targets} <= {*one.targets} & JOINING
        assert {*several.targets} | {*several.refusals} == {*one.targets} | {*one.refusals}
        assert not {*several.targets} & {*several.refusals}
        for refusal in several.refusals.values():
            assert refusal.sources
            assert {*refusal.sources} <= {*CATALOG.sources}


@pytest.mark.parametrize(
    ("size", "targets", "reason"),
    [
        ("v2-32x2", (), "several slices need TPU v4 or newer"),
        ("v3-32x2", (), "several slices need TPU v4 or newer"),
        ("v3-8x2", (), "several slices need TPU v4 or newer"),
        ("v5litepod-8x2", ("gke",), "only sizes of several hosts can be joined"),
        ("v6e-4x2", (), "only sizes of several hosts can be joined"),
        ("v4-16x2", ("cloud-tpu", "gke"), None),
        ("v5litepod-256x2", ("cloud-tpu", "gke"), "a job there has exactly one slice"),
        ("v6e-256x4", ("cloud-tpu", "gke"), "a job there has exactly one slice"),
        ("tpu7x-16x2", ("gke",), "a job there has exactly one slice"),
    ],
)
def test_who_takes_them(size: str, targets: tuple[str, ...], reason: str | None) -> None:
    """Cloud TPU and GKE, for sizes of several hosts there, from v4 on; Vertex AI never."""
    slice_ = found(size)
    assert slice_.targets == targets
    if reason:
        assert slice_.refusals["vertex-ai"].reason == reason


@pytest.mark.parametrize(
    "size",
    [
        "v6e-256x1",
        "v6e-256x0",
        "v6e-256x02",
        "v6e-256x1000",
        "v6e-256x2x2",
        "v6e-256X2",
        "v6e-3x2",
        "x2",
    ],
)
def test_other_spellings_are_no_size(size: str) -> None:
    """A number from 2 to 999 without leading zeros, behind a size that exists."""
    assert CATALOG.find(size) is None
