"""A mixture of experts in plain JAX, of the shape of Mixtral 8x7B: https://arxiv.org/abs/2401.04088.

A router sends each token to two of eight experts. An expert takes at most `CAPACITY` times its share of a sequence, so
every shape is static. All weights are divided over all devices (FSDP).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

CAPACITY: Final = 1.25
CHOICES: Final = 2
QUERIES: Final = 512


class Shape(NamedTuple):
    """The sizes of a model."""

    layers: int
    width: int
    hidden: int
    experts: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int


SHAPES: Final = {
    "mixtral-8x7b": Shape(32, 4096, 14_336, 8, 32, 8, 128, 32_000),
    "tiny": Shape(2, 256, 512, 4, 4, 2, 64, 1024),
}


def layout(shape: Shape) -> dict[str, tuple[tuple[int, ...], P]]:
    """Return the dimensions of each parameter, and how the devices divide them."""
    layers, width, hidden, experts, heads, kv_heads, head_width, vocabulary = shape
    return {
        "embedding": ((vocabulary, width), P(None, "data")),
        "output": ((width, vocabulary), P("data")),
        "norms": ((layers, 2, width), P()),
        "query": ((layers, width, heads, head_width), P(None, "data")),
        "key_value": ((layers, 2, width, kv_heads, head_width), P(None, None, "data")),
        "attention": ((layers, heads, head_width, width), P(None, None, None, "data")),
        "router": ((layers, width, experts), P(None, "data")),
        "gate_up": ((layers, 2, experts, width, hidden), P(None, None, None, "data")),
        "down": ((layers, experts, hidden, width), P(None, None, None, "data")),
    }


def attention(x: jax.Array, layer: Any) -> jax.Array:
    """Return causal attention, for a few queries at a time."""
    query = jnp.einsum("bsd,dhk->bshk", x, layer["query"])
    key, value = jnp.einsum("bsd,gdhk->gbshk", x, layer["key_value"])
    chunks = query.reshape(query.shape[0], -1, min(QUERIES, query.shape[1]), *query.shape[2:])

    @jax.checkpoint
    def attend(index: jax.Array, queries: jax.Array) -> jax.Array:
        visible = jnp.arange(key.shape[1]) <= index * queries.shape[1] + jnp.arange(queries.shape[1])[:, None]
        return jax.nn.dot_product_attention(queries, key, value, mask=visible[None, None])

    out = jax.lax.map(lambda part: attend(*part), (jnp.arange(chunks.shape[1]), jnp.moveaxis(chunks, 1, 0)))
    return jnp.einsum("bshk,hkd->bsd", jnp.moveaxis(out, 0, 1).reshape(query.shape), layer["attention"])


def experts(x: jax.Array, layer: Any) -> jax.Array:
    """Return the outputs of the chosen experts; tokens beyond an expert's capacity keep their residual only."""
    shares = jax.nn.softmax(jnp.einsum("bsd,de->bse", x, layer["router"]).astype(jnp.float32))
    weights, chosen = jax.lax.top_k(shares, CHOICES)
    count = shares.shape[-1]
    capacity = int(CAPACITY * CHOICES * x.shape[1] / count)
    picks = jax.nn.one_hot(chosen.reshape(x.shape[0], -1), count)  # one row for each token and choice
    slots = (jnp.cumsum(picks, axis=1) - 1) * picks
    taken = picks[..., None] * jax.nn.one_hot(jnp.where(picks > 0, slots, capacity), capacity)
    taken = taken.reshape(*chosen.shape, count, capacity)
    dispatch = taken.sum(2).astype(x.dtype)
    combine = jnp.einsum("bsk,bskec->bsec", weights / weights.sum(-1, keepdims=True), taken).astype(x.dtype)
    inner = jnp.einsum("bsec,bsd->becd", dispatch, x)
    gate, up = jnp.einsum("becd,gedh->gbech", inner, layer["gate_up"])
    return jnp.einsum("bsec,becd->bsd", combine, jnp.einsum("bech,ehd->becd", jax.nn.silu(gate) * up, layer["down"]))


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Return the stream scaled to unit size."""
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True)).astype(x.dtype) * scale


def loss(params: Any, tokens: jax.Array, batch: NamedSharding) -> jax.Array:
    """Return the mean cross-entropy of the next tokens."""

    def block(x: jax.Array, layer: Any) -> tuple[jax.Array, None]:
        layer = jax.tree.map(lambda value: value.astype(jnp.bfloat16), layer)
        x = jax.lax.with_sharding_constraint(x + attention(norm(x, layer["norms"][0]), layer), batch)
        return jax.lax.with_sharding_constraint(x + experts(norm(x, layer["norms"][1]), layer), batch), None

    layers = {name: value for name, value in params.items() if name not in {"embedding", "output"}}
    x = jax.lax.with_sharding_constraint(params["embedding"].astype(jnp.bfloat16)[tokens[:, :-1]], batch)
    x, _ = jax.lax.scan(jax.checkpoint(block), x, layers)
    logits = jnp.einsum("bsd,dv->bsv", x, params["output"].astype(jnp.bfloat16)).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


def train_step(params: Any, state: Any, tokens: jax.Array, *, adam: Any, batch: NamedSharding) -> Any:
    """Return the next parameters and state of the optimizer, and the loss."""
    value, grads = jax.value_and_grad(loss)(params, tokens, batch)
    updates, state = adam.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def abstract_step(devices: Sequence[jax.Device], flags: Mapping[str, str]) -> tuple[Any, tuple[Any, ...]]:
    """Return the step and the shapes of its arguments, for `tpucfg fit`."""
    mesh = Mesh(np.array(devices), ("data",))
    by_name = layout(SHAPES[flags["model"]])
    batch, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    def placed(path: Any, leaf: Any) -> jax.ShapeDtypeStruct:
        name = getattr(path[-1], "key", None)
        sharding = NamedSharding(mesh, by_name[name][1]) if name in by_name else everywhere
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    adam = optax.adamw(float(flags["learning_rate"]), mu_dtype=jnp.bfloat16)
    params = {name: jax.ShapeDtypeStruct(dimensions, jnp.float32) for name, (dimensions, _) in by_name.items()}
    state = jax.tree_util.tree_map_with_path(placed, (params, jax.eval_shape(adam.init, params)))
    size = (int(flags["batch_size"]), int(flags["sequence_length"]) + 1)
    tokens = jax.ShapeDtypeStruct(size, jnp.int32, sharding=batch)
    return jax.jit(partial(train_step, adam=adam, batch=batch), donate_argnums=(0, 1)), (*state, tokens)
