"""Findings about compilations that gave no result: the mistake, its place in the spec, and the command that helps."""

import ast
import shlex
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.findings import Finding, Location
from tpucfg.fit.failures import MIN_PYTHON, Failure, FlagError, flag_name
from tpucfg.fit.fit_findings import fit_command
from tpucfg.fit.launcher import Outcome
from tpucfg.fs import walk_files
from tpucfg.plan.job import XLA_FLAGS_VARIABLE, Job
from tpucfg.redaction import redact
from tpucfg.spec.project import Project
from tpucfg.spec.settings import FitStep
from tpucfg.text_format import dotted, format_count, listed, nearest
from tpucfg.yamldoc.document import KeyPath

_STEP: Final[KeyPath] = ("trainer", "fit", "step")
_PYTHON: Final[KeyPath] = ("trainer", "fit", "python")
_PACKAGES: Final = "'jax[tpu]'"
_MAX_OUTPUT_LINES: Final = 15
"""Last lines of what a process printed, as details of a finding."""
_MAX_OUTPUT_WIDTH: Final = 300
_MAX_MESSAGE: Final = 600
"""Characters of an exception's text in a message; its further lines are details."""
_MAX_MESSAGE_LINES: Final = 10
_MAX_MODULES: Final = 5000
"""Modules among which a misspelled one is looked for."""
_MAX_SOURCE_BYTES: Final = 1 << 20


class _Case(NamedTuple):
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
        return dotted(self.job.settings.source(_STEP))

    @property
    def python_key(self) -> str:
        """The key of the spec that sets the Python, or would set it."""
        return dotted(self.job.settings.source(_PYTHON))

    @property
    def pip(self) -> str:
        """The command that installs packages into the Python."""
        python = str(self.folder / self.fit.python) if "/" in self.fit.python else self.fit.python
        return f"{shlex.quote(python)} -m pip install"

    @property
    def command(self) -> str:
        """The command that compiles the rung again."""
        return fit_command(self.project, [self.job.environment.name], self.job.size)


class _Text(NamedTuple):
    """The text of a finding."""

    message: str
    help: str
    details: tuple[str, ...] = ()


class _Rule(NamedTuple):
    """The finding for a kind of failure."""

    id: str
    place: KeyPath
    """The setting at fault."""
    text: Callable[[_Case], _Text]


def failure_findings(
    project: Project, outcomes: Iterable[Outcome], folder: Path, time_limit: float
) -> tuple[Finding, ...]:
    """Return the findings about failed compilations: one for each mistake, although many rungs have it."""
    findings: dict[tuple[str, Location, str], tuple[Finding, list[str]]] = {}
    for outcome in outcomes:
        if outcome.failure is None:
            continue
        case = _Case(project, outcome.job, outcome.failure, folder, time_limit)
        for finding in _findings(case):
            # Messages of one mistake may differ by the shapes of arrays, which are digits.
            key = (finding.id, finding.location, "".join(char for char in finding.message if not char.isdecimal()))
            _, rungs = findings.setdefault(key, (finding, []))
            rungs.append(f"{outcome.job.environment.name} {outcome.job.size}")
    return tuple(
        finding._replace(details=(*finding.details, f"not compiled: {listed(rungs)}"))
        for finding, rungs in findings.values()
    )


def missing_step_finding(project: Project, jobs: Sequence[Job]) -> Finding:
    """Return the finding for a spec of which no selected rung names a training step."""
    path = jobs[0].settings.source(("trainer",)) if jobs else ("trainer",)
    return Finding.of(
        "TPU062",
        "no selected rung has a training step to compile: trainer.fit is not set",
        project.document.key_location(path),
        help='add to trainer: fit: {step: "trainer.fit:abstract_step", python: .venv/bin/python}, with a function that '
        "returns the jitted step and its abstract arguments; see: tpucfg explain TPU062",
    )


def machine_finding(project: Project, job: Job, reason: str) -> Finding:
    """Return the finding for a machine that cannot compile."""
    path = job.settings.source(("trainer", "fit"))
    return Finding.of(
        "TPU115",
        f"no step can be compiled here: {reason}",
        project.document.key_location(path),
        help="run tpucfg fit on another machine with Linux on x86-64, in a container or in a workflow; the results in "
        "results/fit.json can be read anywhere",
    )


def _findings(case: _Case) -> Iterator[Finding]:
    if case.failure.kind == "xla-flag":
        yield from (_flag_finding(case, error) for error in case.failure.flags)
        return
    rule = _RULES[case.failure.kind]
    text = rule.text(case)
    place = rule.place or _size_path(case.job)
    yield Finding.of(
        rule.id,
        text.message,
        case.project.document.value_location(case.job.settings.source(place) if rule.place else place),
        help=text.help,
        details=text.details,
    )


