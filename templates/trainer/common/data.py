"""MNIST, read from `data_dir` in one of its published formats."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trainer import storage

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASSES = 10
SIDE = 28
"""Width and height of an image in pixels."""
NPZ = "mnist.npz"
"""The file of Keras: https://keras.io/api/datasets/mnist/."""
NPZ_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
"""The names of its arrays."""
IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
"""The four files as originally published, in the order of the arrays; each of them may end in `.gz`."""

_GZIP = b"\x1f\x8b"


class Examples(NamedTuple):
    """Images with one byte per pixel, and the digit of each image."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int32]


def load(folder: str) -> tuple[Examples, Examples]:
    """Return the training examples and the test examples."""
    names = storage.names(folder)
    files = [next((file for file in (name, f"{name}.gz") if file in names), "") for name in IDX]
    if NPZ in names:
        with np.load(io.BytesIO(storage.read(f"{folder}/{NPZ}"))) as file:
            arrays = [file[name] for name in NPZ_ARRAYS]
    elif all(files):
        arrays = [_idx(storage.read(f"{folder}/{file}")) for file in files]
    else:
        raise SystemExit(
            f"no MNIST in {folder}: put {NPZ} there, or {', '.join(IDX)} (or with .gz)\n"
            f"help: python -m trainer.digits {folder} writes generated digits there, to try this with"
        )
    return _examples(folder, arrays[0], arrays[1]), _examples(folder, arrays[2], arrays[3])


def _idx(data: bytes) -> NDArray[Any]:
    """Parse the format of http://yann.lecun.com/exdb/mnist/: a magic number, the sizes, and the bytes."""
    if data.startswith(_GZIP):
        data = gzip.decompress(data)
    sizes = np.frombuffer(data, ">u4", count=data[3], offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + sizes.nbytes).reshape(sizes)


def _examples(folder: str, images: NDArray[Any], labels: NDArray[Any]) -> Examples:
    if not len(labels) or images.shape != (len(labels), SIDE, SIDE) or labels.max() >= CLASSES:
        raise SystemExit(
            f"the files in {folder} contain no digits: images {images.shape}, labels {labels.shape}"
        )
    return Examples(images.astype(np.uint8), labels.astype(np.int32))
