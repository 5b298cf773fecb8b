"""The result of one compilation, and its form in `results/fit.json`."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tpucfg.fit.inputs import FitInputs, FlagValue

SCHEMA: Final = "fit"
"""The name of the schema of the file."""


class FitKey(NamedTuple):
    """The rung that a result belongs to."""

    name: str
    """The project's name in the spec: two specs may share a folder."""
    environment: str
    size: str


class Memory(NamedTuple):
    """The memory (HBM) of one device, in bytes."""

    used: int
    """The amount that the step needs at its peak."""
    available: int
    """The amount that the compiler grants a program, which is a little less than the chip has."""
    exact: bool = True
    """False for a refusal, which states only the least amount that the step would need."""

    @property
    def headroom(self) -> int:
        """The memory that stays free; negative if the step does not fit."""
        return self.available - self.used


def contradiction(memory: Memory, *, fits: bool) -> str:
    """Return the reason why a verdict is none that the compiler gives with this memory; empty if it may be one.

    A refusal has used and available memory in two decimals of a GiB, which may be equal.
    """
    if fits and not memory.exact:
        return "it fits, and the memory is not exact, as only that of a refusal is"
    if fits and memory.used > memory.available:
        return f"it fits, and needs {memory.used:,} of {memory.available:,} bytes"
    if not fits and memory.exact and memory.used <= memory.available:
        return f"it does not fit, and needs {memory.used:,} of {memory.available:,} bytes"
    return ""


class Compiler(NamedTuple):
    """The versions of a compilation."""

    jax: str
    libtpu: str


class FitResult(NamedTuple):
    """The compilation of one rung's training step."""

    key: FitKey
    inputs: FitInputs
    files: Mapping[str, str]
    """The hashes of the program's own files, by path relative to the spec's folder."""
    compiler: Compiler
    stablehlo: str
    """The hash of the step in StableHLO, before the compiler optimizes it."""
    fits: bool
    """False if the compiler refused the step for lack of memory."""
    memory: Memory
    flops: int
    """Floating-point operations of matrix multiplications and convolutions, of one step on the whole slice."""
    flops_8bit: int
    """Operations on 8-bit operands, which are not in `flops`."""
    uncounted: tuple[str, ...]
    """The operations whose work is missing in the counts."""
    hbm_bytes: int | None
    """The least traffic of one device with its memory in a step; None if not known."""
    ici_bytes: int | None
    """The least bytes that one device sends to the other chips of its slice in a step; None if not known."""


def result_payload(result: FitResult) -> dict[str, Any]:
    """Return the result in the form of its schema."""
    inputs = result.inputs
    return {
        **result.key._asdict(),
        **inputs._asdict(),
        "flags": {name: _plain(value) for name, value in inputs.flags.items()},
        "xla_flags": list(inputs.xla_flags),
        "files": dict(sorted(result.files.items())),
        **result.compiler._asdict(),
        "stablehlo": result.stablehlo,
        "fits": result.fits,
        "hbm": result.memory._asdict(),
        "flops": result.flops,
        "flops_8bit": result.flops_8bit,
        "uncounted": list(result.uncounted),
        "hbm_bytes": result.hbm_bytes,
        "ici_bytes": result.ici_bytes,
    }


def parse_result(data: Mapping[str, Any]) -> FitResult:
    """Return the result of data that is valid by its schema."""
    inputs = FitInputs(
        data["step"],
        {name: _flag_value(value) for name, value in data["flags"].items()},
        data["env"],
        tuple(data["xla_flags"]),
        data["topology"],
        int(data["chips_per_host"]),
    )
    return FitResult(
        FitKey(data["name"], data["environment"], data["size"]),
        inputs,
        data["files"],
        Compiler(data["jax"], data["libtpu"]),
        data["stablehlo"],
        data["fits"],
        parse_memory(data["hbm"]),
        int(data["flops"]),
        int(data["flops_8bit"]),
        tuple(data["uncounted"]),
        optional_count(data["hbm_bytes"]),
        optional_count(data["ici_bytes"]),
    )


# A schema's `integer` may be written as 1.0, which Python reads as a float.


def parse_memory(data: Mapping[str, Any]) -> Memory:
    """Return the memory of data that is valid by its schema."""
    return Memory(int(data["used"]), int(data["available"]), data["exact"])


def optional_count(value: Any) -> int | None:
    """Return a whole number, or None."""
    return None if value is None else int(value)


def _plain(value: FlagValue) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _flag_value(value: Any) -> FlagValue:
    return tuple(value) if isinstance(value, list) else value
