"""ResNet-50 in Flax Linen (https://arxiv.org/abs/1512.03385), with data parallelism: each device has all weights."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

CLASSES: Final = 1000
STAGES: Final = {"resnet50": (3, 4, 6, 3), "tiny": (1, 1)}
"""Blocks with bottleneck of each stage."""

Conv = partial(nn.Conv, use_bias=False, dtype=jnp.bfloat16)
Norm = partial(nn.BatchNorm, use_running_average=False, momentum=0.9, dtype=jnp.bfloat16)


class Bottleneck(nn.Module):
    """Three convolutions with a residual."""

    channels: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the next features."""
        y = nn.relu(Norm()(Conv(self.channels, (1, 1))(x)))
        y = nn.relu(Norm()(Conv(self.channels, (3, 3), (self.stride, self.stride))(y)))
        y = Norm()(Conv(4 * self.channels, (1, 1))(y))
        if x.shape != y.shape:
            x = Norm()(Conv(4 * self.channels, (1, 1), (self.stride, self.stride))(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    """A residual network."""

    stages: tuple[int, ...]

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        """Return the logits of the classes."""
        x = nn.relu(Norm()(Conv(64, (7, 7), (2, 2))(images)))
        x = nn.max_pool(x, (3, 3), (2, 2), padding="SAME")
        for stage, blocks in enumerate(self.stages):
            for block in range(blocks):
                x = Bottleneck(64 * 2**stage, 2 if stage and not block else 1)(x)
        return nn.Dense(CLASSES)(x.mean((1, 2), dtype=jnp.float32))


def train_step(state: Any, images: jax.Array, labels: jax.Array, *, model: ResNet, sgd: Any) -> Any:
    """Return the next state, and the loss."""
    params, statistics, momentum = state

    def loss(params: Any) -> tuple[jax.Array, Any]:
        variables = {"params": params, "batch_stats": statistics}
        logits, changed = model.apply(variables, images, mutable="batch_stats")
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), changed["batch_stats"]

    (value, statistics), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, momentum = sgd.update(grads, momentum, params)
    return (optax.apply_updates(params, updates), statistics, momentum), value


def abstract_step(devices: Sequence[jax.Device], flags: Mapping[str, str]) -> tuple[Any, tuple[Any, ...]]:
    """Return the step and the shapes of its arguments, for `tpucfg fit`."""
    mesh = Mesh(np.array(devices), ("data",))
    everywhere, divided = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    model, sgd = ResNet(STAGES[flags["model"]]), optax.sgd(float(flags["learning_rate"]), momentum=0.9)
    size = int(flags["batch_size"])
    images = jax.ShapeDtypeStruct((size, 224, 224, 3), jnp.bfloat16, sharding=divided)
    labels = jax.ShapeDtypeStruct((size,), jnp.int32, sharding=divided)
    variables = jax.eval_shape(model.init, jax.random.key(0), images)
    state = (variables["params"], variables["batch_stats"], jax.eval_shape(sgd.init, variables["params"]))
    state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=everywhere), state)
    return jax.jit(partial(train_step, model=model, sgd=sgd), donate_argnums=0), (state, images, labels)
