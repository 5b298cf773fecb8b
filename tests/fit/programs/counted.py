"""Programs whose operations test_stablehlo_flops.py knows; prints what the worker counts, as JSON.

python counted.py WORKER    in a process of its own: once JAX is imported, it warns of each fork of the process
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
import numpy as np
from jax import lax
from jax._src.interpreters.mlir import make_ir_context
from jax.experimental import pallas as pl
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir

import stablehlo_flops

PROGRAMS: Final[dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]] = {}


def array(*shape: int, dtype: Any = jnp.float32) -> Any:
    """Return an abstract array."""
    return jax.ShapeDtypeStruct(shape, dtype)


def add(name: str, function: Callable[..., Any], *arguments: Any) -> None:
    """Register a function under a name."""
    PROGRAMS[name] = (function, arguments)


def network(weights: Any, batch: Any) -> Any:
    """Return the outputs of a model with two products."""
    return jax.nn.gelu(jax.nn.relu(batch @ weights) @ weights)


def trained_with_metric(weights: Any, batch: Any) -> Any:
    """Return a gradient, and a metric for which the model is called once more."""
    gradient = jax.grad(lambda w: (network(w, batch) ** 2).mean())(weights)
    return gradient, (network(weights, batch) > 0).mean()


PRODUCT: Final = jax.jit(jnp.matmul)
CONSTANT: Final = jnp.ones((16, 16))
SCALED: Final = jax.jit(lambda a: a @ CONSTANT)
SQUARE: Final = array(16, 16)
STACK: Final = array(5, 16, 16)

add("matmul", jnp.matmul, array(3, 5), array(5, 7))
add("batched matmul", jnp.matmul, array(11, 3, 5), array(11, 5, 7))
add(
    "einsum",
    lambda a, b: jnp.einsum("bshd,btHhd->bHhst", a, b),
    array(2, 3, 5, 7),
    array(2, 11, 13, 5, 7),
)
add("vector", jnp.dot, array(9), array(9))
add(
    "int8",
    lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
    *[array(8, 8, dtype=jnp.int8)] * 2,
)
add("fp8", lax.dot, *[array(8, 8, dtype=jnp.float8_e4m3fn)] * 2)
add(
    "int8 and bf16",
    lambda a, b: lax.dot(a.astype(jnp.bfloat16), b),
    array(8, 8, dtype=jnp.int8),
    array(8, 8, dtype=jnp.bfloat16),
)
add("elementwise", lambda a: jnp.tanh(a * 2 + 1).sum(), SQUARE)
add("dead", lambda a: (a @ a, a + 1)[1], SQUARE)
add("dead in a call", lambda a: jax.jit(lambda b: (b @ b, b + 1))(a)[1], SQUARE)
add("equal products", lambda a, b: (a @ b, a @ b, b @ a), SQUARE, SQUARE)
add(
    "equal calls",
    lambda a: jax.jit(jnp.matmul)(a, a) + jax.jit(lambda b: jnp.tanh(b @ b))(a),
    SQUARE,
)
add("one function, other operands", lambda a: PRODUCT(PRODUCT(a, a), a), SQUARE)
add("equal calls with a constant", lambda a: SCALED(a) + 2 * SCALED(a), SQUARE)
add("other precision", lambda a: (lax.dot(a, a), lax.dot(a, a, precision="highest")), SQUARE)
add("a metric calls the model again", trained_with_metric, SQUARE, SQUARE)
add(
    "computed again on purpose",
    jax.value_and_grad(lambda w, b: jax.checkpoint(network)(w, b).sum()),
    SQUARE,
    SQUARE,
)
add("vmap", jax.vmap(jnp.matmul, in_axes=(0, None)), array(6, 3, 5), array(5, 7))
add("ragged", lax.ragged_dot, array(24, 5), array(3, 5, 7), array(3, dtype=jnp.int32))


def attention(q: Any, k: Any, v: Any) -> Any:
    """Return softmax attention of batch, sequence, heads and size."""
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v)


QKV: Final = [array(2, 24, 3, 8)] * 3
add("attention", attention, *QKV)
add("library attention", jax.nn.dot_product_attention, *QKV)


def conv(lhs: Any, rhs: Any, **options: Any) -> Any:
    """Return a convolution of dimensions NHWC and HWIO."""
    return lax.conv_general_dilated(lhs, rhs, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


def convolution(name: str, lhs: Any, rhs: Any, **options: Any) -> None:
    """Register a convolution under a name."""
    add(name, lambda a, b: conv(a, b, **options), lhs, rhs)


IMAGES: Final = array(2, 9, 8, 6)
convolution("conv", IMAGES, array(3, 2, 6, 5), window_strides=(1, 1), padding="VALID")
convolution("conv stride", IMAGES, array(3, 2, 6, 5), window_strides=(2, 3), padding="VALID")
convolution(
    "conv padding", IMAGES, array(3, 3, 6, 5), window_strides=(1, 1), padding=((1, 1), (1, 1))
)
convolution(
    "conv groups",
    IMAGES,
    array(3, 2, 2, 9),
    window_strides=(1, 1),
    padding="VALID",
    feature_group_count=3,
)
convolution(
    "conv dilation",
    IMAGES,
    array(3, 2, 6, 5),
    window_strides=(1, 1),
    padding="VALID",
    rhs_dilation=(2, 3),
)
convolution(
    "conv transposed",
    IMAGES,
    array(3, 2, 6, 5),
    window_strides=(1, 1),
    padding=((2, 2), (1, 1)),
    lhs_dilation=(2, 2),
)
convolution(
    "conv odd",
    IMAGES,
    array(4, 3, 6, 5),
    window_strides=(3, 2),
    padding=((5, 2), (-1, 4)),
    lhs_dilation=(3, 2),
    rhs_dilation=(2, 5),
)
convolution(
    "conv batch groups",
    array(4, 5, 5, 3),
    array(2, 2, 3, 8),
    window_strides=(1, 1),
    padding="VALID",
    batch_group_count=2,
)
add(
    "conv gradient",
    jax.grad(lambda w, x: conv(x, w, window_strides=(2, 2), padding="SAME").sum()),
    array(3, 3, 6, 5),
    IMAGES,
)

add("scan", lambda x, w: lax.scan(lambda y, v: (y @ v, None), x, w), SQUARE, STACK)
add("fori_loop", lambda x: lax.fori_loop(0, 7, lambda _, y: y @ y, x), SQUARE)
add("scan of nothing", lambda x: lax.fori_loop(0, 0, lambda _, y: y @ y, x), SQUARE)
add(
    "nested scan",
    lambda x: lax.fori_loop(0, 7, lambda _, y: lax.fori_loop(0, 3, lambda _, z: z @ z, y), x),
    SQUARE,
)
add("while", lambda x: lax.while_loop(lambda y: y.sum() < 3, lambda y: y @ y, x), SQUARE)
add(
    "while without matrices",
    lambda x: lax.while_loop(lambda y: y.sum() < 3, lambda y: y * 2, x),
    SQUARE,
)
add("cond", lambda x: lax.cond(x.sum() < 3, lambda y: y @ y, lambda y: y @ y @ y, x), SQUARE)
add(
    "cond of equals",
    lambda x: lax.cond(x.sum() < 3, lambda y: y @ y, lambda y: (y + 1) @ y, x),
    SQUARE,
)
add(
    "cond of platforms",
    lambda x: lax.platform_dependent(
        x, cpu=lambda y: y + 1, tpu=lambda y: y @ y, default=lambda y: y @ y @ y
    ),
    SQUARE,
)


def layers(weights: Any, x: Any, layer: Any) -> Any:
    """Return the loss of layers in a scan."""
    return jnp.sum(lax.scan(lambda y, w: (layer(y, w), None), x, weights)[0])


def layer(x: Any, w: Any) -> Any:
    """Return a layer of two matrix multiplications, of which the second has a constant."""
    return jnp.tanh(jnp.tanh(x @ w) @ jnp.eye(16))


add("grad", jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)), array(5, 7), array(3, 5))
add("grad of scan", jax.grad(lambda w, x: layers(w, x, layer)), STACK, SQUARE)
add("remat", jax.grad(lambda w, x: layers(w, x, jax.checkpoint(layer))), STACK, SQUARE)
add(
    "grad of attention", jax.grad(lambda q, k, v: attention(q, k, v).sum(), argnums=(0, 1, 2)), *QKV
)


@jax.custom_vjp
def custom_vjp(x: Any) -> Any:
    """Return a square, with its own derivative."""
    return x @ x


custom_vjp.defvjp(lambda x: (x @ x, x), lambda x, t: (t @ x @ x,))
add("custom_vjp", custom_vjp, SQUARE)
add("custom_vjp gradient", jax.grad(lambda x: custom_vjp(x).sum()), SQUARE)


@jax.custom_jvp
def custom_jvp(x: Any) -> Any:
    """Return a square, with its own derivative."""
    return x @ x


custom_jvp.defjvp(lambda primals, tangents: (primals[0] @ primals[0], tangents[0]))
add("custom_jvp", custom_jvp, SQUARE)

MESH: Final = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def sharded(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Map a function over the devices of the mesh."""
    return jax.shard_map(function, mesh=MESH, check_vma=False, **options)


