"""The text of a compiled program: its computations, and their instructions, which are parsed when they are needed.

https://openxla.org/xla/operation_semantics describes the instructions. Only the lines of a text that may have 50 MB are
split in advance.
"""

from __future__ import annotations

import math
import operator
import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
        return any(
            match[1] in opcodes for line in self.lines.values() if (match := _OPCODE.search(line))
        )


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
    # One line at a time: a list of all would need more memory than the text itself.
    lines = (match[0] for match in re.finditer("^.*$", text, re.MULTILINE))
    for line, following in pairwise(chain(lines, ("",))):
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


def _parse(name: str, rest: str) -> Instruction:
    opcode = _OPCODE.search(rest)
    if not opcode:
        raise HloError(f"instruction {name} has no opcode")
    end = _OPERANDS_END.search(rest, opcode.end())
    if not end:
        raise HloError(f"the operands of {name} have no end")
    literal = rest[opcode.end() : end.start()]
    return Instruction(
        name,
        rest[1 : opcode.start()],
        opcode[1],
        tuple(_OPERAND.findall(literal)),
        literal,
        rest[end.end() :],
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


# The trip counts of the loops of a compiled program.
#
# The TPU compiler does not state them, as the compiler for other devices does in `known_trip_count`. A loop of a scan
# counts an integer up to a constant, and so does a loop in which the compiler overlaps a matrix multiplication with
# communication; the constants may be anywhere in the surrounding computations. So integers are evaluated through the
# program.

Path = tuple[int, ...]
"""The position of a value in nested tuples."""

_MAX_DEPTH: Final = 200
_MAX_TRIPS: Final = 1 << 40
_KNOWN: Final = re.compile(r'"known_trip_count":\{"n":"([0-9]+)"')
_SAME: Final = frozenset(
    ("copy", "bitcast", "convert", "reshape", "opt-barrier", "optimization-barrier", "copy-done")
)
"""Instructions whose result has the value of their operand."""
_ARITHMETIC: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "minimum": min,
    "maximum": max,
    "and": operator.and_,
    "or": operator.or_,
}
_DIRECTIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
}


class CallScope:
    """A computation where it is called: the integers of its parameters are known."""

    def __init__(
        self, computation: Computation, parameter: Callable[[int, Path], int | None]
    ) -> None:
        self.computation = computation
        self.parameter = parameter
        self._values: dict[tuple[str, Path], int | None] = {}

    def value(self, module: Module, name: str, path: Path = (), depth: int = 0) -> int | None:
        """Return the integer that an instruction returns at a position; None if it is unknown."""
        if depth > _MAX_DEPTH:
            return None
        if (name, path) not in self._values:
            self._values[name, path] = self._evaluate(
                module, self.computation[name], path, depth + 1
            )
        return self._values[name, path]

    def _evaluate(
        self, module: Module, instruction: Instruction, path: Path, depth: int
    ) -> int | None:
        source = _source(instruction, path)
        if source:
            return self.value(module, *source, depth)
        if instruction.opcode == "parameter":
            return self.parameter(int(instruction.literal), path)
        if instruction.opcode == "constant":
            return _constant(instruction.literal)
        if instruction.opcode in {"fusion", "call"}:
            computation = called(module, instruction)
            return call_scope(module, self, computation, instruction.operands).root_value(
                module, path, depth
            )
        return self._calculate(module, instruction, depth)

    def _calculate(self, module: Module, instruction: Instruction, depth: int) -> int | None:
        """Return the result of arithmetic or of a comparison."""
        function = _ARITHMETIC.get(instruction.opcode)
        if instruction.opcode == "compare":
            function = _DIRECTIONS.get(instruction.attribute("direction") or "")
        if function is None or len(instruction.operands) != 2:  # noqa: PLR2004 - two operands
            return None
        left, right = (self.value(module, operand, (), depth) for operand in instruction.operands)
        return None if left is None or right is None else int(function(left, right))

    def root_value(self, module: Module, path: Path, depth: int = 0) -> int | None:
        """Return the integer that the computation returns at a position."""
        return self.value(module, self.computation.root, path, depth)


