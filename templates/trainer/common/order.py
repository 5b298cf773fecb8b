"""The order of the examples."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEED = 7


def rows(first: int, count: int, size: int) -> NDArray[np.int64]:
    """Return the indices of the examples at `count` positions from `first` on: a different permutation in each epoch.

    The order depends only on the position. All hosts therefore agree without communication, an interrupted run resumes
    with the next example, and two rungs see equal examples with any batch sizes.
    """
    parts = []
    while count:
        epoch, position = divmod(first, size)
        parts.append(_order(epoch, size)[position : position + count])
        first, count = first + len(parts[-1]), count - len(parts[-1])
    return np.concatenate(parts)


@lru_cache(maxsize=2)
def _order(epoch: int, size: int) -> NDArray[np.int64]:
    return np.random.default_rng([_SEED, epoch]).permutation(size)
