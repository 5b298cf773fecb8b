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