add("shard_map", sharded(lambda x: x @ x.T, in_specs=P("data"), out_specs=P("data")), SQUARE)
add(
    "shard_map of one axis",
    sharded(lambda x: x @ x.T, in_specs=P("data"), out_specs=P("data"), axis_names={"data"}),
    SQUARE,
)


def nested(x: Any) -> Any:
    """Multiply the parts of a part of a matrix."""
    specs: dict[str, Any] = {
        "in_specs": P(None, "model"),
        "out_specs": P(),
        "axis_names": {"model"},
    }
    return jax.shard_map(lambda y: y @ y.T, check_vma=False, **specs)(x)


add(
    "nested shard_map",
    sharded(nested, in_specs=P("data"), out_specs=P("data"), axis_names={"data"}),
    SQUARE,
)


def kernel(x: Any, y: Any) -> None:
    """Multiply a block with itself."""
    y[...] = x[...] @ x[...]


ESTIMATE: Final = pl.CostEstimate(flops=1234, transcendentals=0, bytes_accessed=0)
add("pallas", pl.pallas_call(kernel, out_shape=SQUARE), SQUARE)
add(
    "pallas with an estimate",
    pl.pallas_call(kernel, out_shape=SQUARE, cost_estimate=ESTIMATE),
    SQUARE,
)
partitioned = custom_partitioning(lambda x: x @ x)
partitioned.def_partition(
    partition=lambda *_: None,
    infer_sharding_from_operands=lambda *_: None,
    sharding_rule="i j -> i j",
)
add("custom_partitioning", partitioned, SQUARE)
add("eigenvalues", lambda x: jnp.linalg.eigh(x @ x.T)[0], SQUARE)
add("solver", lambda x: jax.scipy.linalg.cho_solve((x, True), jnp.ones(16)), SQUARE)
add("fft", lambda x: jnp.fft.fft(x).real, SQUARE)
add("random", lambda key: jax.random.normal(key, (8, 8)), np.zeros(2, np.uint32))


