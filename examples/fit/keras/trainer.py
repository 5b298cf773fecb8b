"""A vision transformer in Keras on JAX, and its step for `tpucfg fit`.

The model is ViT-B/16 (https://arxiv.org/abs/2010.11929). The step is the one that `model.fit` runs: `train_step` of
Keras's own trainer for JAX, a function of the model's variables and of a batch.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

os.environ["KERAS_BACKEND"] = "jax"  # Keras reads the variable at its import

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

PIXELS: Final = 224
CLASSES: Final = 1000
SHAPES: Final = {"vit-b16": (12, 768, 12), "tiny": (2, 64, 2)}
"""Layers, width and heads."""


class Positions(keras.layers.Layer):
    """Adds a trained vector to each patch.

    An Embedding of `arange` would be computed when the model is built: a random constant, which no step trains.
    """

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the vectors."""
        self.vectors = self.add_weight(shape=input_shape[1:], initializer="random_uniform")

    def call(self, inputs: Any) -> Any:
        """Return the sum."""
        return inputs + self.vectors


def new_model(layers: int, width: int, heads: int) -> keras.Model:
    """Return the compiled model, as it would be given to `model.fit`."""
    images = keras.Input((PIXELS, PIXELS, 3))
    x = keras.layers.Conv2D(width, 16, strides=16)(images)
    x = keras.layers.Reshape((-1, width))(x)
    x = Positions()(x)
    for _ in range(layers):
        inner = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.MultiHeadAttention(heads, width // heads)(inner, inner)
        inner = keras.layers.Dense(4 * width, activation="gelu")(keras.layers.LayerNormalization()(x))
        x = x + keras.layers.Dense(width)(inner)
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.LayerNormalization()(x))
    model = keras.Model(images, keras.layers.Dense(CLASSES, dtype="float32")(x))
    model.compile(keras.optimizers.AdamW(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def abstract_step(devices: Sequence[jax.Device], flags: Mapping[str, str]) -> tuple[Any, tuple[Any, ...]]:
    """Return the step and the shapes of its arguments: images divided over the devices, variables on each of them."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = new_model(*SHAPES[flags["model"]])
    model.optimizer.build(model.trainable_variables)
    mesh = Mesh(np.array(devices), ("data",))

    def placed(shape: tuple[int, ...], dtype: Any, spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    variables = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    state = tuple([placed(each.shape, each.dtype, P()) for each in kind] for kind in variables)
    batch = int(flags["batch_size"])
    images = placed((batch, PIXELS, PIXELS, 3), jnp.float32, P("data"))
    labels = placed((batch,), jnp.int32, P("data"))
    return jax.jit(model.train_step, donate_argnums=0), (state, (images, labels))
