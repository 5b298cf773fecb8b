"""Generated digits in the format of MNIST, to try the trainer without a download: `python -m trainer.digits FOLDER`."""

from __future__ import annotations

import argparse
import io
import sys
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from trainer import storage
from trainer.data import CLASSES, NPZ, NPZ_ARRAYS, SIDE, Examples

if TYPE_CHECKING:
    from numpy.typing import NDArray

FONT = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "01110 10001 00001 00110 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
"""The digits from 0 to 9, five dots wide and seven high."""
_DOT = 3
"""Width of a dot in pixels."""


def generated(count: int, seed: int) -> Examples:
    """Return digits of random brightness with noise, up to two pixels off the center."""
    random = np.random.default_rng(seed)
    glyphs = [_glyph(rows) for rows in FONT]
    labels = random.integers(CLASSES, size=count)
    images = random.integers(64, size=(count, SIDE, SIDE))
    height, width = glyphs[0].shape
    tops, lefts = (
        (SIDE - size) // 2 + random.integers(-2, 3, size=count) for size in (height, width)
    )
    for image, label, top, left in zip(images, labels, tops, lefts):
        image[top : top + height, left : left + width] += random.integers(96, 192) * glyphs[label]
    return Examples(images.astype(np.uint8), labels.astype(np.int32))


def _glyph(rows: str) -> NDArray[np.int64]:
    dots = np.array([[int(dot) for dot in row] for row in rows.split()])
    return np.kron(dots, np.ones((_DOT, _DOT), dtype=int))


def main(arguments: Sequence[str]) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.digits", description="Write generated digits."
    )
    parser.add_argument("folder", help="the data_dir; gs:// or a folder")
    parser.add_argument(
        "--train", type=int, default=60_000, help="examples to learn from (default: %(default)s)"
    )
    parser.add_argument(
        "--test", type=int, default=10_000, help="examples to test on (default: %(default)s)"
    )
    flags = parser.parse_args(arguments)
    arrays: Sequence[Any] = (*generated(flags.train, seed=1), *generated(flags.test, seed=2))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **dict(zip(NPZ_ARRAYS, arrays)))
    storage.write(f"{flags.folder}/{NPZ}", buffer.getvalue())
    print(f"wrote {flags.folder}/{NPZ}")


if __name__ == "__main__":
    main(sys.argv[1:])
