"""The floating-point operations of a step, counted over its StableHLO with the trip counts of its loops.

Each count is the least that the step can need, because a lower bound of its time is calculated from it: nothing whose
result is not used, of equal operations one, of a conditional the cheapest branch. XLA's own cost analysis counts the
body of a loop once.
"""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from stablehlo_work import NOTHING, Work, attribute_text, inner_operations, operation_work

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

Value = tuple[int, int]
"""The number of a node, and of one of its results."""

MAX_NODES: Final = 300_000
"""A program with this many operations, calls expanded, takes a few seconds."""
_MAX_SWEEPS: Final = 8
_RETURNS: Final = frozenset(("func.return", "stablehlo.return", "sdy.return"))
_CALLED: Final = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""The attribute that names the function of a call."""
_UNIQUE: Final = frozenset(
    ("stablehlo.optimization_barrier", "stablehlo.custom_call", "stablehlo.rng")
)
"""Operations of which two equal ones are not one."""
_ARITHMETIC: Final[Mapping[str, Callable[[int, int], int]]] = {
    "stablehlo.add": operator.add,
    "stablehlo.subtract": operator.sub,
    "stablehlo.multiply": operator.mul,
    "stablehlo.minimum": min,
    "stablehlo.maximum": max,
}
_MIRRORED: Final = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}


def count_work(module: Any) -> Work:
    """Return the work of a program: a module of MLIR, as `Lowered.compiler_ir` of JAX returns it.

    Raises:
        ValueError: It is too large. Modules of a later JAX may raise any exception.
    """
    operations = [*inner_operations(module.operation)]
    functions = {
        each.attributes["sym_name"].value: each for each in operations if each.name == "func.func"
    }
    # The sizes of the axes by mesh.
    meshes = {
        each.attributes["sym_name"].value: {
            axis: int(size)
            for axis, size in re.findall(r'"([^"]+)"=([0-9]+)', attribute_text(each, "mesh"))
        }
        for each in operations
        if each.name == "sdy.mesh"
    }
    program = _OperationGraph(functions, meshes)
    start = program.node((), None)
    arguments = [
        (start, index) for index, _ in enumerate(functions["main"].regions[0].blocks[0].arguments)
    ]
    results = program.run(functions["main"], arguments)
    return program.sweep(
        0, program.count, {node: {index} for node, index in results} | _demand(results)
    )


def _signature(operation: Any) -> Hashable:
    """Return what equal operations share beside their operands."""
    attributes = operation.attributes
    named = (attributes[index] for index in range(len(attributes)))
    types = tuple(each.type for each in operation.results)
    inner = tuple(map(_signature, inner_operations(operation)))
    return operation.name, tuple((each.name, each.attr) for each in named), types, inner


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


class _OperationGraph:
    """The operations as numbered nodes, of which equal ones are one; a node comes behind those that it uses."""

    def __init__(
        self, functions: Mapping[str, Any], meshes: Mapping[str, Mapping[str, int]]
    ) -> None:
        self._functions = functions
        self._meshes = meshes
        self._operands: list[tuple[Value, ...]] = []
        self._work: dict[int, Work] = {}
        self._regions: dict[int, _Region] = {}
        self._integers: dict[Value, int] = {}
        self._steps: dict[Value, tuple[Value, int]] = {}
        """A value that is another one and a constant."""
        self._compared: dict[Value, tuple[str, Value, Value]] = {}
        self._scopes: list[dict[Hashable, tuple[Value, ...]]] = [{}]

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self._operands)

    def node(self, operands: tuple[Value, ...], work: Work | None) -> int:
        """Add a node and return its number."""
        if self.count >= MAX_NODES:
            raise ValueError("too many operations")
        self._operands.append(operands)
        if work and work != NOTHING:
            self._work[self.count - 1] = work
        return self.count - 1

    def run(self, function: Any, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Add the nodes of a function that is called, and return its results."""
        return self._block(function.regions[0].blocks[0], arguments, {})

    def _block(
        self, block: Any, arguments: Sequence[Value], values: dict[Any, Value]
    ) -> tuple[Value, ...]:
        """Add the nodes of a block, and return what it returns; `values` has those of the blocks around it."""
        values.update(zip(block.arguments, arguments))  # noqa: B905 - of equal length
        for each in block.operations:
            operation = each.operation
            operands = tuple(values[operand] for operand in operation.operands)
            if operation.name in _RETURNS:
                return operands
            results = self._results(operation, operands, values)
            values.update(zip(operation.results, results))  # noqa: B905 - of equal length
        return ()

    def _results(
        self, operation: Any, operands: tuple[Value, ...], values: dict[Any, Value]
    ) -> tuple[Value, ...]:
        if operation.name in _CALLED:
            return self._call(operation.attributes[_CALLED[operation.name]].value, operands)
        if operation.name == "stablehlo.while":
            return self._loop(operation, operands, values)
        if operation.name in {
            "stablehlo.case",
            "stablehlo.if",
            "sdy.manual_computation",
            "sdy.named_computation",
        }:
            return self._branches(operation, operands, values)
        key = (_signature(operation), operands)
        known = None if operation.name in _UNIQUE else self._find(key)
        if known is None:
            number = self.node(operands, operation_work(operation))
            known = tuple((number, index) for index in range(len(operation.results)))
            self._scopes[-1][key] = known
            self._note(operation, operands, (number, 0))
        return known

    def _find(self, key: Hashable) -> tuple[Value, ...] | None:
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def _call(self, name: str, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        known = self._find((name, operands))
        if known is None:
            known = self._scopes[-1][name, operands] = self.run(self._functions[name], operands)
        return known

    def _note(self, operation: Any, operands: tuple[Value, ...], value: Value) -> None:
        """Note integers, comparisons and sums, from which trip counts follow."""
        name, integers = operation.name, [self._integers.get(each) for each in operands]
        if name == "stablehlo.constant" and not operation.results[0].type.shape:
            number = re.match(
                r"dense<(-?[0-9]+)> : tensor<u?i[0-9]+>", attribute_text(operation, "value")
            )
            if number:
                self._integers[value] = int(number[1])
        elif name in {"stablehlo.convert", "stablehlo.reshape"} and integers[0] is not None:
            self._integers[value] = integers[0]
        elif name == "stablehlo.compare":
            left, right = operands
            # `#stablehlo<comparison_direction LT>`
            direction = attribute_text(operation, "comparison_direction")[-3:-1]
            self._compared[value] = (direction, left, right)
        elif name in _ARITHMETIC and len(operands) == 2:  # noqa: PLR2004 - two operands
            self._note_sum(name, operands, integers, value)

    def _note_sum(
        self, name: str, operands: tuple[Value, ...], integers: Sequence[int | None], value: Value
    ) -> None:
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
        self, region: Any, arguments: Sequence[Value], values: dict[Any, Value]
    ) -> tuple[int, int, tuple[Value, ...]]:
        """Add the nodes of a region; its operations are equal to ones outside, but not the other way round."""
        start = self.count
        self._scopes.append({})
        results = self._block(region.blocks[0], arguments, values)
        self._scopes.pop()
        return start, self.count, results

    def _branches(
        self, operation: Any, operands: tuple[Value, ...], values: dict[Any, Value]
    ) -> tuple[Value, ...]:
        first = self.count
        branches = tuple(self._inner(region, operands, values) for region in operation.regions)
        mesh = re.search(r"<@([\w$.-]+)", attribute_text(operation, "in_shardings"))
        axes = self._meshes.get(mesh[1] if mesh else "") or next(iter(self._meshes.values()), {})
        manual = re.findall(r'"([^"]+)"', attribute_text(operation, "manual_axes"))
        number = self.node(operands, None)
        self._regions[number] = _Region(
            first, branches, times=math.prod(axes[axis] for axis in manual)
        )
        return tuple((number, index) for index in range(len(operation.results)))

    def _loop(
        self, operation: Any, operands: tuple[Value, ...], values: dict[Any, Value]
    ) -> tuple[Value, ...]:
        state = self.node((), None)
        own = [(state, index) for index in range(len(operands))]
        condition, body = operation.regions
        run = self._inner(body, own, values)
        for index, (returned, initial) in enumerate(zip(run[2], operands)):  # noqa: B905 - of equal length
            if returned == (state, index) and initial in self._integers:
                self._integers[returned] = self._integers[initial]
        test = self._inner(condition, own, values)
        trips = self._trips(state, operands, run[2], test[2][0])
        number = self.node(operands, None)
        missing = frozenset() if trips is not None else frozenset(("while",))
        self._regions[number] = _Region(
            state, (run, test), state, 1 if trips is None else trips, missing
        )
        return tuple((number, index) for index in range(len(operation.results)))

    def _trips(
        self, state: int, initial: Sequence[Value], returned: Sequence[Value], test: Value
    ) -> int | None:
        """Return how often a loop runs that counts an integer up or down to a constant; None for another one."""
        direction, left, right = self._compared.get(test, ("", (-1, 0), (-1, 0)))
        if right[0] == state and left in self._integers:
            direction, left, right = _MIRRORED.get(direction, ""), right, left
        if (
            left[0] != state
            or right not in self._integers
            or initial[left[1]] not in self._integers
        ):
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
                for node, index in (
                    self._operands[number] if region is None or region.arguments is None else ()
                ):
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
            least = min(
                works, key=lambda work: (2 * work.flops + work.flops_8bit, len(work.uncounted))
            )
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
            least = (
                works[0] if works[0] == NOTHING else works[0].plus(Work(uncounted=region.uncounted))
            )
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
            own = _demand(
                [value for index, value in enumerate(results) if is_condition or index in wanted]
            )
            works.append(self.sweep(start, end, own))
            for node, indices in own.items():
                demand.setdefault(node, set()).update(indices)
        return works, demand
