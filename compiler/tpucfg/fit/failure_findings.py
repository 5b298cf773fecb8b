"""Findings about compilations that gave no result: one function for each kind of failure, and each mistake once."""

import ast
import re
import shlex
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.findings import Finding, Location
from tpucfg.fit.answers import MIN_PYTHON, FitFailure, flag_finding
from tpucfg.fit.inputs import IMAGE_PYTHON
from tpucfg.fit.launcher import Outcome
from tpucfg.fit.rung_fit import fit_command
from tpucfg.fs import walk_files
from tpucfg.plan import Job
from tpucfg.redaction import redact
from tpucfg.spec import FitStep, Project
from tpucfg.text_format import dotted, format_count, listed, nearest
from tpucfg.yamldoc import KeyPath

_STEP: Final[KeyPath] = ("trainer", "fit", "step")
_PYTHON: Final[KeyPath] = ("trainer", "fit", "python")
_JAX: Final = "'jax[tpu]'"
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


class _FailureFinding(NamedTuple):
    """The finding of a failure."""

    id: str
    message: str
    help: str
    details: tuple[str, ...] = ()
    place: KeyPath = _STEP
    """The setting at fault; empty for the rung in its ladder."""


class _Case:
    """A failure of a job, with the words that several findings have."""

    def __init__(
        self,
        project: Project,
        job: Job,
        failure: FitFailure,
        folder: Path,
        time_limit: float,
        command: str,
    ) -> None:
        fit, settings = job.settings.trainer.fit or FitStep("", ""), job.settings
        self.project, self.job, self.failure, self.folder = project, job, failure, folder
        self.step, self.python = fit.step, fit.python
        self.module, _, self.function = fit.step.partition(":")
        self.error = _one_line(failure.message)
        frames = failure.frames
        self.line = f"{frames[-1].file}:{frames[-1].line}" if frames else fit.step
        self.step_key = dotted(settings.source(_STEP))
        self.set_python = f"set {dotted(settings.source(_PYTHON))} to"
        self.again = f"run: {command or fit_command(project, [job.environment.name], job.size)}"
        self.limit = format_count(round(time_limit), "second")
        self.more_time = f"--time-limit {max(2, round(time_limit / 30))}m"
        self.skip = (
            f"set overrides.{job.size}.trainer.fit to null, so that tpucfg fit skips {job.size}"
        )

    @property
    def pip(self) -> str:
        """The command that installs packages into the Python."""
        if self.python == IMAGE_PYTHON:
            return f"build {self.job.image} with: python3 -m pip install"
        path = str(self.folder / self.python) if "/" in self.python else self.python
        if "/" in self.python and "/" not in path:
            path = f"./{path}"
        return f"{shlex.quote(path)} -m pip install"

    @property
    def packages(self) -> str:
        """The packages to install: JAX, and what the requirements beside the step's module name."""
        requirements = self.folder.joinpath(*self.module.split(".")[:-1], "requirements.txt")
        return f"{_JAX} -r {shlex.quote(str(requirements))}" if requirements.is_file() else _JAX

    @property
    def correction(self) -> str:
        """The edit for an exception: of the program's innermost line, or of the value that this line refuses."""
        frames = self.failure.frames
        line = self.line if frames or self.failure.kind != "import-failed" else self.module
        variable = re.fullmatch(r"KeyError: '(?P<name>\w+)'", self.failure.message)
        if variable and variable["name"] in {
            secret.variable for secret in self.job.settings.trainer.secrets
        }:
            return f"read {variable['name']} in {line} only where the job trains, as tpucfg fit has no secrets"
        if frames and frames[-1].code.startswith("raise "):
            return f"correct the value that {line} refuses, or that line"
        return f"correct {line}"


# The findings, by the kind that the worker or its launcher gives.


def _no_python(case: _Case) -> _FailureFinding:
    path = case.folder / case.python
    fix = f"{case.set_python} the Python that has the trainer's packages and {_JAX}"
    if "/" not in case.python:
        problem, fix = "is not on the PATH", f"{fix}, for example .venv/bin/python"
    elif path.exists():
        problem = "is not an executable file"
    else:
        problem = "does not exist" if path.is_absolute() else "does not exist in the spec's folder"
        if path.parent.name == "bin":
            folder = shlex.quote(str(path.parent.parent))
            fix += f", or run: python3 -m venv {folder} && {case.pip} {case.packages}"
    return _FailureFinding(
        "TPU114", f"{case.python}, the Python of trainer.fit, {problem}", fix, place=_PYTHON
    )


