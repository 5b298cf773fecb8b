"""A decoder-only transformer in plain JAX: its shapes, its parameters and its loss.

The parameters of all layers are stacked, so that one `lax.scan` compiles one layer. Every matrix is divided over both
axes of the mesh: over `data` as in FSDP, over `model` as in tensor parallelism.
"""

from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

QUERIES: Final = 512
"""Queries whose scores are in memory at a time."""

Params = dict[str, jax.Array]


class Shape(NamedTuple):
    """The sizes of a model."""

    layers: int
    width: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int


SHAPES: Final = {
    "llama2-7b": Shape(32, 4096, 11_008, 32, 32, 128, 32_000),  # https://arxiv.org/abs/2307.09288
    "llama3-8b": Shape(32, 4096, 14_336, 32, 8, 128, 128_256),  # https://arxiv.org/abs/2407.21783
    "gemma-7b": Shape(28, 3072, 24_576, 16, 16, 256, 256_128),  # https://arxiv.org/abs/2403.08295
    # MaxText's sizes of 16 and 32 billion parameters: https://github.com/AI-Hypercomputer/maxtext, MaxText/configs/v5e
    "maxtext-16b": Shape(32, 4096, 28_672, 64, 64, 128, 32_000),
    "maxtext-32b": Shape(32, 8192, 28_672, 64, 64, 128, 32_000),
    "llama-13b": Shape(40, 5120, 13_824, 40, 40, 128, 32_000),  # https://arxiv.org/abs/2302.13971
    "tiny": Shape(2, 256, 512, 4, 2, 64, 1024),
}


def layout(shape: Shape) -> dict[str, tuple[tuple[int, ...], P]]:
    """Return the dimensions of each parameter, and how the mesh divides them."""
    layers, width, hidden, heads, kv_heads, head_width, vocabulary = shape
    return {
        "embedding": ((vocabulary, width), P("model", "data")),
        "output": ((width, vocabulary), P("data", "model")),
        "norms": ((layers, 2, width), P()),
        "query": ((layers, width, heads, head_width), P(None, "data", "model")),
        "key_value": ((layers, 2, width, kv_heads, head_width), P(None, None, "data", "model")),
        "attention": ((layers, heads, head_width, width), P(None, "model", None, "data")),
        "gate_up": ((layers, 2, width, hidden), P(None, None, "data", "model")),
        "down": ((layers, hidden, width), P(None, "model", "data")),
    }


def loss(params: Params, tokens: jax.Array, mesh: Mesh, *, remat: bool = True) -> jax.Array:
    """Return the mean cross-entropy of the next tokens; `tokens` are sequences with one token more than is read.

    With `remat`, only the input of each layer is kept for the backward pass.
    """

    def block(stream: jax.Array, layer: Params) -> tuple[jax.Array, None]:
        layer = {name: value.astype(jnp.bfloat16) for name, value in layer.items()}
        stream = _divided(stream + _attention(_norm(stream, layer["norms"][0]), layer, mesh), mesh, "model")
        inner = _divided(_norm(stream, layer["norms"][1]), mesh)
        gate, up = jnp.einsum("bsd,gdh->gbsh", inner, layer["gate_up"])
        return _divided(stream + (jax.nn.silu(gate) * up) @ layer["down"], mesh, "model"), None

    layers = {name: params[name] for name in params if name not in {"embedding", "output"}}
    stream = _divided(params["embedding"].astype(jnp.bfloat16)[tokens[:, :-1]], mesh, "model")
    stream, _ = jax.lax.scan(jax.checkpoint(block) if remat else block, stream, layers)
    logits = jnp.einsum("bsd,dv->bsv", _divided(stream, mesh), params["output"].astype(jnp.bfloat16))
    logits = jax.lax.with_sharding_constraint(logits, NamedSharding(mesh, P("data", None, "model")))
    logits = logits.astype(jnp.float32)
    correct = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - correct)


def _attention(inner: jax.Array, layer: Params, mesh: Mesh) -> jax.Array:
    """Return causal attention, for a few queries at a time: all scores together would be the largest tensor."""
    inner = _divided(inner, mesh)
    query = _rotated(jnp.einsum("bsd,dhk->bshk", inner, layer["query"]))
    key, value = jnp.einsum("bsd,gdhk->gbshk", inner, layer["key_value"])
    batch, length, heads, width = query.shape
    groups = heads // key.shape[2]
    key, value = (jnp.repeat(part, groups, axis=2) for part in (_rotated(key), value))

    @jax.checkpoint
    def chunk(start: jax.Array) -> jax.Array:
        queries = jax.lax.dynamic_slice_in_dim(query, start, min(QUERIES, length), axis=1)
        scores = jnp.einsum("bqhk,bshk->bhqs", queries, key, preferred_element_type=jnp.float32) * width**-0.5
        visible = jnp.arange(length) <= start + jnp.arange(queries.shape[1])[:, None]
        weights = jax.nn.softmax(jnp.where(visible, scores, -jnp.inf), axis=-1).astype(value.dtype)
        return jnp.einsum("bhqs,bshk->bqhk", weights, value)

    chunks = jax.lax.map(chunk, jnp.arange(0, length, QUERIES))
    attended = jnp.moveaxis(chunks, 0, 1).reshape(batch, length, heads, width)
    return jnp.einsum("bshk,hkd->bsd", attended, layer["attention"])


def _norm(stream: jax.Array, scale: jax.Array) -> jax.Array:
    exact = stream.astype(jnp.float32)
    exact *= jax.lax.rsqrt(jnp.mean(exact**2, axis=-1, keepdims=True) + 1e-5)
    return exact.astype(stream.dtype) * scale


def _rotated(heads: jax.Array) -> jax.Array:
    """Return the heads with rotary positions."""
    half = heads.shape[-1] // 2
    angles = jnp.arange(heads.shape[1])[:, None] * 10_000 ** -(jnp.arange(half) / half)
    cos, sin = (part[:, None, :].astype(heads.dtype) for part in (jnp.cos(angles), jnp.sin(angles)))
    left, right = jnp.split(heads, 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)


def _divided(stream: jax.Array, mesh: Mesh, sequence: str | None = None) -> jax.Array:
    """Divide sequences over `data`, and between the blocks each sequence over `model` too."""
    return jax.lax.with_sharding_constraint(stream, NamedSharding(mesh, P("data", sequence, None)))
