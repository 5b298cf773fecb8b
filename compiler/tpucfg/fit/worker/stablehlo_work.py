"""The floating-point operations of one operation in StableHLO, which is documented: https://openxla.org/stablehlo/spec.

Counted are matrix multiplications and convolutions, which run on the matrix units whose peak the catalog states; a
multiply-add counts as two operations.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SILENT: Final = re.compile(
    r"Sharding|SPMD|xla\.sdy|annotate_device_placement|MoveTo|TopK|AllocateBuffer|.*callback|.*Barrier"
)
"""Calls of the compiler and of the host without a matrix multiplication."""
_SOLVERS: Final = frozenset(("stablehlo.cholesky", "stablehlo.triangular_solve", "stablehlo.fft"))


class Work(NamedTuple):
    """The operations of a program on all devices together."""

    flops: int = 0
    """Operations on operands of which at least one is wider than 8 bits."""
    flops_8bit: int = 0
    """Operations on operands of at most 8 bits, which run faster on some generations."""
    uncounted: frozenset[str] = frozenset()
    """Names of the operations whose work is missing, or present in part."""

    def plus(self, other: Work) -> Work:
        """Return the work of both programs."""
        return Work(
            self.flops + other.flops,
            self.flops_8bit + other.flops_8bit,
            self.uncounted | other.uncounted,
        )

    def times(self, count: int) -> Work:
        """Return the work of a program that runs `count` times; of one that never runs, nothing is missing."""
        return Work(
            self.flops * count, self.flops_8bit * count, self.uncounted if count else frozenset()
        )


NOTHING: Final = Work()


def attribute_text(operation: Any, name: str) -> str:
    """Return an attribute of an operation as it is printed; empty if there is none."""
    return str(operation.attributes[name]) if name in operation.attributes else ""


def inner_operations(operation: Any) -> Iterator[Any]:
    """Yield the operations in the regions of an operation."""
    return (
        each.operation
        for region in operation.regions
        for block in region.blocks
        for each in block.operations
    )


def operation_work(operation: Any) -> Work | None:
    """Return the work of an operation with all in its regions; None if it has none."""
    name = operation.name
    if name in _RULES:
        return _RULES[name](operation)
    if name in _SOLVERS:
        return Work(uncounted=frozenset((name.removeprefix("stablehlo."),)))
    inner = map(operation_work, inner_operations(operation))
    return (
        Work(uncounted=frozenset((name,)))
        if any(each not in {None, NOTHING} for each in inner)
        else None
    )


def _dot_general(operation: Any) -> Work:
    lhs, rhs = operation.operands
    axes = _listed(operation, "dot_dimension_numbers", "lhs_contracting_dimensions")
    count = math.prod(operation.results[0].type.shape) * math.prod(
        lhs.type.shape[axis] for axis in axes
    )
    return _multiplications(count, lhs, rhs)


def _ragged_dot(operation: Any) -> Work:
    """Count every row of the left operand once: it belongs to one group, whose sizes are data."""
    lhs, rhs, _ = operation.operands
    names = ("rhs_contracting_dimensions", "rhs_batching_dimensions", "rhs_group_dimensions")
    bound = {
        axis for name in names for axis in _listed(operation, "ragged_dot_dimension_numbers", name)
    }
    free = math.prod(size for axis, size in enumerate(rhs.type.shape) if axis not in bound)
    return _multiplications(math.prod(lhs.type.shape) * free, lhs, rhs)


def _custom_call(operation: Any) -> Work | None:
    """Return the estimate of a kernel's author: the work of a kernel depends on its grid and its conditions."""
    target = operation.attributes["call_target_name"].value
    if target == "tpu_custom_call":
        config = operation.attributes["backend_config"].value
        estimate = re.search(r'"cost_estimate": ?\{[^{}]*?"flops": ?([0-9]{1,20})', config)
        if not estimate:
            return Work(uncounted=frozenset(("pallas_call",)))
        return _of_width(int(estimate[1]), is_8bit=any(map(_is_8bit, operation.operands)))
    if target == "SPMDFullToShardShape":
        return Work(uncounted=frozenset(("shard_map without Shardy",)))
    return None if _SILENT.match(target) else Work(uncounted=frozenset((target[:100],)))