def _of_python(case: _Case) -> _FailureFinding:
    """Return the problem of a Python, or of an image, that does not start or lacks a package."""
    job, image = case.job, case.job.image or ""
    python = image if case.python == IMAGE_PYTHON else case.python
    own = f"{case.set_python} the Python that has the trainer's packages"
    upgrade = f"{case.pip} --upgrade {_JAX}"
    details: tuple[str, ...] = ()
    match case.failure.kind:
        case "no-image":
            message = f"trainer.fit.python is image, and {job.size} of {job.environment.name} has no image"
            fix = f"set trainer.image, or {own.removeprefix('set ')}"
        case "no-docker":
            message = "docker, which compiles the step in the job's image, is not on the PATH"
            fix = f"install docker, or {case.set_python} a Python with the trainer's packages and {_JAX}"
        case "no-container":
            message, details = (
                f"docker cannot start python3 in {image}: {case.error}",
                _output(case),
            )
            fix = (
                "see that the daemon runs and that the image has a python3 on its PATH: docker run --rm --entrypoint "
                f"python3 {image} --version"
            )
        case "no-start":
            message, fix = f"{case.python} cannot be started: {case.error}", own
        case "old-python":
            oldest = ".".join(map(str, MIN_PYTHON))
            message, details = f"{case.python} {case.failure.message}", _output(case)
            fix = f"{case.set_python} a Python {oldest} or newer with the trainer's packages and {_JAX}"
        case "no-jax":
            message, details = f"{python} cannot import JAX: {case.error}", _exception(case)
            is_missing = case.failure.message.startswith(
                "ModuleNotFoundError: No module named 'jax'"
            )
            fix = f"{case.pip} {case.packages}" if is_missing else upgrade
        case _:  # a JAX or a libtpu that is too old, or missing
            message, fix = f"{python}: {case.error}", upgrade
    return _FailureFinding("TPU114", message, fix, details, _PYTHON)


def _no_module(case: _Case) -> _FailureFinding:
    modules = _modules(case.folder)
    # A path from another folder than the spec's lacks the first packages.
    near = next((known for known in modules if known.endswith(f".{case.module}")), None)
    near = near or nearest(case.module, modules)
    create = f"create {case.module.replace('.', '/')}.py with the function {case.function}"
    fix = (
        f"set {case.step_key} to {near}:{case.function}, or {create}"
        if near
        else f"{create}, or correct {case.step_key}"
    )
    message = f"the module {case.module} cannot be found from the spec's folder: {case.error}"
    return _FailureFinding("TPU116", message, fix, _frames(case))


def _import_failed(case: _Case) -> _FailureFinding:
    before, _, name = case.failure.message.partition("No module named ")
    missing = (
        name.strip("'\" ").partition(".")[0] if before.startswith("ModuleNotFoundError") else ""
    )
    fix = f"{case.correction}; the module has to be importable without a TPU"
    if missing not in ("", case.module.partition(".")[0]):
        fix = f"{case.pip} {shlex.quote(missing)}, or whatever package has that module"
    return _FailureFinding(
        "TPU116", f"importing {case.module} fails: {case.error}", fix, _exception(case)
    )


def _no_function(case: _Case) -> _FailureFinding:
    functions = _functions(case.folder, case.module)
    if case.function in functions:
        file = f"{case.module.replace('.', '/')}.py"
        message = f"{case.module} is another module than {file}, such as one of Python's own: {case.error}"
        return _FailureFinding(
            "TPU116", message, f"rename {file}, and set {case.step_key} to its new name"
        )
    near = nearest(case.function, functions)
    fix = f"define {case.function}(devices, flags) in {case.module}"
    fix = f"set {case.step_key} to {case.module}:{near}, or {fix}" if near else fix
    details = (f"{case.module} has {listed(functions)}",) if functions else ()
    return _FailureFinding("TPU116", case.error, fix, details)


