"""Texts as tokens: `train.bin` and `val.bin` in `data_dir`, each a sequence of little-endian 16-bit numbers.

nanoGPT's scripts write these files too: https://github.com/karpathy/nanoGPT/tree/master/data.
`python -m trainer.tokens TEXT... FOLDER` writes them from texts, with each byte as a token.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer import storage
from trainer.model_interface import Examples

FILES = ("train.bin", "val.bin")
KIND = np.dtype("<u2")


def load(folder: str, length: int, vocabulary: int) -> tuple[Examples, Examples]:
    """Return the examples of both files: parts with this many tokens, and the token behind each."""
    missing = set(FILES) - set(storage.names(folder))
    if missing:
        raise SystemExit(
            f"no tokens in {folder}: put {' and '.join(sorted(missing))} there\n"
            f"help: python -m trainer.tokens TEXT... {folder} writes them, with each byte of the texts as a token"
        )
    training, validation = (_examples(f"{folder}/{name}", length, vocabulary) for name in FILES)
    return training, validation


def _examples(path: str, length: int, vocabulary: int) -> Examples:
    tokens = _read(path)
    size = (len(tokens) - 1) // length
    if size < 1:
        raise SystemExit(f"{path} has {len(tokens):,} tokens: an example needs {length + 1:,}")
    if (largest := int(tokens.max())) >= vocabulary:
        raise SystemExit(
            f"{path} has the token {largest}: --vocabulary={vocabulary} allows 0 to {vocabulary - 1}"
        )
    extent = np.arange(length + 1)
    return Examples(
        size,
        lambda indices: {"tokens": tokens[indices[..., None] * length + extent].astype(np.uint16)},
    )


def _read(path: str) -> NDArray[Any]:
    """Return a file's tokens: those of a bucket are read at once, those of a mounted folder as they are needed."""
    if path.startswith("gs://"):
        return np.frombuffer(storage.read(path), KIND)
    return np.memmap(path, KIND, mode="r") if Path(path).stat().st_size else np.empty(0, KIND)


def main(arguments: Sequence[str]) -> None:
    """Write both files: the last tenth of the texts is for validation."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.tokens", description="Write texts as tokens."
    )
    parser.add_argument(
        "texts", nargs="+", type=Path, metavar="TEXT", help="a file; each byte becomes a token"
    )
    parser.add_argument("folder", help="the data_dir; gs:// or a folder")
    flags = parser.parse_args(arguments)
    tokens = np.frombuffer(b"".join(path.read_bytes() for path in flags.texts), np.uint8).astype(
        KIND
    )
    parts = np.split(tokens, [len(tokens) * 9 // 10])
    for name, part in zip(FILES, parts, strict=True):
        storage.write(f"{flags.folder}/{name}", part.tobytes())
        print(f"wrote {flags.folder}/{name}: {len(part):,} tokens")


if __name__ == "__main__":
    main(sys.argv[1:])
