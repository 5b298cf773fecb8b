"""The texts of failed compilations: the reason, and the command or the edit that helps."""

import ast
import re
import shlex
import signal
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.fit.failures import MIN_PYTHON, Failure
from tpucfg.fit.fit_findings import fit_command
from tpucfg.fs import walk_files
from tpucfg.plan.job import Job
from tpucfg.redaction import redact
from tpucfg.spec.project import Project
from tpucfg.spec.settings import FitStep
from tpucfg.text_format import dotted, format_count, listed, nearest
from tpucfg.yamldoc.document import KeyPath

STEP: Final[KeyPath] = ("trainer", "fit", "step")
PYTHON: Final[KeyPath] = ("trainer", "fit", "python")
_PACKAGES: Final = "'jax[tpu]'"
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
_WRONG_CALL: Final = re.compile(r"TypeError: [\w.<>]+\(\) (?:takes|missing|got) ")
_MISSING_KEY: Final = re.compile(r"KeyError: '(?P<name>\w+)'")
_INDIVISIBLE: Final = re.compile(
    r"IndivisibleError: Sharding .{1,2000}? spec=(?P<spec>.{1,200}?)(?:, memory_kind=\w+)?\) implies that array axis "
    r"(?P<axis>[0-9]+) is partitioned (?P<count>[0-9]+) times, but the dimension size is [0-9]+ "
    r"\(full shape: (?P<shape>\([0-9, ]*\))"
)
"""The message of JAX 0.7 to 0.10 about a sharding that does not divide an array."""
_MAX_SOURCE_BYTES: Final = 1 << 20


class FailureCase(NamedTuple):
    """A failure of a job, with the values that its texts need."""

    project: Project
    job: Job
    failure: Failure
    folder: Path
    """The spec's folder, as the command line names it."""
    time_limit: float

    @property
    def fit(self) -> FitStep:
        """The job's trainer.fit."""
        fit = self.job.settings.trainer.fit
        assert fit is not None  # noqa: S101 - only a job with a step is compiled
        return fit

    @property
    def step_key(self) -> str:
        """The key of the spec that sets the step."""
        return dotted(self.job.settings.source(STEP))

    @property
    def python_key(self) -> str:
        """The key of the spec that sets the Python, or would set it."""
        return dotted(self.job.settings.source(PYTHON))

    @property
    def pip(self) -> str:
        """The command that installs packages into the Python."""
        python = self.fit.python
        if "/" in python:
            path = str(self.folder / python)
            python = path if "/" in path else f"./{path}"
        return f"{shlex.quote(python)} -m pip install"

    @property
    def packages(self) -> str:
        """The packages to install: JAX, and what the requirements beside the step's module name."""
        module, _, _ = self.fit.step.partition(":")
        requirements = self.folder.joinpath(*module.split(".")[:-1], "requirements.txt")
        return f"{_PACKAGES} -r {shlex.quote(str(requirements))}" if requirements.is_file() else _PACKAGES

    @property
    def command(self) -> str:
        """The command that compiles the rung again."""
        return fit_command(self.project, [self.job.environment.name], self.job.size)


class FailureText(NamedTuple):
    """The text of a finding."""

    message: str
    help: str
    details: tuple[str, ...] = ()


# TPU114: the Python.


def no_python(case: FailureCase) -> FailureText:
    """Describe a Python that does not exist, or cannot be run."""
    python = case.fit.python
    if "/" not in python:
        return FailureText(
            f"{python}, the Python of trainer.fit, is not on the PATH",
            f"set {case.python_key} to the Python that has the trainer's packages and {_PACKAGES}, for example "
            ".venv/bin/python",
        )
    path = case.folder / python
    hint = f"set {case.python_key} to the Python that has the trainer's packages and {_PACKAGES}"
    if path.exists():
        return FailureText(f"{python}, the Python of trainer.fit, is not an executable file", hint)
    if path.parent.name == "bin":  # of a virtual environment that was not created yet
        hint += f", or run: python3 -m venv {shlex.quote(str(path.parent.parent))} && {case.pip} {case.packages}"
    message = f"{python}, the Python of trainer.fit, does not exist"
    return FailureText(message if path.is_absolute() else f"{message} in the spec's folder", hint)


def no_start(case: FailureCase) -> FailureText:
    """Describe a Python that the system cannot start."""
    return FailureText(
        f"{case.fit.python} cannot be started: {_one_line(case.failure.message)}",
        f"set {case.python_key} to the Python that has the trainer's packages",
    )


def old_python(case: FailureCase) -> FailureText:
    """Describe a program that is no Python, or a too old one."""
    needed = ".".join(map(str, MIN_PYTHON))
    return FailureText(
        f"{case.fit.python} {case.failure.message}",
        f"set {case.python_key} to a Python {needed} or newer with the trainer's packages and {_PACKAGES}",
        _output(case.failure),
    )


