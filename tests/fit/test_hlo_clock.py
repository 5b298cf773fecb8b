"""The time of a step, from texts of compiled programs that tests/fit/record_hlo.py recorded."""

import re
import time
from pathlib import Path
from typing import Final

import pytest

from collectives import CHIPS, DeviceGroup, Network, parse_group
from hlo_clock import CALLBACKS, ITERATIONS, OFFLOADED, SLICES, UNESTIMATED, StepSchedule, schedule
from hlo_module import HloError, parse_module
from spec_factory import CATALOG

RECORDED: Final = Path(__file__).parent / "recorded" / "hlo"
V5E: Final = Network(CHIPS["v5e"], (2, 4))
TWO_LINKS: Final = 2 * 45e9
"""Bytes a second of a v5e chip in a slice of 2 by 4, whose ends are not connected."""

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

CORE: Final = """HloModule jit_step

ENTRY %main (x: f32[4096]) -> f32[4096] {{
  %x = f32[4096]{{0:T(1024)}} parameter(0)
{lines}
  ROOT %y = f32[4096]{{0:T(1024)}} negate(%x), backend_config={{"estimated_cycles":"1500000"}}
}}
"""
"""A program with lines in front of an instruction that takes a millisecond on v5e."""


def _recorded(name: str, network: Network = V5E) -> StepSchedule:
    return schedule((RECORDED / f"{name}.hlo").read_text(encoding="utf-8"), network)


def _loop(
    groups: str = "{{0,1,2,3,4,5,6,7}}", start: str = "%zero", attributes: str = ""
) -> StepSchedule:
    text = (
        LAYERS.replace("GROUPS", groups).replace("START", start).replace("ATTRIBUTES", attributes)
    )
    return schedule(text, V5E)


def _core(*lines: str) -> StepSchedule:
    return schedule(CORE.format(lines="\n".join(f"  {line}" for line in lines)), V5E)


def _cycles(name: str) -> int:
    """Return the sum of the cycles in a text."""
    text = (RECORDED / f"{name}.hlo").read_text(encoding="utf-8")
    return sum(int(cycles) for cycles in re.findall(r'"estimated_cycles":"([0-9]+)"', text))


def test_the_parts_are_the_whole() -> None:
    """Every second belongs to one part."""
    for path in RECORDED.glob("*-v5e.hlo"):
        step = _recorded(path.stem)
        assert step.seconds == pytest.approx(sum(step.parts.values()))
        assert step.seconds > 0


def test_cycles_take_time_at_the_clock() -> None:
    """A program without loops takes the cycles that the compiler states, and what it waits for."""
    step = _recorded("gradient-v5e")
    assert step.parts["products"] + step.parts.get("fusions", 0) == pytest.approx(
        _cycles("gradient-v5e") / 1.5e9
    )


def test_an_operation_in_a_loop_counts_in_each_iteration() -> None:
    """Six times, a chip receives seven eighths of a layer's weights, on the links of both axes."""
    received = 512 * 512 * 2 * 7 / 8
    assert _recorded("layers-v5e").parts["communication"] == pytest.approx(6 * received / TWO_LINKS)


def test_a_sum_of_which_each_device_keeps_a_part_counts_once() -> None:
    """A fusion of all-reduce and slice is a reduce-scatter: half of the traffic of a whole all-reduce."""
    weights = 512 * 256 * 2
    assert _recorded("gradient-v5e").parts["communication"] == pytest.approx(
        2 * weights * 7 / 8 / TWO_LINKS
    )


def test_nested_loops_multiply() -> None:
    """Three exchanges of a quarter of the array in each of five iterations, on one link."""
    step = _recorded("nested-v5p", Network(CHIPS["v5p"], (2, 2, 1)))
    assert step.parts["communication"] == pytest.approx(5 * 3 * 256 * 512 * 2 / 90e9)


def test_communication_beside_the_core_is_hidden() -> None:
    """Three of four gathers run beside the multiplication before the one that needs them; the first is waited for."""
    gather = 2048 * 2048 * 2 * 7 / 8 / TWO_LINKS
    assert _recorded("matrices-v5e").parts["communication"] == pytest.approx(gather)
    sparse_core = _recorded("layers-tpu7x", Network(CHIPS["tpu7x"], (2, 2, 1))).parts[
        "communication"
    ]
    gathers = 6 * 512 * 512 * 2 * 3 / 4 / (2 * 90e9)
    assert 0 < sparse_core < gathers


def test_a_loop_of_the_compiler_counts_as_often_as_it_runs() -> None:
    """A multiplication in a loop sends a part before it, and four in two iterations, in two directions of the ring."""
    part = 2048 * 4096 * 2 / 45e9
    assert 2 * part < _recorded("windowed-v5e").parts["communication"] < 9 * part


