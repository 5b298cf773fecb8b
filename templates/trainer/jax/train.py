"""Training loop: steps, logging of the loss, checkpoints, evaluation and profiling."""

import json
import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils
from numpy.typing import NDArray

from trainer import order, storage, tpu
from trainer.checkpoints import Checkpoints, Restored
from trainer.flags import Flags
from trainer.mesh import placed
from trainer.model_interface import Examples
from trainer.notice import STOPPED, Notice
from trainer.step import Program, State, program

PROFILED = range(10, 15)
"""Steps to trace, after the first ones, which compile and fill caches."""
REPORTS = 20
"""Approximate number of lines that a run prints."""
EVALUATED = 10_000
"""Examples of the evaluation, if there are as many; on each rung the same ones."""


class Run(NamedTuple):
    """The steps of a run, whatever batch sizes they had: those done before it was resumed, and all of them."""

    seen: int
    """Examples that were seen when it was resumed."""
    first: int
    last: int
    batch_size: int

    def examples(self, step: int) -> int:
        """Return the examples that have been seen before a step."""
        return self.seen + (step - self.first) * self.batch_size


def train(flags: Flags) -> None:
    """Train to the end, from the newest checkpoint if there is one, and print the metrics as the last line."""
    tpu.join(flags.hosts)
    # With several hosts, JAX handles SIGTERM itself, and agrees with the other hosts on the step to stop at.
    notice = Notice() if flags.hosts == 1 else None
    built = program(jax.devices(), flags)
    training, held_out = built.model.load(flags.data_dir)
    checkpoints = Checkpoints(flags.model_dir)
    state, run = _resumed(flags, built, checkpoints, training.size)
    measured, seconds = 0, 0.0
    for start, stop in _spans(flags, run):
        profiled = flags.profile_dir if start == run.first + PROFILED.start else None
        with _trace(profiled):
            began = time.perf_counter()
            for step in range(start, stop):
                if _must_stop(notice, step):
                    _stop(checkpoints, run, step, state)
                indices = order.rows(run.examples(step), flags.batch_size, training.size)
                batch = placed(built.mesh, training.load, indices.reshape(flags.grad_accum, -1))
                state, loss = built.step(state, batch, np.float32(rate(flags, run, step)))
            value = float(loss)  # waits for the dispatched steps to finish
            took = time.perf_counter() - began
        if not math.isfinite(value):
            raise SystemExit(
                f"the loss is {value} after step {stop}: lower --learning_rate, or raise --warmup_steps"
            )
        if start > run.first and not profiled:  # the first step is mostly compilation
            measured, seconds = measured + (stop - start) * flags.batch_size, seconds + took
        _print(f"step {stop:,} of {run.last:,}: loss {value:.4f}")
        if stop % flags.save_checkpoints_steps == 0 or stop == run.last:
            checkpoints.save(stop, run.examples(stop), state)
    metrics = _evaluate(flags, built, state, held_out)
    figures: dict[str, float] = {**metrics, "examples_seen": run.examples(run.last)}
    if seconds:
        figures["examples_per_second"] = round(measured / seconds, 1)
    _print(json.dumps(figures))
    _exit_if_finished(flags, run)


def rate(flags: Flags, run: Run, step: int) -> float:
    """Return the learning rate of a step: linear warm-up, then cosine decay to zero.

    It depends on the examples that have been seen, so that a run may be resumed with another batch size.
    """
    seen, total = run.examples(step), run.examples(run.last)
    warm_up = min(1.0, (seen / flags.batch_size + 1) / (flags.warmup_steps + 1))
    return flags.learning_rate * warm_up * (1 + math.cos(math.pi * seen / total)) / 2


def _resumed(
    flags: Flags, built: Program, checkpoints: Checkpoints, size: int
) -> tuple[State, Run]:
    """Return the newest checkpoint's state, or the initial state, and the steps from there."""
    state, first, seen = checkpoints.restore(built.arguments[0]) or Restored(built.start(), 0, 0)
    if seen:
        _print(f"resumed after step {first:,}, with {seen:,} examples seen")
    last = first + max(0, flags.steps_left(first, seen, size))
    return state, Run(seen, first, last, flags.batch_size)


def _must_stop(notice: Notice | None, step: int) -> bool:
    """Return True before the step at which all hosts stop, after one of them has received SIGTERM."""
    if notice:
        return notice.received
    return bool(multihost_utils.reached_preemption_sync_point(step))


def _stop(checkpoints: Checkpoints, run: Run, step: int, state: State) -> None:
    """Save a checkpoint and end the program, because its machine is about to go away."""
    # A host that ended before the dispatched steps have finished would fail those of the others.
    jax.block_until_ready(state)
    if run.examples(step):
        checkpoints.save(step, run.examples(step), state)
    _print(f"stopped by SIGTERM after step {step:,}")
    raise SystemExit(STOPPED)


def _evaluate(flags: Flags, built: Program, state: State, held_out: Examples) -> dict[str, float]:
    """Return the mean metrics of the held-out examples, in batches as large as a micro-batch."""
    size, total = flags.batch_size // flags.grad_accum, min(held_out.size, EVALUATED)

    def load(rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Fill up the last batch with examples that do not count."""
        return {**held_out.load(rows % total), "counts": (rows < total).astype(np.float32)}

    sums: dict[str, float] = {}
    for start in range(0, total, size):
        batch = placed(built.mesh, load, np.arange(start, start + size)[None])
        for name, value in built.evaluate(state.parameters, batch).items():
            sums[name] = sums.get(name, 0.0) + float(value)
    return {name: round(value / total, 6) for name, value in sums.items()}


def _exit_if_finished(flags: Flags, run: Run) -> None:
    """End the program if no step is left: it cannot measure a speed, and must not look like a successful run."""
    if run.first >= run.last:
        raise SystemExit(
            f"nothing is left to train: step {run.first:,} of {run.last:,} is in {flags.model_dir}\n"
            "help: start it with another --run, which gives it a folder of its own: tpucfg submit --run ID"
        )


def _spans(flags: Flags, run: Run) -> list[tuple[int, int]]:
    """Split the steps into spans that end where an action is due; the first span compiles."""
    every = (flags.save_checkpoints_steps, max(1, run.last // REPORTS))
    ends = {
        run.first,
        run.first + 1,
        run.last,
        *(step for size in every for step in range(size, run.last, size)),
    }
    if flags.profile_dir:
        ends |= {run.first + PROFILED.start, run.first + PROFILED.stop}
    inside = sorted(end for end in ends if run.first <= end <= run.last)
    return list(pairwise(inside))


@contextmanager
def _trace(folder: str | None) -> Iterator[None]:
    """Profile the block, if a folder is given, on the first host."""
    if folder is None or jax.process_index():
        yield
        return
    with tempfile.TemporaryDirectory() as local:
        with jax.profiler.trace(local):
            yield
        storage.upload(Path(local), folder)


def _print(line: str) -> None:
    if jax.process_index() == 0:
        print(line, flush=True)
