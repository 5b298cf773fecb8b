"""The floating-point operations of a step, counted over its StableHLO with the trip counts of its loops.

Counted are matrix multiplications and convolutions, which run on the matrix units whose peak the catalog states; a
multiply-add counts as two operations. Each count is the least that the step can need, because a lower bound of its time
is calculated from it: nothing whose result is not used, of equal operations one, of a conditional the cheapest branch.
XLA's own cost analysis counts the body of a loop once.
"""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from stablehlo_module import Operation, StableHloError, Tensor, convolution_multiplications, parse_module

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Value = tuple[int, int]
"""The number of a node, and of one of its results."""

_MAX_NODES: Final = 300_000
"""A program with this many operations, calls expanded, takes a few seconds."""
_MAX_SWEEPS: Final = 8
_MAX_DEPTH: Final = 100
_RETURNS: Final = frozenset(("return", "func.return", "stablehlo.return", "sdy.return"))
_CALLS: Final = frozenset(("call", "func.call", "stablehlo.composite", "sdy.named_computation"))
_UNIQUE: Final = frozenset(("stablehlo.optimization_barrier", "stablehlo.custom_call", "stablehlo.rng"))
"""Operations of which two equal ones are not one."""
_SILENT: Final = re.compile(
    r"Sharding|SPMD|xla\.sdy|annotate_device_placement|MoveTo|TopK|AllocateBuffer|.*callback|.*Barrier"
)
"""Calls of the compiler and of the host without a matrix multiplication."""
_SOLVERS: Final = frozenset(("stablehlo.cholesky", "stablehlo.triangular_solve", "stablehlo.fft"))
_ARITHMETIC: Final[Mapping[str, Callable[[int, int], int]]] = {
    "stablehlo.add": operator.add,
    "stablehlo.subtract": operator.sub,
    "stablehlo.multiply": operator.mul,
    "stablehlo.minimum": min,
    "stablehlo.maximum": max,
}
_MIRRORED: Final = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}


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
        return Work(self.flops + other.flops, self.flops_8bit + other.flops_8bit, self.uncounted | other.uncounted)

    def times(self, count: int) -> Work:
        """Return the work of a program that runs `count` times; of one that never runs, nothing is missing."""
        return Work(self.flops * count, self.flops_8bit * count, self.uncounted if count else frozenset())


NOTHING: Final = Work()


def count_work(text: str) -> Work:
    """Return the work of a program.

    Raises:
        StableHloError: The text has another form than expected, or is too large.
    """
    module = parse_module(text)
    functions = {each.attribute(r"@([\w$.-]+)"): each for each in module.regions[0].operations if each.regions}
    program = _Program(functions, _meshes(module))
    if "main" not in functions:
        raise StableHloError("no function main")
    start = program.node((), None)
    arguments = [(start, index) for index, _ in enumerate(functions["main"].arguments)]
    try:
        results = program.run(functions["main"], arguments, 0)
    except RecursionError:
        raise StableHloError("too many nested calls") from None
    return program.sweep(0, program.count, {node: {index} for node, index in results} | _demand(results))


def _meshes(module: Operation) -> dict[str, dict[str, int]]:
    """Return the sizes of the axes by mesh."""
    meshes = [each for each in module.regions[0].operations if each.name == "sdy.mesh"]
    return {
        each.attribute(r"@([\w$.-]+)"): {axis: int(size) for axis, size in re.findall(r'"([^"]+)"=([0-9]+)', each.text)}
        for each in meshes
    }


def _demand(values: Sequence[Value]) -> dict[int, set[int]]:
    demand: dict[int, set[int]] = {}
    for node, index in values:
        demand.setdefault(node, set()).add(index)
    return demand


class _Region(NamedTuple):
    """The nodes of an operation with regions: from `first` up to its own."""

    first: int
    branches: tuple[tuple[int, int, tuple[Value, ...]], ...]
    """The nodes of each region, and what it returns."""
    arguments: int | None = None
    """The node of a loop's state."""
    times: int = 1
    uncounted: frozenset[str] = frozenset()


