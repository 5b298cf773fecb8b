"""Compile small programs for TPUs, and write their texts into tests/fit/recorded/hlo, for test_hlo_clock.py.

.venv/tpu-compiler/bin/python tests/fit/record_hlo.py

Metadata and the compiler's own settings but the cycles are left out: they are nine tenths of a text.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

os.environ.update(
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
    TPU_SKIP_MDS_QUERY="1",
    JAX_PLATFORMS="cpu",
    TPU_LOG_DIR="disabled",
)

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

FOLDER: Final = Path(__file__).parent / "recorded" / "hlo"
_PLACES: Final = re.compile(r"^(?:File|Function|Stack)\w+\n(?:[0-9]+ .*\n)*\n", re.MULTILINE)
"""The tables of source files and their lines, to which metadata refer."""
Program = Callable[[Mesh], tuple[Any, tuple[Any, ...]]]


def _abstract(mesh: Mesh, shape: tuple[int, ...], *spec: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))


def layers(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return six layers in a scan; each gathers its weights from all devices."""

    def step(x: Any, weights: Any) -> Any:
        gathered = NamedSharding(mesh, P())
        return jax.lax.scan(
            lambda y, w: (jnp.tanh(y @ jax.lax.with_sharding_constraint(w, gathered)), None),
            x,
            weights,
        )

    return step, (_abstract(mesh, (4096, 512), "x"), _abstract(mesh, (6, 512, 512), None, "x"))


def gradient(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return the gradient of a layer whose weights are distributed over all devices."""

    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.square((x @ w).astype(jnp.float32)))

    def step(w: Any, x: Any) -> Any:
        return jax.lax.with_sharding_constraint(jax.grad(loss)(w, x), NamedSharding(mesh, P("x")))

    return step, (_abstract(mesh, (512, 256), "x"), _abstract(mesh, (4096, 512), "x"))


def nested(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return five times three exchanges with a neighbour, in two nested loops."""

    def exchange(x: Any, _: Any) -> Any:
        pairs = [(device, (device + 1) % mesh.size) for device in range(mesh.size)]
        return jnp.sin(jax.lax.ppermute(x, "x", pairs)), None

    def outer(x: Any, _: Any) -> Any:
        return jax.lax.scan(exchange, x * 2, length=3)[0], None

    def body(x: Any) -> Any:
        return jax.lax.scan(outer, x, length=5)[0]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x")), (
        _abstract(mesh, (1024, 512), "x"),
    )


def collectives(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return one operation of each kind, on arrays of different sizes."""

    def body(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return (
            jax.lax.psum(a, "x"),
            jax.lax.all_gather(b, "x", tiled=True),
            jax.lax.psum_scatter(c, "x", tiled=True),
            jax.lax.all_to_all(d, "x", 0, 1, tiled=True),
            jax.lax.ppermute(e, "x", [(0, 1), (1, 0)]),
        )

    mapped = jax.shard_map(
        body,
        mesh=mesh,
        in_specs=P("x"),
        out_specs=(P(), P(), P("x"), P("x"), P("x")),
        check_vma=False,
    )
    size = mesh.size
    shapes = [
        (size * 128, 256),
        (size * 128, 512),
        (size * size * 128, 1024),
        (size * size * 16, 2048),
        (size * 8, 4096),
    ]
    return mapped, tuple(_abstract(mesh, shape, "x") for shape in shapes)


def matrices(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return four layers whose weights are gathered while the layer before them is calculated."""

    def step(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = jnp.tanh(x @ jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P())))
        return x

    return step, (_abstract(mesh, (32768, 2048), "x"), *[_abstract(mesh, (2048, 2048), "x")] * 4)


