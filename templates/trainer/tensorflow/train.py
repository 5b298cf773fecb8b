"""Training loop: steps, logging of the loss, checkpoints and profiling."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Sequence

from trainer import checkpoint, data, order
from trainer.notice import STOPPED
from trainer.replicas import Replicas

if TYPE_CHECKING:
    from trainer.flags import Flags

PROFILED = range(10, 15)
"""Steps to trace, after the first ones, which compile and fill caches."""
REPORTS = 20
"""Approximate number of lines that a run prints."""


def train(flags: Flags) -> None:
    """Train to the end, from the newest checkpoint if there is one, and print the metrics as the last line."""
    replicas = Replicas(flags.hosts)
    examples, held_out = data.load(flags.data_dir)
    steps = flags.steps(len(examples.labels))
    if flags.batch_size % replicas.count:
        raise SystemExit(
            f"--batch_size={flags.batch_size} cannot be divided among {replicas.count} cores"
        )
    first = _resumed(flags, replicas)
    measured, seconds = 0, 0.0
    for start, stop in _spans(flags, first, steps):
        profiled = (
            flags.profile_dir if start == first + PROFILED.start and replicas.is_first else None
        )
        with replicas.trace(profiled):
            began = time.perf_counter()
            _steps(flags, replicas, range(start, stop), steps, examples)
            loss = replicas.loss()  # waits for the dispatched steps to finish
            took = time.perf_counter() - began
        if not math.isfinite(loss):
            raise SystemExit(
                f"the loss is {loss} after step {stop}: lower --learning_rate, or raise --warmup_steps"
            )
        if start > first and not profiled:  # the first step is mostly compilation
            measured, seconds = measured + (stop - start) * flags.batch_size, seconds + took
        if replicas.is_first:
            print(f"step {stop:,} of {steps:,}: loss {loss:.4f}", flush=True)
            if stop % flags.save_checkpoints_steps == 0 or stop == steps:
                _save(flags, replicas, stop)
    figures = {
        "accuracy": replicas.accuracy(held_out),
        "examples_seen": max(first, steps) * flags.batch_size,
    }
    if seconds:
        figures["examples_per_second"] = round(measured / seconds, 1)
    if replicas.is_first:
        print(json.dumps(figures), flush=True)
    _exit_if_finished(flags, first, steps)


def _steps(
    flags: Flags, replicas: Replicas, span: range, steps: int, examples: data.Examples
) -> None:
    """Train a span of steps; after SIGTERM, save a checkpoint and end the program."""
    for step in span:
        if replicas.must_stop(step):
            _stop(flags, replicas, step)
        indices = order.rows(step * flags.batch_size, flags.batch_size, len(examples.labels))
        replicas.step(examples, indices, rate(flags, step, steps))


def _save(flags: Flags, replicas: Replicas, step: int) -> None:
    checkpoint.save(_folder(flags), step, {"batch_size": flags.batch_size, **replicas.arrays()})


def _stop(flags: Flags, replicas: Replicas, step: int) -> None:
    """Save a checkpoint and end the program, because its machine is about to go away."""
    replicas.loss()  # a host that ended before the dispatched steps have finished would fail those of the others
    if replicas.is_first:
        if step:
            _save(flags, replicas, step)
        print(f"stopped by SIGTERM after step {step:,}", flush=True)
    raise SystemExit(STOPPED)


def _exit_if_finished(flags: Flags, first: int, steps: int) -> None:
    """End the program if no step is left: it cannot measure a speed, and must not look like a successful run."""
    if first >= steps:
        raise SystemExit(
            f"nothing is left to train: step {first:,} of {steps:,} is in {flags.model_dir}\n"
            "help: start it with another --run, which gives it a folder of its own: tpucfg submit --run ID"
        )


def rate(flags: Flags, step: int, steps: int) -> float:
    """Return the learning rate of a step: linear warm-up, then cosine decay to zero."""
    warm_up = min(1.0, (step + 1) / (flags.warmup_steps + 1))
    return flags.learning_rate * warm_up * (1 + math.cos(math.pi * step / steps)) / 2


def _folder(flags: Flags) -> str:
    return f"{flags.model_dir}/checkpoints"


def _resumed(flags: Flags, replicas: Replicas) -> int:
    """Restore the newest checkpoint and return the next step."""
    newest = checkpoint.newest(_folder(flags))
    replicas.agree(newest.step if newest else 0)
    if newest is None:
        return 0
    batch_size = int(newest.arrays.pop("batch_size"))
    if batch_size != flags.batch_size:
        raise SystemExit(
            f"{_folder(flags)} was made with a batch of {batch_size:,}, and this job has {flags.batch_size:,}\n"
            "help: give the job a folder of its own, with tpucfg submit --run ID"
        )
    replicas.restore(newest.arrays)
    print(f"resumed after step {newest.step:,}", flush=True)
    return newest.step


def _spans(flags: Flags, first: int, steps: int) -> Sequence[tuple[int, int]]:
    """Split the steps into spans that end where an action is due; the first span compiles."""
    every = (flags.save_checkpoints_steps, max(1, steps // REPORTS))
    ends = {first, first + 1, steps, *(step for size in every for step in range(size, steps, size))}
    if flags.profile_dir:
        ends |= {first + PROFILED.start, first + PROFILED.stop}
    inside = sorted(end for end in ends if first <= end <= steps)
    return list(zip(inside, inside[1:]))
