"""The flags of the trainer: those that the configs carry, and no others."""

from __future__ import annotations

import argparse
import math
import re
from fractions import Fraction
from typing import NamedTuple, Sequence


class Flags(NamedTuple):
    """What a config tells its trainer."""

    data_dir: str
    """Where the examples are: a folder or a `gs://` address, like those below."""
    model_dir: str
    """The job's own folder, for the checkpoints."""
    batch_size: int
    """Global: the examples of one step on all cores together."""
    train_steps: int | None
    """Either this or epochs."""
    epochs: Fraction | None
    """Passes over the examples, as exactly as they are written; they may end within one."""
    learning_rate: float
    """At its highest, after the warm-up."""
    warmup_steps: int
    save_checkpoints_steps: int
    profile_dir: str | None
    """Where the profiler's trace of a few steps goes; None for no trace."""
    hosts: int
    """Machines of the slice; each of them runs this program."""

    def steps(self, examples: int) -> int:
        """Steps of the whole run over so many examples: the fewest that see at least what the epochs ask for."""
        return self.train_steps or math.ceil((self.epochs or Fraction(1)) * examples / self.batch_size)


def parse(arguments: Sequence[str]) -> Flags:
    """Read the flags; a wrong one ends the program with status 2 and a word about it."""
    parser = argparse.ArgumentParser(prog="python -m trainer", description="Train on MNIST.", allow_abbrev=False)
    add = parser.add_argument
    add("--data_dir", required=True, type=_folder, help="where mnist.npz or the four idx files are; gs:// or a folder")
    add(
        "--model_dir",
        required=True,
        type=_folder,
        help="the job's own folder: checkpoints go there, and are resumed from",
    )
    add("--batch_size", required=True, type=_count, help="examples of a step, on all cores together")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--train_steps", type=_count)
    length.add_argument("--epochs", type=_passes)
    add("--learning_rate", type=_rate, default=0.1, help="after the warm-up (default: %(default)s)")
    add("--warmup_steps", type=_count_or_none, default=0, help="steps until the full learning rate (default: 0)")
    add("--save_checkpoints_steps", type=_count, default=500, help="steps between checkpoints (default: %(default)s)")
    add("--profile_dir", type=_folder, help="where a profiler's trace of a few steps goes (default: no trace)")
    add("--hosts", type=_count, default=1, help="machines of the slice (default: %(default)s)")
    return Flags(**vars(parser.parse_args(arguments)))


def _folder(text: str) -> str:
    return text.rstrip("/") or text  # in a bucket, a name with two slashes is another name


def _count(text: str) -> int:
    return _whole(text, 1)


def _count_or_none(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of {least} or more")
    return int(text)


def _passes(text: str) -> Fraction:
    """Exactly what is written: 1.1 as a float is a little more, which may be one step too many."""
    if re.fullmatch(r"[+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?0*[0-9]{1,3})?", text):
        value = Fraction(text)
        if value > 0:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value
