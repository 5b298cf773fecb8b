"""The text of a compiled program: its computations, and their instructions, which are parsed when they are needed.

https://openxla.org/xla/operation_semantics describes the instructions. Only the lines of a text that may have 50 MB are
split in advance.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER: Final = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\{$")
_END: Final = re.compile(r"\}(?:, execution_thread=.*)?$")
_LINE: Final = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_OPCODE: Final = re.compile(r" ([a-z][a-z0-9\-]*)\(")
_OPERANDS_END: Final = re.compile(r"\)(?:, (?=[a-z_\-]+=)|$)")
_OPERAND: Final = re.compile(r"%([\w.\-]+)")
_ARRAY: Final = re.compile(r"([a-z]+)([0-9]*)[a-z0-9]*\[([0-9,<=]*)\]")


class HloError(ValueError):
    """A text that has another form than expected."""


class Instruction(NamedTuple):
    """One instruction of a computation."""

    name: str
    type: str
    """The type of its result, such as `bf16[8,128]{1,0}`."""
    opcode: str
    operands: tuple[str, ...]
    literal: str
    """The text between the parentheses: the value of a constant, or the number of a parameter."""
    attributes: str

    def attribute(self, name: str) -> str | None:
        """Return the computation or the number that an attribute names."""
        match = re.search(rf"(?:^|, ){name}=%?([\w.\-]+)", self.attributes)
        return match[1] if match else None

    def computations(self, name: str) -> list[str]:
        """Return the computations that an attribute names, between braces or not."""
        match = re.search(rf"(?:^|, ){name}=(\{{[^}}]*\}}|%?[\w.\-]+)", self.attributes)
        return re.findall(r"[\w.\-]+", match[1]) if match else []


class Computation:
    """A computation; the instructions of one that is scheduled are in the order in which they run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[str, str] = {}
        """The text of each instruction, from its type on."""
        self.root = ""
        self._parsed: dict[str, Instruction] = {}

    def add(self, match: re.Match[str], line: str) -> str:
        """Add the instruction of a line, and return its name."""
        name = match[2]
        # The space in front of the type stays: an empty tuple, `()`, is not taken for the operands of an opcode then.
        self.lines[name] = line[match.end() - 1 :]
        if match[1]:
            self.root = name
        return name

    def __getitem__(self, name: str) -> Instruction:
        if name not in self._parsed:
            if name not in self.lines:
                raise HloError(f"no instruction {name} in {self.name}")
            self._parsed[name] = _parse(name, self.lines[name])
        return self._parsed[name]

    def contains(self, opcodes: frozenset[str]) -> bool:
        """Return true if an instruction has one of the opcodes."""
        return any(match[1] in opcodes for line in self.lines.values() if (match := _OPCODE.search(line)))


class Module(NamedTuple):
    """A compiled program."""

    computations: dict[str, Computation]
    entry: Computation


def parse_module(text: str) -> Module:
    """Split a text into its computations.

    An instruction may have several lines: the metadata of a Pallas kernel are printed as its author wrote them, also
    with lines that begin with braces. Only the brace in front of an empty line ends a computation.
    """
    computations: dict[str, Computation] = {}
    entry = current = last = None
    for line, following in _pairs(text):
        if current is None:
            header = _HEADER.match(line)
            if header:
                current = computations[header[2]] = Computation(header[2])
                entry = current if header[1] else entry
        elif _END.match(line) and not following:
            current = last = None
        elif match := _LINE.match(line):
            last = current.add(match, line)
        elif last:
            current.lines[last] += line
    if entry is None:
        raise HloError("no entry computation")
    return Module(computations, entry)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line with the following one, without a list of all."""
    start, end = 0, text.find("\n")
    while start < len(text):
        end = len(text) if end < 0 else end
        following = text.find("\n", end + 1)
        yield text[start:end], text[end + 1 : len(text) if following < 0 else following]
        start, end = end + 1, following


def _parse(name: str, rest: str) -> Instruction:
    opcode = _OPCODE.search(rest)
    if not opcode:
        raise HloError(f"instruction {name} has no opcode")
    end = _OPERANDS_END.search(rest, opcode.end())
    if not end:
        raise HloError(f"the operands of {name} have no end")
    literal = rest[opcode.end() : end.start()]
    return Instruction(
        name, rest[1 : opcode.start()], opcode[1], tuple(_OPERAND.findall(literal)), literal, rest[end.end() :]
    )


def array_sizes(type_text: str) -> list[int]:
    """Return the bytes of an array, or of each array of a tuple, without the padding of their layouts."""
    sizes = []
    for kind, width, shape in _ARRAY.findall(re.sub(r"\{[^{}]*\}", "", type_text)):
        if width or kind == "pred":
            sizes.append(math.prod(shape_of(shape)) * int(width or 8) // 8)
    return sizes


def shape_of(text: str) -> list[int]:
    """Return the sizes of a shape: `8,128`."""
    return [int(size) for size in text.replace("<=", "").split(",") if size]
