"""Bytes that a device sends, from texts of compiled programs that tests/fit/record_hlo.py recorded."""

from pathlib import Path
from typing import Final

import pytest

from hlo_traffic import SLICES, collective_bytes

RECORDED: Final = Path(__file__).parent / "recorded" / "hlo"
ONE_EACH: Final = range(8)
"""The chips of eight devices, each on its own."""
PAIRS: Final = (0, 0, 1, 1, 2, 2, 3, 3)
"""The chips of eight devices of a generation with two devices a chip."""

LAYERS: Final = """
HloModule jit_step, num_partitions=8

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

%body (state: (s32[], f32[256])) -> (s32[], f32[256]) {
  %state = (s32[], f32[256]) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %step = s32[] constant(1)
  %x = f32[256]{0:T(256)} get-tuple-element(%state), index=1
  %y = f32[256]{0:T(256)} all-reduce(%x), replica_groups=GROUPS, to_apply=%sum
  %next = s32[] add(%i, %step)
  ROOT %out = (s32[], f32[256]) tuple(%next, %y)
}

%condition (state: (s32[], f32[256])) -> pred[] {
  %state = (s32[], f32[256]) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %end = s32[] constant(10)
  ROOT %less = pred[] compare(%i, %end), direction=LT
}

ENTRY %main (start: s32[], x: f32[256]) -> (s32[], f32[256]) {
  %start = s32[] parameter(0)
  %zero = s32[] constant(4)
  %x = f32[256]{0:T(256)} parameter(1)
  %init = (s32[], f32[256]) tuple(START, %x)
  ROOT %loop = (s32[], f32[256]) while(%init), condition=%condition, body=%bodyATTRIBUTES
}
"""
"""A loop that sums 1,024 bytes over groups of devices."""


def _traffic(name: str, chips: "range | tuple[int, ...]") -> tuple[int | None, set[str]]:
    result = collective_bytes((RECORDED / f"{name}.hlo").read_text(encoding="utf-8"), chips)
    return result.ici, set(result.uncounted)


def _loop(groups: str = "{{0,1,2,3,4,5,6,7}}", start: str = "%zero", attributes: str = "") -> int | None:
    text = LAYERS.replace("GROUPS", groups).replace("START", start).replace("ATTRIBUTES", attributes)
    return collective_bytes(text, ONE_EACH).ici