class _Program:
    """The operations as numbered nodes, of which equal ones are one; a node comes behind those that it uses."""

    def __init__(self, functions: Mapping[str, Operation], meshes: Mapping[str, Mapping[str, int]]) -> None:
        self._functions = functions
        self._meshes = meshes
        self._operands: list[tuple[Value, ...]] = []
        self._work: dict[int, Work] = {}
        self._regions: dict[int, _Region] = {}
        self._integers: dict[Value, int] = {}
        self._steps: dict[Value, tuple[Value, int]] = {}
        """A value that is another one and a constant."""
        self._compared: dict[Value, tuple[str, Value, Value]] = {}
        self._scopes: list[dict[object, tuple[Value, ...]]] = [{}]

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self._operands)

    def node(self, operands: tuple[Value, ...], work: Work | None) -> int:
        """Add a node and return its number."""
        if self.count >= _MAX_NODES:
            raise StableHloError("too many operations")
        self._operands.append(operands)
        if work and work != NOTHING:
            self._work[self.count - 1] = work
        return self.count - 1

    def run(self, function: Operation, arguments: Sequence[Value], depth: int) -> tuple[Value, ...]:
        """Add the nodes of a function that is called, and return its results."""
        if depth > _MAX_DEPTH:
            raise StableHloError("too many nested calls")
        names = dict(zip(function.arguments, arguments))  # noqa: B905 - of equal length
        return self._block(function.regions[0].operations, names, depth)

    def _block(self, operations: Sequence[Operation], names: dict[str, Value], depth: int) -> tuple[Value, ...]:
        for each in operations:
            operands = tuple(_value(names, name) for name in each.operands)
            if each.name in _RETURNS:
                return operands
            names.update(zip(each.results, self._results(each, operands, names, depth)))  # noqa: B905 - of equal length
        return ()

    def _results(
        self, operation: Operation, operands: tuple[Value, ...], names: dict[str, Value], depth: int
    ) -> tuple[Value, ...]:
        if operation.name in _CALLS and not operation.regions:
            return self._call(operation, operands, depth)
        if operation.name == "stablehlo.while":
            return self._loop(operation, operands, names, depth)
        if operation.name in {"stablehlo.case", "stablehlo.if", "sdy.manual_computation", "sdy.named_computation"}:
            return self._branches(operation, operands, names, depth)
        key = (operation.name, re.sub(r"%[\w$.#-]+", "", operation.text), operands)
        known = None if operation.name in _UNIQUE else self._find(key)
        if known is None:
            number = self.node(operands, _work(operation))
            known = tuple((number, index) for index in range(len(operation.results)))
            self._scopes[-1][key] = known
            self._note(operation, operands, (number, 0))
        return known

    def _find(self, key: object) -> tuple[Value, ...] | None:
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def _call(self, operation: Operation, operands: tuple[Value, ...], depth: int) -> tuple[Value, ...]:
        name = operation.attribute(r"decomposition = @([\w$.-]+)") or operation.attribute(r"@([\w$.-]+)")
        if name not in self._functions:
            raise StableHloError(f"no function {name}")
        known = self._find((name, operands))
        if known is None:
            known = self._scopes[-1][name, operands] = self.run(self._functions[name], operands, depth + 1)
        return known

    def _note(self, operation: Operation, operands: tuple[Value, ...], value: Value) -> None:
        """Note integers, comparisons and sums, from which trip counts follow."""
        name, integers = operation.name, [self._integers.get(each) for each in operands]
        if name == "stablehlo.constant":
            number = operation.attribute(r"dense<(-?[0-9]+)> : tensor<u?i[0-9]+>")
            if number:
                self._integers[value] = int(number)
        elif name in {"stablehlo.convert", "stablehlo.reshape"} and integers[0] is not None:
            self._integers[value] = integers[0]
        elif name == "stablehlo.compare":
            left, right = operands
            self._compared[value] = (operation.attribute(r"\b(LT|LE|GT|GE|NE|EQ)\b"), left, right)
        elif name in _ARITHMETIC and len(operands) == 2:  # noqa: PLR2004 - two operands
            self._note_sum(name, operands, integers, value)

    def _note_sum(self, name: str, operands: tuple[Value, ...], integers: Sequence[int | None], value: Value) -> None:
        first, second = integers
        if first is not None and second is not None:
            self._integers[value] = _ARITHMETIC[name](first, second)
        elif name == "stablehlo.add" and second is not None:
            self._steps[value] = (operands[0], second)
        elif name == "stablehlo.add" and first is not None:
            self._steps[value] = (operands[1], first)
        elif name == "stablehlo.subtract" and second is not None:
            self._steps[value] = (operands[0], -second)

    def _inner(
        self, operations: Sequence[Operation], names: dict[str, Value], depth: int
    ) -> tuple[int, int, tuple[Value, ...]]:
        """Add the nodes of a region; its operations are equal to ones outside, but not the other way round."""
        start = self.count
        self._scopes.append({})
        results = self._block(operations, names, depth + 1)
        self._scopes.pop()
        return start, self.count, results

    def _branches(
        self, operation: Operation, operands: tuple[Value, ...], names: dict[str, Value], depth: int
    ) -> tuple[Value, ...]:
        first = self.count
        own = dict(zip(operation.arguments, operands))  # noqa: B905 - only a manual computation has arguments
        branches = tuple(self._inner(each.operations, {**names, **own}, depth) for each in operation.regions)
        axes = self._meshes.get(operation.attribute(r"<@([\w$.-]+)")) or next(iter(self._meshes.values()), {})
        manual = re.findall(r'"([^"]+)"', operation.attribute(r"manual_axes=\{([^}]*)\}"))
        number = self.node(operands, None)
        self._regions[number] = _Region(first, branches, times=math.prod(axes[axis] for axis in manual))
        return tuple((number, index) for index in range(len(operation.results)))

    def _loop(
        self, operation: Operation, operands: tuple[Value, ...], names: dict[str, Value], depth: int
    ) -> tuple[Value, ...]:
        state = self.node((), None)
        own = {name: (state, index) for index, name in enumerate(operation.arguments)}
        condition, body = operation.regions
        run = self._inner(body.operations, {**names, **own}, depth)
        for index, (returned, initial) in enumerate(zip(run[2], operands)):  # noqa: B905 - of equal length
            if returned == (state, index) and initial in self._integers:
                self._integers[returned] = self._integers[initial]
        test = self._inner(condition.operations, {**names, **own}, depth)
        trips = self._trips(state, operands, run[2], test[2][0])
        number = self.node(operands, None)
        missing = frozenset() if trips is not None else frozenset(("while",))
        self._regions[number] = _Region(state, (run, test), state, 1 if trips is None else trips, missing)
        return tuple((number, index) for index in range(len(operation.results)))

    def _trips(self, state: int, initial: Sequence[Value], returned: Sequence[Value], test: Value) -> int | None:
        """Return how often a loop runs that counts an integer up or down to a constant; None for another one."""
        direction, left, right = self._compared.get(test, ("", (-1, 0), (-1, 0)))
        if right[0] == state and left in self._integers:
            direction, left, right = _MIRRORED.get(direction, ""), right, left
        if left[0] != state or right not in self._integers or initial[left[1]] not in self._integers:
            return None
        base, step = self._steps.get(returned[left[1]], ((-1, 0), 0))
        distance = self._integers[right] - self._integers[initial[left[1]]]
        if base != left or not step:
            return None
        if step < 0:
            direction, distance, step = _MIRRORED.get(direction, ""), -distance, -step
        counts = {"LT": -(-distance // step), "LE": distance // step + 1, "NE": distance // step}
        return max(0, counts[direction]) if direction in counts else None

    def sweep(self, first: int, end: int, demand: dict[int, set[int]]) -> Work:
        """Return the work of the nodes whose results are demanded, and add what these demand."""
        work, number = NOTHING, end - 1
        while number >= first:
            region = self._regions.get(number)
            if number in demand:
                for node, index in self._operands[number] if region is None or region.arguments is None else ():
                    demand.setdefault(node, set()).add(index)
                if region:
                    work = work.plus(self._region_work(region, number, demand))
                elif number in self._work:
                    work = work.plus(self._work[number])
            number = region.first - 1 if region else number - 1
        return work

    def _region_work(self, region: _Region, number: int, demand: dict[int, set[int]]) -> Work:
        wanted = demand[number]
        if region.arguments is None:
            works, inner = self._swept(region, wanted)
            least = min(works, key=lambda work: (2 * work.flops + work.flops_8bit, len(work.uncounted)))
            if any(work != least for work in works):
                least = least.plus(Work(uncounted=frozenset(("cond",))))
        else:
            for _ in range(_MAX_SWEEPS):
                works, inner = self._swept(region, wanted)
                used = inner.get(region.arguments, set())
                if used <= wanted:
                    break
                wanted = wanted | used
            else:
                works, inner = self._swept(region, set(range(len(self._operands[number]))))
            least = works[0] if works[0] == NOTHING else works[0].plus(Work(uncounted=region.uncounted))
            for index in inner.get(region.arguments, set()) | wanted:
                node, result = self._operands[number][index]
                demand.setdefault(node, set()).add(result)
        for node, results in inner.items():
            if node < region.first:
                demand.setdefault(node, set()).update(results)
        return least.times(region.times)

    def _swept(self, region: _Region, wanted: set[int]) -> tuple[list[Work], dict[int, set[int]]]:
        """Return the work of each region, and all that they demand; a loop's condition always counts."""
        demand: dict[int, set[int]] = {}
        works = []
        for position, (start, end, results) in enumerate(region.branches):
            is_condition = region.arguments is not None and position == 1
            own = _demand([value for index, value in enumerate(results) if is_condition or index in wanted])
            works.append(self.sweep(start, end, own))
            for node, indices in own.items():
                demand.setdefault(node, set()).update(indices)
        return works, demand


def _value(names: Mapping[str, Value], name: str) -> Value:
    if name not in names:
        name = name.removesuffix("#0")
        if name not in names:
            raise StableHloError(f"no value {name}")
    return names[name]


# The work of one operation.


def _work(operation: Operation) -> Work | None:
    name = operation.name
    if name in _RULES:
        return _RULES[name](operation)
    if name in _SOLVERS:
        return Work(uncounted=frozenset((name.removeprefix("stablehlo."),)))
    inner = (_work(each) for region in operation.regions for each in region.operations)
    return Work(uncounted=frozenset((name,))) if any(each not in {None, NOTHING} for each in inner) else None


def _dot_general(operation: Operation) -> Work:
    lhs, rhs, out = operation.types
    contracted = operation.attribute(r"(?:lhs_contracting_dimensions = |contracting_dims = )\[([^\]]*)\]")
    return _multiplications(out.size * math.prod(lhs.shape[int(axis)] for axis in _listed(contracted)), lhs, rhs)


def _ragged_dot(operation: Operation) -> Work:
    """Count every row of the left operand once: it belongs to one group, whose sizes are data."""
    lhs, rhs, *_ = operation.types
    names = ("rhs_contracting_dimensions", "rhs_batching_dimensions", "rhs_group_dimensions")
    bound = {axis for name in names for axis in operation.numbers(name)}
    free = math.prod(size for axis, size in enumerate(rhs.shape) if axis not in bound)
    return _multiplications(lhs.size * free, lhs, rhs)


def _convolution(operation: Operation) -> Work:
    lhs, rhs, out = operation.types
    return _multiplications(convolution_multiplications(lhs, rhs, out, operation), lhs, rhs)


def _custom_call(operation: Operation) -> Work | None:
    """Return the estimate of a kernel's author: the work of a kernel depends on its grid and its conditions."""
    target = operation.attribute(r'@"?([\w$.-]+)')
    if target == "tpu_custom_call":
        estimate = operation.attribute(r"cost_estimate[^{}]{1,10}\{[^{}]*?flops(?:\\22|[\\\"]){1,4}: ?([0-9]{1,20})")
        if not estimate:
            return Work(uncounted=frozenset(("pallas_call",)))
        return _of_width(int(estimate), is_8bit=any(each.is_8bit for each in operation.types[:-1]))
    if target == "SPMDFullToShardShape":
        return Work(uncounted=frozenset(("shard_map without Shardy",)))
    return None if _SILENT.match(target) else Work(uncounted=frozenset((target[:100],)))


def _listed(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each.strip()]


def _multiplications(count: int, lhs: Tensor, rhs: Tensor) -> Work:
    """Return the work of multiplications, each with an addition."""
    return _of_width(2 * count, is_8bit=lhs.is_8bit and rhs.is_8bit)


def _of_width(flops: int, *, is_8bit: bool) -> Work:
    return Work(flops_8bit=flops) if is_8bit else Work(flops)


_RULES: Final[Mapping[str, Callable[[Operation], Work | None]]] = {
    "chlo.ragged_dot": _ragged_dot,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dot_general": _dot_general,
}
