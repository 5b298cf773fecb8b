"""The training step for `tpucfg fit`, which compiles it with the TPU's compiler, for a slice that is not there."""

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from typing import Any

from trainer.flags import parse
from trainer.step import program


def abstract_step(devices: Sequence[Any], flags: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the jitted step that `train.py` runs, and its arguments as shapes.

    Args:
        devices: The devices of a slice.
        flags: The text of each flag in the config, without its dashes; None for a flag without a value.

    Raises:
        ValueError: They are not the flags of this program.
    """
    arguments = [
        f"--{name}" if text is None else f"--{name}={text}" for name, text in flags.items()
    ]
    message = io.StringIO()
    try:
        with redirect_stderr(message):
            parsed = parse(arguments)
    except SystemExit:
        raise ValueError(message.getvalue().splitlines()[-1]) from None
    built = program(devices, parsed)
    return built.step, built.arguments