def _size_path(job: Job) -> KeyPath:
    return (*job.environment.sizes_path, job.environment.sizes.index(job.size))


# TPU112: XLA flags.


def _flag_finding(case: _Case, error: FlagError) -> Finding:
    path, flag = _flag_place(case.job, error.name)
    location = case.project.document.text_location(path, flag)
    hint = f"delete {flag} from {dotted(path[:-1] if isinstance(path[-1], int) else path)}"
    message = f"the TPU compiler does not know the flag {error.name}"
    if error.reason:
        reason = error.reason[:1].lower() + error.reason[1:]
        message, hint = f"the TPU compiler refuses {flag}: {reason}", f"give the flag another value, or {hint}"
    elif error.nearest:
        hint = f"write {flag.replace(error.name, error.nearest, 1)}, or {hint}"
    details = (
        "the program would end at its start: the TPU runtime reads the flags with the same parser",
        f"the compiler is that of {case.fit.python}; another version of libtpu may know other flags",
    )
    return Finding.of("TPU112", message, location, help=hint, details=details)


def _flag_place(job: Job, name: str) -> tuple[KeyPath, str]:
    """Return the path of the value that has a flag, and the flag as it is written there."""
    generation = job.slice.generation
    names = (name, f"no{name}")
    for index, flag in enumerate(job.settings.trainer.xla_flags.get(generation, ())):
        if flag_name(flag) in names:
            return (*job.settings.source(("trainer", "xla_flags", generation)), index), flag
    text = dict(job.env).get(XLA_FLAGS_VARIABLE, "")
    written = next((flag for flag in text.split() if flag_name(flag) in names), name)
    return job.settings.source(("trainer", "env", XLA_FLAGS_VARIABLE)), written


# TPU114: the Python.


def _no_python(case: _Case) -> _Text:
    python = case.fit.python
    if "/" not in python:
        return _Text(
            f"{python}, the Python of trainer.fit, is not on the PATH",
            f"set {case.python_key} to the Python that has the trainer's packages and {_PACKAGES}, for example "
            ".venv/bin/python",
        )
    path = case.folder / python
    commands = f"install the trainer's packages there, with: {case.pip} {_PACKAGES}"
    if len(path.parts) > 2 and path.parts[-2] == "bin":  # noqa: PLR2004 - an environment's folder, bin, python
        commands = f"python3 -m venv {shlex.quote(str(path.parent.parent))} && {case.pip} {_PACKAGES}"
    problem = "is not executable" if path.exists() else "does not exist"
    return _Text(
        f"{python}, the Python of trainer.fit, {problem} in the spec's folder",
        f"set {case.python_key} to the Python that has the trainer's packages, or run: {commands}",
    )


def _no_start(case: _Case) -> _Text:
    return _Text(
        f"{case.fit.python} cannot be started: {_one_line(case.failure.message)}",
        f"set {case.python_key} to the Python that has the trainer's packages",
    )


def _old_python(case: _Case) -> _Text:
    needed = ".".join(map(str, MIN_PYTHON))
    return _Text(
        f"{case.fit.python} {case.failure.message}",
        f"set {case.python_key} to a Python {needed} or newer with the trainer's packages and {_PACKAGES}",
        _output(case.failure),
    )


def _no_jax(case: _Case) -> _Text:
    return _Text(
        f"{case.fit.python} cannot import JAX: {_one_line(case.failure.message)}",
        f"{case.pip} {_PACKAGES}",
    )


def _old_jax(case: _Case) -> _Text:
    return _Text(f"{case.fit.python}: {_one_line(case.failure.message)}", f"{case.pip} --upgrade {_PACKAGES}")


# TPU116: a step that cannot be loaded.


def _no_module(case: _Case) -> _Text:
    module, _, name = case.fit.step.partition(":")
    near = nearest(module, _modules(case.folder))
    create = f"create {module.replace('.', '/')}.py with the function {name}"
    hint = f"set {case.step_key} to {near}:{name}, or {create}" if near else f"{create}, or correct {case.step_key}"
    return _Text(
        f"the module {module} cannot be found from the spec's folder: {_one_line(case.failure.message)}",
        hint,
        _frames(case.failure),
    )


def _import_failed(case: _Case) -> _Text:
    module = case.fit.step.partition(":")[0]
    missing = _missing_module(case.failure.message)
    hint = "correct the line shown last; the module has to be importable without a TPU"
    if missing:
        hint = f"{case.pip} {missing}, or whatever package has that module"
    return _Text(f"importing {module} fails: {_one_line(case.failure.message)}", hint, _program_details(case.failure))


def _no_function(case: _Case) -> _Text:
    module, _, name = case.fit.step.partition(":")
    functions = _functions(case.folder, module)
    near = nearest(name, functions)
    hint = f"define {name}(devices, flags) in {module}"
    hint = f"set {case.step_key} to {module}:{near}, or {hint}" if near else hint
    details = (f"{module} has {listed(functions)}",) if functions else ()
    return _Text(f"{_one_line(case.failure.message)}", hint, details)


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


