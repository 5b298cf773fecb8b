"""Go on from the newest checkpoint of a folder and save more, by the manager of one program, in its own environment.

The argument is the manager. Each line on stdin is a job in JSON: its folder, and a folder of another bucket to start
from if the first has no checkpoint. A line is printed for each: the exit status, what was printed to stderr, and the
value that the state had at the start with the steps whose checkpoints are kept.
A job is a child of its own, which has nothing of the jobs before it but the imported packages.
"""

import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
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

    manager = checkpointing.create_orbax_checkpoint_manager(
        folder, True, True, 1, max_num_checkpoints_to_keep=2
    )
    weights = {"params": {"w": jnp.zeros(8)}}
    state = TrainState(step=jnp.int32(0), apply_fn=None, params=weights, tx=None, opt_state={})
    whole, part = checkpointing.load_state_if_possible(
        manager, None, source, "", 8, _abstract(state)
    )
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
        return manager.restore(
            manager.latest_step(), args=ocp.args.StandardRestore(_abstract({"w": jnp.zeros(8)}))
        )

    manager = ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(max_to_keep=2))
    latest = manager.latest_step()
    state = None
    if latest is not None:
        state = restored(manager)
    elif source:
        state = restored(
            ocp.CheckpointManager(source, options=ocp.CheckpointManagerOptions(read_only=True))
        )
    for step in _steps(latest):
        manager.save(step, args=ocp.args.StandardSave({"w": jnp.full(8, float(step))}))
        manager.wait_until_finished()
    return state and float(state["w"][0]), list(manager.all_steps())


def starter(folder: str, source: str) -> Report:
    """Save by the trainer of `tpucfg init --trainer jax`, in whose project the script runs."""
    checkpoints, storage = (
        importlib.import_module(f"trainer.{name}") for name in ("checkpoints", "storage")
    )

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


MANAGERS: dict[str, tuple[Callable[[str, str], Report], tuple[str, ...]]] = {
    "maxtext": (maxtext, ("flax.training.train_state", "maxtext.common.checkpointing")),
    "orbax": (orbax, ("orbax.checkpoint", "gcsfs")),
    "starter": (starter, ("trainer.checkpoints", "trainer.storage", "gcsfs")),
}
"""The function of each manager, and the modules to import before its jobs start."""
TIMEOUT_SECONDS = 300


def run(job: str, manager: Callable[[str, str], Report]) -> tuple[int, str, Any]:
    """Run a job in a child; return its exit status, its messages, and its report if it succeeded."""
    with tempfile.TemporaryFile("w+") as messages, tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            signal.alarm(TIMEOUT_SECONDS)
            os.dup2(messages.fileno(), 1)
            os.dup2(messages.fileno(), 2)
            try:
                json.dump(manager(*json.loads(job)), output)
                output.flush()
            except BaseException:  # noqa: BLE001 - as at the end of any program
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        messages.seek(0)
        output.seek(0)
        return status, messages.read(), None if status else json.load(output)


if __name__ == "__main__":
    sys.path.insert(0, "")
    function, modules = MANAGERS[sys.argv[1]]
    for module in modules:
        importlib.import_module(module)
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(run(line, function))}\n")
        sys.stdout.flush()