def _source(instruction: Instruction, path: Path) -> tuple[str, Path] | None:
    """Return the instruction and the position that a value is taken from; None if it is calculated."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "get-tuple-element":
        return operands[0], (int(instruction.attribute("index") or 0), *path)
    if opcode == "tuple" and path:
        return operands[path[0]], path[1:]
    if opcode in _SAME:
        return operands[0], path
    if opcode == "copy-start" and path in {(), (0,)}:
        return operands[0], ()
    return None


def _constant(literal: str) -> int | None:
    if literal in {"true", "false"}:
        return int(literal == "true")
    return int(literal) if re.fullmatch(r"-?[0-9]+", literal) else None


def called(module: Module, instruction: Instruction) -> Computation:
    """Return the computation that a fusion or a call runs."""
    name = instruction.attribute("calls") or instruction.attribute("to_apply")
    if name not in module.computations:
        raise HloError(f"{instruction.name} calls no computation")
    return module.computations[name]


def call_scope(
    module: Module, scope: CallScope, computation: Computation, operands: tuple[str, ...]
) -> CallScope:
    """Return the scope of a computation that is called with operands of another scope."""

    def parameter(number: int, path: Path) -> int | None:
        return scope.value(module, operands[number], path) if number < len(operands) else None

    return CallScope(computation, parameter)


class Loop:
    """A while loop where it runs."""

    def __init__(self, module: Module, scope: CallScope, instruction: Instruction) -> None:
        self.module = module
        self.instruction = instruction
        self.condition = module.computations[instruction.attribute("condition") or ""]
        self.body = module.computations[instruction.attribute("body") or ""]
        self._outer = scope

    def initial(self, path: Path) -> int | None:
        """Return an integer of the loop's state before the first iteration."""
        return self._outer.value(self.module, self.instruction.operands[0], path)

    def body_scope(self) -> CallScope:
        """Return the scope of the body in any iteration: only what the loop does not change is known."""
        return CallScope(self.body, self._constant_state)

    def _constant_state(self, number: int, path: Path) -> int | None:
        return self.initial(path) if number == 0 and path and self._is_unchanged(path) else None

    def _is_unchanged(self, path: Path) -> bool:
        """Return true if the body returns an element of the state as it is."""
        source: tuple[str, Path] | None = (self.body.root, path)
        for _ in range(_MAX_DEPTH):
            if source is None:
                return False
            instruction, position = self.body[source[0]], source[1]
            if instruction.opcode == "parameter":
                return position == path
            source = _source(instruction, position)
        return False

    def trip_count(self) -> int | None:
        """Return how often the body runs; None if that is not known before it runs."""
        stated = _KNOWN.search(self.instruction.attributes)
        if stated:
            return int(stated[1])
        counter = self._counter()
        start = self.initial(counter) if counter else None
        if counter is None or start is None:
            return None
        second = self._next(counter, start)
        third = self._next(counter, second) if second is not None else None
        if second is None or third is None or third - second != second - start:
            return None
        return self._search(counter, start, second - start)

    def _counter(self) -> Path | None:
        """Return the only element of the state that the condition depends on and the body changes."""
        used: set[Path] = set()

        def parameter(number: int, path: Path) -> int | None:
            constant = self._constant_state(number, path)
            if constant is None:
                used.add(path)
            return 0 if constant is None else constant

        CallScope(self.condition, parameter).root_value(self.module, ())
        return used.pop() if len(used) == 1 else None

    def _with(self, counter: Path, value: int, computation: Computation) -> CallScope:
        def parameter(number: int, path: Path) -> int | None:
            return value if path == counter else self._constant_state(number, path)

        return CallScope(computation, parameter)

    def _next(self, counter: Path, value: int) -> int | None:
        return self._with(counter, value, self.body).root_value(self.module, counter)

    def _search(self, counter: Path, start: int, step: int) -> int | None:
        """Return the number of the first iteration that does not run, by bisection."""

        def stops(trips: int) -> bool:
            runs = self._with(counter, start + trips * step, self.condition).root_value(
                self.module, ()
            )
            if runs is None:
                raise HloError(f"the condition of {self.instruction.name} is unknown")
            return not runs

        high = 1
        while not stops(high - 1):
            high *= 2
            if high > _MAX_TRIPS:
                return None
        low = 0
        high -= 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if stops(middle) else (middle + 1, high)
        return low