def no_jax(case: FailureCase) -> FailureText:
    """Describe a Python without JAX, or with one that cannot be imported."""
    is_missing = case.failure.message.startswith("ModuleNotFoundError: No module named 'jax'")
    return FailureText(
        f"{case.fit.python} cannot import JAX: {_one_line(case.failure.message)}",
        f"{case.pip} {case.packages}" if is_missing else f"{case.pip} --upgrade {_PACKAGES}",
        _program_details(case.failure),
    )


def old_jax(case: FailureCase) -> FailureText:
    """Describe a Python with a too old JAX, or without libtpu."""
    return FailureText(f"{case.fit.python}: {_one_line(case.failure.message)}", f"{case.pip} --upgrade {_PACKAGES}")


# TPU116: a step that cannot be loaded.


def no_module(case: FailureCase) -> FailureText:
    """Describe a module that does not exist, with the nearest one below the spec's folder."""
    module, _, name = case.fit.step.partition(":")
    modules = _modules(case.folder)
    # A path from another folder than the spec's lacks the first packages.
    near = next((known for known in modules if known.endswith(f".{module}")), None) or nearest(module, modules)
    create = f"create {module.replace('.', '/')}.py with the function {name}"
    hint = f"set {case.step_key} to {near}:{name}, or {create}" if near else f"{create}, or correct {case.step_key}"
    return FailureText(
        f"the module {module} cannot be found from the spec's folder: {_one_line(case.failure.message)}",
        hint,
        _frames(case.failure),
    )


def import_failed(case: FailureCase) -> FailureText:
    """Describe an exception in the module's import."""
    module = case.fit.step.partition(":")[0]
    missing = _missing_module(case.failure.message)
    hint = f"{_correction(case, module)}; the module has to be importable without a TPU"
    if missing and missing != module.partition(".")[0]:
        hint = f"{case.pip} {missing}, or whatever package has that module"
    return FailureText(
        f"importing {module} fails: {_one_line(case.failure.message)}", hint, _program_details(case.failure)
    )


def no_function(case: FailureCase) -> FailureText:
    """Describe a function that does not exist, with the nearest one of its module."""
    module, _, name = case.fit.step.partition(":")
    functions = _functions(case.folder, module)
    near = nearest(name, functions)
    hint = f"define {name}(devices, flags) in {module}"
    hint = f"set {case.step_key} to {module}:{near}, or {hint}" if near else hint
    details = (f"{module} has {listed(functions)}",) if functions else ()
    return FailureText(f"{_one_line(case.failure.message)}", hint, details)


def _missing_module(message: str) -> str:
    """Return the name in `ModuleNotFoundError: No module named 'flax.linen'`, without submodules."""
    before, _, name = message.partition("No module named ")
    return shlex.quote(name.strip("'\" ").partition(".")[0]) if before.startswith("ModuleNotFoundError") else ""


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


# TPU117, TPU119: a step that fails, or that the compiler refuses.


def step_failed(case: FailureCase) -> FailureText:
    """Describe an exception in the function, or in tracing the step."""
    return FailureText(
        f"{case.fit.step} fails: {_one_line(case.failure.message)}",
        f"{_step_hint(case)}, and run: {case.command}",
        _program_details(case.failure),
    )


def _step_hint(case: FailureCase) -> str:
    """Return the edit for an exception of the function, or of the step."""
    place, message = _last_line(case.failure, case.fit.step), case.failure.message
    # A call with wrong arguments fails before a line of the function runs.
    if not case.failure.frames and _WRONG_CALL.match(message):
        module, _, name = case.fit.step.partition(":")
        return (
            f"define {name}(devices, flags) in {module}: it is called with the list of the slice's devices, and the "
            "dict of the config's flags"
        )
    if match := _INDIVISIBLE.match(message):
        return (
            f"make axis {match['axis']} of the array of shape {match['shape']}, which {match['spec']} shards, "
            f"divisible by {match['count']}, or correct its sharding in {place}"
        )
    return _correction(case, case.fit.step)


def _correction(case: FailureCase, default: str) -> str:
    """Return the edit for an exception: of the program's innermost line, or of the value that this line refuses."""
    place, frames = _last_line(case.failure, default), case.failure.frames
    variable = _MISSING_KEY.fullmatch(case.failure.message)
    if variable and variable["name"] in {secret.variable for secret in case.job.settings.trainer.secrets}:
        return f"read {variable['name']} in {place} only where the job trains, as tpucfg fit has no secrets"
    if frames and frames[-1].code.startswith("raise "):
        return f"correct the value that {place} refuses, or that line"
    return f"correct {place}"


def wrong_return(case: FailureCase) -> FailureText:
    """Describe a function that returned something else than a step."""
    return FailureText(
        f"{case.fit.step}: {_one_line(case.failure.message)}",
        "return (jitted, args) or (jitted, args, kwargs): a function from jax.jit, and its arguments as "
        "jax.ShapeDtypeStruct with shardings over the devices that the function is given",
        _frames(case.failure),
    )


def refused(case: FailureCase) -> FailureText:
    """Describe a refusal of the compiler for another reason than memory."""
    return FailureText(
        f"the TPU compiler refuses the step, and not for lack of memory: {_one_line(case.failure.message)}",
        f"change the operation that the compiler names, and run: {case.command}",
        _program_details(case.failure),
    )