def test_traffic_between_slices_is_named_and_not_counted() -> None:
    """The links between two slices are not known."""
    assert _recorded("gradient-slices", Network(CHIPS["v5e"], (2, 2))).uncounted == {SLICES}


def test_functions_of_the_host_are_named_and_not_counted() -> None:
    """The time of a callback is that of the program's own code on another machine."""
    assert _recorded("called-v5e", Network(CHIPS["v5e"], (2, 2))).uncounted == {CALLBACKS}


def test_kernels_run_at_a_share_of_the_peak() -> None:
    """A kernel of 197 GFLOP at half of 197 TFLOP/s; one whose author states nothing is named."""
    step = _recorded("kernel-v5e")
    assert step.parts == {"kernels": pytest.approx(0.002)}
    assert step.uncounted == {"Pallas kernels without a cost estimate"}


def test_the_host_is_waited_for_and_not_reliable() -> None:
    """8 MiB of weights come from the host's memory, at 32 GB/s on v6e."""
    step = _recorded("offloaded-v6e", Network(CHIPS["v6e"], (2, 4)))
    assert step.parts["host"] == pytest.approx(2048 * 2048 * 2 / 32e9)
    assert not step.is_reliable


def test_convolutions_are_products() -> None:
    """Four convolutions forward, three of them again, and eight backward: 15, each with at least its FLOPs' time."""
    step = _recorded("convolved-v5e")
    least = 15 * 2 * 2 * 32 * 32 * 3 * 3 * 128 * 128 / 197e12
    assert least < step.parts["products"] < 4 * least
    assert step.uncounted == frozenset()


@pytest.mark.parametrize("generation", CHIPS)
def test_the_speeds_are_those_of_the_catalog(generation: str) -> None:
    """Peak, memory and devices have one value."""
    chip = CHIPS[generation]
    slice_ = next(
        each for each in CATALOG.all() if each.generation == generation and each.slices == 1
    )
    chips = slice_.chips * chip.devices
    assert slice_.devices == chips
    assert slice_.peak_tflops
    assert chip.flops * chips == pytest.approx(slice_.peak_tflops * 1e12, rel=0.01)
    if slice_.hbm_gbps:
        assert chip.hbm * chips == pytest.approx(slice_.hbm_gbps * 1e9, rel=0.03)


@pytest.mark.parametrize(
    ("groups", "size", "adjacent"),
    [
        ("{{0,1,2,3,4,5,6,7}}", 8, True),
        ("{}", 8, True),
        ("{{0,2},{1,3}}", 2, False),
        ("[2,4]<=[8]", 4, True),
        ("[4,2]<=[2,4]T(1,0)", 2, False),
        ("mesh['a'=2,'b'=4] {'b'}", 4, True),
        ("mesh['a'=2,'b'=4] {'a','b'}", 8, True),
        ("mesh['a'=2,'b'=4] {'b':(2)2}", 2, True),
        ("mesh['a'=2,'b'=4] {'b':(1)2}", 2, False),
        ("mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}", 2, False),
        ("mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'b'}", 4, True),
    ],
)
def test_groups_of_every_form(groups: str, size: int, adjacent: bool) -> None:
    """The first group of each text, and whether both devices of a chip are in it."""
    assert parse_group(groups, 8) == DeviceGroup(size, adjacent)


def test_a_group_uses_the_links_of_whole_axes() -> None:
    """64 chips in 4 by 4 by 4: 16 of them have the links of two axes whose ends are connected, 2 have one link."""
    network = Network(CHIPS["v5p"], (4, 4, 4))
    seconds = [
        network.seconds("all-gather", 1000, DeviceGroup(chips, adjacent=False))
        for chips in (64, 16, 4, 2, 1)
    ]
    assert seconds == pytest.approx(
        [63e3 / (6 * 90e9), 15e3 / (4 * 90e9), 3e3 / (2 * 90e9), 1e3 / 90e9, 0]
    )
    assert network.seconds("all-reduce", 4000, DeviceGroup(4, adjacent=False)) == pytest.approx(
        2 * 3000 / (2 * 90e9)
    )
    assert network.seconds("all-to-all", 4000, DeviceGroup(4, adjacent=False)) == pytest.approx(
        4000 * 4 / (8 * 90e9)
    )


def test_a_stated_trip_count_is_used() -> None:
    """Other compilers than the one for TPUs state the trip count; else the loop counts from 4 up to 10."""
    once = 2 * 1024 * 7 / 8 / TWO_LINKS
    stated = ', backend_config={"known_trip_count":{"n":"7"}}'
    assert _loop().seconds == pytest.approx(6 * once)
    assert _loop(attributes=stated, start="%start").seconds == pytest.approx(7 * once)


def test_a_loop_of_unknown_length_counts_once_and_is_named() -> None:
    """Its start is an argument of the program."""
    step = _loop(start="%start")
    assert step.uncounted == {ITERATIONS}
    assert step.seconds == pytest.approx(2 * 1024 * 7 / 8 / TWO_LINKS)


