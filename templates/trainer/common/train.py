"""The loop: steps, and between some of them a look at the loss, a checkpoint, or the profiler."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Sequence

from trainer import checkpoint, data
from trainer.replicas import Replicas

if TYPE_CHECKING:
    from trainer.flags import Flags

PROFILED = range(10, 15)
"""The steps of a run that are traced; the first ones compile and fill caches."""
REPORTS = 20
"""About how many lines a run prints."""


def train(flags: Flags) -> None:
    """Train to the end, from the newest checkpoint where there is one, and print the figures as the last line."""
    replicas = Replicas(flags.hosts)
    examples, held_out = data.load(flags.data_dir)
    steps = flags.steps(len(examples.labels))
    if flags.batch_size % replicas.count:
        raise SystemExit(f"--batch_size={flags.batch_size} cannot be shared out to {replicas.count} cores")
    first = _resumed(flags, replicas)
    measured, seconds = 0, 0.0
    for start, stop in _spans(flags, first, steps):
        profiled = flags.profile_dir if start == first + PROFILED.start and replicas.is_first else None
        with replicas.trace(profiled):
            began = time.perf_counter()
            for step in range(start, stop):
                places = data.rows(step * flags.batch_size, flags.batch_size, len(examples.labels))
                replicas.step(examples, places, rate(flags, step, steps))
            loss = replicas.loss()  # waits for the steps: until here they were only sent off
            took = time.perf_counter() - began
        if not math.isfinite(loss):
            raise SystemExit(f"the loss is {loss} after step {stop}: lower --learning_rate, or raise --warmup_steps")
        if start > first and not profiled:  # the first step is mostly compilation
            measured, seconds = measured + (stop - start) * flags.batch_size, seconds + took
        if replicas.is_first:
            print(f"step {stop:,} of {steps:,}: loss {loss:.4f}", flush=True)
            if stop % flags.save_checkpoints_steps == 0 or stop == steps:
                checkpoint.save(_folder(flags), stop, {"batch_size": flags.batch_size, **replicas.arrays()})
    figures = {"accuracy": replicas.accuracy(held_out), "examples_seen": max(first, steps) * flags.batch_size}
    if seconds:
        figures["examples_per_second"] = round(measured / seconds, 1)
    if replicas.is_first:
        print(json.dumps(figures), flush=True)
    _refuse_the_end(flags, first, steps)


def _refuse_the_end(flags: Flags, first: int, steps: int) -> None:
    """A run that had nothing to do measured no speed, and its end must not look like that of one that did."""
    if first >= steps:
        raise SystemExit(
            f"nothing is left to train: step {first:,} of {steps:,} is in {flags.model_dir}\n"
            "help: start it with another --run, which gives it a folder of its own: tpucfg submit --run ID"
        )


def rate(flags: Flags, step: int, steps: int) -> float:
    """The learning rate of a step: up in a line, and down to nothing along half a cosine."""
    warm_up = min(1.0, (step + 1) / (flags.warmup_steps + 1))
    return flags.learning_rate * warm_up * (1 + math.cos(math.pi * step / steps)) / 2


def _folder(flags: Flags) -> str:
    return f"{flags.model_dir}/checkpoints"


def _resumed(flags: Flags, replicas: Replicas) -> int:
    """The step to go on with."""
    found = checkpoint.newest(_folder(flags))
    replicas.agree(found.step if found else 0)
    if found is None:
        return 0
    batch_size = int(found.arrays.pop("batch_size"))
    if batch_size != flags.batch_size:
        raise SystemExit(
            f"{_folder(flags)} was made with a batch of {batch_size:,}, and this job has {flags.batch_size:,}\n"
            "help: give the job a folder of its own, with tpucfg submit --run ID"
        )
    replicas.restore(found.arrays)
    print(f"resumed after step {found.step:,}", flush=True)
    return found.step


def _spans(flags: Flags, first: int, steps: int) -> Sequence[tuple[int, int]]:
    """The steps in pieces, each of which ends where something has to be done: first the one that compiles."""
    every = (flags.save_checkpoints_steps, max(1, steps // REPORTS))
    ends = {first, first + 1, steps, *(step for size in every for step in range(size, steps, size))}
    if flags.profile_dir:
        ends |= {first + PROFILED.start, first + PROFILED.stop}
    inside = sorted(end for end in ends if first <= end <= steps)
    return list(zip(inside, inside[1:]))
