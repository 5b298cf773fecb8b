"""The text of a compiled program: its computations, and their instructions, which are parsed when they are needed.

https://openxla.org/xla/operation_semantics describes the instructions. Only the lines of a text that may have 50 MB are
split in advance.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER: Final = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\{$")
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
    """A computation; `active` has the instructions that may run another one, or use the network."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[str, str] = {}
        self.active: list[str] = []
        self.root = ""
        self._parsed: dict[str, Instruction] = {}

    def __getitem__(self, name: str) -> Instruction:
        if name not in self._parsed:
            if name not in self.lines:
                raise HloError(f"no instruction {name} in {self.name}")
            self._parsed[name] = _parse(name, self.lines[name])
        return self._parsed[name]


class Module(NamedTuple):
    """A compiled program."""

    computations: dict[str, Computation]
    entry: Computation


def parse_module(text: str, active: frozenset[str]) -> Module:
    """Split a text into its computations; `active` are the opcodes whose instructions `Computation.active` lists."""
    computations: dict[str, Computation] = {}
    entry = current = None
    for line in _lines(text):
        if current is None:
            header = _HEADER.match(line)
            if header:
                current = computations[header[2]] = Computation(header[2])
                entry = current if header[1] else entry
        elif line.startswith("}"):
            current = None
        else:
            _add_line(current, line, active)
    if entry is None:
        raise HloError("no entry computation")
    return Module(computations, entry)


def _lines(text: str) -> Iterator[str]:
    """Yield the lines one by one, without a list of all."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _add_line(computation: Computation, line: str, active: frozenset[str]) -> None:
    match = _LINE.match(line)
    if not match:
        return
    name = match[2]
    # The space in front of the type stays: an empty tuple, `()`, is not taken for the operands of an opcode then.
    rest = line[match.end() - 1 :]
    computation.lines[name] = rest
    if match[1]:
        computation.root = name
    opcode = _OPCODE.search(rest)
    if opcode and opcode[1] in active:
        computation.active.append(name)


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


def array_bytes(type_text: str) -> int:
    """Return the bytes of an array, or of all arrays of a tuple, without the padding of their layouts."""
    bits = 0
    for kind, width, shape in _ARRAY.findall(re.sub(r"\{[^{}]*\}", "", type_text)):
        elements = 1
        for size in filter(None, shape.replace("<=", "").split(",")):
            elements *= int(size)
        if width or kind == "pred":
            bits += elements * int(width or 8)
    return bits // 8
