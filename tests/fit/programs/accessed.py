"""Programs of which test_jaxpr_access.py knows the untouched arguments; prints what the worker counts, as JSON.

python accessed.py WORKER    in a process of its own: once JAX is imported, it warns of each fork of the process
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, sys.argv[1])

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from jaxpr_access import Argument, untouched_bytes

COUNTS: Final[dict[str, int]] = {}
BUFFER: Final = jax.ShapeDtypeStruct((100, 8), jnp.float32)
ROW: Final = jax.ShapeDtypeStruct((1, 8), jnp.float32)
MESH: Final = jax.make_mesh((1,), ("x",))
NUMBERS: Final = jax.ShapeDtypeStruct((5,), jnp.int32)


def add(name: str, function: Callable[..., Any], other: Any, donated: tuple[int, ...] = (0,)) -> None:
    """Count the bytes of a function of a buffer and another argument, which have 100 and 1000 of them."""
    arguments = (BUFFER, other)
    jaxpr = jax.jit(function, donate_argnums=donated).trace(*arguments).jaxpr.jaxpr
    COUNTS[name] = untouched_bytes(jaxpr, [Argument(100 * 10**index, index in donated) for index in range(2)])


def replace_row(buffer: Any, row: Any) -> Any:
    """Replace a row in place."""
    return lax.dynamic_update_slice(buffer, row, (3, 0))


def replace_in_loop(buffer: Any, row: Any) -> Any:
    """Replace rows in place, and read some."""
    return lax.scan(lambda b, k: (lax.dynamic_update_slice(b, row, (k, 0)), b[k].sum()), buffer, jnp.arange(9))


def replace_often(buffer: Any, row: Any) -> Any:
    """Replace rows in place more often than Python nests calls."""
    for index in range(1200):
        buffer = lax.dynamic_update_slice(buffer, row, (index % 100, 0))
    return buffer


def double_in_loop(buffer: Any, row: Any) -> Any:
    """Replace rows, and read all of them."""
    return lax.scan(lambda b, k: (lax.dynamic_update_slice(b, row, (k, 0)) * 2, None), buffer, jnp.arange(9))


def replace_and_sum(buffer: Any, row: Any) -> Any:
    """Replace a row in place, and read all of them later."""
    replaced = jax.jit(replace_row)(buffer, row)
    return replaced, replaced.sum()


def index_in_loop(buffer: Any, row: Any) -> Any:
    """Read the rows one by one."""
    return lax.scan(lambda c, k: (c + lax.dynamic_index_in_dim(buffer, k), None), row, jnp.arange(100))[0]


def count_down(buffer: Any, row: Any) -> Any:
    """Replace rows in place, as many as the data requires."""
    state = (jnp.int32(row.sum()), buffer)
    return lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, replace_row(s[1], row * s[1].sum())), state)[1]


def descend(buffer: Any, numbers: Any) -> Any:
    """Take a gradient of some rows, which is zero in the others, from all of them."""
    return buffer - jax.grad(lambda rows: rows[numbers].sum())(buffer)


add("replaced", replace_row, ROW)
add("replaced copy", replace_row, ROW, ())
add("replaced in a call", jax.jit(jax.jit(replace_row)), ROW)
add("replaced in a loop", replace_in_loop, ROW)
add("replaced often", replace_often, ROW)
add("doubled in a loop", double_in_loop, ROW)
add("replaced, and read later", replace_and_sum, ROW)
add("scattered", lambda buffer, numbers: buffer.at[numbers].add(buffer[numbers] * 2), NUMBERS)
add("halves", lambda buffer, row: (buffer[:40] ** 2).sum() + (buffer[40:] ** 2).sum() + row, ROW)
add("a row", lambda buffer, row: buffer[7] + row, ROW)
add("gathered", lambda buffer, numbers: buffer[numbers].sum(), NUMBERS, ())
add("gradient", descend, NUMBERS)
add("returned", lambda buffer, row: (buffer, row @ buffer.T), ROW)
add("returned, and not read", lambda buffer, row: (buffer, row * 2), ROW)
add("not used", lambda _, row: row * 2, ROW)
add("exchanged", lambda buffer, other: (other, buffer), BUFFER, (0, 1))
add("rows by index in a loop", index_in_loop, ROW, ())
add("read by a loop", lambda buffer, row: lax.scan(lambda c, x: (c + x, None), row[0], buffer)[0], ROW)
add("branch", lambda buffer, row: lax.cond(row.sum() > 0, lambda b: b, lambda b: b * 2, buffer), ROW)
add("both branches", lambda buffer, row: lax.cond(row.sum() > 0, lambda b: b + 1, lambda b: b * 2, buffer), ROW)
add("rows in branches", lambda buffer, row: lax.cond(row.sum() > 0, lambda b: b[7], lambda b: b.sum(0), buffer), ROW)
add("read for nothing", lambda buffer, row: (buffer.sum(), buffer[7] + row)[1], ROW)
add("parts of rows", lambda buffer, row: lax.scan(lambda c, x: (c + x[:2].sum(), None), row, buffer)[0], ROW)
add("loop of unknown length", count_down, ROW)
add("computed again", jax.checkpoint(lambda buffer, row: buffer[7] + row), ROW)
add("on each device", jax.shard_map(replace_row, mesh=MESH, in_specs=(P(), P()), out_specs=P()), ROW)

sys.stdout.write(json.dumps(COUNTS))
