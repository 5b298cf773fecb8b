"""Checkpoints: the state of a run, named by the steps that it has made and the examples that it has seen.

A run may go on with another batch size, so that neither number follows from the other. Every device writes and reads
its own part of the arrays, by Orbax, and the mesh may be another one when they are read:
https://orbax.readthedocs.io. Orbax's CheckpointManager is not used: it names a checkpoint by its step alone.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath
from jax.experimental import multihost_utils

from trainer import storage

KEEP = 3
"""Number of checkpoints to keep."""

_NAME = re.compile(r"([0-9]{12})-([0-9]{15})")


class Restored(NamedTuple):
    """A checkpoint that a run goes on from."""

    state: Any
    step: int
    """The steps of the run, on slices of any size."""
    examples: int
    """The examples that the state has seen."""


class Checkpoints:
    """The checkpoints in a run's folder; each method is called on all hosts."""

    def __init__(self, model_dir: str) -> None:
        self.folder = f"{model_dir}/checkpoints"
        self._writer = ocp.Checkpointer(ocp.StandardCheckpointHandler())
        _require_shared(self.folder)
        complete = _complete(self.folder)
        self._remove(
            name
            for name in storage.names(self.folder)
            if _NAME.match(name) and name not in complete
        )

    def save(self, step: int, examples: int, state: Any) -> None:
        """Write a checkpoint, if there is none of this step, and remove outdated ones."""
        names = _complete(self.folder)
        name = f"{step:012}-{examples:015}"
        if name not in names:
            self._writer.save(_absolute(f"{self.folder}/{name}"), args=ocp.args.StandardSave(state))
            self._remove(sorted(names)[: 1 - KEEP])

    def restore(self, abstract: Any) -> Restored | None:
        """Return the newest state; None if there is no checkpoint.

        Args:
            abstract: The state's shapes, and their places on this job's devices.
        """
        names = _complete(self.folder)
        if not names:
            return None
        newest = f"{self.folder}/{max(names)}"
        try:
            state = self._writer.restore(_absolute(newest), args=ocp.args.StandardRestore(abstract))
        except (ValueError, KeyError) as error:
            raise SystemExit(
                f"{newest} is of another model, or is damaged: {str(error).splitlines()[0]}\n"
                "help: give the flags of the model that it was saved with, or give the run a folder of its own"
            ) from None
        step, examples = map(int, max(names).split("-"))
        return Restored(state, step, examples)

    def _remove(self, names: Iterable[str]) -> None:
        """Remove these entries of the folder."""
        if jax.process_index() == 0:
            for name in names:
                storage.remove(f"{self.folder}/{name}")
        multihost_utils.sync_global_devices("removed")


def _absolute(path: str) -> epath.Path:
    return epath.Path(path) if "://" in path else epath.Path(path).absolute()


def _complete(folder: str) -> list[str]:
    """Return the names of the complete checkpoints: Orbax renames or marks one when all of it is written."""
    names = filter(_NAME.fullmatch, storage.names(folder))
    return [
        name for name in names if ocp.utils.is_checkpoint_finalized(_absolute(f"{folder}/{name}"))
    ]


def _require_shared(folder: str) -> None:
    """End the program unless all hosts see one folder: each of them writes a part of a checkpoint."""
    if jax.process_count() == 1:
        return
    probe = f"{folder}/hosts"
    secret = multihost_utils.broadcast_one_to_all(
        np.frombuffer(np.random.default_rng().bytes(8), np.uint8)
    )
    if jax.process_index() == 0:
        storage.write(probe, bytes(secret))
    multihost_utils.sync_global_devices("written")
    seen = "hosts" in storage.names(folder) and storage.read(probe) == bytes(secret)
    all_seen = multihost_utils.process_allgather(np.asarray(seen)).all()
    if jax.process_index() == 0:
        storage.remove(probe)
    if not all_seen:
        message = f"the hosts do not share {folder}: each of them sees a folder of its own"
        raise SystemExit(
            f"{message}\nhelp: give a model_dir that all of them see, such as a folder in a bucket"
        )
