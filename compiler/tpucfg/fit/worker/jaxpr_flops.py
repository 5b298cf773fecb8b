"""The floating-point operations of a traced step, counted over its jaxpr with the trip counts of its loops.

Counted are matrix multiplications and convolutions, which run on the matrix units whose peak the catalog states; a
multiply-add counts as two operations. Each count is the least that the step can need, because a lower bound of its time
is calculated from it: of a conditional, the cheapest branch; of equal operations, one. XLA's own cost analysis counts
the body of a loop once.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conv_flops import convolution_multiplications
from jaxpr_values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class Work(NamedTuple):
    """The operations of a program on all devices together."""

    flops: int = 0
    """Operations on operands of which at least one is wider than 8 bits."""
    flops_8bit: int = 0
    """Operations on operands of at most 8 bits, which run faster on some generations."""
    uncounted: frozenset[str] = frozenset()
    """Names of the primitives whose work is missing, or present in part."""

    def plus(self, other: Work) -> Work:
        """Return the work of both programs."""
        return Work(self.flops + other.flops, self.flops_8bit + other.flops_8bit, self.uncounted | other.uncounted)

    def times(self, count: int) -> Work:
        """Return the work of a program that runs `count` times; of one that never runs, nothing is missing."""
        return Work(self.flops * count, self.flops_8bit * count, self.uncounted if count else frozenset())


NOTHING: Final = Work()


def count_work(jaxpr: Any) -> Work:
    """Return the work of a traced function, without operations whose results are not used.

    XLA deletes those too. A backward pass that computes activations again contains some in most programs. Of the ways
    to eliminate them, `jax.interpreters.partial_eval` is in the same place in jax 0.7 to 0.12.
    """
    from jax.interpreters import partial_eval

    live, _ = partial_eval.dce_jaxpr(jaxpr.jaxpr, [True] * len(jaxpr.jaxpr.outvars))
    return _work(live)


def _work(jaxpr: Any) -> Work:
    return _work_once(jaxpr, Values())


def _work_once(jaxpr: Any, values: Values) -> Work:
    """Return the work of a program, of which equal operations count once."""
    work = NOTHING
    for equation in jaxpr.eqns:
        inner = _inlined(equation)
        if inner is not None:
            values.set(inner.invars, [values.of_operand(operand) for operand in equation.invars])
            work = work.plus(_work_once(inner, values))
            values.set(equation.outvars, [values.of_operand(operand) for operand in inner.outvars])
        elif values.add_results(equation):
            work = work.plus(_equation_work(equation))
    return work


def _inlined(equation: Any) -> Any:
    """Return the program of a call that XLA inlines; None for other equations, and for what must be computed again."""
    params = equation.params
    if equation.primitive.name not in CALLS or (params.get("differentiated") and params.get("prevent_cse")):
        return None
    inner = [getattr(jaxpr, "jaxpr", jaxpr) for value in params.values() for jaxpr in _jaxprs(value)]
    return inner[0] if len(inner) == 1 and len(inner[0].invars) == len(equation.invars) else None


def _sum(parts: Iterator[Work]) -> Work:
    return reduce(Work.plus, parts, NOTHING)


def _equation_work(equation: Any) -> Work:
    name = equation.primitive.name
    if name in _RULES:
        return _RULES[name](equation)
    if name in _UNCOUNTED:
        return Work(uncounted=frozenset((name,)))
    # A primitive that is not in the tables: how often it runs its inner programs is unknown.
    inner = _called(equation)
    return Work(uncounted=frozenset((name,))) if inner != NOTHING else NOTHING


def _called(equation: Any) -> Work:
    """Return the work of the inner programs of an equation, each of which runs once."""
    return _sum(_work(inner) for value in equation.params.values() for inner in _jaxprs(value))


def _jaxprs(value: Any) -> Iterator[Any]:
    if hasattr(value, "eqns"):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _jaxprs(part)


def _scan(equation: Any) -> Work:
    return _called(equation).times(equation.params["length"])


def _while(equation: Any) -> Work:
    """Count one iteration. `fori_loop` with constant bounds is a scan, so the trip count of any other is unknown."""
    once = _called(equation)
    return once if once == NOTHING else once.plus(Work(uncounted=frozenset(("while",))))


def _cond(equation: Any) -> Work:
    """Count the cheapest branch, or the one for TPUs of `lax.platform_dependent`."""
    branches = [_work(branch) for branch in equation.params["branches"]]
    platforms = equation.params.get("branches_platforms")
    if platforms:
        return next(
            (work for work, names in zip(branches, platforms, strict=True) if names is None or "tpu" in names), NOTHING
        )
    least = min(branches, key=lambda work: (2 * work.flops + work.flops_8bit, len(work.uncounted)))
    is_complete = all(work == least for work in branches)
    return least if is_complete else least.plus(Work(uncounted=frozenset(("cond",))))


def _shard_map(equation: Any) -> Work:
    """Multiply the work of the body by the devices that each run it."""
    params = equation.params
    axes = params.get("newly_manual_axes", params.get("manual_axes", ()))  # renamed after jax 0.10
    sizes = dict(params["mesh"].shape)
    return _called(equation).times(math.prod(sizes[axis] for axis in axes))


def _pallas_call(equation: Any) -> Work:
    """Return the estimate of the kernel's author: the work of a kernel depends on its grid and its conditions."""
    estimate = equation.params.get("cost_estimate")
    if estimate is None:
        return Work(uncounted=frozenset(("pallas_call",)))
    return _of_width(int(estimate.flops), any(_is_8bit(operand) for operand in equation.invars))


