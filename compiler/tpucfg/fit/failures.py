"""The failures of compilations, from the end of their processes."""

import ast
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.fit.inputs import IMAGE_PYTHON, FitInputs
from tpucfg.fit.machine import NOT_STARTED
from tpucfg.fit.rung_fit import fit_command
from tpucfg.fit.worker_process import Frame, ProcessEnd, StepFailure
from tpucfg.fs import walk_files
from tpucfg.plan import XLA_FLAGS_VARIABLE, Job
from tpucfg.redaction import redact
from tpucfg.spec import FitStep, Project
from tpucfg.text_format import dotted, format_count, listed, nearest
from tpucfg.yamldoc import KeyPath

MIN_PYTHON: Final = (3, 10)
"""The first Python that the worker runs on."""

OF_THE_PYTHON: Final = frozenset(
    ("no-python", "no-start", "no-container", "old-python", "no-jax", "old-jax", "no-libtpu")
)
"""Failures that every rung with the Python has."""
OF_THE_MODULE: Final = frozenset(("no-module", "import-failed", "no-function"))
"""Failures that every rung with the step has."""

# The compiler prints these lines, and ends the process.
_UNKNOWN_FLAG: Final = re.compile(
    r"^ERROR: Unknown command line flag '(?P<name>[^'\n]+)'(?:\. Did you mean: (?P<near>[\w-]+) ?\?)?", re.MULTILINE
)
_ILLEGAL_VALUE: Final = re.compile(
    r"^ERROR: (?P<reason>Illegal value '[^'\n]*' specified for flag '(?P<name>[^'\n]+)'[^\n]*)", re.MULTILINE
)
# XLA, which reads a variable of its own, prints these lines, and ends the process.
_UNKNOWN_XLA_FLAGS: Final = re.compile(r"\] Unknown flags? in XLA_FLAGS: (?P<flags>[^\n]+)$", re.MULTILINE)
_ILLEGAL_XLA_VALUE: Final = re.compile(
    r"\] (?P<reason>Couldn't interpret value [^\n]* for flag (?P<name>\w+))\.$", re.MULTILINE
)
XLA_VARIABLE: Final = "XLA_FLAGS"
_PROBE_SECONDS: Final = 20
_VERSION: Final = re.compile(r"([0-9]+)\.([0-9]+)")


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


class Failure(NamedTuple):
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


def process_failure(end: ProcessEnd, inputs: FitInputs, python: str) -> Failure:
    """Return the failure of a process that gave no result."""
    if isinstance(end.answer, StepFailure):
        if end.answer.kind == "refused" and (flags := named_flags(end.answer.message, inputs.xla_flags)):
            return Failure("xla-flag", flags=flags)
        return Failure(end.answer.kind, end.answer.message, end.answer.frames, phase=end.phase, output=end.output)
    if end.cause != "exited":
        return Failure(end.cause, end.detail, phase=end.phase, output=end.output)
    if flags := (*flag_errors(end.output, inputs.xla_flags), *xla_variable_errors(end.output, inputs)):
        return Failure("xla-flag", flags=flags)
    crash = Failure("crash", _exit_text(end.status), phase=end.phase, output=end.output)
    return crash if end.phase else _start_failure(end, inputs, python) or crash


def _start_failure(end: ProcessEnd, inputs: FitInputs, python: str) -> Failure | None:
    """Return the failure of a Python, or of a container, that ended before the worker began; None if it is another."""
    if inputs.image:
        lines = [line.removeprefix("docker: ") for line in end.output.splitlines() if line.startswith("docker: ")]
        return Failure("no-container", lines[-1], output=end.output) if lines and end.status in NOT_STARTED else None
    return Failure("old-python", problem, output=end.output) if (problem := _python_problem(python)) else None


def flag_errors(output: str, xla_flags: Sequence[str]) -> tuple[FlagError, ...]:
    """Return the refused flags that the compiler has printed, as far as they are the job's."""
    own = {flag_name(flag) for flag in xla_flags}
    unknown = (FlagError(match["name"], match["near"] or "") for match in _UNKNOWN_FLAG.finditer(output))
    illegal = (FlagError(match["name"], reason=match["reason"]) for match in _ILLEGAL_VALUE.finditer(output))
    # A flag without a value is a switch, and its negation has `no` in front.
    return tuple(dict.fromkeys(error for error in (*unknown, *illegal) if {error.name, f"no{error.name}"} & own))


def named_flags(message: str, xla_flags: Sequence[str]) -> tuple[FlagError, ...]:
    """Return the job's flags that the compiler names in the refusal of a program: some exist on one generation only."""
    _, _, text = message.rpartition("Error: ")
    reason = text.removeprefix("FAILED_PRECONDITION: ").removeprefix("INVALID_ARGUMENT: ").strip()
    own = dict.fromkeys(map(flag_name, xla_flags))
    named = (name for name in own if re.search(rf"\b{re.escape(name)}\b", reason))
    return tuple(FlagError(name, reason=reason, of_program=True) for name in named)