def _of_maxtext(case: _Case) -> _FailureFinding:
    """Return the problem of MaxText's own step, which is no function of the spec's folder."""
    match case.failure.kind:
        case "no-module":
            message = f"MaxText cannot be imported, whose step this compiles: {case.error}"
            fix = f"{case.pip} {_MAXTEXT}, with Python 3.12 or newer; or set {case.step_key} to a function of your own"
            return _FailureFinding("TPU116", message, fix, place=_PYTHON)
        case "import-failed":
            message, fix = f"importing MaxText fails: {case.error}", f"{case.pip} {_MAXTEXT}"
            return _FailureFinding("TPU116", message, fix, _exception(case), _PYTHON)
        case "no-function":
            return _FailureFinding(
                "TPU116", case.error, f"{case.pip} 'maxtext[tpu]==0.2.5'", place=_PYTHON
            )
    fix = f"correct trainer.args or training where MaxText names it, and {case.again}"
    return _FailureFinding(
        "TPU117",
        f"MaxText refuses the job: {case.error}",
        fix,
        _exception(case),
        ("trainer", "args"),
    )


def _step_failed(case: _Case) -> _FailureFinding:
    fix = case.correction
    if not case.failure.frames and _WRONG_CALL.match(case.failure.message):
        fix = (
            f"define {case.function}(devices, flags) in {case.module}: it is called with the list of the slice's "
            "devices, and the dict of the config's flags"
        )
    return _FailureFinding(
        "TPU117", f"{case.step} fails: {case.error}", f"{fix}, and {case.again}", _exception(case)
    )


def _wrong_return(case: _Case) -> _FailureFinding:
    fix = (
        "return (jitted, args) or (jitted, args, kwargs): a function from jax.jit, and its arguments as "
        "jax.ShapeDtypeStruct with shardings over the devices that the function is given"
    )
    return _FailureFinding("TPU117", f"{case.step}: {case.error}", fix, _frames(case))


def _refused(case: _Case) -> _FailureFinding:
    message = f"the TPU compiler refuses the step, and not for lack of memory: {case.error}"
    return _FailureFinding(
        "TPU119",
        message,
        f"change the operation that the compiler names, and {case.again}",
        _exception(case),
    )


def _no_topology(case: _Case) -> _FailureFinding:
    update = (
        f"update the compiler with: {case.pip} --upgrade {_JAX}; or "
        if case.failure.kind == "no-topology"
        else ""
    )
    message = f"no step can be compiled for {case.job.size}: {case.error}"
    return _FailureFinding("TPU063", message, f"{update}{case.skip}", place=())


def _of_process(case: _Case) -> _FailureFinding:
    """Return the problem of a process that gave no answer."""
    details, again = _output(case), case.again.replace("run: ", "run it again with: ", 1)
    match case.failure.kind:
        case "timeout":
            end, fix = (
                f"was stopped after {case.limit}",
                again.replace("run it again", "allow more time", 1),
            )
            fix = f"{fix} {case.more_time}"
            if case.failure.phase in ("", "import"):
                fix = f"let the import of {case.module} neither train, connect nor wait; or {fix}"
        case "memory":
            end = "was stopped, because it needed more memory than the machine had left"
            fix = f"close other programs, or use a machine with more memory, and {case.again} --jobs 1"
        case "mute":
            end, fix = (
                "closed its answers and gave no result",
                "let the program close no files that it did not open",
            )
        case "malformed":
            end = f"gave an answer that cannot be read: {case.error}"
            fix = "let the program neither fork nor write to a file descriptor that it did not open"
        case _:
            end = f"ended with {case.failure.message}, before it gave a result"
            fix = f"{'the last lines that it printed are above' if details else 'it printed nothing'}; {again}"
            if case.failure.message.startswith(f"signal {int(signal.SIGKILL)} "):
                alone = case.again.replace("run: ", "run it alone: ", 1)
                fix = f"the system ends a process where memory runs out; {alone} --jobs 1"
    message = f"the compilation of {case.step} {end}, {_PHASES[case.failure.phase]}"
    return _FailureFinding("TPU118", message, fix, details)