def calls_of_calls(operation: str) -> ir.Module:
    """Return a module of forty functions, which call the next one twice: with equal operands, or with others."""
    array = "tensor<4x4xf32>"
    functions = "".join(
        f"func.func @f{number}(%x: {array}) -> {array} {{\n"
        f"%1 = stablehlo.{operation} : {array}\n%2 = stablehlo.{operation} : {array}\n"
        f"%3 = call @f{number + 1}(%1) : ({array}) -> {array}\n%4 = call @f{number + 1}(%2) : ({array}) -> {array}\n"
        f"%5 = stablehlo.add %3, %4 : {array}\nreturn %5 : {array}\n}}\n"
        for number in range(40)
    )
    last = f"func.func @f40(%x: {array}) -> {array} {{\nreturn %x : {array}\n}}\n"
    return ir.Module.parse(
        f"module {{\n{functions.replace('@f0', '@main')}{last}}}", make_ir_context()
    )


def count(module: ir.Module) -> tuple[int, int, list[str]]:
    """Return the work of a module, or why it has none."""
    try:
        work = stablehlo_flops.count_work(module)
    except ValueError as error:
        return 0, 0, [str(error)]
    return work.flops, work.flops_8bit, sorted(work.uncounted)


def main() -> None:
    """Print the counts of every program."""
    stablehlo_flops.MAX_NODES = 10_000  # type: ignore[misc] # reached sooner
    counts = {"calls of calls": count(calls_of_calls("add %x, %x"))}
    counts["calls of other calls"] = count(calls_of_calls("optimization_barrier %x"))
    for name, (function, arguments) in PROGRAMS.items():
        lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",))
        counts[name] = count(lowered.compiler_ir())
    sys.stdout.write(json.dumps(counts))


if __name__ == "__main__":
    main()
