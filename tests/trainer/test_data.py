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
from spec_factory import ROOT


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
def order(package: Path) -> ModuleType:
    """Import the package's module `order`."""
    assert package.is_dir()
    return importlib.import_module("trainer.order")


@pytest.fixture(scope="module")
def tokens(package: Path) -> ModuleType:
    """Import the package's module `tokens`."""
    assert package.is_dir()
    return importlib.import_module("trainer.tokens")


@pytest.fixture(scope="module")
def checkpoint(package: Path) -> ModuleType:
    """Import the module `checkpoint` of the TensorFlow trainer, with a storage that needs no TensorFlow."""
    source = ROOT / "templates" / "trainer" / "tensorflow" / "checkpoint.py"
    (package / "trainer" / "checkpoint.py").write_text(source.read_text())
    return importlib.import_module("trainer.checkpoint")


@given(
    size=st.integers(1, 50),
    batch=st.integers(1, 30),
    factor=st.integers(1, 8),
    steps=st.integers(1, 12),
)
def test_larger_batches_have_equal_examples(
    order: ModuleType, size: int, batch: int, factor: int, steps: int
) -> None:
    """A batch `factor` times as large has the examples of as many smaller steps, across the end of an epoch too."""
    large = [order.rows(step * batch * factor, batch * factor, size) for step in range(steps)]
    small = [order.rows(step * batch, batch, size) for step in range(steps * factor)]

    assert np.concatenate(large).tolist() == np.concatenate(small).tolist()


@given(size=st.integers(2, 200), epoch=st.integers(0, 5))
def test_epoch_contains_each_example_once(order: ModuleType, size: int, epoch: int) -> None:
    """Every epoch contains each example once."""
    assert sorted(order.rows(epoch * size, size, size)) == list(range(size))


def test_epochs_differ(order: ModuleType) -> None:
    """Each epoch has its own order, which is always the same."""
    first, second = order.rows(0, 100, 100).tolist(), order.rows(100, 100, 100).tolist()

    assert first != second
    assert first == order.rows(0, 100, 100).tolist()


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


def test_texts_become_tokens(tokens: ModuleType, tmp_path: Path) -> None:
    """Each byte of the texts is a token; an example is a part of them and the token behind it."""
    (tmp_path / "text").write_bytes(bytes(range(200)))
    tokens.main([str(tmp_path / "text"), str(tmp_path / "data")])

    training, validation = tokens.load(str(tmp_path / "data"), length=10, vocabulary=256)
    assert (training.size, validation.size) == (17, 1)
    assert training.load(np.array([[0], [16]]))["tokens"].tolist() == [
        [[*range(11)]],
        [[*range(160, 171)]],
    ]
    assert validation.load(np.array([0]))["tokens"].tolist() == [[*range(180, 191)]]


@pytest.mark.parametrize(
    ("content", "vocabulary", "message"),
    [
        (b"", 9, "train.bin has 0 tokens: an example needs 5"),
        (b"\1\0" * 4, 9, "train.bin has 4 tokens: an example needs 5"),
        (
            b"\1\0" * 4 + b"\0\1",
            256,
            "train.bin has the token 256: --vocabulary=256 allows 0 to 255",
        ),
        (None, 9, "put train.bin there\nhelp: python -m trainer.tokens TEXT"),
    ],
)
def test_unusable_tokens_are_reported(
    tokens: ModuleType, tmp_path: Path, content: bytes | None, vocabulary: int, message: str
) -> None:
    """Files that are missing or too short, and tokens beyond the vocabulary, end the program with one sentence."""
    (tmp_path / "val.bin").write_bytes(bytes(20))
    if content is not None:
        (tmp_path / "train.bin").write_bytes(content)

    with pytest.raises(SystemExit) as raised:
        tokens.load(str(tmp_path), length=4, vocabulary=vocabulary)
    assert message in str(raised.value)


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

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"step-{step:09}.npz" for step in (30, 40, 50)
    ]
