"""Go on from the newest checkpoint of a folder and save more, by the manager of one program, in its own environment.

Arguments: the manager, its folder, and a folder of another bucket to start from if the first has no checkpoint.
Prints the value that the state had at the start, and the steps whose checkpoints are kept.
"""

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

STEPS = 3
"""Checkpoints of one process: two processes make more than any manager keeps, so that each manager deletes some."""

Report = tuple[float | None, list[int]]


def maxtext(folder: str, source: str) -> Report:
    """Save by MaxText, as its trainer does; it reads weights from another folder as it does for fine-tuning."""
    from flax.training.train_state import TrainState  # type: ignore[import-not-found] # see below
    from maxtext.common import checkpointing  # in the environment of this script only

    manager = checkpointing.create_orbax_checkpoint_manager(folder, True, True, 1, max_num_checkpoints_to_keep=2)
    weights = {"params": {"w": jnp.zeros(8)}}
    state = TrainState(step=jnp.int32(0), apply_fn=None, params=weights, tx=None, opt_state={})
    whole, part = checkpointing.load_state_if_possible(manager, None, source, "", 8, _abstract(state))
    params = whole["items"].params if whole else part
    latest = checkpointing.latest_step(manager)
    for step in _steps(latest):
        saved = state.replace(params={"params": {"w": jnp.full(8, float(step))}})
        checkpointing.save_checkpoint(manager, step, saved, force=True)
        checkpointing.wait_until_finished(manager)
    return params and float(params["params"]["w"][0]), checkpointing.all_steps(manager)


def orbax(folder: str, source: str) -> Report:
    """Save by Orbax's CheckpointManager, as most programs in JAX do."""
    import orbax.checkpoint as ocp

    def restored(manager: ocp.CheckpointManager) -> Any:
        return manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(_abstract({"w": jnp.zeros(8)})))

    manager = ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(max_to_keep=2))
    latest = manager.latest_step()
    state = None
    if latest is not None:
        state = restored(manager)
    elif source:
        state = restored(ocp.CheckpointManager(source, options=ocp.CheckpointManagerOptions(read_only=True)))
    for step in _steps(latest):
        manager.save(step, args=ocp.args.StandardSave({"w": jnp.full(8, float(step))}))
        manager.wait_until_finished()
    return state and float(state["w"][0]), list(manager.all_steps())


def starter(folder: str, source: str) -> Report:
    """Save by the trainer of `tpucfg init --trainer jax`, in whose project the script runs."""
    sys.path.insert(0, "")
    checkpoints, storage = (importlib.import_module(f"trainer.{name}") for name in ("checkpoints", "storage"))

    abstract = _abstract({"w": jnp.zeros(8)})
    manager = checkpoints.Checkpoints(folder)
    own = manager.restore(abstract)
    start = checkpoints.Checkpoints(source).restore(abstract) if source and not own else own
    for step in _steps(own and own.step):
        manager.save(step, 0, {"w": jnp.full(8, float(step))})
    kept = sorted(int(name.partition("-")[0]) for name in storage.names(manager.folder))
    return start and float(start.state["w"][0]), kept


def _abstract(state: Any) -> Any:
    """Return the shapes of a state."""
    return jax.eval_shape(lambda: state)


def _steps(latest: int | None) -> range:
    """Return the steps of this process, which follow the newest checkpoint."""
    first = 1 if latest is None else latest + 1
    return range(first, first + STEPS)


MANAGERS: dict[str, Callable[[str, str], Report]] = {"maxtext": maxtext, "orbax": orbax, "starter": starter}

if __name__ == "__main__":
    name, own_folder, *sources = sys.argv[1:]
    value, kept = MANAGERS[name](own_folder, *(sources or [""]))
    sys.stdout.write(f"\n{json.dumps({'start': value, 'kept': kept})}\n")