def _linear_solve(equation: Any) -> Work:
    """Count the solver only: the other inner programs are for derivatives."""
    return _work(equation.params["jaxprs"].solve)


def _dot_general(equation: Any) -> Work:
    lhs, rhs = equation.invars[:2]
    (_, rhs_contracting), (_, rhs_batch) = equation.params["dimension_numbers"]
    free = _size(rhs, {*rhs_contracting, *rhs_batch})
    return _multiplications(_size(lhs) * free, lhs, rhs)


def _ragged_dot_general(equation: Any) -> Work:
    """Count every row of the left operand once: it belongs to one group, whose sizes are data."""
    lhs, rhs = equation.invars[:2]
    numbers = equation.params["ragged_dot_dimension_numbers"]
    (_, rhs_contracting), (_, rhs_batch) = numbers.dot_dimension_numbers
    free = _size(rhs, {*rhs_contracting, *rhs_batch, *numbers.rhs_group_dimensions})
    return _multiplications(_size(lhs) * free, lhs, rhs)


def _conv_general_dilated(equation: Any) -> Work:
    lhs, rhs = equation.invars[:2]
    shapes = (lhs.aval.shape, rhs.aval.shape, equation.outvars[0].aval.shape)
    return _multiplications(convolution_multiplications(*shapes, equation.params), lhs, rhs)


def _size(operand: Any, without: set[int] | frozenset[int] = frozenset()) -> int:
    """Return the number of elements of an operand, or of its dimensions that are not in `without`."""
    return math.prod(size for axis, size in enumerate(operand.aval.shape) if axis not in without)


def _multiplications(count: int, lhs: Any, rhs: Any) -> Work:
    """Return the work of multiplications, each with an addition."""
    return _of_width(2 * count, _is_8bit(lhs) and _is_8bit(rhs))


def _of_width(flops: int, is_8bit: bool) -> Work:
    return Work(flops_8bit=flops) if is_8bit else Work(flops)


def _is_8bit(operand: Any) -> bool:
    # 4-bit types occupy a byte in NumPy, too. Random keys have a type without a size.
    return getattr(getattr(operand.aval, "dtype", None), "itemsize", 0) == 1


CALLS: Final = (
    "checkpoint",
    "closed_call",
    "composite",
    "core_call",
    "custom_jvp_call",
    "custom_jvp_call_jaxpr",
    "custom_partitioning",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
    "custom_vmap_call",
    "eval_jaxpr",  # closed_call since jax 0.12
    "jit",
    "pjit",
    "remat",
    "remat2",
    "remat_opt",
    "run_state",
)
"""Primitives that run their inner programs once; some have other names in other versions of JAX."""
_RULES: Final[Mapping[str, Callable[[Any], Work]]] = {
    **dict.fromkeys(CALLS, _called),
    "cond": _cond,
    "conv_general_dilated": _conv_general_dilated,
    "custom_linear_solve": _linear_solve,
    "dot_general": _dot_general,
    "pallas_call": _pallas_call,
    "ragged_dot_general": _ragged_dot_general,
    "scan": _scan,
    "shard_map": _shard_map,
    "while": _while,
}
_UNCOUNTED: Final = frozenset(
    (
        "cholesky",
        "eig",
        "eigh",
        "fft",
        "ffi_call",
        "geqrf",
        "geqp3",
        "hessenberg",
        "householder_product",
        "lu",
        "qr",
        "scaled_matmul",
        "schur",
        "svd",
        "triangular_solve",
        "tridiagonal",
    )
)
"""Primitives that multiply matrices inside, by an algorithm of the compiler."""
