"""The file `results/fit.json`: results as values and as JSON, read under bounds, because anyone can write it."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from tpucfg import schemas
from tpucfg.findings import Finding, Location
from tpucfg.fit.inputs import FitInputs
from tpucfg.fs import explain_error, output_lock, read_result_file, staged_files
from tpucfg.plan.job import FlagValue
from tpucfg.schemas import RuleIds
from tpucfg.strict_json import AmbiguousJsonError, parse_strict_json, small_integer
from tpucfg.text_format import format_value
from tpucfg.yamldoc.reader import read_text

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
    framework: str = ""
    """The framework of the program and its version, as `maxtext 0.2.5`; empty if it has none that is known."""

    @property
    def payload(self) -> dict[str, str]:
        """The versions that are known, by name."""
        return {name: version for name, version in self._asdict().items() if version}


Part = Literal["products", "kernels", "fusions", "communication", "copies", "host"]
"""Matrix products, the program's kernels, other fusions, and waiting for other chips, for copies and for the host."""


class StepForecast(NamedTuple):
    """The time of one step by the compiled program, as the model has it: without the error of published runs."""

    seconds: float
    parts: Mapping[Part, float]
    """The seconds of each part that is not zero; their sum is the whole."""
    is_reliable: bool = True
    """False for a program that keeps arrays in its host's memory, whose time and memory nothing proves."""
    uncounted: tuple[str, ...] = ()
    """The operations whose time is missing."""


class CompiledFigures(NamedTuple):
    """The last fields of a result, which only the compiler knows."""

    fits: bool
    memory: Memory
    flops: int
    flops_8bit: int
    uncounted: tuple[str, ...]
    state_bytes: int | None = None
    forecast: StepForecast | None = None


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
    state_bytes: int | None = None
    """The bytes of all that the step returns, which a checkpoint contains; None if not known."""
    forecast: StepForecast | None = None
    """The time of a step; None if the compiled program cannot be read, or was refused."""

    @property
    def is_reliable(self) -> bool:
        """False for a program that keeps arrays in its host's memory, whose verdict nothing proves."""
        return self.forecast is None or self.forecast.is_reliable


def inputs_id(key: FitKey, inputs: FitInputs) -> str:
    """Return a text that only results of the same rung and equal inputs share."""
    return json.dumps([*key, inputs._asdict()], sort_keys=True)


def result_id(result: FitResult) -> str:
    """Return the text by which a search knows a result: it compiles a rung with several inputs."""
    return inputs_id(result.key, result.inputs)


def result_payload(result: FitResult) -> dict[str, Any]:
    """Return the result in the form of its schema."""
    inputs = result.inputs
    return {
        **result.key._asdict(),
        **{name: value for name, value in inputs._asdict().items() if name != "image" or value},
        "flags": {name: _plain(value) for name, value in inputs.flags.items()},
        "xla_flags": list(inputs.xla_flags),
        "files": dict(sorted(result.files.items())),
        **result.compiler.payload,
        "stablehlo": result.stablehlo,
        "fits": result.fits,
        "hbm": result.memory._asdict(),
        "flops": result.flops,
        "flops_8bit": result.flops_8bit,
        "uncounted": list(result.uncounted),
        # Files of earlier compilations do without them.
        **({} if result.state_bytes is None else {"state_bytes": result.state_bytes}),
        **({} if result.forecast is None else {"forecast": forecast_payload(result.forecast)}),
    }


def forecast_payload(forecast: StepForecast) -> dict[str, Any]:
    """Return the model's own time of a step as data, before the error of published runs."""
    return forecast._asdict() | {
        "parts": dict(forecast.parts),
        "uncounted": list(forecast.uncounted),
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
        data.get("image", ""),
    )
    return FitResult(
        FitKey(data["name"], data["environment"], data["size"]),
        inputs,
        data["files"],
        Compiler(data["jax"], data["libtpu"], data.get("framework", "")),
        data["stablehlo"],
        *parse_figures(data),
    )


def parse_figures(data: Mapping[str, Any]) -> CompiledFigures:
    """Return the figures of data that is valid by its schema."""
    # A schema's `integer` may be written as 1.0, which Python reads as a float.
    state = data.get("state_bytes")
    return CompiledFigures(
        data["fits"],
        Memory(int(data["hbm"]["used"]), int(data["hbm"]["available"]), data["hbm"]["exact"]),
        int(data["flops"]),
        int(data["flops_8bit"]),
        tuple(data["uncounted"]),
        None if state is None else int(state),
        _forecast(data.get("forecast")),
    )


def _forecast(data: Mapping[str, Any] | None) -> StepForecast | None:
    if data is None:
        return None
    parts = {part: float(seconds) for part, seconds in data["parts"].items()}
    return StepForecast(
        float(data["seconds"]), parts, data["is_reliable"], tuple(data["uncounted"])
    )


def _plain(value: FlagValue) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _flag_value(value: Any) -> FlagValue:
    return tuple(value) if isinstance(value, list) else value


# The file.

