"""The multiplications of a convolution, without those with a zero of its padding or of its dilation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Window(NamedTuple):
    """One spatial dimension of a convolution."""

    size: int
    """Elements of the input, without dilation."""
    taps: int
    """Elements of the kernel."""
    outputs: int
    stride: int
    padding: int
    """Elements in front of the input."""
    dilation: int
    """The distance of two input elements: of a transposed convolution, its stride."""
    tap_distance: int


def convolution_multiplications(
    lhs: Sequence[int], rhs: Sequence[int], out: Sequence[int], params: Mapping[str, Any]
) -> int:
    """Return the multiplications of `conv_general_dilated` with operands and a result of these shapes.

    The kernel's input features are those of one group, and the result's batch is that of one batch group.
    """
    numbers = params["dimension_numbers"]
    windows = (
        Window(
            size=lhs[numbers.lhs_spec[2 + axis]],
            taps=rhs[numbers.rhs_spec[2 + axis]],
            outputs=out[numbers.out_spec[2 + axis]],
            stride=params["window_strides"][axis],
            padding=params["padding"][axis][0],
            dilation=params["lhs_dilation"][axis],
            tap_distance=params["rhs_dilation"][axis],
        )
        for axis in range(len(params["window_strides"]))
    )
    outputs = out[numbers.out_spec[0]] * out[numbers.out_spec[1]]
    return math.prod((outputs, rhs[numbers.rhs_spec[1]], *map(valid_pairs, windows)))


def valid_pairs(window: Window) -> int:
    """Return the number of pairs of an output and a tap that meet an element of the input.

    Output i and tap j meet at position i * stride + j * tap_distance - padding of the dilated input.
    """
    outer, inner = (window.outputs, window.stride), (window.taps, window.tap_distance)
    # The loop is over the shorter side: the kernel of a weight's gradient is as long as the input.
    if outer[0] > inner[0]:
        outer, inner = inner, outer
    return sum(_hits(index * outer[1] - window.padding, *inner, window) for index in range(outer[0]))


def _hits(start: int, count: int, step: int, window: Window) -> int:
    """Return how many of `count` positions from `start` on, `step` apart, are those of input elements."""
    end = (window.size - 1) * window.dilation
    first = max(0, -(start // step))
    last = min(count - 1, (end - start) // step)
    # Input elements are met every `period` steps, from one of the first `period` steps on.
    period = window.dilation // math.gcd(window.dilation, step)
    for index in range(first, min(first + period, last + 1)):
        if (start + index * step) % window.dilation == 0:
            return (last - index) // period + 1
    return 0
