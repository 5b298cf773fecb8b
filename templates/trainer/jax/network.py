"""The model: replace it with yours."""

import jax
import jax.numpy as jnp

from trainer.data import CLASSES, SIDE

Parameters = dict[str, jax.Array]
HIDDEN = 128
MEAN, DEVIATION = 0.1307, 0.3081
"""Mean and standard deviation of MNIST's pixels, scaled to 0 to 1."""


def parameters(key: jax.Array) -> Parameters:
    """Return the initial parameters."""
    inner, outer = jax.random.split(key)
    return {
        "hidden/weights": jax.random.normal(inner, (SIDE * SIDE, HIDDEN)) * (2 / SIDE**2) ** 0.5,
        "hidden/bias": jnp.zeros(HIDDEN),
        "output/weights": jax.random.normal(outer, (HIDDEN, CLASSES)) * (2 / HIDDEN) ** 0.5,
        "output/bias": jnp.zeros(CLASSES),
    }


def logits(weights: Parameters, images: jax.Array) -> jax.Array:
    """Return the score of each digit for each image."""
    pixels = (images.reshape(len(images), -1) / 255 - MEAN) / DEVIATION
    hidden = jax.nn.relu(pixels @ weights["hidden/weights"] + weights["hidden/bias"])
    return hidden @ weights["output/weights"] + weights["output/bias"]


def loss(weights: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the mean loss over the whole batch, on all devices."""
    likelihoods = jax.nn.log_softmax(logits(weights, images))
    return -jnp.take_along_axis(likelihoods, labels[:, None], axis=1).mean()


def update(weights: Parameters, gradients: Parameters, rate: jax.Array) -> Parameters:
    """Return the parameters after one step of gradient descent."""
    return {name: value - rate * gradients[name] for name, value in weights.items()}