_MAXTEXT: Final = "'maxtext[tpu]'"
_WRONG_CALL: Final = re.compile(r"TypeError: [\w.<>]+\(\) (?:takes|missing|got) ")
"""A call with wrong arguments, which fails before a line of the function runs."""
_PROBLEMS: Final[Mapping[str, Callable[[_Case], _FailureFinding]]] = {
    "no-python": _no_python,
    "no-module": _no_module,
    "import-failed": _import_failed,
    "no-function": _no_function,
    "step-failed": _step_failed,
    "wrong-return": _wrong_return,
    "refused": _refused,
    "no-topology": _no_topology,
    "no-shape": _no_topology,
    **dict.fromkeys(
        ("no-image", "no-docker", "no-container", "no-start", "old-python"), _of_python
    ),
    **dict.fromkeys(("no-jax", "old-jax", "no-libtpu"), _of_python),
    **dict.fromkeys(("timeout", "memory", "crash", "mute", "malformed"), _of_process),
}
_OF_MAXTEXT: Final = ("no-module", "import-failed", "no-function", "step-failed")
"""The kinds that mean something else for MaxText's own step."""


# Details: texts of the user's program, which may contain anything. `Finding.of` escapes them.


def _frames(case: _Case) -> tuple[str, ...]:
    """Return the program's own lines."""
    lines = (
        f"{row.file}:{row.line} in {row.name}: {redact(row.code)}" for row in case.failure.frames
    )
    return tuple(line[:_MAX_OUTPUT_WIDTH] for line in lines)


def _exception(case: _Case) -> tuple[str, ...]:
    """Return the program's own lines, and the further lines of the exception's text."""
    lines = [line.rstrip() for line in redact(case.failure.message).splitlines() if line.strip()][
        1:
    ]
    further = [line[:_MAX_OUTPUT_WIDTH] for line in lines[:_MAX_MESSAGE_LINES]]
    return (*_frames(case), *further, *(("…",) if len(lines) > _MAX_MESSAGE_LINES else ()))


def _output(case: _Case) -> tuple[str, ...]:
    """Return the last lines that the process printed, without those that libtpu prints at every start."""
    lines = [line.rstrip() for line in redact(case.failure.output).splitlines() if line.strip()]
    lines = [line for line in lines if not any(part in line for part in _NOISE)]
    return tuple(f"| {line[:_MAX_OUTPUT_WIDTH]}" for line in lines[-_MAX_OUTPUT_LINES:])


def _one_line(message: str) -> str:
    """Return the first line of an exception's text."""
    line = next(
        (line.strip() for line in redact(message).splitlines() if line.strip()), "no message"
    )
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
        return [
            row.name
            for row in body
            if isinstance(row, ast.FunctionDef) and not row.name.startswith("_")
        ]
    return []


# The findings of a search or a fit.


def failure_findings(
    project: Project,
    outcomes: Iterable[Outcome],
    folder: Path,
    time_limit: float,
    *,
    command: str = "",
    name: Callable[[Job], str] = lambda job: f"{job.environment.name} {job.size}",
) -> tuple[Finding, ...]:
    """Return the findings about failed compilations: one for each mistake, although many rungs have it.

    Args:
        project: The spec.
        outcomes: The compilations.
        folder: The spec's folder.
        time_limit: The longest compilation, in seconds.
        command: The command that repeats them; by default, `tpucfg fit` of each rung.
        name: Returns the name of a job.
    """
    findings: dict[tuple[str, Location, str], tuple[Finding, list[str]]] = {}
    for outcome in outcomes:
        if outcome.failure is None:
            continue
        case = _Case(project, outcome.job, outcome.failure, folder, time_limit, command)
        for finding in _findings(case):
            # Messages of one mistake may differ by the shapes of arrays, which are digits.
            key = (finding.id, finding.location, re.sub("[0-9]", "", finding.message))
            _, rungs = findings.setdefault(key, (finding, []))
            rungs.append(name(outcome.job))
    return tuple(
        finding._replace(
            details=(*finding.details, f"not compiled: {listed(list(dict.fromkeys(rungs)))}")
        )
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
    kind = case.failure.kind
    if kind == "xla-flag":
        yield from (
            flag_finding(case.project, case.job, case.python, error) for error in case.failure.flags
        )
        return
    is_of_maxtext = ":" not in case.step and kind in _OF_MAXTEXT
    problem = (_of_maxtext if is_of_maxtext else _PROBLEMS[kind])(case)
    location = case.project.document.value_location(_path(case.job, problem.place))
    yield Finding.of(
        problem.id, problem.message, location, help=problem.help, details=problem.details
    )


def _path(job: Job, place: KeyPath) -> KeyPath:
    environment = job.environment
    return (
        job.settings.source(place)
        if place
        else (*environment.sizes_path, environment.sizes.index(job.size))
    )
