"""A user's program with the name of one of the worker's modules: steps that are wrong, each in another way."""

import os
import sys
import threading
import types
from collections.abc import Mapping, Sequence
from typing import Any

import helpers.sizes  # type: ignore[import-not-found] # found in the folder of the programs
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

Devices = Sequence[Any]
Flags = Mapping[str, Any]

jax.config.update("jax_platforms", "tpu")
sys.stdout.write("a line on stdout\n")
NUMBER = 3


class UnprintableError(Exception):
    """An exception whose text cannot be shown."""

    def __str__(self) -> str:
        raise ValueError


def _array(devices: Devices, *axes: str) -> Any:
    mesh = Mesh(np.array(devices), ("x",))
    return jax.ShapeDtypeStruct(
        (helpers.sizes.ROWS,) * 2, jnp.float32, sharding=NamedSharding(mesh, P(*axes))
    )


def _square(x: Any) -> Any:
    return x @ x


def right(devices: Devices, flags: Flags) -> Any:
    """Return a step, after printing its flags."""
    sys.stdout.write(f"{sorted(flags.items())} {sys.argv[1:]}\n")
    return jax.jit(_square), (_array(devices),)


class _Unreadable:
    """A jitted function whose texts have another form, as those of a later JAX may have."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def trace(self, *args: Any) -> Any:
        """Return a trace of this kind."""
        return _Unreadable(self._inner.trace(*args))

    def lower(self) -> Any:
        """Return a lowered step of this kind."""
        return _Unreadable(self._inner.lower())

    def compile(self) -> Any:
        """Return a compiled step of this kind."""
        return _Unreadable(self._inner.compile())

    def memory_analysis(self) -> Any:
        """Return what the compiler plans."""
        return self._inner.memory_analysis()

    def as_text(self) -> str:
        """Return a text that starts as usual."""
        return str(self._inner.as_text().partition("\n")[0])


def unreadable(devices: Devices, _: Flags) -> Any:
    """Return a step of which only the compiler knows anything."""
    return _Unreadable(jax.jit(_square)), (_array(devices),)


def without_batch(devices: Devices, _: Flags) -> Any:
    """Return a step for a batch of no examples."""
    sharding = _array(devices).sharding
    batch = jax.ShapeDtypeStruct((0, helpers.sizes.ROWS), jnp.float32, sharding=sharding)
    return jax.jit(lambda x, w: x @ w), (batch, _array(devices))


def without_state(devices: Devices, _: Flags) -> Any:
    """Return a step whose optimizer has a state of no elements."""
    sharding = _array(devices).sharding
    state = jax.ShapeDtypeStruct((0,), jnp.float32, sharding=sharding)
    return jax.jit(lambda x, state: (x @ x, state + 1)), (_array(devices), state)


def with_weights_on_host(devices: Devices, flags: Flags) -> Any:
    """Return a step whose weights are in the memory of the host, with as many rows as a flag has."""
    sharding = _array(devices).sharding
    rows = int(flags["rows"])
    weights = jax.ShapeDtypeStruct(
        (rows, rows), jnp.float32, sharding=sharding.with_memory_kind("pinned_host")
    )
    batch = jax.ShapeDtypeStruct((8, rows), jnp.float32, sharding=sharding)
    return jax.jit(lambda x, w: x @ jax.device_put(w, jax.memory.Space.Device)), (batch, weights)


def with_kwargs(devices: Devices, _: Flags) -> Any:
    """Return a step with keyword arguments, of which one is an array and one a number."""
    step = jax.jit(lambda a, b, c: (a @ b).sum() * c)
    return step, [_array(devices, "x")], {"b": jnp.ones((helpers.sizes.ROWS,) * 2), "c": 2.0}


def with_in_shardings(devices: Devices, _: Flags) -> Any:
    """Return a step whose shardings are those of the jitted function."""
    step = jax.jit(_square, in_shardings=_array(devices, "x").sharding)
    return step, (jax.ShapeDtypeStruct((64, 64), jnp.float32),)


def with_thread(devices: Devices, flags: Flags) -> Any:
    """Leave a thread behind that never ends."""
    threading.Thread(target=threading.Event().wait).start()
    return right(devices, flags)


def with_settings(devices: Devices, flags: Flags) -> Any:
    """Change settings of JAX and of the process, as a program does that is meant for one machine only."""
    jax.config.update("jax_compilation_cache_dir", flags["cache"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    os.chdir("/")
    sys.stdout = None
    return right_sized(devices, jnp.ones(8).size)


def right_sized(devices: Devices, rows: int) -> Any:
    """Return a step on a small matrix."""
    array = jax.ShapeDtypeStruct((rows, rows), jnp.float32, sharding=_array(devices).sharding)
    return jax.jit(_square), (array,), types.MappingProxyType({})


def of_size(devices: Devices, flags: Flags) -> Any:
    """Return a step on an array of some MiB, which it replaces."""
    rows = int(flags["mebibytes"])
    array = jax.ShapeDtypeStruct((rows, 1 << 18), jnp.float32, sharding=_array(devices).sharding)
    return jax.jit(lambda x: x + 1, donate_argnums=0), (array,)


def offloaded(devices: Devices, _: Flags) -> Any:
    """Return a step with a state of 1 GiB in the memory of the hosts, of which it changes 64 MiB in each device."""
    on_device = _array(devices, "x").sharding
    on_host = on_device.with_memory_kind("pinned_host")
    state, part = (
        jax.ShapeDtypeStruct((rows * len(devices), 4096), jnp.float32, sharding=on_host)
        for rows in (16_384, 4_096)
    )

    def step(state: Any, part: Any) -> Any:
        return state, jax.device_put(jax.device_put(part, on_device) * 2, on_host)

    return jax.jit(step, out_shardings=on_host, donate_argnums=0), (state, part)


def with_options(devices: Devices, flags: Flags) -> Any:
    """Return a step with options of the compiler."""
    return jax.jit(_square, compiler_options=flags["options"]), (_array(devices),)


def in_mesh(devices: Devices, _: Flags) -> Any:
    """Set the mesh of all that is compiled later."""
    array = _array(devices, "x")
    jax.set_mesh(array.sharding.mesh)
    return jax.jit(_square), (array,)


def neighbours(devices: Devices, _: Flags) -> Any:
    """Return a step in which the first two devices exchange their data."""

    def exchange(x: Any) -> Any:
        return jax.lax.ppermute(x, "x", [(0, 1), (1, 0)])

    array = _array(devices, "x")
    return jax.jit(
        jax.shard_map(exchange, mesh=array.sharding.mesh, in_specs=P("x"), out_specs=P("x"))
    ), (array,)


def too_much_vmem(devices: Devices, _: Flags) -> Any:
    """Return a kernel whose block is larger than the memory inside a core."""

    def kernel(x: Any, y: Any) -> None:
        y[...] = x[...] + 1

    array = jax.ShapeDtypeStruct((5 << 9, 1 << 10), jnp.float32, sharding=_array(devices).sharding)
    mesh = array.sharding.mesh
    call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(array.shape, array.dtype))
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)), (
        array,
    )


def exits(_: Devices, __: Flags) -> Any:
    """End the process."""
    sys.exit("goodbye")


def interrupts(_: Devices, __: Flags) -> Any:
    """Raise an exception that is no error."""
    raise KeyboardInterrupt


def unprintable(_: Devices, __: Flags) -> Any:
    """Raise an exception whose text cannot be shown."""
    raise UnprintableError


def long(_: Devices, __: Flags) -> Any:
    """Raise an exception with a long text."""
    raise ValueError("long " * 10_000)


def deep(devices: Devices, flags: Flags) -> Any:
    """Recurse without end."""
    return deep(devices, flags)


def fails_in_jit(devices: Devices, _: Flags) -> Any:
    """Return a step that multiplies matrices of shapes that do not match."""

    def step(x: Any) -> Any:
        return x @ jnp.ones((3, 4))

    return jax.jit(step), (_array(devices),)


def exits_in_jit(devices: Devices, _: Flags) -> Any:
    """Return a step that ends the process when it is traced."""
    return jax.jit(lambda _: sys.exit(3)), (_array(devices),)


def nothing(_: Devices, __: Flags) -> None:
    """Return nothing."""


def not_jitted(devices: Devices, _: Flags) -> Any:
    """Return a plain function."""
    return _square, (_array(devices),)


def compiled(devices: Devices, _: Flags) -> Any:
    """Return a step that is lowered already."""
    return jax.jit(_square).lower(_array(devices)), ()


def one_argument(devices: Devices, _: Flags) -> Any:
    """Return an argument instead of a tuple of them."""
    return jax.jit(_square), _array(devices)


def wrong_kwargs(devices: Devices, _: Flags) -> Any:
    """Return a list of keyword arguments."""
    return jax.jit(_square), (_array(devices),), ["x"]


def on_cpu(_: Devices, __: Flags) -> Any:
    """Return an array that is on a processor."""
    return jax.jit(lambda tree: tree["w"] * 2), (
        {"w": jax.device_put(jnp.ones(8), jax.devices()[0])},
    )


def for_cpu(_: Devices, __: Flags) -> Any:
    """Return an abstract array for a processor."""
    sharding = SingleDeviceSharding(jax.devices()[0])
    return jax.jit(_square), (jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=sharding),)


def unplaced(_: Devices, __: Flags) -> Any:
    """Return an argument without a sharding."""
    return jax.jit(_square), (jax.ShapeDtypeStruct((8, 8), jnp.float32),)


def on_some(devices: Devices, _: Flags) -> Any:
    """Use half of the devices."""
    return jax.jit(_square), (_array(devices[: len(devices) // 2]),)