# TPU063: a slice without a topology.


def no_topology(case: FailureCase) -> FailureText:
    """Describe a slice that the installed libtpu does not know."""
    return FailureText(
        _topology_message(case), f"update the compiler with: {case.pip} --upgrade {_PACKAGES}; or {_skip(case)}"
    )


def no_shape(case: FailureCase) -> FailureText:
    """Describe a slice whose topology no source states."""
    return FailureText(_topology_message(case), _skip(case))


def _topology_message(case: FailureCase) -> str:
    return f"no step can be compiled for {case.job.size}: {_one_line(case.failure.message)}"


def _skip(case: FailureCase) -> str:
    size = case.job.size
    return f"set overrides.{size}.trainer.fit to null, so that tpucfg fit skips {size}"


# TPU118: a compilation that ended early.


def timeout(case: FailureCase) -> FailureText:
    """Describe a compilation that took longer than the time limit."""
    limit = format_count(round(case.time_limit), "second")
    hint = f"allow more time with: {case.command} --time-limit {max(2, round(case.time_limit / 30))}m"
    if case.failure.phase in ("", "import"):
        hint = f"let the import of {case.fit.step.partition(':')[0]} neither train, connect nor wait; or {hint}"
    return _ended(case, f"was stopped after {limit}", hint)


def memory(case: FailureCase) -> FailureText:
    """Describe a compilation that needed more memory than the machine has."""
    return _ended(
        case,
        "was stopped, because it needed more memory than the machine had left",
        f"close other programs, or use a machine with more memory, and run: {case.command} --jobs 1",
    )


def crash(case: FailureCase) -> FailureText:
    """Describe a process that exited, or was ended by a signal."""
    message = case.failure.message
    shown = "the last lines that it printed are above; " if _output(case.failure) else "it printed nothing; "
    hint = f"{shown}run it again with: {case.command}"
    if message == f"signal {int(signal.SIGKILL)}":
        hint = f"the system ends a process where memory runs out; run it alone: {case.command} --jobs 1"
    return _ended(case, f"ended with {_signal_text(message)}, before it gave a result", hint)


def mute(case: FailureCase) -> FailureText:
    """Describe a process that closed the pipe of its answers."""
    return _ended(case, "closed its answers and gave no result", "let the program close no files that it did not open")


def malformed(case: FailureCase) -> FailureText:
    """Describe a process that wrote something that is no answer."""
    return _ended(
        case,
        f"gave an answer that cannot be read: {_one_line(case.failure.message)}",
        "let the program write to no file descriptor that it did not open",
    )


def _ended(case: FailureCase, event: str, hint: str) -> FailureText:
    phase = _PHASES[case.failure.phase]
    return FailureText(f"the compilation of {case.fit.step} {event}, {phase}", hint, _output(case.failure))


_PHASES: Final[Mapping[str, str]] = {
    "": "before the import of JAX",
    "import": "while JAX and the program were imported",
    "trace": "while the function ran",
    "lower": "while the step was lowered",
    "compile": "while the TPU compiler ran",
}


def _signal_text(message: str) -> str:
    """Return `signal 11` as `signal 11 (Segmentation fault)`."""
    number = message.removeprefix("signal ")
    if number == message:
        return message
    description = signal.strsignal(int(number)) if int(number) < signal.NSIG else None
    return f"{message} ({description})" if description else message


# Texts of the user's program, which may contain anything: `Finding.of` escapes them.


def _one_line(message: str) -> str:
    """Return the first line of an exception's text."""
    line = next((line.strip() for line in redact(message).splitlines() if line.strip()), "no message")
    return line if len(line) <= _MAX_MESSAGE else f"{line[: _MAX_MESSAGE - 1]}…"


def _program_details(failure: Failure) -> tuple[str, ...]:
    """Return the program's own lines, and the further lines of the exception's text."""
    lines = [line.rstrip() for line in redact(failure.message).splitlines() if line.strip()][1:]
    further = [line[:_MAX_OUTPUT_WIDTH] for line in lines[:_MAX_MESSAGE_LINES]]
    return (*_frames(failure), *further, *(("…",) if len(lines) > _MAX_MESSAGE_LINES else ()))


def _frames(failure: Failure) -> tuple[str, ...]:
    lines = (f"{row.file}:{row.line} in {row.name}: {redact(row.code)}" for row in failure.frames)
    return tuple(line[:_MAX_OUTPUT_WIDTH] for line in lines)


def _last_line(failure: Failure, default: str) -> str:
    """Return the innermost of the program's own lines as `trainer/fit.py:12`."""
    return f"{failure.frames[-1].file}:{failure.frames[-1].line}" if failure.frames else default


def _output(failure: Failure) -> tuple[str, ...]:
    """Return the last lines that the process printed, without those that libtpu prints at every start."""
    lines = [line.rstrip() for line in redact(failure.output).splitlines() if line.strip()]
    lines = [line for line in lines if not any(part in line for part in _NOISE)]
    return tuple(f"| {line[:_MAX_OUTPUT_WIDTH]}" for line in lines[-_MAX_OUTPUT_LINES:])
