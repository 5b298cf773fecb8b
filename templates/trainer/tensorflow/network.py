"""The model: replace it with yours."""

from __future__ import annotations

from typing import Any, Dict

import tensorflow as tf

from trainer.data import CLASSES, SIDE

Parameters = Dict[str, tf.Variable]
HIDDEN = 128
MEAN, DEVIATION = 0.1307, 0.3081
"""Mean and standard deviation of MNIST's pixels, scaled to 0 to 1."""


def parameters(seed: int) -> Parameters:
    """Return the initial parameters."""
    return {
        "hidden/weights": _variable(_normal((SIDE * SIDE, HIDDEN), seed)),
        "hidden/bias": _variable(tf.zeros(HIDDEN)),
        "output/weights": _variable(_normal((HIDDEN, CLASSES), seed + 1)),
        "output/bias": _variable(tf.zeros(CLASSES)),
    }


def _normal(shape: tuple[int, int], seed: int) -> tf.Tensor:
    return tf.random.stateless_normal(shape, (seed, seed)) * (2 / shape[0]) ** 0.5


def _variable(value: tf.Tensor) -> tf.Variable:
    # All replicas assign an equal value: it is already the sum over all replicas.
    return tf.Variable(value, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


def logits(weights: Parameters, images: tf.Tensor) -> tf.Tensor:
    """Return the score of each digit for each image."""
    pixels = tf.cast(tf.reshape(images, (-1, SIDE * SIDE)), tf.float32) / 255
    hidden = tf.nn.relu(
        (pixels - MEAN) / DEVIATION @ weights["hidden/weights"] + weights["hidden/bias"]
    )
    return hidden @ weights["output/weights"] + weights["output/bias"]


def losses(weights: Parameters, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the loss of each example."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits(weights, images)
    )


def update(weights: Parameters, gradients: dict[str, Any], rate: tf.Tensor) -> None:
    """Apply one step of gradient descent."""
    for name, value in weights.items():
        value.assign_sub(rate * gradients[name])
