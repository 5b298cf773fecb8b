"""The answers of a compilation's process. The user's program runs in it and could write them, so all is checked."""

import json
import re
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.fit.result import Compiler, Memory, contradiction, optional_count, parse_memory
from tpucfg.strict_json import AmbiguousJsonError, parse_strict_json, small_integer
from tpucfg.text_format import format_value

_SCHEMA: Final = "fit-answer"
_MAX_FILES: Final = 5000
"""The files of a program that a result keeps: as many as the schema of the file of results allows."""
_FILE: Final = re.compile(r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[^\x00-\x1f\x7f\\\ud800-\udfff]{1,1000}")
"""A path below the spec's folder that a result can name."""


class Phase(NamedTuple):
    """A phase of the compilation that has begun."""

    name: str
    """`import`, `trace`, `lower` or `compile`."""


class Figures(NamedTuple):
    """The part of a result that only the compiler knows."""

    fits: bool
    memory: Memory
    flops: int
    flops_8bit: int
    uncounted: tuple[str, ...]
    hbm_bytes: int | None
    ici_bytes: int | None
    lower_seconds: float
    compile_seconds: float


class StepResult(NamedTuple):
    """A compiled step, or one that is equal to a known one and was not compiled again."""

    compiler: Compiler
    files: tuple[str, ...]
    """The files that the program imports and opens, relative to the spec's folder."""
    stablehlo: str
    figures: Figures | None
    """None for a step that is known."""


class Frame(NamedTuple):
    """A line of the user's program that an exception passed."""

    file: str
    line: int
    name: str
    """The function."""
    code: str
    """The source line."""


class StepFailure(NamedTuple):
    """A failure that the process has recognized itself."""

    kind: str
    message: str
    frames: tuple[Frame, ...]
    """The innermost last."""


Answer = Phase | StepResult | StepFailure


class AnswerError(ValueError):
    """A line that is no answer."""


def parse_answer(line: bytes) -> Answer:
    """Parse one line.

    Raises:
        AnswerError: It does not match the schema of an answer, or contradicts itself.
    """
    try:
        data = parse_strict_json(line.decode(), small_integer)
    except (AmbiguousJsonError, json.JSONDecodeError, UnicodeDecodeError):
        data = None
    if not schemas.is_valid(_SCHEMA, data):
        raise AnswerError(format_value(line.decode("utf-8", "replace"), quoted=False))
    if "phase" in data:
        return Phase(data["phase"])
    if "error" in data:
        return _failure(data["error"])
    result = _result(data["result"])
    if result.figures and (problem := contradiction(result.figures.memory, fits=result.figures.fits)):
        raise AnswerError(problem)
    return result


def _failure(data: Any) -> StepFailure:
    frames = (Frame(row["file"], int(row["line"]), row["name"], row["code"]) for row in data["frames"])
    return StepFailure(data["kind"], data["message"], tuple(frames))


def _result(data: Any) -> StepResult:
    # A file with an odd name cannot be compared later; a step that uses one is compiled all the same. Imported files
    # come first, and are kept where a program opens too many others.
    files = [name for name in data["files"] if _FILE.fullmatch(name)]
    return StepResult(
        Compiler(data["jax"], data["libtpu"]),
        tuple(sorted(list(dict.fromkeys(files))[:_MAX_FILES])),
        data["stablehlo"],
        None if data["known"] else _figures(data),
    )


def _figures(data: Any) -> Figures:
    return Figures(
        fits=data["fits"],
        memory=parse_memory(data["hbm"]),
        flops=int(data["flops"]),
        flops_8bit=int(data["flops_8bit"]),
        uncounted=tuple(data["uncounted"]),
        hbm_bytes=optional_count(data["hbm_bytes"]),
        ici_bytes=optional_count(data["ici_bytes"]),
        lower_seconds=float(data["seconds"]["lower"]),
        compile_seconds=float(data["seconds"]["compile"]),
    )
