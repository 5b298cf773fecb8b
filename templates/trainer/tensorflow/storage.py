"""Files in a folder or in a bucket: any path or URL that TensorFlow supports, such as `gs://`."""

from __future__ import annotations

from typing import cast

import tensorflow as tf


def names(folder: str) -> list[str]:
    """Return the names in the folder; an empty list if it does not exist."""
    try:
        return [name.rstrip("/") for name in tf.io.gfile.listdir(folder)]
    except tf.errors.NotFoundError:
        return []


def read(path: str) -> bytes:
    """Return the content of a file."""
    with tf.io.gfile.GFile(path, "rb") as file:
        return cast(bytes, file.read())


def write(path: str, data: bytes) -> None:
    """Write the file under a temporary name and rename it, so that readers see the old or the new content."""
    tf.io.gfile.makedirs(path.rpartition("/")[0] or ".")
    with tf.io.gfile.GFile(f"{path}.partial", "wb") as file:
        file.write(data)
    tf.io.gfile.rename(f"{path}.partial", path, overwrite=True)


def remove(path: str) -> None:
    """Remove the file."""
    tf.io.gfile.remove(path)
