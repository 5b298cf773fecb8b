"""A decoder-only transformer: it predicts each token of a text from those before it.

Parameters and optimizer are float32, and are split over all devices: "data" divides them as fully sharded data
parallelism does, "model" by heads and hidden units. Matrix products are bfloat16.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import PartitionSpec as P

from trainer import tokens
from trainer.flags import Flags
from trainer.mesh import Shard
from trainer.model_interface import Batch, Model, Parameters

HEAD = 64
"""Width of an attention head."""
MLP = 4
"""Hidden units per unit of width."""
AXES: Parameters = {
    "embedding": P("model", "data"),
    "layers": {
        "attention_norm": P(),
        "queries_keys_values": P(None, "data", None, "model"),
        "attention_output": P(None, "model", None, "data"),
        "mlp_norm": P(),
        "mlp_input": P(None, "data", "model"),
        "mlp_output": P(None, "model", "data"),
    },
    "output_norm": P(),
    "output": P("data", "model"),
}


def build(flags: Flags, shard: Shard) -> Model:
    """Return the model that the flags describe.

    Raises:
        SystemExit: Its heads cannot be divided.
    """
    heads, rest = divmod(flags.width, HEAD)
    if rest or heads % flags.model_parallel:
        raise SystemExit(
            f"--width={flags.width} and --model_parallel={flags.model_parallel} do not fit: each of the "
            f"{flags.model_parallel} devices computes an equal number of heads, of {HEAD} each"
        )
    return Model(
        initial=partial(initial, flags),
        axes=AXES,
        metrics=partial(metrics, shard),
        optimizer=optimizer,
        example={"tokens": jax.ShapeDtypeStruct((flags.sequence_length + 1,), jnp.uint16)},
        load=partial(tokens.load, length=flags.sequence_length, vocabulary=flags.vocabulary),
    )


def optimizer(rate: Any) -> optax.GradientTransformation:
    """Return Adam with weight decay, for gradients of bounded norm."""
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, b2=0.95, weight_decay=0.1))


def initial(flags: Flags, key: jax.Array) -> Parameters:
    """Return the initial parameters; those of the layers are stacked, for a scan."""
    keys = iter(jax.random.split(key, 6))
    layers, width, heads, hidden = flags.layers, flags.width, flags.width // HEAD, flags.width * MLP

    def normal(inputs: int, *shape: int) -> jax.Array:
        return jax.random.normal(next(keys), shape) / math.sqrt(inputs)

    # The layers' outputs are added up, so they start smaller the more layers there are.
    return {
        "embedding": normal(1, flags.vocabulary, width),
        "layers": {
            "attention_norm": jnp.ones((layers, width)),
            "queries_keys_values": normal(width, layers, width, 3, heads, HEAD),
            "attention_output": normal(2 * layers * width, layers, heads, HEAD, width),
            "mlp_norm": jnp.ones((layers, width)),
            "mlp_input": normal(width, layers, width, hidden),
            "mlp_output": normal(2 * layers * hidden, layers, hidden, width),
        },
        "output_norm": jnp.ones(width),
        "output": normal(width, width, flags.vocabulary),
    }


def metrics(shard: Shard, weights: Parameters, batch: Batch) -> dict[str, jax.Array]:
    """Return the mean loss of each text's tokens, and the share of them that is predicted correctly."""
    text = batch["tokens"].astype(jnp.int32)
    scores, targets = logits(shard, weights, text[:, :-1]), text[:, 1:]
    return {
        "loss": optax.softmax_cross_entropy_with_integer_labels(scores, targets).mean(axis=1),
        "accuracy": (scores.argmax(axis=2) == targets).mean(axis=1),
    }


def logits(shard: Shard, weights: Parameters, text: jax.Array) -> jax.Array:
    """Return the scores of each token that could follow, at each position of each text."""

    # The scan compiles one layer for all of them; the checkpoint keeps only its input for the backward pass.
    @jax.checkpoint
    def next_layer(values: jax.Array, layer: Parameters) -> tuple[jax.Array, None]:
        return _layer(shard, values, layer), None

    values = shard(weights["embedding"].astype(jnp.bfloat16)[text], "data", None, None)
    values, _ = jax.lax.scan(next_layer, values, weights["layers"])
    values = _norm(values, weights["output_norm"])
    return shard(values @ weights["output"].astype(jnp.bfloat16), "data", None, "model").astype(
        jnp.float32
    )


def _layer(shard: Shard, values: jax.Array, layer: Parameters) -> jax.Array:
    layer = jax.tree.map(lambda weights: weights.astype(jnp.bfloat16), layer)
    normed = _norm(values, layer["attention_norm"])
    queries, keys, contents = (
        shard(part, "data", None, "model", None)
        for part in jnp.einsum("bsw,wphd->pbshd", normed, layer["queries_keys_values"])
    )
    mixed = jax.nn.dot_product_attention(
        _rotated(queries), _rotated(keys), contents, is_causal=True
    )
    values = shard(
        values + jnp.einsum("bshd,hdw->bsw", mixed, layer["attention_output"]), "data", None, None
    )
    hidden = shard(
        jax.nn.gelu(_norm(values, layer["mlp_norm"]) @ layer["mlp_input"]), "data", None, "model"
    )
    return shard(values + hidden @ layer["mlp_output"], "data", None, None)


def _norm(values: jax.Array, scale: jax.Array) -> jax.Array:
    """Scale each vector to a mean square of 1: https://arxiv.org/abs/1910.07467."""
    exact = values.astype(jnp.float32)
    return (exact * jax.lax.rsqrt(jnp.square(exact).mean(axis=-1, keepdims=True) + 1e-6)).astype(
        jnp.bfloat16
    ) * (scale.astype(jnp.bfloat16))


def _rotated(vectors: jax.Array) -> jax.Array:
    """Encode the positions by rotating pairs of components: https://arxiv.org/abs/2104.09864."""
    speeds = 10_000 ** (-2 * jnp.arange(HEAD // 2) / HEAD)
    angles = jnp.arange(vectors.shape[1])[:, None, None] * speeds
    first, second = jnp.split(vectors.astype(jnp.float32), 2, axis=-1)
    cosines, sines = jnp.cos(angles), jnp.sin(angles)
    rotated = jnp.concatenate(
        [first * cosines - second * sines, second * cosines + first * sines], axis=-1
    )
    return rotated.astype(vectors.dtype)
