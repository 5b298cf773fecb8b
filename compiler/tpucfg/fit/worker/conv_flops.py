"""The multiplications of a convolution, without those with a zero of its padding or of its dilation."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from stablehlo_module import StableHloError

if TYPE_CHECKING:
    from stablehlo_module import Operation, Tensor


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


def convolution_multiplications(lhs: Tensor, rhs: Tensor, out: Tensor, operation: Operation) -> int:
    """Return the multiplications of a convolution.

    The kernel's input features are those of one group, and the result's batch is that of one batch group.
    """
    layout = r"dim_numbers = \[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]"
    match = re.search(layout, operation.text)
    if not match:
        raise StableHloError("a convolution without layout")
    sizes = [dict(zip(_names(text), each.shape)) for text, each in zip(match.groups(), (lhs, rhs, out))]  # noqa: B905
    axes = sorted(sizes[0].keys() - {"b", "f"}, key=int)
    strides, padding = (
        operation.numbers("stride"),
        re.findall(r"\[(-?[0-9]+), -?[0-9]+\]", operation.attribute(r"pad = \[(.*?\])\]")),
    )
    dilations, tap_distances = operation.numbers("lhs_dilate"), operation.numbers("rhs_dilate")
    windows = (
        Window(
            size=sizes[0][axis],
            taps=sizes[1][axis],
            outputs=sizes[2][axis],
            stride=strides[number] if strides else 1,
            padding=int(padding[number]) if padding else 0,
            dilation=dilations[number] if dilations else 1,
            tap_distance=tap_distances[number] if tap_distances else 1,
        )
        for number, axis in enumerate(axes)
    )
    return math.prod((sizes[2]["b"], sizes[2]["f"], sizes[1]["i"], *map(valid_pairs, windows)))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


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
