"""Checkpoints: the state of a run, named by the number of examples that it has seen.

Every device writes and reads its own part of the arrays, by Orbax, and the mesh may be another one when they are read:
https://orbax.readthedocs.io. Orbax's CheckpointManager is not used, because it reads properties of the bucket, which
the job's account may not: it has roles/storage.objectUser.
"""

import re
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath
from jax.experimental import multihost_utils

from trainer import storage

KEEP = 3
"""Number of checkpoints to keep."""
DIGITS = 15

_NAME = re.compile(rf"[0-9]{{{DIGITS}}}")


class Checkpoints:
    """The checkpoints in a job's folder; each method is called on all hosts."""

    def __init__(self, model_dir: str) -> None:
        self.folder = _folder(model_dir)
        self._writer = ocp.Checkpointer(ocp.StandardCheckpointHandler())
        _require_shared(self.folder)
        complete = _complete(self.folder)
        self._remove(name for name in storage.names(self.folder) if _NAME.match(name) and name not in complete)

    def save(self, examples: int, state: Any) -> None:
        """Write a checkpoint, if there is none of this number of examples, and remove outdated ones."""
        names = _complete(self.folder)
        name = f"{examples:0{DIGITS}}"
        if name not in names:
            self._writer.save(_absolute(f"{self.folder}/{name}"), args=ocp.args.StandardSave(state))
            self._remove(sorted(names)[: 1 - KEEP])

    def restore(self, resume_from: str | None, abstract: Any) -> tuple[Any, int] | None:
        """Return the newest state and the number of examples that it has seen; None if there is no checkpoint.

        Args:
            resume_from: Another job's folder, for a job that has no checkpoint yet.
            abstract: The state's shapes, and their places on this job's devices.
        """
        folders = [self.folder, *([_folder(resume_from)] if resume_from else [])]
        newest = next((f"{folder}/{max(names)}" for folder in folders if (names := _complete(folder))), None)
        if newest is None:
            if resume_from:
                raise SystemExit(f"no checkpoint in {folders[-1]}: --resume_from names a folder that has some")
            return None
        try:
            state = self._writer.restore(_absolute(newest), args=ocp.args.StandardRestore(abstract))
        except (ValueError, KeyError) as error:
            raise SystemExit(
                f"{newest} is of another model, or is damaged: {str(error).splitlines()[0]}\n"
                "help: give the flags of the model that it was saved with, or give the job a folder of its own"
            ) from None
        return state, int(newest[-DIGITS:])

    def _remove(self, names: Iterable[str]) -> None:
        """Remove these entries of the folder."""
        if jax.process_index() == 0:
            for name in names:
                storage.remove(f"{self.folder}/{name}")
        multihost_utils.sync_global_devices("removed")


def _folder(model_dir: str) -> str:
    return f"{model_dir}/checkpoints"


def _absolute(path: str) -> epath.Path:
    return epath.Path(path) if "://" in path else epath.Path(path).absolute()


def _complete(folder: str) -> list[str]:
    """Return the names of the complete checkpoints: Orbax renames or marks one when all of it is written."""
    names = filter(_NAME.fullmatch, storage.names(folder))
    return [name for name in names if ocp.utils.is_checkpoint_finalized(_absolute(f"{folder}/{name}"))]


def _require_shared(folder: str) -> None:
    """End the program unless all hosts see one folder: each of them writes a part of a checkpoint."""
    if jax.process_count() == 1:
        return
    probe = f"{folder}/hosts"
    secret = multihost_utils.broadcast_one_to_all(np.frombuffer(np.random.default_rng().bytes(8), np.uint8))
    if jax.process_index() == 0:
        storage.write(probe, bytes(secret))
    multihost_utils.sync_global_devices("written")
    seen = "hosts" in storage.names(folder) and storage.read(probe) == bytes(secret)
    all_seen = multihost_utils.process_allgather(np.asarray(seen)).all()
    if jax.process_index() == 0:
        storage.remove(probe)
    if not all_seen:
        message = f"the hosts do not share {folder}: each of them sees a folder of its own"
        raise SystemExit(f"{message}\nhelp: give a model_dir that all of them see, such as a folder in a bucket")
