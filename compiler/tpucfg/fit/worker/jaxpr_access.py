"""The arguments of a traced step that it need not read or write in whole.

Examples are a buffer of which a step reads and replaces some rows in place, and frozen weights that it returns as they
are. The least traffic with the memory leaves out what stays where it is.
"""

from __future__ import annotations

import math
from fractions import Fraction
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
_SLICING: Final = frozenset(("dynamic_slice", "slice"))
"""Primitives that read as many elements of their first operand as their result has."""
_GATHERING: Final = frozenset(("gather",))
"""Primitives that read elements of their first operand, of which all may be the same ones."""
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
    total = Fraction(0)
    for index, (variable, argument) in enumerate(zip(jaxpr.invars, arguments)):  # noqa: B905 - of equal length
        is_kept = index in kept
        if is_kept and not argument.is_donated:
            continue  # the result is a copy
        # An argument without any use is no part of the compiled program.
        share = program.read_share(variable) if is_kept or program.has_use(variable) else 1
        total += argument.bytes * (is_kept + 1 - share)
    return int(total)


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

    def read_share(self, variable: Any) -> Fraction:
        """Return the part of a variable, and of its later versions, that the equations read."""
        shares = (self._share(equation, position) for equation, position in self._uses.get(variable, ()))
        return min(Fraction(1), sum(shares, Fraction(0)))

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

    def _share(self, equation: Any, position: int) -> Fraction:
        name = equation.primitive.name
        if position == 0 and name in _SLICING | _GATHERING:
            return Fraction(0) if name in _GATHERING else _size_share(equation)
        inner = _body(equation)
        if inner is not None and position < _passed(equation):
            share = inner.read_share(inner.jaxpr.invars[position]) * int(equation.params.get("length", 1))
        elif position or name not in _REPLACING | _SAME:
            return Fraction(1)
        else:
            share = Fraction(0)
        versions = (result for number, result in enumerate(equation.outvars) if _source(equation, number) == position)
        return share + sum((self.read_share(result) for result in versions), Fraction(0))


def _size_share(equation: Any) -> Fraction:
    """Return the part that the result of an equation is of its first operand."""
    whole = math.prod(equation.invars[0].aval.shape)
    return Fraction(math.prod(equation.outvars[0].aval.shape), whole) if whole else Fraction(0)


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
