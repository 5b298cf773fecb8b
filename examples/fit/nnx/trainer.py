"""A language model in Flax NNX, and its step for `tpucfg fit`.

The model is that of GPT-2 (https://github.com/openai/gpt-2), written as a user of NNX would: modules, `nnx.Optimizer`,
`nnx.jit`. Only `abstract_step` is for `tpucfg fit`; it never creates a parameter.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

VOCABULARY: Final = 50_304
SHAPES: Final = {"gpt2": (12, 768, 12), "gpt2-xl": (48, 1600, 25), "tiny": (2, 128, 2)}
"""Layers, width and heads."""


class Block(nnx.Module):
    """Attention and two dense layers, each with a residual."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs) -> None:
        options = {"dtype": jnp.bfloat16, "rngs": rngs}
        self.norms = nnx.List([nnx.LayerNorm(width, **options) for _ in range(2)])
        self.attention = nnx.MultiHeadAttention(heads, width, decode=False, **options)
        self.up, self.down = nnx.Linear(width, 4 * width, **options), nnx.Linear(4 * width, width, **options)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the next stream."""
        x = x + self.attention(self.norms[0](x), mask=nnx.make_causal_mask(x[..., 0]))
        return x + self.down(nnx.gelu(self.up(self.norms[1](x))))


class Model(nnx.Module):
    """A decoder-only transformer."""

    def __init__(self, layers: int, width: int, heads: int, length: int, rngs: nnx.Rngs) -> None:
        self.tokens = nnx.Embed(VOCABULARY, width, dtype=jnp.bfloat16, rngs=rngs)
        self.positions = nnx.Embed(length, width, dtype=jnp.bfloat16, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, dtype=jnp.bfloat16, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Return the logits of the next tokens."""
        x = self.tokens(tokens) + self.positions(jnp.arange(tokens.shape[1]))
        for block in self.blocks:
            x = nnx.remat(lambda each, stream: each(stream))(block, x)
        return self.tokens.attend(self.norm(x))


@nnx.jit(donate_argnums=(0, 1))
def train_step(model: Model, optimizer: nnx.Optimizer, tokens: jax.Array) -> jax.Array:
    """Update the model and the optimizer in place; return the loss."""

    def loss(model: Model) -> jax.Array:
        logits = model(tokens[:, :-1]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


def abstract_step(devices: Sequence[jax.Device], flags: Mapping[str, str]) -> tuple[Any, tuple[Any, ...]]:
    """Return the step and the shapes of its arguments: `nnx.eval_shape` builds the model without its numbers."""
    mesh = Mesh(np.array(devices), ("data",))
    length = int(flags["sequence_length"])

    def created() -> tuple[Model, nnx.Optimizer]:
        model = Model(*SHAPES[flags["model"]], length, rngs=nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adamw(float(flags["learning_rate"])), wrt=nnx.Param)

    def placed(leaf: Any) -> jax.ShapeDtypeStruct:
        """Divide the first axis that the devices divide evenly (FSDP); small tensors are on each device."""
        axis = next((index for index, size in enumerate(leaf.shape) if size % len(devices) == 0), None)
        spec = P() if axis is None else P(*[None] * axis, "data")
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))

    graph, state = nnx.split(nnx.eval_shape(created))
    model, optimizer = nnx.merge(graph, jax.tree.map(placed, state))
    size = (int(flags["batch_size"]), length + 1)
    tokens = jax.ShapeDtypeStruct(size, jnp.int32, sharding=NamedSharding(mesh, P("data")))
    return train_step, (model, optimizer, tokens)