def test_work_of_another_core_is_named() -> None:
    """It is started on a thread of its own."""
    offloaded = '%s = f32[4096]{0:T(1024)} call-start(%x), async_execution_thread="sparsecore", to_apply=%gather'
    assert _core(offloaded) == StepSchedule(
        0.001, {"fusions": 0.001}, is_reliable=True, uncounted=frozenset((OFFLOADED,))
    )


def test_a_fusion_that_the_compiler_does_not_estimate_has_the_time_of_its_memory() -> None:
    """Its cycles are the largest number that there is, on chips without SparseCores too."""
    softmax = (
        "%s = f32[1024,1024]{1,0} fusion(%x), kind=kOutput, "
        'backend_config={"estimated_cycles":"9223372036854775807"}'
    )
    step = _core(softmax)
    assert step.uncounted == {UNESTIMATED}
    assert step.seconds == pytest.approx(0.001 + 2 * 4 * 1024**2 / 819e9)


def test_an_instruction_without_cycles_is_named() -> None:
    """It is read and written, at 819 GB/s; numbers, and small arrays, are not named."""
    small = "%r = f32[4096]{0:T(1024)} sort(%x), dimensions={0}"
    step = _core(
        small, "%s = f32[1024,1024]{1,0} sort(%x), dimensions={0}", "%n = s32[] constant(1)"
    )
    assert step.uncounted == {"arithmetic of sort"}
    assert step.seconds == pytest.approx(0.001 + 2 * 4 * (4096 + 1024**2) / 819e9)


def test_metadata_of_a_kernel_do_not_end_a_computation() -> None:
    """An author's metadata are printed as they are, also lines that begin with braces."""
    call = '%k = f32[4096]{0:T(1024)} custom-call(%x), custom_call_target="tpu_custom_call", frontend_attributes={'
    estimate = '"cost_estimate":{"flops":"197000000000","bytes_accessed":"1"}'
    lines = [
        call + 'kernel_metadata={"a":',
        '{"b": 1',
        "}}",
        "}",
        f"}}}}, backend_config={{{estimate}}}",
    ]
    text = CORE.format(lines="\n".join(lines).replace("%k =", "  %k ="))
    assert schedule(text, V5E).parts == {
        "kernels": pytest.approx(0.002),
        "fusions": pytest.approx(0.001),
    }
    assert list(parse_module(text).entry.lines) == ["x", "k", "y"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "HloModule x\n",
        "\x00" * 100,
        LAYERS.replace("GROUPS", "newform[8]"),
        LAYERS.replace("START", "%absent"),
    ],
)
def test_a_text_that_cannot_be_read_has_no_time(text: str) -> None:
    """No number is better than a wrong one."""
    with pytest.raises(HloError):
        schedule(text, V5E)


@pytest.mark.slow
def test_a_large_text_is_read_in_linear_time() -> None:
    """Fifty thousand fusions are searched once each."""
    fusion = """
%fused.{0} (p: f32[8,128]) -> f32[8,128] {{
  %p.{0} = f32[8,128]{{1,0:T(8,128)}} parameter(0)
  ROOT %n.{0} = f32[8,128]{{1,0:T(8,128)}} negate(%p.{0}), metadata={{op_name="jit(step)/all-reduce(x)"}}
}}
"""
    calls = "\n".join(
        f"  %f.{number} = f32[8,128]{{1,0}} fusion(%x), kind=kLoop, calls=%fused.{number}, "
        'backend_config={"estimated_cycles":"150"}'
        for number in range(50_000)
    )
    entry = f"\nENTRY %main (x: f32[8,128]) -> f32[8,128] {{\n  %x = f32[8,128]{{1,0}} parameter(0)\n{calls}\n}}\n"
    text = "".join(fusion.format(number) for number in range(50_000)) + entry

    start = time.monotonic()
    assert schedule(text, V5E).seconds == pytest.approx(50_000 * 1e-7)
    assert time.monotonic() - start < 60  # 2 seconds on an idle core


@pytest.mark.slow
def test_nested_calls_end() -> None:
    """Thirty computations that each call the next one twice are a billion calls."""
    computations = [
        f"%c.{number} (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n"
        f"  %a = f32[] call(%p), to_apply=%c.{number + 1}\n"
        f"  ROOT %b = f32[] call(%p), to_apply=%c.{number + 1}\n}}\n\n"
        for number in range(30)
    ]
    last = "%c.30 (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n\n"
    entry = (
        "ENTRY %main (p: f32[]) -> f32[] "
        "{\n  %p = f32[] parameter(0)\n  ROOT %a = f32[] call(%p), to_apply=%c.0\n}\n"
    )
    with pytest.raises(HloError, match="too many instructions"):
        schedule("".join(computations) + last + entry, V5E)
