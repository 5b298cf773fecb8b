"""A user's program: a small decoder-only transformer, sharded by data and by model, with remat and momentum."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

HEADS = 8
VOCABULARY = 8192
SHARDINGS: Mapping[str, P] = {
    "embedding": P("model", "data"),
    "qkv": P(None, "data", None, "model", None),
    "out": P(None, "model", None, "data"),
    "up": P(None, "data", "model"),
    "down": P(None, "model", "data"),
}


def _layer(x: Any, weights: Mapping[str, Any]) -> Any:
    """Return the output of a layer: attention, and two matrices with a nonlinearity between."""
    weights = {name: weight.astype(jnp.bfloat16) for name, weight in weights.items()}
    length = x.shape[1]
    normed = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
    query, key, value = jnp.einsum("bsd,dthk->tbshk", normed, weights["qkv"])
    scores = jnp.einsum("bqhk,bshk->bhqs", query, key) / math.sqrt(query.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    attention = jax.nn.softmax(scores.astype(jnp.float32)).astype(jnp.bfloat16)
    mixed = jnp.einsum("bhqs,bshk->bqhk", attention, value)
    x += jnp.einsum("bqhk,hkd->bqd", mixed, weights["out"])
    return x + jax.nn.gelu(x @ weights["up"]) @ weights["down"]


def _loss(weights: Mapping[str, Any], tokens: Any, activations: NamedSharding) -> Any:
    """Return the mean loss of the next tokens."""
    embedding = weights["embedding"].astype(jnp.bfloat16)

    @jax.checkpoint
    def body(x: Any, layer: Mapping[str, Any]) -> Any:
        return jax.lax.with_sharding_constraint(_layer(x, layer), activations), None

    x = jax.lax.with_sharding_constraint(embedding[tokens], activations)
    x, _ = jax.lax.scan(
        body, x, {name: weight for name, weight in weights.items() if name != "embedding"}
    )
    scores = jax.nn.log_softmax((x @ embedding.T).astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(scores[:, :-1], tokens[:, 1:, None], -1))


def abstract_step(devices: Sequence[Any], flags: Mapping[str, str]) -> tuple[Any, tuple[Any, ...]]:
    """Return the training step and its arguments."""
    width, layers, length = int(flags["width"]), int(flags["layers"]), int(flags["length"])
    mesh = Mesh(np.array(devices).reshape(-1, int(flags["model_parallel"])), ("data", "model"))
    size = width // HEADS
    shapes = {
        "embedding": (VOCABULARY, width),
        "qkv": (layers, width, 3, HEADS, size),
        "out": (layers, HEADS, size, width),
        "up": (layers, width, 4 * width),
        "down": (layers, 4 * width, width),
    }
    weights = {
        name: jax.ShapeDtypeStruct(
            shape, jnp.float32, sharding=NamedSharding(mesh, SHARDINGS[name])
        )
        for name, shape in shapes.items()
    }
    batch = (int(flags["batch_size"]), length)
    tokens = jax.ShapeDtypeStruct(batch, jnp.int32, sharding=NamedSharding(mesh, P("data")))

    def step(weights: Any, momentum: Any, tokens: Any) -> Any:
        activations = NamedSharding(mesh, P("data", None, None))
        loss, gradient = jax.value_and_grad(_loss)(weights, tokens, activations)
        momentum = jax.tree.map(lambda old, new: 0.9 * old + new, momentum, gradient)
        return (
            jax.tree.map(lambda weight, change: weight - 1e-3 * change, weights, momentum),
            momentum,
            loss,
        )

    return jax.jit(step, donate_argnums=(0, 1)), (weights, weights, tokens)
