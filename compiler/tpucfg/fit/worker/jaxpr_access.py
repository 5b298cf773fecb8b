"""The arguments of a traced step that it need not read or write in whole.

Such as a buffer of which it reads and replaces some rows in place, and weights that it is given and returns unchanged:
the least traffic with the memory has no part of them that stays where it is.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_SAME: Final = frozenset(("sharding_constraint",))
"""Primitives whose result is their operand."""
_REPLACING: Final = frozenset(
    ("dynamic_update_slice", "scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul", "scatter-sub")
)
"""Primitives that replace elements of their first operand, in place if nothing else reads it later."""
_SELECTING: Final = frozenset(("dynamic_slice", "gather", "slice"))
"""Primitives that read elements of their first operand."""
_CALLS: Final = frozenset(("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit"))


class Argument(NamedTuple):
    """An argument of a step."""

    bytes: int
    """The memory that it takes on one device; 0 if that is not known."""
    is_donated: bool
    """True if a result may take its memory."""


def untouched_bytes(jaxpr: Any, arguments: Sequence[Argument]) -> int:
    """Return the bytes of arguments that one device need not read, and of results that it need not write."""
    program = _Program(jaxpr)
    kept = {program.origin(result) for result in jaxpr.outvars}
    total = 0
    for index, (variable, argument) in enumerate(zip(jaxpr.invars, arguments)):  # noqa: B905 - of equal length
        is_kept = index in kept
        if is_kept and not argument.is_donated:
            continue  # the result is a copy
        # An argument without any use is no part of the compiled program.
        is_touched = program.is_read(variable) or not (is_kept or program.has_use(variable))
        total += argument.bytes * (is_kept + (not is_touched))
    return total


def device_bytes(leaf: Any) -> int:
    """Return the memory of an argument on one device; 0 if it has no sharding, or a type without a size."""
    sharding, size = getattr(leaf, "sharding", None), getattr(getattr(leaf, "dtype", None), "itemsize", 0)
    return math.prod(sharding.shard_shape(leaf.shape)) * size if sharding is not None else 0


class _Program:
    """A jaxpr, with the equations that use and produce each of its variables."""

    def __init__(self, jaxpr: Any) -> None:
        self.jaxpr = jaxpr
        self._arguments = {variable: index for index, variable in enumerate(jaxpr.invars)}
        self._uses: dict[Any, list[tuple[Any, int]]] = {}
        self._producers: dict[Any, tuple[Any, int]] = {}
        for equation in jaxpr.eqns:
            for position, operand in enumerate(equation.invars):
                if not hasattr(operand, "val"):  # of a literal
                    self._uses.setdefault(operand, []).append((equation, position))
            self._producers.update((result, (equation, number)) for number, result in enumerate(equation.outvars))

    def has_use(self, variable: Any) -> bool:
        """Return true if an equation has the variable as an operand."""
        return variable in self._uses

    def is_read(self, variable: Any) -> bool:
        """Return true if an equation reads all of a variable, or of a later version of it."""
        return any(self._reads(equation, position) for equation, position in self._uses.get(variable, ()))

    def origin(self, variable: Any) -> int | None:
        """Return the argument that a variable is, or of which it has some elements replaced; None for another one."""
        while not hasattr(variable, "val") and variable not in self._arguments:
            if variable not in self._producers:  # a constant
                return None
            equation, number = self._producers[variable]
            source = _source(equation, number)
            if source is None:
                return None
            variable = equation.invars[source]
        return None if hasattr(variable, "val") else self._arguments[variable]

    def _reads(self, equation: Any, position: int) -> bool:
        name = equation.primitive.name
        if name in _SELECTING and position == 0:
            return False
        inner = _body(equation)
        if inner is not None and position < _passed(equation):
            if inner.is_read(inner.jaxpr.invars[position]):
                return True
        elif position or name not in _REPLACING | _SAME:
            return True
        versions = (result for number, result in enumerate(equation.outvars) if _source(equation, number) == position)
        return any(self.is_read(result) for result in versions)


def _source(equation: Any, number: int) -> int | None:
    """Return the operand of which a result of an equation is a version; None if it is a new value."""
    if equation.primitive.name in _REPLACING | _SAME:
        return 0
    inner = _body(equation)
    if inner is None:
        return None
    source = inner.origin(inner.jaxpr.outvars[number])
    if equation.primitive.name != "scan":
        return source
    carried = int(equation.params["num_consts"]) + number
    return carried if number < equation.params["num_carry"] and source == carried else None


def _body(equation: Any) -> _Program | None:
    """Return the program of a call or of a scan, whose operands are those of the equation."""
    if equation.primitive.name not in _CALLS and equation.primitive.name != "scan":
        return None
    bodies = [getattr(value, "jaxpr", value) for value in equation.params.values() if hasattr(value, "eqns")]
    return _program(bodies[0]) if len(bodies) == 1 and len(bodies[0].invars) == len(equation.invars) else None


_program = cache(_Program)


def _passed(equation: Any) -> int:
    """Return the number of operands that the body gets in whole; of the others, a scan gives it parts one by one."""
    if equation.primitive.name == "scan":
        return int(equation.params["num_consts"] + equation.params["num_carry"])
    return len(equation.invars)
