"""Figures of the compiler's refusals, in all their wordings."""

from typing import Final

import pytest

from tpu_topology import parse_refusal

GIB: Final = 1 << 30

EARLY: Final = (
    "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO "
    "temporaries (250.49G) exceeds available HBM (15.75G)."
)
"""libtpu 0.0.42 to 0.0.50, before it schedules the program."""
LATE: Final = """RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. \
Used 20.93G of 15.48G hbm. Exceeded hbm capacity by 5.45G.

Total hbm usage >= 21.45G:
    reserved        530.01M
    program          20.93G
    arguments            0B
"""
"""libtpu 0.0.19, and newer ones after scheduling."""
SPARSE_CORE: Final = (
    "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 34.82G, SparseCore Hbm usage 174.10G, exceeding available bytes: "
    "95.74G"
)
"""https://github.com/openxla/xla/blob/main/docs/errors/error_1000.md."""
ONE_ARRAY: Final = (
    "Allocation (size=21474836480) would exceed memory (size=17179869184) :: #allocation14167 [shape = "
    "'f32[320,4096,4096]{1,2,0:T(8,128)}', space=hbm, size = 0xffffffffffffffff, tag = 'output of fusion']"
)
"""libtpu, of an array that is larger than the memory."""


@pytest.mark.parametrize(
    ("text", "used", "available"),
    [
        (EARLY, 250.49, 15.75),
        (EARLY.replace("250.49G", "4.00T"), 4096, 15.75),
        (LATE, 20.93, 15.48),
        (LATE.replace("20.93G of", "1.00T of"), 1024, 15.48),
        (SPARSE_CORE, 34.82 + 174.10, 95.74),
        (ONE_ARRAY, 20, 16),
    ],
)
def test_a_refusal_has_its_figures(text: str, used: float, available: float) -> None:
    """The figures are GiB, rounded to two decimals."""
    refusal = parse_refusal(text)

    assert refusal
    assert refusal.used == pytest.approx(used * GIB, abs=1)
    assert refusal.available == pytest.approx(available * GIB, abs=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        LATE.replace("hbm", "vmem"),
        ONE_ARRAY.replace("space=hbm", "space=vmem"),
        "RESOURCE_EXHAUSTED: the total memory required is unknown",
        "INTERNAL: Mosaic failed to compile TPU kernel",
    ],
)
def test_another_error_is_no_refusal_for_lack_of_memory(text: str) -> None:
    """Memories inside a core have other limits."""
    assert parse_refusal(text) is None