def windowed(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return a multiplication that the compiler turns into a loop, which overlaps it with communication."""

    def step(x: Any, w: Any) -> Any:
        return jax.lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P(None, "x")))

    return step, (_abstract(mesh, (16384, 4096), "x"), _abstract(mesh, (4096, 8192), None, "x"))


def kernel(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return a kernel whose author states its work, and one without, on each device."""

    def double(x: Any, y: Any) -> None:
        y[...] = x[...] * 2

    def body(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        estimate = pl.CostEstimate(flops=197 * 10**9, transcendentals=0, bytes_accessed=1000)
        return pl.pallas_call(double, shape)(
            pl.pallas_call(double, shape, cost_estimate=estimate)(x)
        )

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False), (
        _abstract(mesh, (4096, 512), "x"),
    )


def offloaded(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return a step whose weights are in the memory of the host."""

    def step(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ jax.device_put(w, jax.memory.Space.Device))

    weights = jax.ShapeDtypeStruct(
        (2048, 2048), jnp.bfloat16, sharding=NamedSharding(mesh, P(), memory_kind="pinned_host")
    )
    return step, (_abstract(mesh, (4096, 2048), "x"), weights)


def called(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return a step that waits for a function of the host."""

    def step(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jnp.tanh(jax.pure_callback(lambda y: y, shape, x))

    return step, (_abstract(mesh, (128, 128)),)


def convolved(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """Return four convolutions in a scan, with a part that is computed again for the gradient."""

    def layer(x: Any, w: Any) -> tuple[Any, None]:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jnp.tanh(
            jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)
        ), None

    def loss(weights: Any, x: Any) -> Any:
        return jnp.sum(
            jnp.square(jax.lax.scan(jax.checkpoint(layer), x, weights)[0].astype(jnp.float32))
        )

    return jax.grad(loss), (
        _abstract(mesh, (4, 3, 3, 128, 128)),
        _abstract(mesh, (16, 32, 32, 128), "x"),
    )


PROGRAMS: Final[Sequence[tuple[str, Program, str, dict[str, Any]]]] = (
    ("layers-v5e", layers, "v5e:2x4", {}),
    ("layers-tpu7x", layers, "tpu7x:2x2x1", {}),
    ("gradient-v5e", gradient, "v5e:2x4", {}),
    ("gradient-slices", gradient, "v5e:2x2", {"num_slices": 2}),
    ("matrices-v5e", matrices, "v5e:2x4", {}),
    ("windowed-v5e", windowed, "v5e:2x4", {}),
    ("kernel-v5e", kernel, "v5e:2x4", {}),
    ("offloaded-v6e", offloaded, "v6e:2x4", {}),
    ("called-v5e", called, "v5e:2x2", {}),
    ("convolved-v5e", convolved, "v5e:2x4", {}),
    ("nested-v5p", nested, "v5p:2x2x1", {}),
    ("collectives-v5e", collectives, "v5e:2x4", {}),
    ("collectives-v3", collectives, "v3:2x2", {}),
    ("collectives-tpu7x", collectives, "tpu7x:2x2x1", {}),
)


def _without(text: str, attribute: str) -> str:
    """Return the text without what an attribute in braces has, but for the compiler's or the author's estimate."""
    parts = text.split(f", {attribute}={{")
    for number, part in enumerate(parts[1:], 1):
        depth, end = 1, 0
        while depth:
            depth += {"{": 1, "}": -1}.get(part[end], 0)
            end += 1
        kept = re.search(r'"estimated_cycles":"[0-9]+"|"cost_estimate":\{[^}]*\}', part[:end])
        parts[number] = (f", {attribute}={{{kept[0]}}}" if kept else "") + part[end:]
    return "".join(parts)


def main() -> None:
    """Compile each program and write its text."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, program, topology, options in PROGRAMS:
        devices = topologies.get_topology_desc(
            platform="tpu", topology_name=topology, **options
        ).devices
        function, arguments = program(Mesh(np.array(devices), ("x",)))
        text = jax.jit(function).lower(*arguments).compile().as_text() or ""
        text = _PLACES.sub("", _without(_without(text, "metadata"), "backend_config"))
        (FOLDER / f"{name}.hlo").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
