"""Compilations by the real TPU compiler: memory limits, refusals, flags, slices of every generation."""

from pathlib import Path
from typing import Final

import pytest

from compile_worker import Slice, compile_step

RECORDED: Final = Path(__file__).parent / "recorded"
ONE_CHIP: Final = {"chips_per_host_bounds": [1, 1, 1]}
MEGACORE: Final = {"chip_config_name": "megacore"}
V5E: Final = Slice("v5e:2x2", 4)
GIB: Final = 1 << 30
LIMITS: Final = (
    (Slice("v2:4x4", 32), 7.48),
    (Slice("v3:2x2", 8), 15.48),
    (Slice("v4:2x2x1", 4, MEGACORE), 30.75),
    (Slice("v5e:2x4", 8, {"chips_per_host_bounds": [2, 4, 1]}), 15.75),
    (Slice("v5p:1x1x1", 1, ONE_CHIP), 95.74),
    (Slice("v6e:4x4", 16), 31.25),
    (Slice("tpu7x:2x2x1", 8), 94.75),
)
"""Slices, and the GiB of a device of each; v2, v3 and tpu7x have two devices a chip, and v4 one as a megacore.

They agree with what programs on such devices report: https://github.com/erfanzar/EasyDeL/issues/142 (v3),
https://github.com/erfanzar/EasyDeL/issues/166 (v4),
https://github.com/openxla/xla/blob/main/docs/errors/error_1000.md (v5p).
"""
SMALL: Final = {
    "width": "256",
    "layers": "2",
    "length": "256",
    "batch_size": "32",
    "model_parallel": "2",
}


def _transformer_flops() -> int:
    """Return the operations of a step: one pass forward, two backward, and one again, without its last product."""
    tokens, width, length, layers, vocabulary = 32 * 256, 256, 256, 2, 8192
    down = 2 * tokens * width * 4 * width
    attention = 2 * tokens * width * (3 * width + width) + 2 * (2 * tokens * length * width)
    layer = attention + 2 * down
    return 3 * (layers * layer + 2 * tokens * width * vocabulary) + layers * (layer - down)


@pytest.mark.telling
def test_memory_of_every_generation(tpu_python: str) -> None:
    """The compiler states the memory that it grants a program.

    It finds a wrong name or option of a topology, a limit that is read wrongly, and a libtpu that has dropped a chip.
    """
    for slice_, gibibytes in LIMITS:
        result = compile_step(tpu_python, "hlo_module:right", slice_).result
        # A version of libtpu may keep a few MiB more for itself.
        assert result["hbm"]["available"] == pytest.approx(gibibytes * GIB, abs=0.02 * GIB), slice_
        assert result["fits"], slice_


@pytest.mark.telling
def test_a_transformer_on_sixteen_chips(tpu_python: str) -> None:
    """A training step with sharded weights, a scan over layers and remat.

    It finds work that is counted wrongly in the StableHLO of a real step, and a schedule whose text is not understood.
    """
    result = compile_step(
        tpu_python, "transformer:abstract_step", Slice("v5e:4x4", 16), flags=SMALL
    ).result

    assert result["fits"]
    assert 5_000_000 < result["hbm"]["used"] < 200_000_000
    assert (result["flops"], result["flops_8bit"], result["uncounted"]) == (
        _transformer_flops(),
        0,
        [],
    )
    forecast = result["forecast"]
    assert forecast["seconds"] > _transformer_flops() / 16 / 197e12
    assert forecast["parts"].keys() >= {"products", "fusions", "communication"}
    assert (forecast["is_reliable"], forecast["uncounted"]) == (True, [])


def test_the_peak_is_compared_with_the_limit(tpu_python: str) -> None:
    """Of two programs around 15.75 GiB, the smaller fits with the peak of its arrays, and the larger is refused.

    A refusal has the least amount that the program needs, and no figures of the compiled program.
    """
    smaller, larger = (
        compile_step(tpu_python, "hlo_module:of_size", V5E, flags={"mebibytes": mebibytes}).result
        for mebibytes in ("16120", "16136")
    )

    assert smaller["fits"]
    assert 16120 << 20 <= smaller["hbm"]["used"] <= smaller["hbm"]["available"] == 16128 << 20
    assert not larger["fits"]
    assert (larger["hbm"]["available"], larger["hbm"]["exact"]) == (16128 << 20, False)
    assert larger["hbm"]["used"] > 16128 << 20
    assert larger["forecast"] is None


def test_memory_of_the_host_is_not_counted(tpu_python: str) -> None:
    """Of a state in the host's memory, only the part that a device changes occupies its own, before and after."""
    used = compile_step(tpu_python, "hlo_module:offloaded", V5E).result["hbm"]["used"]

    assert 64 << 20 <= used < 130 << 20


@pytest.mark.telling
def test_a_refusal_for_another_reason(tpu_python: str) -> None:
    """A kernel that needs too much of another memory is an error, not a step that does not fit.

    It finds refusals that are taken for a lack of HBM, for which a user would buy a larger slice.
    """
    error = compile_step(tpu_python, "hlo_module:too_much_vmem", V5E).error

    assert error["kind"] == "refused"
    assert "vmem" in error["message"]


@pytest.mark.parametrize(
    ("flag", "recorded"),
    [
        pytest.param("--xla_tpu_max_hbm_size_mb=8000", "unknown-flag", marks=pytest.mark.telling),
        ("--absent_flag=1", "unlike-any-flag"),
        ("--xla_tpu_enable_async_collective_fusion=maybe", "illegal-value"),
    ],
)
def test_a_wrong_flag_ends_the_process(tpu_python: str, flag: str, recorded: str) -> None:
    """The last line on stderr is the recorded one, with the flag that is meant if there is a similar one.

    It finds a libtpu with other words, so that a misspelt flag would be reported as a crash.
    """
    outcome = compile_step(tpu_python, "hlo_module:right", V5E, LIBTPU_INIT_ARGS=flag)
    expected = (
        (RECORDED / f"{recorded}.stderr").read_text(encoding="utf-8").strip().splitlines()[-1]
    )

    assert outcome.status == 1
    assert outcome.phases == ["import"]
    assert outcome.stderr.strip().splitlines()[-1] == expected


def test_flags_change_the_result(tpu_python: str) -> None:
    """The limit is that of the flags, to the two decimals of a GiB that the compiler prints."""
    outcome = compile_step(
        tpu_python, "hlo_module:right", V5E, LIBTPU_INIT_ARGS="--xla_tpu_max_hbm_size_mib=8000"
    )

    assert outcome.result["hbm"]["available"] == round(7.81 * GIB)


def test_two_slices(tpu_python: str) -> None:
    """A program on two slices has devices of both, and names the traffic between them."""
    result = compile_step(
        tpu_python, "hlo_module:with_kwargs", Slice("v5e:2x2", 8, {"num_slices": 2})
    ).result

    assert result["fits"]
    assert (result["uncounted"], result["forecast"]["uncounted"]) == (
        [],
        ["collectives between slices"],
    )
    assert result["flops"] == 2 * 256**3


def test_devices_of_one_chip_need_no_network(tpu_python: str) -> None:
    """The first two devices exchange data: on one chip of TPU7x, and between two chips of v5e."""
    shared = compile_step(tpu_python, "hlo_module:neighbours", Slice("tpu7x:2x2x1", 8)).result
    apart = compile_step(tpu_python, "hlo_module:neighbours", V5E).result

    assert "communication" not in shared["forecast"]["parts"]
    assert "communication" in apart["forecast"]["parts"]