NAME: Final = "fit.json"
"""The file's name, in the folder of results next to the spec."""
MAX_FILE_BYTES: Final = 8 << 20
"""About two thousand results."""
_MAX_FINDINGS: Final = 5
"""A file with more mistakes was probably not written by `tpucfg fit`."""
_IDS: Final = RuleIds("TPU109", "TPU109", "TPU109", "TPU109", "TPU109", "key", "the file")
_COMMAND: Final = "tpucfg fit"
KeyFunction = Callable[[FitResult], Any]
_RUNG: Final[KeyFunction] = attrgetter("key")


class FitFile(NamedTuple):
    """The results of one file, and the findings about it."""

    path: Path
    results: Mapping[Any, FitResult]
    """By rung; in the file of searches, by rung and inputs."""
    findings: tuple[Finding, ...] = ()
    """Errors in the file, of which no result then counts."""
    text: str = ""
    """The file's text, which findings quote."""
    is_trusted: bool = False
    """True if a job of this run made the results; a committed file may have been written by hand."""


def fit_path(folder: Path) -> Path:
    """Return the path of the results for the specs in a folder."""
    return folder / "results" / NAME


def read_fit_file(
    path: Path, *, is_trusted: bool = False, command: str = _COMMAND, key: KeyFunction = _RUNG
) -> FitFile:
    """Read a file of results; no file means no results.

    Args:
        path: The file.
        is_trusted: True if a job of this run made the results.
        command: The command that writes the file again, for findings about it.
        key: Returns the key of a result, of which no other may have an equal one.
    """
    try:
        content = read_result_file(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        return FitFile(path, {}, is_trusted=is_trusted)
    except OSError as error:
        reason, hint = explain_error(error)
        return _unreadable(
            path, "", Location(str(path)), reason, f"{hint}, and compile again: {command}"
        )
    if len(content) > MAX_FILE_BYTES:
        reason = f"the file is larger than {MAX_FILE_BYTES:,} bytes"
        return _unreadable(path, "", Location(str(path)), reason, _help(command))
    return parse_fit_file(
        content.decode("utf-8", "replace"), path, is_trusted=is_trusted, command=command, key=key
    )


def parse_fit_file(
    text: str,
    path: Path,
    *,
    is_trusted: bool = False,
    command: str = _COMMAND,
    key: KeyFunction = _RUNG,
) -> FitFile:
    """Parse the text of a file of results. A file with any mistake has no results."""
    hint = _help(command)
    try:
        data = parse_strict_json(text, small_integer)
    except json.JSONDecodeError as error:
        location = Location(str(path), error.lineno, error.colno, error.lineno, error.colno + 1)
        reason = f"it is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        return _unreadable(path, text, location, reason, hint)
    except AmbiguousJsonError as error:
        return _unreadable(path, text, Location(str(path)), str(error), hint)
    if not schemas.is_valid(SCHEMA, data):
        document = read_text(text, str(path))
        findings = islice(schemas.schema_findings(SCHEMA, document, _IDS), _MAX_FINDINGS)
        return FitFile(path, {}, tuple(finding._replace(help=hint) for finding in findings), text)
    every = [parse_result(row) for row in data["results"]]
    for index, result in enumerate(every):
        if problem := contradiction(result.memory, fits=result.fits):
            location = read_text(text, str(path)).value_location(("results", index, "fits"))
            rung = format_value(f"{result.key.environment} {result.key.size}", quoted=False)
            return _unreadable(
                path, text, location, f"the result of {rung} contradicts itself: {problem}", hint
            )
    results = {key(result): result for result in every}
    if len(results) < len(data["results"]):
        return _unreadable(path, text, Location(str(path)), "a rung has two results", hint)
    return FitFile(path, results, (), text, is_trusted)


def fit_file_text(results: Iterable[FitResult]) -> str:
    """Return the text of a file with these results; equal results have equal texts."""
    payload: dict[str, Any] = {
        "version": 1,
        "results": [
            result_payload(each)
            for each in sorted(results, key=lambda each: (each.key, result_id(each)))
        ],
    }
    return json.dumps(payload, indent=2, ensure_ascii=False) + "\n"


def update_fit_file(path: Path, results: Callable[[], Iterable[FitResult]]) -> bool:
    """Replace the file by one with the results that a function returns while no other process writes it.

    Returns:
        False if the file is unchanged.

    Raises:
        OSError: The file cannot be written; its content is unchanged.
    """
    with output_lock(path.parent, [str(path.parent)]):
        content = fit_file_text(results()).encode()
        with suppress(OSError):
            if not path.is_symlink() and path.read_bytes() == content:
                return False
        with staged_files() as stage, stage(str(path)) as file:
            file.write(content)
    return True


def _help(command: str) -> str:
    return f"delete the file, and compile again: {command}"


def _unreadable(path: Path, text: str, location: Location, reason: str, hint: str) -> FitFile:
    finding = Finding.of(
        "TPU109", f"{path.name}: {reason}, so no result in it counts", location, help=hint
    )
    return FitFile(path, {}, (finding,), text)