def _listed(operation: Any, attribute: str, field: str) -> list[int]:
    """Return the numbers of a field of an attribute, which is printed as `field = [0, 1]`."""
    match = re.search(rf"{field} = \[([^\]]*)\]", attribute_text(operation, attribute))
    return [int(each) for each in re.findall("[0-9]+", match[1])] if match else []


def _is_8bit(value: Any) -> bool:
    """Return true for an array with elements of at most 8 bits."""
    element = str(getattr(value.type, "element_type", ""))
    return element.startswith(("f8", "f4", "f6")) or element.lstrip("su") in {"i8", "i4", "i2"}


def _multiplications(count: int, lhs: Any, rhs: Any) -> Work:
    """Return the work of multiplications, each with an addition."""
    return _of_width(2 * count, is_8bit=_is_8bit(lhs) and _is_8bit(rhs))


def _of_width(flops: int, *, is_8bit: bool) -> Work:
    return Work(flops_8bit=flops) if is_8bit else Work(flops)


# The multiplications of a convolution, without those with a zero of its padding or of its dilation.

_LAYOUT: Final = r"\[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]"
_MAX_PAIRS: Final = 10_000_000
"""Pairs of an output and a tap along one axis that are looked at, which takes two seconds."""


def _convolution(operation: Any) -> Work:
    """Count the kernel's input features, which are those of one group, and the result's batch, of one batch group."""
    lhs, rhs = operation.operands
    texts = re.findall(_LAYOUT, attribute_text(operation, "dimension_numbers"))[0]
    shapes = (each.type.shape for each in (lhs, rhs, operation.results[0]))
    sizes = [dict(zip(text.split(", "), shape)) for text, shape in zip(texts, shapes)]  # noqa: B905 - of equal length
    count = sizes[2]["b"] * sizes[2]["f"] * sizes[1]["i"]
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    strides, dilations, distances = (_per_axis(operation, name, default=1) for name in names)
    padding = _per_axis(operation, "padding", default=0)
    for number, axis in enumerate(sorted(sizes[0].keys() - {"b", "f"}, key=int)):
        count *= valid_pairs(
            size=sizes[0][axis],
            taps=sizes[1][axis],
            outputs=sizes[2][axis],
            stride=strides[number],
            padding=padding[2 * number],  # before and behind each axis
            dilation=dilations[number],
            tap_distance=distances[number],
        )
    return _multiplications(count, lhs, rhs)


def _per_axis(operation: Any, name: str, default: int) -> list[int]:
    """Return the numbers of an attribute, or enough of the default for two on each axis."""
    attributes = operation.attributes
    return (
        list(attributes[name])
        if name in attributes
        else [default] * 2 * len(operation.operands[0].type.shape)
    )


def valid_pairs(
    *,
    size: int,
    taps: int,
    outputs: int,
    stride: int,
    padding: int,
    dilation: int,
    tap_distance: int,
) -> int:
    """Return the number of pairs of an output and a tap that meet an element of the input, along one axis.

    Output i and tap j meet at position i * stride + j * tap_distance - padding of the dilated input, whose elements are
    `dilation` apart: of a transposed convolution, that is its stride.
    """
    if outputs * taps > _MAX_PAIRS:
        raise ValueError("a very large convolution")
    elements = range(0, size * dilation, dilation)
    starts = range(-padding, outputs * stride - padding, stride)
    return sum(start + tap * tap_distance in elements for start in starts for tap in range(taps))


_RULES: Final[Mapping[str, Callable[[Any], Work | None]]] = {
    "chlo.ragged_dot": _ragged_dot,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dot_general": _dot_general,
}