def _step_failed(case: _Case) -> _Text:
    return _Text(
        f"{case.fit.step} fails: {_one_line(case.failure.message)}",
        f"correct the line shown last, and run: {case.command}",
        _program_details(case.failure),
    )


def _wrong_return(case: _Case) -> _Text:
    return _Text(
        f"{case.fit.step}: {_one_line(case.failure.message)}",
        "return (jitted, args) or (jitted, args, kwargs): a function from jax.jit, and its arguments as "
        "jax.ShapeDtypeStruct with shardings over the devices that the function is given",
        _frames(case.failure),
    )


def _refused(case: _Case) -> _Text:
    return _Text(
        f"the TPU compiler refuses the step, and not for lack of memory: {_one_line(case.failure.message)}",
        f"change the operation that the compiler names, and run: {case.command}",
        _program_details(case.failure),
    )


# TPU063: a slice without a topology.


def _no_topology(case: _Case) -> _Text:
    return _Text(
        f"{case.job.size} cannot be compiled for: {_one_line(case.failure.message)}",
        f"update the compiler with: {case.pip} --upgrade {_PACKAGES}; or leave {case.job.size} out of "
        f"{dotted(_size_path(case.job)[:-1])}",
    )


# TPU118: a compilation that ended early.


def _timeout(case: _Case) -> _Text:
    limit = format_count(round(case.time_limit), "second")
    hint = f"allow more time with: {case.command} --time-limit {max(2, round(case.time_limit / 30))}m"
    if case.failure.phase in ("", "import"):
        hint = f"let the import of {case.fit.step.partition(':')[0]} neither train, connect nor wait; or {hint}"
    return _ended(case, f"was stopped after {limit}", hint)


def _memory(case: _Case) -> _Text:
    return _ended(
        case,
        "was stopped, because it needed more memory than the machine had left",
        f"close other programs, or use a machine with more memory, and run: {case.command} --jobs 1",
    )


def _crash(case: _Case) -> _Text:
    message = case.failure.message
    hint = f"the last lines that it printed are above; run it again with: {case.command}"
    if message == f"signal {int(signal.SIGKILL)}":
        hint = f"the system ends a process where memory runs out; run it alone: {case.command} --jobs 1"
    return _ended(case, f"ended with {_signal_text(message)}, before it gave a result", hint)


def _mute(case: _Case) -> _Text:
    return _ended(case, "closed its answers and gave no result", "let the program close no files that it did not open")


def _malformed(case: _Case) -> _Text:
    return _ended(
        case,
        f"gave an answer that cannot be read: {_one_line(case.failure.message)}",
        "let the program write to no file descriptor that it did not open",
    )


def _ended(case: _Case, event: str, hint: str) -> _Text:
    phase = _PHASES[case.failure.phase]
    return _Text(f"the compilation of {case.fit.step} {event}, {phase}", hint, _output(case.failure))


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


_RULES: Final[Mapping[str, _Rule]] = {
    "no-python": _Rule("TPU114", _PYTHON, _no_python),
    "no-start": _Rule("TPU114", _PYTHON, _no_start),
    "old-python": _Rule("TPU114", _PYTHON, _old_python),
    "no-jax": _Rule("TPU114", _PYTHON, _no_jax),
    "old-jax": _Rule("TPU114", _PYTHON, _old_jax),
    "no-libtpu": _Rule("TPU114", _PYTHON, _old_jax),
    "no-module": _Rule("TPU116", _STEP, _no_module),
    "import-failed": _Rule("TPU116", _STEP, _import_failed),
    "no-function": _Rule("TPU116", _STEP, _no_function),
    "step-failed": _Rule("TPU117", _STEP, _step_failed),
    "wrong-return": _Rule("TPU117", _STEP, _wrong_return),
    "refused": _Rule("TPU119", _STEP, _refused),
    "no-topology": _Rule("TPU063", (), _no_topology),
    "timeout": _Rule("TPU118", _STEP, _timeout),
    "memory": _Rule("TPU118", _STEP, _memory),
    "crash": _Rule("TPU118", _STEP, _crash),
    "mute": _Rule("TPU118", _STEP, _mute),
    "malformed": _Rule("TPU118", _STEP, _malformed),
}


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
    return tuple(f"{row.file}:{row.line} in {row.name}: {redact(row.code)}" for row in failure.frames)


def _output(failure: Failure) -> tuple[str, ...]:
    """Return the last lines that the process printed."""
    lines = [line.rstrip() for line in redact(failure.output).splitlines() if line.strip()]
    return tuple(f"| {line[:_MAX_OUTPUT_WIDTH]}" for line in lines[-_MAX_OUTPUT_LINES:])
