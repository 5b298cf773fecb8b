"""The arguments of a traced step that it need not read or write in whole.

Examples are a buffer of which a step reads and replaces some rows in place, and frozen weights that it returns as they
are. The least traffic with the memory leaves out what stays where it is, in the branch of a conditional that touches
the least, and in a loop that ends at once unless its iterations are known.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jaxpr_flops import CALLS

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
_WITH_BODY: Final = frozenset((*CALLS, "scan", "shard_map"))
"""Primitives with one inner program, whose operands are those of the equation; of `shard_map`, one part of each."""


class Argument(NamedTuple):
    """An argument of a step."""

    bytes: int
    """The memory that it takes on one device; 0 if that is not known."""
    is_donated: bool
    """True if a result may take its memory."""


def result_bytes(jaxpr: Any) -> int:
    """Return the bytes of all that a step returns, each array counted once on however many devices it is."""
    return sum(math.prod(result.aval.shape) * result.aval.dtype.itemsize for result in jaxpr.outvars)


def untouched_bytes(jaxpr: Any, arguments: Sequence[Argument]) -> int:
    """Return the bytes of arguments that one device need not read, and of results that it need not write."""
    from jax.interpreters import partial_eval

    # XLA deletes operations whose results are not used. The arguments all remain.
    live, _ = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)
    program = _program(live)
    kept = {program.origin(result) for result in live.outvars}
    total = Fraction(0)
    for index, (variable, argument) in enumerate(zip(live.invars, arguments)):  # noqa: B905 - of equal length
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
    """A jaxpr, with the origins of its variables and the parts of them that it reads.

    Both are found in one pass over the equations, as a step may have thousands of arguments and of versions of them.
    """

    def __init__(self, jaxpr: Any) -> None:
        self.results = jaxpr.outvars
        self.arguments = jaxpr.invars
        self._origins: dict[Any, int] = {variable: index for index, variable in enumerate(jaxpr.invars)}
        self._shares: dict[Any, Fraction] = {}
        sources = [_sources(equation) for equation in jaxpr.eqns]
        for equation, operands in zip(jaxpr.eqns, sources):  # noqa: B905 - of equal length
            self._add_origins(equation, operands)
        # From the last equation, so that the uses of a later version of a variable are known.
        for equation, operands in zip(reversed(jaxpr.eqns), reversed(sources)):  # noqa: B905 - of equal length
            self._add_shares(equation, operands)

    def has_use(self, variable: Any) -> bool:
        """Return True if an equation has the variable as an operand."""
        return variable in self._shares

    def read_share(self, variable: Any) -> Fraction:
        """Return the part of a variable, and of its later versions, that the equations read."""
        return self._shares.get(variable, Fraction(0))

    def origin(self, variable: Any) -> int | None:
        """Return the argument that a variable is, or of which it has some elements replaced; None for another one."""
        return None if _is_literal(variable) else self._origins.get(variable)

    def _add_origins(self, equation: Any, sources: Sequence[int | None]) -> None:
        for result, source in zip(equation.outvars, sources):  # noqa: B905 - of equal length
            origin = None if source is None else self.origin(equation.invars[source])
            if origin is not None:
                self._origins[result] = origin

    def _add_shares(self, equation: Any, sources: Sequence[int | None]) -> None:
        of_versions: dict[int | None, Fraction] = {}
        for result, source in zip(equation.outvars, sources):  # noqa: B905 - of equal length
            of_versions[source] = of_versions.get(source, Fraction(0)) + self.read_share(result)
        for position, operand in enumerate(equation.invars):
            if not _is_literal(operand):
                share = _own_share(equation, position) + of_versions.get(position, Fraction(0))
                self._shares[operand] = min(Fraction(1), self.read_share(operand) + share)


_program = cache(_Program)


def _is_literal(variable: Any) -> bool:
    return hasattr(variable, "val")


def _sources(equation: Any) -> list[int | None]:
    """Return, for each result of an equation, the operand of which it is a version; None for a new value."""
    name = equation.primitive.name
    if name in _REPLACING | _SAME:
        return [0]
    if name == "while":
        first = equation.params["cond_nconsts"] + equation.params["body_nconsts"]
        return list(range(first, len(equation.invars)))
    if name == "cond":
        return [_source_in_a_branch(number, equation) for number in range(len(equation.outvars))]
    inner = _body(equation)
    if inner is None:
        return [None] * len(equation.outvars)
    sources = [inner.origin(result) for result in inner.results]
    if name != "scan":
        return sources
    count = _equal_shapes(equation.outvars, inner.results)
    first = _equal_shapes(equation.invars, inner.arguments) - count
    # A value that is carried stays in place only if it is carried on in its own position.
    return [source if number < count and source == first + number else None for number, source in enumerate(sources)]


def _source_in_a_branch(number: int, equation: Any) -> int | None:
    """Return the operand of which a result of a conditional is a version in one of its branches."""
    origins = (branch.origin(branch.results[number]) for branch in _branches(equation))
    return next((1 + origin for origin in origins if origin is not None), None)


def _own_share(equation: Any, position: int) -> Fraction:
    """Return the part of an operand that an equation itself reads."""
    name = equation.primitive.name
    if name == "while":
        return Fraction(0)
    if name == "cond" and position:  # the first operand is the number of the branch
        return min(branch.read_share(branch.arguments[position - 1]) for branch in _branches(equation))
    if position == 0 and name in _GATHERING | _REPLACING | _SAME:
        return Fraction(0)
    if position == 0 and name in _SLICING:
        return _size_share(equation)
    inner = _body(equation)
    if inner is None:
        return Fraction(1)
    passed = _equal_shapes(equation.invars, inner.arguments)
    times = int(equation.params["length"]) if name == "scan" and position < passed else 1
    return inner.read_share(inner.arguments[position]) * times


def _size_share(equation: Any) -> Fraction:
    """Return the part that the result of an equation is of its first operand."""
    whole = math.prod(equation.invars[0].aval.shape)
    return Fraction(math.prod(equation.outvars[0].aval.shape), whole) if whole else Fraction(0)


def _branches(equation: Any) -> list[_Program]:
    return [_program(getattr(branch, "jaxpr", branch)) for branch in equation.params["branches"]]


def _body(equation: Any) -> _Program | None:
    """Return the inner program of an equation; None for an equation without one."""
    if equation.primitive.name not in _WITH_BODY:
        return None
    bodies = [getattr(value, "jaxpr", value) for value in equation.params.values() if hasattr(value, "eqns")]
    return _program(bodies[0]) if len(bodies) == 1 and len(bodies[0].invars) == len(equation.invars) else None


def _equal_shapes(outer: Sequence[Any], inner: Sequence[Any]) -> int:
    """Return how many values of a scan each iteration has in whole, and not a part of their first dimension.

    These are the first ones. The parameters that say so have other names in other versions of JAX.
    """
    return sum(a.aval.shape == b.aval.shape for a, b in zip(outer, inner))  # noqa: B905 - of equal length
