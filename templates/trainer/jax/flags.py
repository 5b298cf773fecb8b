"""Flags of the trainer: exactly those in the configs."""

import argparse
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from trainer.flag_types import count, count_or_zero, folder, passes, rate

MODELS: Final = ("mnist", "transformer")


class Flags(NamedTuple):
    """Values of the flags."""

    model: str
    """One of MODELS."""
    data_dir: str
    """Folder of the examples: a path or a `gs://` URL, like the folders below."""
    model_dir: str
    """Folder of the run, for the checkpoints."""
    profile_dir: str | None
    """Folder for the profiler's trace of a few steps; None for no trace."""
    hosts: int
    """Number of hosts of the slice; each of them runs this program."""
    data_parallel: int | None
    """Replicas, which share a batch; None for as many as there are devices for."""
    model_parallel: int
    """Devices of a replica."""
    batch_size: int
    """Global batch size: examples of one step on all devices together."""
    grad_accum: int
    """Micro-batches of one step: each replica computes one after the other."""
    train_steps: int | None
    """Number of steps, with those that a resumed run has made, whatever their batch; None if `epochs` is set."""
    epochs: Fraction | None
    """Passes over the examples, exact and possibly fractional; None if `train_steps` is set."""
    learning_rate: float
    """Maximum learning rate, after the warm-up."""
    warmup_steps: int
    save_checkpoints_steps: int
    layers: int
    width: int
    sequence_length: int
    vocabulary: int

    def steps_left(self, step: int, seen: int, size: int) -> int:
        """Return the steps that are left after a step; for epochs, the fewest that see all examples not yet seen."""
        if self.train_steps:
            return self.train_steps - step
        return math.ceil(((self.epochs or Fraction(1)) * size - seen) / self.batch_size)


def parse(arguments: Sequence[str]) -> Flags:
    """Parse the flags; an invalid one ends the program with status 2 and a message."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer", description="Train a model.", allow_abbrev=False
    )
    _add_job(parser.add_argument_group("the job"))
    _add_training(parser.add_argument_group("the training"))
    _add_transformer(parser.add_argument_group("the transformer"))
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--train_steps", type=count, help="the length of the run")
    length.add_argument(
        "--epochs", type=passes, help="the length of the run, as passes over the examples"
    )
    return Flags(**vars(parser.parse_args(arguments)))


def _add_job(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add("--model", choices=MODELS, default=MODELS[0], help="default: %(default)s")
    add(
        "--data_dir", required=True, type=folder, help="folder or gs:// URL of the model's examples"
    )
    own = "the run's own folder, where checkpoints are written and resumed from, on slices of any size"
    add("--model_dir", required=True, type=folder, help=own)
    add(
        "--profile_dir",
        type=folder,
        help="folder for a profiler's trace of a few steps (default: no trace)",
    )
    add("--hosts", type=count, default=1, help="machines of the slice (default: %(default)s)")
    add(
        "--data_parallel",
        type=count,
        help="replicas of the model (default: devices / model_parallel)",
    )
    add(
        "--model_parallel",
        type=count,
        default=1,
        help="devices of a replica (default: %(default)s)",
    )


def _add_training(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add(
        "--batch_size",
        required=True,
        type=count,
        help="examples of a step, on all devices together",
    )
    add(
        "--grad_accum", type=count, default=1, help="micro-batches of a step (default: %(default)s)"
    )
    add("--learning_rate", type=rate, default=0.1, help="after the warm-up (default: %(default)s)")
    add(
        "--warmup_steps",
        type=count_or_zero,
        default=0,
        help="steps until the full learning rate (default: 0)",
    )
    add(
        "--save_checkpoints_steps",
        type=count,
        default=500,
        help="steps between checkpoints (default: %(default)s)",
    )


def _add_transformer(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add("--layers", type=count, default=12, help="default: %(default)s")
    add(
        "--width",
        type=count,
        default=768,
        help="of a token's vector; each head has 64 of it (default: %(default)s)",
    )
    add(
        "--sequence_length",
        type=count,
        default=1024,
        help="tokens of an example (default: %(default)s)",
    )
    add(
        "--vocabulary",
        type=count,
        default=256,
        help="different tokens; 256 for bytes (default: %(default)s)",
    )
