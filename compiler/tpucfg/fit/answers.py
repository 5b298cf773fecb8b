"""Answers of a process that compiles a rung: a result or a failure; without one, the end of the process is a failure.

The user's program runs in the process and could write the answers, so all of them are checked.
"""

import json
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from tpucfg import schemas
from tpucfg.findings import Finding
from tpucfg.fit.fit_file import CompiledFigures, Compiler, contradiction, parse_figures
from tpucfg.fit.inputs import FitInputs
from tpucfg.fit.machine import NOT_STARTED
from tpucfg.plan import XLA_FLAGS_VARIABLE, Job
from tpucfg.spec import Project
from tpucfg.strict_json import AmbiguousJsonError, parse_strict_json, small_integer
from tpucfg.text_format import dotted, format_value
from tpucfg.yamldoc import KeyPath

_SCHEMA: Final = "fit-answer"
_MAX_FILES: Final = 5000
"""The files of a program that a result keeps: as many as the schema of the file of results allows."""
_FILE: Final = re.compile(r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[^\x00-\x1f\x7f\\\ud800-\udfff]{1,1000}")
"""A path below the spec's folder that a result can name."""


class Phase(NamedTuple):
    """A phase of the compilation that has begun."""

    name: str
    """`import`, `trace`, `lower` or `compile`."""


class StepResult(NamedTuple):
    """A compiled step, or one that is equal to a known one and was not compiled again."""

    compiler: Compiler
    files: tuple[str, ...]
    """The files that the program imports and opens, relative to the spec's folder."""
    stablehlo: str
    figures: CompiledFigures | None
    """None for a step that is known."""
    lower_seconds: float | None = None
    compile_seconds: float | None = None
    """None too for a step that is known."""


class Frame(NamedTuple):
    """A line of the user's program that an exception passed."""

    file: str
    line: int
    name: str
    """The function."""
    code: str
    """The source line."""


class FlagError(NamedTuple):
    """An XLA flag that the compiler, or XLA on the host, refuses."""

    name: str
    """The flag's name without dashes."""
    nearest: str = ""
    """The name that the compiler suggests."""
    reason: str = ""
    """The compiler's words about a value; empty for an unknown name."""
    variable: str = XLA_FLAGS_VARIABLE
    """The environment variable that has the flag."""
    of_program: bool = False
    """True if the compiler takes the flag, and refuses a program with it."""


class FitFailure(NamedTuple):
    """The reason why a rung has no result."""

    kind: str
    """A kind of the worker's errors, or one of this module."""
    message: str = ""
    frames: tuple[Frame, ...] = ()
    """The lines of the user's program that an exception passed."""
    flags: tuple[FlagError, ...] = ()
    phase: str = ""
    """The phase of the compilation; empty if none had begun."""
    output: str = ""
    """The end of what the process printed."""


Answer = Phase | StepResult | FitFailure


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
        error = data["error"]
        frames = (
            Frame(row["file"], int(row["line"]), row["name"], row["code"])
            for row in error["frames"]
        )
        return FitFailure(error["kind"], error["message"], tuple(frames))
    result = _result(data["result"])
    if result.figures and (
        problem := contradiction(result.figures.memory, fits=result.figures.fits)
    ):
        raise AnswerError(problem)
    return result


def _result(data: Any) -> StepResult:
    # A file with an odd name cannot be compared later; a step that uses one is compiled all the same. Imported files
    # come first, and are kept where a program opens too many others.
    files = [name for name in data["files"] if _FILE.fullmatch(name)]
    result = StepResult(
        Compiler(data["jax"], data["libtpu"], data.get("framework", "")),
        tuple(sorted(list(dict.fromkeys(files))[:_MAX_FILES])),
        data["stablehlo"],
        None,
    )
    if data["known"]:
        return result
    return result._replace(
        figures=parse_figures(data),
        lower_seconds=float(data["seconds"]["lower"]),
        compile_seconds=float(data["seconds"]["compile"]),
    )


# The end of a process as a failure.

MIN_PYTHON: Final = (3, 10)
"""The first Python that the worker runs on."""

OF_THE_PYTHON: Final = frozenset(
    ("no-python", "no-start", "no-container", "old-python", "no-jax", "old-jax", "no-libtpu")
)
"""Failures that every rung with the Python has."""
OF_THE_MODULE: Final = frozenset(("no-module", "import-failed", "no-function"))
"""Failures that every rung with the step has."""

XLA_VARIABLE: Final = "XLA_FLAGS"
_REFUSED_FLAGS: Final = (
    (
        r"^ERROR: Unknown command line flag '(?P<names>[^'\n]+)'(?:\. Did you mean: (?P<near>[\w-]+) ?\?)?",
        XLA_FLAGS_VARIABLE,
    ),
    (
        r"^ERROR: (?P<reason>Illegal value '[^'\n]*' specified for flag '(?P<names>[^'\n]+)'[^\n]*)",
        XLA_FLAGS_VARIABLE,
    ),
    (r"\] Unknown flags? in XLA_FLAGS: (?P<names>[^\n]+)$", XLA_VARIABLE),
    (r"\] (?P<reason>Couldn't interpret value [^\n]* for flag (?P<names>\w+))\.$", XLA_VARIABLE),
)
"""The lines that the compiler, and XLA for its own variable, print before they end the process, and the variable.

Source: https://github.com/openxla/xla/blob/main/xla/parse_flags_from_env.cc
"""
_PROBE_SECONDS: Final = 20
_VERSION: Final = re.compile(r"([0-9]+)\.([0-9]+)")


Cause = Literal["answered", "no-start", "exited", "timeout", "memory", "mute", "malformed"]


class ProcessEnd(NamedTuple):
    """The end of a process, and what it reported."""

    cause: Cause
    """`answered` if it gave a result or an error. Else it could not be started, exited without, took too long or too
    much memory, closed its pipe (`mute`), or wrote something that is no answer."""
    answer: StepResult | FitFailure | None
    phase: str
    """The phase that had begun last; empty if none had."""
    status: int
    """The exit status; negative for the number of a signal."""
    output: str
    """The end of what it printed."""
    seconds: float
    detail: str = ""
    """The line that is no answer, or the reason why it could not be started."""


def process_failure(end: ProcessEnd, inputs: FitInputs, python: str) -> FitFailure:
    """Return the failure of a process that gave no result."""
    if isinstance(end.answer, FitFailure):
        if end.answer.kind == "refused" and (
            flags := named_flags(end.answer.message, inputs.xla_flags)
        ):
            return FitFailure("xla-flag", flags=flags)
        return end.answer._replace(phase=end.phase, output=end.output)
    if end.cause != "exited":
        return FitFailure(end.cause, end.detail, phase=end.phase, output=end.output)
    own = {
        XLA_FLAGS_VARIABLE: inputs.xla_flags,
        XLA_VARIABLE: inputs.env.get(XLA_VARIABLE, "").split(),
    }
    if flags := flag_errors(end.output, own):
        return FitFailure("xla-flag", flags=flags)
    number = -end.status
    ending = (
        f"signal {number} ({signal.strsignal(number)})"
        if number > 0
        else f"exit status {end.status}"
    )
    crash = FitFailure("crash", ending, phase=end.phase, output=end.output)
    return crash if end.phase else _start_failure(end, inputs, python) or crash


def _start_failure(end: ProcessEnd, inputs: FitInputs, python: str) -> FitFailure | None:
    """Return the failure of a Python, or of a container, that ended before the worker began; None if it is another."""
    if inputs.image:
        lines = [
            line.removeprefix("docker: ")
            for line in end.output.splitlines()
            if line.startswith("docker: ")
        ]
        return (
            FitFailure("no-container", lines[-1], output=end.output)
            if lines and end.status in NOT_STARTED
            else None
        )
    return (
        FitFailure("old-python", problem, output=end.output)
        if (problem := _python_problem(python))
        else None
    )


def flag_errors(output: str, flags: Mapping[str, Sequence[str]]) -> tuple[FlagError, ...]:
    """Return the refused flags that were printed, as far as they are the job's; `flags` by their variable."""
    errors: list[FlagError] = []
    for pattern, variable in _REFUSED_FLAGS:
        own = {flag_name(flag) for flag in flags[variable]}
        for match in re.finditer(pattern, output, re.MULTILINE):
            groups = match.groupdict()
            known = FlagError("", groups.get("near") or "", groups.get("reason", ""), variable)
            # A flag without a value is a switch, and its negation has `no` in front.
            names = (flag_name(name) for name in match["names"].split())
            errors += (known._replace(name=name) for name in names if {name, f"no{name}"} & own)
    return tuple(dict.fromkeys(errors))


def named_flags(message: str, xla_flags: Sequence[str]) -> tuple[FlagError, ...]:
    """Return the job's flags that the compiler names in the refusal of a program: some exist on one generation only."""
    _, _, text = message.rpartition("Error: ")
    reason = text.removeprefix("FAILED_PRECONDITION: ").removeprefix("INVALID_ARGUMENT: ").strip()
    own = dict.fromkeys(map(flag_name, xla_flags))
    named = (name for name in own if re.search(rf"\b{re.escape(name)}\b", reason))
    return tuple(FlagError(name, reason=reason, of_program=True) for name in named)


def flag_name(flag: str) -> str:
    """Return the name in `--name=value`."""
    return flag.lstrip("-").partition("=")[0]


def _python_problem(python: str) -> str:
    """Return the reason why a program is not the Python that the worker needs; empty if it is."""
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        probe = subprocess.run(
            [python, "-c", script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "is not a Python"
    version = _VERSION.fullmatch(probe.stdout.decode("ascii", "replace").strip())
    if version is None:
        return "is not a Python"
    if tuple(map(int, version.groups())) < MIN_PYTHON:
        return f"is Python {version[0]}, and a compilation needs {'.'.join(map(str, MIN_PYTHON))} or newer"
    return ""


# TPU112: XLA flags.


class _Reader(NamedTuple):
    """The part of the compiler that reads a variable with flags."""

    name: str
    name_on_tpu: str
    package: str


_READERS: Final[Mapping[str, _Reader]] = {
    XLA_FLAGS_VARIABLE: _Reader("the TPU compiler", "the TPU runtime", "libtpu"),
    XLA_VARIABLE: _Reader("XLA", "JAX", "jax"),
}
_OF_THE_HOST: Final = (
    "xla_dump_",
    "xla_disable_hlo_passes",
    "xla_force_host_platform_device_count",
)
"""Beginnings of flags that MaxText sets in XLA_FLAGS, and that libtpu does not know.

Source: https://github.com/AI-Hypercomputer/maxtext/blob/main/benchmarks/maxtext_xpk_runner.py
"""


def flag_finding(project: Project, job: Job, python: str, error: FlagError) -> Finding:
    """Return the finding about a refused flag."""
    path, flag = _flag_place(job, error)
    location = project.document.text_location(path, flag)
    hint = f"delete {flag} from {dotted(path[:-1] if isinstance(path[-1], int) else path)}"
    reader = _READERS[error.variable]
    message = f"{reader.name} does not know the flag {error.name}"
    if error.reason:
        reason = error.reason[:1].lower() + error.reason[1:]
        message, hint = (
            f"{reader.name} refuses {flag}: {reason}",
            f"give the flag another value, or {hint}",
        )
    elif error.variable == XLA_FLAGS_VARIABLE and error.name.startswith(_OF_THE_HOST):
        hint = f"move {flag} to trainer.env.{XLA_VARIABLE}, which XLA on the host reads, or {hint}"
    elif error.nearest:
        hint = f"write {flag.replace(error.name, error.nearest, 1)}, or {hint}"
    end = f"at its start: {reader.name_on_tpu} reads the flags with the same parser"
    if error.of_program:
        end = f"at its first step: {reader.name_on_tpu} has the same compiler"
    details = (
        f"the program would end {end}",
        f"the compiler is that of {python}; another version of {reader.package} may know other flags",
    )
    return Finding.of("TPU112", message, location, help=hint, details=details)


def _flag_place(job: Job, error: FlagError) -> tuple[KeyPath, str]:
    """Return the path of the value that has a flag, and the flag as it is written there."""
    generation = job.slice.generation
    names = (error.name, f"no{error.name}")
    settings = job.settings.trainer.xla_flags if error.variable == XLA_FLAGS_VARIABLE else {}
    for index, flag in enumerate(settings.get(generation, ())):
        if flag_name(flag) in names:
            return (*job.settings.source(("trainer", "xla_flags", generation)), index), flag
    text = dict(job.env).get(error.variable, "")
    written = next((flag for flag in text.split() if flag_name(flag) in names), error.name)
    return job.settings.source(("trainer", "env", error.variable)), written
