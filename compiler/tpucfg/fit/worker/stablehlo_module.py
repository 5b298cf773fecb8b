"""The text of a program in StableHLO: its functions, as blocks of operations with nested blocks.

StableHLO is what JAX hands to the compiler, and is documented: https://openxla.org/stablehlo/spec. A text may have 50
MB, so that only the head of a line is parsed here.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_DEPTH: Final = 100
_HEAD: Final = re.compile(r'(?:(%[\w$., %-]+)(?::([0-9]+))? = )?"?([a-z_]+(?:\.[a-z_0-9]+)*)"?')
_NAME: Final = re.compile(r"%[\w$.-]+(?:#[0-9]+)?")
_ARGUMENT: Final = re.compile(r"(%[\w$.-]+): ")
_PAIR: Final = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#[0-9]+)?)")
_TENSOR: Final = re.compile(r"tensor<((?:[0-9?]+x)*)([a-zA-Z][\w<>:, !.]*?)(?:, #[^>]*)?>")
_LATER_REGIONS: Final = ("cond {", "reducer")
"""The starts of lines with a region of the operation above."""


class StableHloError(ValueError):
    """A text that has another form than expected."""


class Tensor(NamedTuple):
    """The type of an array."""

    shape: tuple[int, ...]
    element: str
    """Such as `bf16`."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_8bit(self) -> bool:
        """True for elements of at most 8 bits."""
        return self.element.startswith(("f8", "f4", "f6")) or self.element.lstrip("su") in {"i8", "i4", "i2"}


class Operation:
    """One operation; its text has the attributes and types."""

    def __init__(self, line: str) -> None:
        head = _HEAD.match(line)
        if not head:
            raise StableHloError(f"no operation: {line[:80]}")
        names = head[1].split(", ") if head[1] else []
        self.results = [f"{names[0]}#{index}" for index in range(int(head[2]))] if head[2] else names
        """The names of its results."""
        self.name = head[3]
        self.text = line[head.end() :]
        self.regions: list[Block] = []

    @property
    def operands(self) -> list[str]:
        """The names of the operands."""
        if self.name == "stablehlo.while":
            return [value for _, value in _PAIR.findall(self.text)]
        if self.name == "stablehlo.constant":
            return []
        if self.name == "sdy.manual_computation":
            return _NAME.findall(self.text, 0, self.text.find(" in_shardings"))
        end = self.text.find("{")
        return _NAME.findall(self.text, 0, len(self.text) if end < 0 else end)

    @property
    def arguments(self) -> list[str]:
        """The names of the arguments of its region."""
        if self.name == "stablehlo.while":
            return [name for name, _ in _PAIR.findall(self.text)]
        return _ARGUMENT.findall(self.text)

    @property
    def types(self) -> list[Tensor]:
        """The types of its operands and results."""
        return tensors(self.text[self.text.rfind(" : ") :])

    def attribute(self, pattern: str) -> str:
        """Return the first group of a pattern in its text; empty if there is none."""
        match = re.search(pattern, self.text)
        return match[1] if match else ""

    def numbers(self, name: str) -> list[int]:
        """Return a list of integers: those of `name = [1, 2]`, also as `array<i64: 1, 2>`."""
        return [
            int(each) for each in re.findall(r"-?[0-9]+", self.attribute(rf"{name} = (?:array<i64: ?|\[)([^\]>]*)"))
        ]


class Block(NamedTuple):
    """The operations of a function or of a region; the last one returns."""

    operations: list[Operation]


def tensors(text: str) -> list[Tensor]:
    """Return the types of arrays in a text."""
    types = []
    for sizes, element in _TENSOR.findall(text):
        if "?" in sizes:
            raise StableHloError("a dimension without a size")
        types.append(Tensor(tuple(map(int, sizes.split("x")[:-1])), element))
    return types


def parse_module(text: str) -> Operation:
    """Return the operation of the module, whose region has the functions."""
    lines = (line for line in map(str.strip, text.split("\n")) if line and not line.startswith(("#", "//", "^bb")))
    top: list[Operation] = []
    while _parse(lines, top, 0):
        pass
    module = next((operation for operation in top if operation.name == "module"), None)
    if module is None:
        raise StableHloError("no module")
    return module


def _parse(lines: Iterator[str], operations: list[Operation], depth: int) -> str:
    """Parse operations up to the end of their block, and return that line; empty at the end of the text."""
    if depth > _MAX_DEPTH:
        raise StableHloError("too many nested regions")
    for line in lines:
        if line.startswith("}"):
            return line
        if not line.startswith(_LATER_REGIONS):
            operations.append(Operation(line))
        while line.endswith("{"):
            inner: list[Operation] = []
            line = _parse(lines, inner, depth + 1)  # noqa: PLW2901 - the line behind the region
            operations[-1].regions.append(Block(inner))
            operations[-1].text += line
    return ""


def empty_array(text: str) -> str:
    """Return the first type with a dimension of size 0; empty if there is none."""
    match = re.search(r"tensor<(?:[0-9]+x)*0x[^>]*>", text)
    return match[0] if match else ""


# The multiplications of a convolution, without those with a zero of its padding or of its dilation.


_MAX_PAIRS: Final = 10_000_000
"""Pairs of an output and a tap along one axis that are looked at, which takes two seconds."""


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
    count = sizes[2]["b"] * sizes[2]["f"] * sizes[1]["i"]
    for number, axis in enumerate(axes):
        count *= valid_pairs(
            size=sizes[0][axis],
            taps=sizes[1][axis],
            outputs=sizes[2][axis],
            stride=strides[number] if strides else 1,
            padding=int(padding[number]) if padding else 0,
            dilation=dilations[number] if dilations else 1,
            tap_distance=tap_distances[number] if tap_distances else 1,
        )
    return count


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def valid_pairs(
    *, size: int, taps: int, outputs: int, stride: int, padding: int, dilation: int, tap_distance: int
) -> int:
    """Return the number of pairs of an output and a tap that meet an element of the input, along one axis.

    Output i and tap j meet at position i * stride + j * tap_distance - padding of the dilated input, whose elements are
    `dilation` apart: of a transposed convolution, that is its stride.
    """
    if outputs * taps > _MAX_PAIRS:
        raise StableHloError("a very large convolution")
    elements = range(0, size * dilation, dilation)
    starts = range(-padding, outputs * stride - padding, stride)
    return sum(start + tap * tap_distance in elements for start in starts for tap in range(taps))
