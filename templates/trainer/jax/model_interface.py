"""Interface of a model: `mnist.py` and `transformer.py` each return one, and yours can be a third."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from numpy.typing import NDArray

Parameters = dict[str, Any]
"""Arrays by name; a value may be a dictionary of arrays itself."""
Batch = dict[str, jax.Array]
"""The examples of a batch, one in each row of each array."""


class Examples(NamedTuple):
    """Examples to train with, or to evaluate with."""

    size: int
    """Their number."""
    load: Callable[[NDArray[np.int64]], dict[str, NDArray[Any]]]
    """Returns the examples with these indices, as the rows of a batch."""


class Model(NamedTuple):
    """Functions and shapes of a model."""

    initial: Callable[[jax.Array], Parameters]
    """Returns the initial parameters for a random key."""
    axes: Parameters
    """PartitionSpec of each parameter: the axis of the mesh that splits each of its dimensions."""
    metrics: Callable[[Parameters, Batch], dict[str, jax.Array]]
    """Returns the `loss` and the `accuracy` of each example."""
    optimizer: Callable[[Any], optax.GradientTransformation]
    """Returns the optimizer for a learning rate."""
    example: dict[str, jax.ShapeDtypeStruct]
    """Shapes of one example."""
    load: Callable[[str], tuple[Examples, Examples]]
    """Returns the examples for training and those for evaluation, from a folder."""
