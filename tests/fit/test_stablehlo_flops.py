"""Floating-point operations of programs in StableHLO, against the formulas of textbooks."""

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_factory import ROOT
from stablehlo_work import valid_pairs

PROGRAM: Final = Path(__file__).parent / "programs" / "counted.py"
SQUARE: Final = 2 * 16**3
"""The product of two matrices of 16 by 16."""
HEADS: Final = 2 * (2 * 3) * 24 * 24 * 8
"""One of the two products of attention: batch of 2, 3 heads, 24 tokens, size 8."""


def pairs(
    size: int, taps: int, stride: int, before: int, after: int, dilation: int = 1, distance: int = 1
) -> int:
    """Count the pairs of output and tap that meet an element, one by one, as the definition has it."""
    padded = (
        [False] * before
        + [index % dilation == 0 for index in range((size - 1) * dilation + 1)]
        + [False] * after
    )
    padded = padded[max(0, -before) :]
    positions = range(0, len(padded) - (taps - 1) * distance, stride)
    return sum(padded[position + tap * distance] for position in positions for tap in range(taps))


EXPECTED: Final[Mapping[str, int | tuple[int, int] | tuple[int, str]]] = {
    "matmul": 2 * 3 * 5 * 7,
    "batched matmul": 11 * 2 * 3 * 5 * 7,
    "einsum": 2 * (2 * 5) * 3 * (11 * 13) * 7,
    "vector": 2 * 9,
    "int8": (0, 2 * 8**3),
    "fp8": (0, 2 * 8**3),
    "int8 and bf16": 2 * 8**3,
    "elementwise": 0,
    "dead": 0,
    "dead in a call": 0,
    "equal products": 2 * SQUARE,
    "equal calls": SQUARE,
    "one function, other operands": 2 * SQUARE,
    "equal calls with a constant": SQUARE,
    "other precision": 2 * SQUARE,
    "a metric calls the model again": (2 + 2 + 1) * SQUARE,
    "computed again on purpose": (2 + 2 + 2 + 1) * SQUARE,
    "vmap": 6 * 2 * 3 * 5 * 7,
    "ragged": 2 * 24 * 5 * 7,
    "attention": 2 * HEADS,
    "library attention": 2 * HEADS,
    "conv": 2 * 2 * (7 * 7) * (3 * 2) * 6 * 5,
    "conv stride": 2 * 2 * (4 * 3) * (3 * 2) * 6 * 5,
    "conv padding": 2 * 2 * 6 * 5 * (9 * 3 - 2) * (8 * 3 - 2),
    "conv groups": 2 * 2 * (7 * 7) * (3 * 2) * 6 * 9 // 3,
    "conv dilation": 2 * 2 * (5 * 5) * (3 * 2) * 6 * 5,
    "conv transposed": 2 * 2 * 6 * 5 * (9 * 3) * (8 * 2),
    "conv odd": 2 * 2 * 6 * 5 * pairs(9, 4, 3, 5, 2, 3, 2) * pairs(8, 3, 2, -1, 4, 2, 5),
    "conv batch groups": 2 * 4 * (4 * 4) * (2 * 2) * 3 * 8 // 2,
    "conv gradient": 2 * 2 * 6 * 5 * (5 * 3 - 2) * (4 * 3 - 1),
    "scan": 5 * SQUARE,
    "fori_loop": 7 * SQUARE,
    "scan of nothing": 0,
    "nested scan": 7 * 3 * SQUARE,
    "while": (SQUARE, "while"),
    "while without matrices": 0,
    "cond": (SQUARE, "cond"),
    "cond of equals": SQUARE,
    "cond of platforms": SQUARE,
    "grad": 2 * (2 * 3 * 5 * 7),
    # Two products forward; backward one for the weights, and two for the activations.
    "grad of scan": 5 * 5 * SQUARE,
    # Both products of a layer run again.
    "remat": 5 * 7 * SQUARE,
    # The second product forward is not needed: its result is only summed.
    "grad of attention": (1 + 4) * HEADS,
    "custom_vjp": SQUARE,
    "custom_vjp gradient": 2 * SQUARE,
    "custom_jvp": SQUARE,
    "shard_map": 8 * (2 * 4 * 4 * 16),
    "shard_map of one axis": 4 * (2 * 4 * 4 * 16),
    "nested shard_map": 8 * (2 * 4 * 4 * 8),
    "pallas": (0, "pallas_call"),
    "pallas with an estimate": 1234,
    "custom_partitioning": SQUARE,
    "eigenvalues": (SQUARE, "Eigh"),
    "solver": (0, "triangular_solve"),
    "fft": (0, "fft"),
    "random": 0,
    # Equal calls are one; of others, there are too many.
    "calls of calls": 0,
    "calls of other calls": (0, "too many operations"),
}
"""Operations; or of operands wider than 8 bits and of others; or operations, and the operation that is not counted."""


@cache
def counts() -> Mapping[str, tuple[int, int, list[str]]]:
    """Return the operations and the uncounted operations of each program."""
    worker = ROOT / "compiler" / "tpucfg" / "fit" / "worker"
    command = [sys.executable, str(PROGRAM), str(worker)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return {
        name: (wide, narrow, uncounted)
        for name, (wide, narrow, uncounted) in json.loads(process.stdout).items()
    }


@pytest.mark.slow
@pytest.mark.xdist_group("counted")  # one process lowers all programs
@pytest.mark.parametrize("name", EXPECTED)
def test_operations_are_those_of_the_closed_form(name: str) -> None:
    """A multiply-add counts as two operations, in as many iterations as it runs."""
    expected = EXPECTED[name]
    wide, other = expected if isinstance(expected, tuple) else (expected, 0)
    narrow, uncounted = (0, [other]) if isinstance(other, str) else (other, [])

    assert counts()[name] == (wide, narrow, uncounted)


@pytest.mark.xdist_group("counted")
def test_every_program_has_a_closed_form() -> None:
    """No program is lowered in vain."""
    assert counts().keys() == EXPECTED.keys()


@given(
    st.integers(1, 12), st.integers(1, 6), st.integers(1, 4), st.integers(-2, 6), st.integers(0, 6),
    st.integers(1, 4), st.integers(1, 4),
)  # fmt: skip
def test_pairs_of_any_window(
    size: int, taps: int, stride: int, before: int, after: int, dilation: int, distance: int
) -> None:
    """The pairs of output and tap that meet an element are as many as a count one by one finds."""
    length = (size - 1) * dilation + 1 + before + after
    outputs = max(0, (length - (taps - 1) * distance - 1) // stride + 1)
    if length < 1:
        return

    counted = valid_pairs(
        size=size,
        taps=taps,
        outputs=outputs,
        stride=stride,
        padding=before,
        dilation=dilation,
        tap_distance=distance,
    )
    assert counted == pairs(size, taps, stride, before, after, dilation, distance)
