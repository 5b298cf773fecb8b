"""Numbers for the values of a traced program: equal operations on equal operands have one number.

XLA computes such a value once, also where the operations are in different functions: it inlines calls, and eliminates
common subexpressions (https://github.com/openxla/xla/blob/main/xla/service/hlo_cse.h). A training step contains some
where it calls its model once for the loss and again for a metric.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class Values:
    """The numbers of a program's values."""

    def __init__(self) -> None:
        self._unused = count()
        self._operands: dict[Any, int] = {}
        self._results: dict[Hashable, list[int]] = {}

    def new(self) -> int:
        """Return the number of a value that is equal to no other."""
        return next(self._unused)

    def of_operand(self, operand: Any) -> int:
        """Return the number of a variable, or of a literal."""
        if hasattr(operand, "val"):
            is_scalar = not operand.aval.shape
            return self._numbered((str(operand.aval), repr(operand.val)), 1)[0] if is_scalar else self.new()
        if operand not in self._operands:  # an argument of the whole program, or a constant of a function
            self._operands[operand] = self.new()
        return self._operands[operand]

    def set(self, variables: Sequence[Any], numbers: Sequence[int]) -> None:
        """Give numbers to variables; the body of a function that is called twice has them twice."""
        self._operands.update(zip(variables, numbers))  # noqa: B905 - of equal length

    def add_results(self, equation: Any) -> bool:
        """Give numbers to the results of an equation; return False if an equal one was before it."""
        before = len(self._results)
        key = self._key(equation)
        outputs = equation.outvars
        self.set(outputs, [self.new() for _ in outputs] if key is None else self._numbered(key, len(outputs)))
        return key is None or len(self._results) > before

    def _numbered(self, key: Hashable, size: int) -> list[int]:
        if key not in self._results:
            self._results[key] = [self.new() for _ in range(size)]
        return self._results[key]

    def _key(self, equation: Any) -> Hashable | None:
        """Return a key that equal equations share; None for one that is equal to no other."""
        if equation.effects or equation.primitive.name == "optimization_barrier":
            return None
        inputs = tuple(self.of_operand(operand) for operand in equation.invars)
        key = (equation.primitive, inputs, tuple(sorted(equation.params.items(), key=lambda item: item[0])))
        try:
            hash(key)
        except TypeError:  # a parameter is a list, or an array
            return None
        return key
