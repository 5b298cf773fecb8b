"""A small network for MNIST: replace it with your model."""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from jax.sharding import PartitionSpec as P

from trainer import data
from trainer.data import CLASSES, SIDE
from trainer.flags import Flags
from trainer.mesh import Shard
from trainer.model_interface import Batch, Examples, Model, Parameters

HIDDEN = 128
MEAN, DEVIATION = 0.1307, 0.3081
"""Mean and standard deviation of MNIST's pixels, scaled to 0 to 1."""


def build(_: Flags, shard: Shard) -> Model:
    """Return the model."""
    return Model(
        initial=initial,
        axes={
            "hidden/weights": P(None, "model"),
            "hidden/bias": P("model"),
            "output/weights": P("model"),
            "output/bias": P(),
        },
        metrics=partial(metrics, shard),
        optimizer=optax.sgd,
        example={
            "images": jax.ShapeDtypeStruct((SIDE, SIDE), jnp.uint8),
            "labels": jax.ShapeDtypeStruct((), jnp.int32),
        },
        load=load,
    )


def load(folder: str) -> tuple[Examples, Examples]:
    """Return the training examples and the test examples."""
    training, test = data.load(folder)
    return _examples(training), _examples(test)


def _examples(part: data.Examples) -> Examples:
    return Examples(
        len(part.labels), lambda rows: {"images": part.images[rows], "labels": part.labels[rows]}
    )


def initial(key: jax.Array) -> Parameters:
    """Return the initial parameters."""
    inner, outer = jax.random.split(key)
    return {
        "hidden/weights": jax.random.normal(inner, (SIDE * SIDE, HIDDEN)) * (2 / SIDE**2) ** 0.5,
        "hidden/bias": jnp.zeros(HIDDEN),
        "output/weights": jax.random.normal(outer, (HIDDEN, CLASSES)) * (2 / HIDDEN) ** 0.5,
        "output/bias": jnp.zeros(CLASSES),
    }


def metrics(shard: Shard, weights: Parameters, batch: Batch) -> dict[str, jax.Array]:
    """Return the loss and the accuracy of each image."""
    images, labels = batch["images"], batch["labels"]
    pixels = (images.reshape(len(images), -1) / 255 - MEAN) / DEVIATION
    hidden = shard(
        jax.nn.relu(pixels @ weights["hidden/weights"] + weights["hidden/bias"]), "data", "model"
    )
    scores = shard(hidden @ weights["output/weights"] + weights["output/bias"], "data", None)
    return {
        "loss": optax.softmax_cross_entropy_with_integer_labels(scores, labels),
        "accuracy": (scores.argmax(axis=1) == labels).astype(jnp.float32),
    }
