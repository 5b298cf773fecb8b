import gzip
import importlib
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trainers


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make the package that `tpucfg init` writes importable during the tests."""
    folder = trainers.new(tmp_path_factory.mktemp("package") / "mnist", "jax").folder
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == "trainer"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def data(package: Path) -> ModuleType:
    """Import the package's module `data`."""
    assert package.is_dir()
    return importlib.import_module("trainer.data")


@pytest.fixture(scope="module")
def checkpoint(package: Path) -> ModuleType:
    """Import the package's module `checkpoint`."""
    assert package.is_dir()
    return importlib.import_module("trainer.checkpoint")


@given(size=st.integers(1, 50), batch=st.integers(1, 30), factor=st.integers(1, 8), steps=st.integers(1, 12))
def test_larger_batches_have_equal_examples(data: ModuleType, size: int, batch: int, factor: int, steps: int) -> None:
    """A batch `factor` times as large has the examples of as many smaller steps, across the end of an epoch too."""
    large = [data.rows(step * batch * factor, batch * factor, size) for step in range(steps)]
    small = [data.rows(step * batch, batch, size) for step in range(steps * factor)]

    assert np.concatenate(large).tolist() == np.concatenate(small).tolist()


@given(size=st.integers(2, 200), epoch=st.integers(0, 5))
def test_epoch_contains_each_example_once(data: ModuleType, size: int, epoch: int) -> None:
    """Every epoch contains each example once."""
    assert sorted(data.rows(epoch * size, size, size)) == list(range(size))


def test_epochs_differ(data: ModuleType) -> None:
    """Each epoch has its own order, which is always the same."""
    first, second = data.rows(0, 100, 100).tolist(), data.rows(100, 100, 100).tolist()

    assert first != second
    assert first == data.rows(0, 100, 100).tolist()


def _idx(array: "np.ndarray[Any, Any]") -> bytes:
    return struct.pack(f">2xBB{array.ndim}I", 8, array.ndim, *array.shape) + array.tobytes()


def test_published_formats_of_mnist_are_read(data: ModuleType, tmp_path: Path) -> None:
    """The npz file and the four idx files, compressed or not, contain equal examples."""
    digits = importlib.import_module("trainer.digits")
    parts = [digits.generated(count, seed=count) for count in (30, 10)]
    arrays = [array.astype(np.uint8) for part in parts for array in part]
    (tmp_path / "npz").mkdir()
    np.savez(tmp_path / "npz" / "mnist.npz", **dict(zip(data.NPZ_ARRAYS, arrays, strict=True)))
    (tmp_path / "idx").mkdir()
    for index, (name, array) in enumerate(zip(data.IDX, arrays, strict=True)):
        zipped = index % 2 == 0
        content = gzip.compress(_idx(array)) if zipped else _idx(array)
        (tmp_path / "idx" / (f"{name}.gz" if zipped else name)).write_bytes(content)

    for form in ("npz", "idx"):
        for expected, actual in zip(parts, data.load(str(tmp_path / form)), strict=True):
            np.testing.assert_array_equal(expected.images, actual.images)
            np.testing.assert_array_equal(expected.labels, actual.labels)


def test_other_images_are_rejected(data: ModuleType, tmp_path: Path) -> None:
    """Images of another size are rejected, as they would fail much later, on the TPU."""
    arrays = [np.zeros(shape, np.uint8) for shape in ((3, 32, 32), (3,), (3, 32, 32), (3,))]
    np.savez(tmp_path / "mnist.npz", **dict(zip(data.NPZ_ARRAYS, arrays, strict=True)))

    with pytest.raises(SystemExit, match=r"contain no digits: images \(3, 32, 32\), labels \(3,\)"):
        data.load(str(tmp_path))


@pytest.mark.parametrize("cut", [0, 1, 100, -30, -1])
def test_truncated_checkpoint_is_ignored(checkpoint: ModuleType, tmp_path: Path, cut: int) -> None:
    """If the newest checkpoint is truncated, at any position, the one before it is used."""
    for step in (1, 2):
        checkpoint.save(str(tmp_path), step, {"weights": np.full(50, step)})
    newest = tmp_path / "step-000000002.npz"
    newest.write_bytes(newest.read_bytes()[:cut])

    newest = checkpoint.newest(str(tmp_path))
    assert newest.step == 1
    np.testing.assert_array_equal(newest.arrays["weights"], np.full(50, 1))


def test_corrupt_checkpoint_is_ignored(checkpoint: ModuleType, tmp_path: Path) -> None:
    """A file of the right size with a wrong checksum is incomplete too."""
    for step in (1, 2):
        checkpoint.save(str(tmp_path), step, {"weights": np.full(50, step)})
    newest = tmp_path / "step-000000002.npz"
    content = bytearray(newest.read_bytes())
    content[300] ^= 0xFF
    newest.write_bytes(content)

    assert checkpoint.newest(str(tmp_path)).step == 1


def test_newest_checkpoints_are_kept(checkpoint: ModuleType, tmp_path: Path) -> None:
    """Three checkpoints are kept; without any, there is nothing to restore."""
    assert checkpoint.newest(str(tmp_path / "none")) is None
    for step in range(10, 60, 10):
        checkpoint.save(str(tmp_path), step, {"weights": np.zeros(1)})

    assert sorted(path.name for path in tmp_path.iterdir()) == [f"step-{step:09}.npz" for step in (30, 40, 50)]