def test_an_operation_in_a_loop_counts_in_each_iteration() -> None:
    """Six times, a device receives seven eighths of a layer's weights."""
    weights = 512 * 512 * 2
    assert _traffic("layers-v5e", ONE_EACH) == (6 * weights * 7 // 8, set())


def test_devices_of_one_chip_share_what_they_receive() -> None:
    """With two devices a chip, a chip has to receive three quarters of the weights, half of it for each device.

    On this generation, a SparseCore gathers the weights in an asynchronous call.
    """
    weights = 512 * 512 * 2
    assert _traffic("layers-tpu7x", PAIRS) == (6 * weights * 3 // 4 // 2, set())


def test_a_sum_of_which_each_device_keeps_a_part_counts_once() -> None:
    """A fusion of all-reduce and slice is a reduce-scatter: half of the traffic of a whole all-reduce."""
    weights = 512 * 256 * 2
    gathered = scattered = weights * 7 // 8
    assert _traffic("gradient-v5e", ONE_EACH) == (gathered + scattered, set())


def test_traffic_between_slices_is_named_and_not_counted() -> None:
    """Inside each of two slices, four devices gather the weights, scatter the sum, and gather its parts."""
    weights = 512 * 256 * 2
    assert _traffic("gradient-slices", range(4)) == (3 * weights * 3 // 4, {SLICES})


def test_an_operation_in_several_fusions_counts_once() -> None:
    """The compiler spreads three of four gathers over parts of the multiplication that runs at the same time."""
    weights = 2048 * 2048 * 2
    assert _traffic("matrices-v5e", ONE_EACH) == (4 * weights * 7 // 8, set())


def test_a_loop_of_the_compiler_counts_as_often_as_it_runs() -> None:
    """A multiplication in a loop sends a part before it, and four parts in each of its two iterations."""
    part = 2048 * 4096 * 2
    assert _traffic("windowed-v5e", ONE_EACH) == ((1 + 2 * 4) * part, set())


def test_nested_loops_multiply() -> None:
    """Three exchanges in each of five iterations."""
    assert _traffic("nested-v5p", range(4)) == (5 * 3 * 256 * 512 * 2, set())


def test_each_kind_of_operation_has_its_least_traffic() -> None:
    """Eight devices: psum, all_gather, psum_scatter, all_to_all, and a ppermute between two of them."""
    least = (
        2 * (128 * 256 * 2) * 7 // 8,
        (1024 * 512 * 2) * 7 // 8,
        (1024 * 1024 * 2) * 7 // 8,
        (128 * 2048 * 2) * 7 // 8,
        (8 * 4096 * 2) * 2 // 8,
    )
    assert _traffic("collectives-v5e", ONE_EACH) == (sum(least), set())


def test_operations_of_devices_that_share_a_chip_have_less_traffic() -> None:
    """Four chips with eight devices; the two that exchange data are one chip."""
    gathered = (1024 * 512 * 2) * 3 // 4 // 2
    summed = 2 * (128 * 256 * 2) * 3 // 4 // 2
    scattered = (1024 * 1024 * 2) * 3 // 4 // 2
    # A device sends an eighth of its array to each of the six devices of other chips.
    exchanged = (128 * 2048 * 2) * 6 // 8
    assert _traffic("collectives-tpu7x", PAIRS) == (gathered + summed + scattered + exchanged, set())
    # The compiler for v3 has no reduce-scatter, and sums the whole array.
    assert _traffic("collectives-v3", PAIRS) == (gathered + summed + 2 * scattered + exchanged, set())


@pytest.mark.parametrize(
    ("groups", "size"),
    [
        ("{{0,1,2,3,4,5,6,7}}", 8),
        ("{}", 8),
        ("{{0,1},{2,3},{4,5},{6,7}}", 2),
        ("[2,4]<=[8]", 4),
        ("[4,2]<=[2,4]T(1,0)", 2),
        ("mesh['a'=2,'b'=4] {'b'}", 4),
        ("mesh['a'=2,'b'=4] {'a','b'}", 8),
        ("mesh['a'=2,'b'=4] {'b':(2)2}", 2),
        ("mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}", 2),
        ("mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'b'}", 4),
    ],
)
def test_groups_of_every_form(groups: str, size: int) -> None:
    """A sum over n devices sends 2 (n - 1) / n of its bytes, six times: from 4 up to 10."""
    assert _loop(groups) == 6 * 2 * 1024 * (size - 1) // size


def test_a_stated_trip_count_is_used() -> None:
    """Other compilers than the one for TPUs state the trip count."""
    stated = ', backend_config={"known_trip_count":{"n":"7"}}'
    assert _loop(attributes=stated, start="%start") == 7 * 2 * 1024 * 7 // 8


@pytest.mark.parametrize(
    ("groups", "start"),
    [("{{0,1,2,3,4,5,6,7}}", "%start"), ("newform[8]", "%zero"), ("{{0,8}}", "%zero"), ("{{0,1}}", "%unknown")],
)
def test_an_unreadable_text_has_no_traffic(groups: str, start: str) -> None:
    """No number is better than a wrong one: for a trip count that is data, and for groups that cannot be read."""
    assert _loop(groups, start) is None


@pytest.mark.parametrize("text", ["", "HloModule x\n", "ENTRY %a (b: f32[]) -> f32[] {\n", "\x00" * 100])
def test_a_text_without_a_program_has_no_traffic(text: str) -> None:
    """A text without an entry computation, or one that ends too early, is no program without traffic."""
    assert collective_bytes(text, ONE_EACH).ici in (None, 0)


def test_a_large_text_is_read_in_linear_time() -> None:
    """Fifty thousand fusions are searched once each."""
    fusion = """
%fused.{0} (p: f32[8,128]) -> f32[8,128] {{
  %p.{0} = f32[8,128]{{1,0:T(8,128)}} parameter(0)
  ROOT %n.{0} = f32[8,128]{{1,0:T(8,128)}} negate(%p.{0}), metadata={{op_name="jit(step)/all-reduce(x)"}}
}}
"""
    calls = "\n".join(
        f"  %f.{number} = f32[8,128]{{1,0}} fusion(%x), kind=kLoop, calls=%fused.{number}" for number in range(50_000)
    )
    entry = f"ENTRY %main (x: f32[8,128]) -> f32[8,128] {{\n  %x = f32[8,128]{{1,0}} parameter(0)\n{calls}\n}}\n"
    text = "".join(fusion.format(number) for number in range(50_000)) + entry

    assert collective_bytes(text, ONE_EACH) == (0, frozenset())
