"""Flags of the trainer: exactly those in the configs."""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from typing import NamedTuple, Sequence

from trainer.flag_types import count, count_or_zero, folder, passes, rate


class Flags(NamedTuple):
    """Values of the flags."""

    data_dir: str
    """Folder of the examples: a path or a `gs://` URL, like the folders below."""
    model_dir: str
    """Folder of the job, for the checkpoints."""
    batch_size: int
    """Global batch size: examples of one step on all cores together."""
    train_steps: int | None
    """Number of steps; None if `epochs` is set."""
    epochs: Fraction | None
    """Passes over the examples, exact and possibly fractional; None if `train_steps` is set."""
    learning_rate: float
    """Maximum learning rate, after the warm-up."""
    warmup_steps: int
    save_checkpoints_steps: int
    profile_dir: str | None
    """Folder for the profiler's trace of a few steps; None for no trace."""
    hosts: int
    """Number of hosts of the slice; each of them runs this program."""

    def steps(self, examples: int) -> int:
        """Return the steps of the whole run: for epochs, the minimum that sees all of their examples."""
        return self.train_steps or math.ceil(
            (self.epochs or Fraction(1)) * examples / self.batch_size
        )


def parse(arguments: Sequence[str]) -> Flags:
    """Parse the flags; an invalid one ends the program with status 2 and a message."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer", description="Train on MNIST.", allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "--data_dir",
        required=True,
        type=folder,
        help="folder or gs:// URL with mnist.npz or the four idx files",
    )
    add(
        "--model_dir",
        required=True,
        type=folder,
        help="the job's own folder, where checkpoints are written and resumed from",
    )
    add("--batch_size", required=True, type=count, help="examples of a step, on all cores together")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--train_steps", type=count)
    length.add_argument("--epochs", type=passes)
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
    add(
        "--profile_dir",
        type=folder,
        help="folder for a profiler's trace of a few steps (default: no trace)",
    )
    add("--hosts", type=count, default=1, help="machines of the slice (default: %(default)s)")
    return Flags(**vars(parser.parse_args(arguments)))