def xla_variable_errors(output: str, inputs: FitInputs) -> tuple[FlagError, ...]:
    """Return the refused flags of the job's XLA_FLAGS, which XLA has printed.

    Source: https://github.com/openxla/xla/blob/main/xla/parse_flags_from_env.cc
    """
    own = {flag_name(flag) for flag in inputs.env.get(XLA_VARIABLE, "").split()}
    unknown = (flag_name(flag) for match in _UNKNOWN_XLA_FLAGS.finditer(output) for flag in match["flags"].split())
    errors = (
        *(FlagError(name, variable=XLA_VARIABLE) for name in unknown),
        *(
            FlagError(match["name"], reason=match["reason"], variable=XLA_VARIABLE)
            for match in _ILLEGAL_XLA_VALUE.finditer(output)
        ),
    )
    return tuple(dict.fromkeys(error for error in errors if error.name in own))


def flag_name(flag: str) -> str:
    """Return the name in `--name=value`."""
    return flag.lstrip("-").partition("=")[0]


def _exit_text(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


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


# The values and the texts that a finding about a failed compilation has.


STEP: Final[KeyPath] = ("trainer", "fit", "step")
PYTHON: Final[KeyPath] = ("trainer", "fit", "python")
JAX: Final = "'jax[tpu]'"
"""The requirement that installs JAX for TPUs."""
_MAX_OUTPUT_LINES: Final = 15
"""Last lines of what a process printed, as details of a finding."""
_MAX_OUTPUT_WIDTH: Final = 300
_NOISE: Final = (
    "could not determine TPU accelerator type",
    "Logging before InitGoogle()",
    "unexpected worker hostname",
    "=== Source Location Trace: ===",
    "libtpu_init_utils.cc",
)
"""Parts of the lines that libtpu prints at every start without a TPU."""
_MAX_MESSAGE: Final = 600
"""Characters of an exception's text in a message; its further lines are details."""
_MAX_MESSAGE_LINES: Final = 10
_MAX_MODULES: Final = 5000
"""Modules among which a misspelled one is looked for."""
_MAX_SOURCE_BYTES: Final = 1 << 20
_PHASES: Final[Mapping[str, str]] = {
    "": "before the import of JAX",
    "import": "while JAX and the program were imported",
    "trace": "while the function ran",
    "lower": "while the step was lowered",
    "compile": "while the TPU compiler ran",
}


class Case:
    """A failure of a job: the values that rows of the table name as `{c.NAME}`, computed only where one does."""

    def __init__(
        self, project: Project, job: Job, failure: Failure, folder: Path, time_limit: float, command: str = ""
    ) -> None:
        self.project = project
        self.job = job
        self.failure = failure
        self.folder = folder
        """The spec's folder, as the command line names it."""
        self.fit: FitStep = job.settings.trainer.fit or FitStep("", "")
        self.module, _, self.function = self.fit.step.partition(":")
        self.is_maxtext = ":" not in self.fit.step
        """True for the step of MaxText, which is no function of the spec's folder."""
        self.step_key = dotted(job.settings.source(STEP))
        """The key of the spec that sets the step."""
        self.python_key = dotted(job.settings.source(PYTHON))
        """The key of the spec that sets the Python, or would set it."""
        self.command = command or fit_command(project, [job.environment.name], job.size)
        """The command that compiles the rung again."""
        self.limit = format_count(round(time_limit), "second")
        self.more_minutes = max(2, round(time_limit / 30))
        self.phase = _PHASES[failure.phase]

    @property
    def python(self) -> str:
        """The Python, or the image that has it."""
        return self.job.image or "" if self.fit.python == IMAGE_PYTHON else self.fit.python

    @property
    def python_path(self) -> Path:
        """The path of a Python that is not looked for on the PATH."""
        return self.folder / self.fit.python

    @property
    def python_place(self) -> str:
        """The folder that a relative path starts from."""
        return "" if self.python_path.is_absolute() else " in the spec's folder"

    @property
    def venv(self) -> str:
        """The command that creates the virtual environment of the Python."""
        folder = shlex.quote(str(self.python_path.parent.parent))
        return f"python3 -m venv {folder} && {self.pip} {self.packages}"

    @property
    def pip(self) -> str:
        """The command that installs packages into the Python."""
        python = self.fit.python
        if python == IMAGE_PYTHON:
            return f"build {self.job.image} with: python3 -m pip install"
        if "/" in python:
            path = str(self.python_path)
            python = path if "/" in path else f"./{path}"
        return f"{shlex.quote(python)} -m pip install"

    @property
    def packages(self) -> str:
        """The packages to install: JAX, and what the requirements beside the step's module name."""
        requirements = self.folder.joinpath(*self.module.split(".")[:-1], "requirements.txt")
        return f"{JAX} -r {shlex.quote(str(requirements))}" if requirements.is_file() else JAX

    @property
    def error(self) -> str:
        """The first line of the exception's text."""
        return _one_line(self.failure.message)

    @property
    def file(self) -> str:
        """The file of the step's module."""
        return f"{self.module.replace('.', '/')}.py"

    @cached_property
    def near_module(self) -> str | None:
        """The module below the spec's folder that was probably meant."""
        modules = _modules(self.folder)
        # A path from another folder than the spec's lacks the first packages.
        return next((known for known in modules if known.endswith(f".{self.module}")), None) or nearest(
            self.module, modules
        )

    @cached_property
    def functions(self) -> list[str]:
        """The functions of the step's module."""
        return _functions(self.folder, self.module)

    @property
    def near_function(self) -> str | None:
        """The function that was probably meant."""
        return nearest(self.function, self.functions)

    @property
    def missing_module(self) -> str:
        """The name in `ModuleNotFoundError: No module named 'flax.linen'`, without submodules."""
        before, _, name = self.failure.message.partition("No module named ")
        return shlex.quote(name.strip("'\" ").partition(".")[0]) if before.startswith("ModuleNotFoundError") else ""

    @property
    def line(self) -> str:
        """The innermost of the program's own lines, as `trainer/fit.py:12`; else the step."""
        frames = self.failure.frames
        return f"{frames[-1].file}:{frames[-1].line}" if frames else self.fit.step

    @property
    def correction(self) -> str:
        """The edit for an exception: of the program's innermost line, or of the value that this line refuses."""
        frames = self.failure.frames
        line = self.line if frames or self.failure.kind != "import-failed" else self.module
        variable = re.fullmatch(r"KeyError: '(?P<name>\w+)'", self.failure.message)
        if variable and variable["name"] in {secret.variable for secret in self.job.settings.trainer.secrets}:
            return f"read {variable['name']} in {line} only where the job trains, as tpucfg fit has no secrets"
        if frames and frames[-1].code.startswith("raise "):
            return f"correct the value that {line} refuses, or that line"
        return f"correct {line}"

    @property
    def end(self) -> str:
        """The end of the process: `signal 11 (Segmentation fault)`."""
        message = self.failure.message
        number = message.removeprefix("signal ")
        if number == message:
            return message
        description = signal.strsignal(int(number)) if int(number) < signal.NSIG else None
        return f"{message} ({description})" if description else message

    @property
    def skip(self) -> str:
        """The edit that leaves the rung out."""
        return f"set overrides.{self.job.size}.trainer.fit to null, so that tpucfg fit skips {self.job.size}"


# Details: texts of the user's program, which may contain anything. `Finding.of` escapes them.


def no_details(_: Case) -> tuple[str, ...]:
    """Return none."""
    return ()


def frames(case: Case) -> tuple[str, ...]:
    """Return the program's own lines."""
    lines = (f"{row.file}:{row.line} in {row.name}: {redact(row.code)}" for row in case.failure.frames)
    return tuple(line[:_MAX_OUTPUT_WIDTH] for line in lines)


def exception(case: Case) -> tuple[str, ...]:
    """Return the program's own lines, and the further lines of the exception's text."""
    lines = [line.rstrip() for line in redact(case.failure.message).splitlines() if line.strip()][1:]
    further = [line[:_MAX_OUTPUT_WIDTH] for line in lines[:_MAX_MESSAGE_LINES]]
    return (*frames(case), *further, *(("…",) if len(lines) > _MAX_MESSAGE_LINES else ()))


def output(case: Case) -> tuple[str, ...]:
    """Return the last lines that the process printed, without those that libtpu prints at every start."""
    lines = [line.rstrip() for line in redact(case.failure.output).splitlines() if line.strip()]
    lines = [line for line in lines if not any(part in line for part in _NOISE)]
    return tuple(f"| {line[:_MAX_OUTPUT_WIDTH]}" for line in lines[-_MAX_OUTPUT_LINES:])


def function_names(case: Case) -> tuple[str, ...]:
    """Return the functions of the step's module."""
    return (f"{case.module} has {listed(case.functions)}",) if case.functions else ()


def _one_line(message: str) -> str:
    """Return the first line of an exception's text."""
    line = next((line.strip() for line in redact(message).splitlines() if line.strip()), "no message")
    return line if len(line) <= _MAX_MESSAGE else f"{line[: _MAX_MESSAGE - 1]}…"


def _modules(folder: Path) -> list[str]:
    """Return the names of the modules below a folder."""
    try:
        files = list(islice(walk_files(str(folder), (".py",)), _MAX_MODULES))
    except OSError:
        return []
    return [file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in files]


def _functions(folder: Path, module: str) -> list[str]:
    """Return the functions of a module below a folder, without running it."""
    stem = folder.joinpath(*module.split("."))
    for path in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
        try:
            source = path.read_bytes()
            body = ast.parse(source).body if len(source) <= _MAX_SOURCE_BYTES else []
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return [row.name for row in body if isinstance(row, ast.FunctionDef) and not row.name.startswith("_")]
    return []
