"""Findings about compilations that gave no result: one table of failures, and each mistake once, at its place."""

import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.findings import Finding, Location
from tpucfg.fit.failures import (
    JAX,
    MIN_PYTHON,
    PYTHON,
    STEP,
    XLA_VARIABLE,
    Case,
    FlagError,
    exception,
    flag_name,
    frames,
    function_names,
    no_details,
    output,
)
from tpucfg.fit.launcher import Outcome
from tpucfg.plan import XLA_FLAGS_VARIABLE, Job
from tpucfg.spec import Project
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc import KeyPath

_OLDEST: Final = ".".join(map(str, MIN_PYTHON))


class _Row(NamedTuple):
    """A failure: how it is recognized, and its finding. Texts name values of the case, and groups of the pattern."""

    kind: str
    """The kind that the worker or its launcher gives."""
    id: str
    message: str
    help: str
    details: Callable[[Case], tuple[str, ...]] = no_details
    pattern: str = ""
    """A regular expression at the start of the exception's text."""
    when: Callable[[Case], object] = bool
    """A further condition."""
    place: KeyPath = STEP
    """The setting at fault; empty for the rung in its ladder."""


_NO_PYTHON: Final = "{c.fit.python}, the Python of trainer.fit, "
_SET_PYTHON: Final = f"set {{c.python_key}} to the Python that has the trainer's packages and {JAX}"
_ENDED: Final = "the compilation of {c.fit.step} "
_ALONE: Final = "{c.command} --jobs 1"
_MORE_TIME: Final = "allow more time with: {c.command} --time-limit {c.more_minutes}m"
_AGAIN: Final = "run it again with: {c.command}"
_CRASHED: Final = _ENDED + "ended with {c.end}, before it gave a result, {c.phase}"
_NO_MODULE: Final = "the module {c.module} cannot be found from the spec's folder: {c.error}"
_NO_TOPOLOGY: Final = "no step can be compiled for {c.job.size}: {c.error}"
_STEP_FAILED: Final = "{c.fit.step} fails: {c.error}"
_MAXTEXT: Final = "'maxtext[tpu]'"

# fmt: off
_ROWS: Final = (
    _Row("no-python", "TPU114", _NO_PYTHON + "is not on the PATH", _SET_PYTHON + ", for example .venv/bin/python",
         when=lambda c: "/" not in c.fit.python, place=PYTHON),
    _Row("no-python", "TPU114", _NO_PYTHON + "is not an executable file", _SET_PYTHON,
         when=lambda c: c.python_path.exists(), place=PYTHON),
    _Row("no-python", "TPU114", _NO_PYTHON + "does not exist{c.python_place}", _SET_PYTHON + ", or run: {c.venv}",
         when=lambda c: c.python_path.parent.name == "bin", place=PYTHON),
    _Row("no-python", "TPU114", _NO_PYTHON + "does not exist{c.python_place}", _SET_PYTHON, place=PYTHON),
    _Row("no-image", "TPU114", "trainer.fit.python is image, and {c.job.size} of {c.job.environment.name} has no image",
         "set trainer.image, or {c.python_key} to the Python that has the trainer's packages", place=PYTHON),
    _Row("no-docker", "TPU114", "docker, which compiles the step in the job's image, is not on the PATH",
         "install docker, or set {c.python_key} to a Python with the trainer's packages and " + JAX, place=PYTHON),
    _Row("no-container", "TPU114", "docker cannot start python3 in {c.job.image}: {c.error}",
         "see that the daemon runs and that the image has a python3 on its PATH: docker run --rm --entrypoint python3 "
         "{c.job.image} --version", output, place=PYTHON),
    _Row("no-start", "TPU114", "{c.fit.python} cannot be started: {c.error}",
         "set {c.python_key} to the Python that has the trainer's packages", place=PYTHON),
    _Row("old-python", "TPU114", "{c.fit.python} {c.failure.message}",
         f"set {{c.python_key}} to a Python {_OLDEST} or newer with the trainer's packages and {JAX}",
         output, place=PYTHON),
    _Row("no-jax", "TPU114", "{c.python} cannot import JAX: {c.error}", "{c.pip} {c.packages}",
         exception, r"ModuleNotFoundError: No module named 'jax'", place=PYTHON),
    _Row("no-jax", "TPU114", "{c.python} cannot import JAX: {c.error}", f"{{c.pip}} --upgrade {JAX}",
         exception, place=PYTHON),
    _Row("old-jax", "TPU114", "{c.python}: {c.error}", f"{{c.pip}} --upgrade {JAX}", place=PYTHON),
    _Row("no-libtpu", "TPU114", "{c.python}: {c.error}", f"{{c.pip}} --upgrade {JAX}", place=PYTHON),

    _Row("no-module", "TPU116", "MaxText cannot be imported, whose step this compiles: {c.error}",
         f"{{c.pip}} {_MAXTEXT}, with Python 3.12 or newer; or set {{c.step_key}} to a function of your own",
         when=lambda c: c.is_maxtext, place=PYTHON),
    _Row("import-failed", "TPU116", "importing MaxText fails: {c.error}", f"{{c.pip}} {_MAXTEXT}",
         exception, when=lambda c: c.is_maxtext, place=PYTHON),
    _Row("no-function", "TPU116", "{c.error}", "{c.pip} 'maxtext[tpu]==0.2.5'",
         when=lambda c: c.is_maxtext, place=PYTHON),
    _Row("step-failed", "TPU117", "MaxText refuses the job: {c.error}",
         "correct trainer.args or training where MaxText names it, and run: {c.command}",
         exception, when=lambda c: c.is_maxtext, place=("trainer", "args")),

    _Row("no-module", "TPU116", _NO_MODULE,
         "set {c.step_key} to {c.near_module}:{c.function}, or create {c.file} with the function {c.function}",
         frames, when=lambda c: c.near_module),
    _Row("no-module", "TPU116", _NO_MODULE,
         "create {c.file} with the function {c.function}, or correct {c.step_key}", frames),
    _Row("import-failed", "TPU116", "importing {c.module} fails: {c.error}",
         "{c.pip} {c.missing_module}, or whatever package has that module",
         exception, when=lambda c: c.missing_module not in ("", c.module.partition(".")[0])),
    _Row("import-failed", "TPU116", "importing {c.module} fails: {c.error}",
         "{c.correction}; the module has to be importable without a TPU", exception),
    _Row("no-function", "TPU116", "{c.module} is another module than {c.file}, such as one of Python's own: {c.error}",
         "rename {c.file}, and set {c.step_key} to its new name", when=lambda c: c.function in c.functions),
    _Row("no-function", "TPU116", "{c.error}",
         "set {c.step_key} to {c.module}:{c.near_function}, or define {c.function}(devices, flags) in {c.module}",
         function_names, when=lambda c: c.near_function),
    _Row("no-function", "TPU116", "{c.error}", "define {c.function}(devices, flags) in {c.module}", function_names),

    # A call with wrong arguments fails before a line of the function runs.
    _Row("step-failed", "TPU117", _STEP_FAILED,
         "define {c.function}(devices, flags) in {c.module}: it is called with the list of the slice's devices, and "
         "the dict of the config's flags, and run: {c.command}",
         exception, r"TypeError: [\w.<>]+\(\) (?:takes|missing|got) ", lambda c: not c.failure.frames),
    # The message of JAX 0.7 to 0.10 about a sharding that does not divide an array.
    _Row("step-failed", "TPU117", _STEP_FAILED,
         "make axis {m[axis]} of the array of shape {m[shape]}, which {m[spec]} shards, divisible by {m[count]}, or "
         "correct its sharding in {c.line}, and run: {c.command}",
         exception,
         r"IndivisibleError: Sharding .{1,2000}? spec=(?P<spec>.{1,200}?)(?:, memory_kind=\w+)?\) implies that array "
         r"axis (?P<axis>[0-9]+) is partitioned (?P<count>[0-9]+) times, but the dimension size is [0-9]+ "
         r"\(full shape: (?P<shape>\([0-9, ]*\))"),
    _Row("step-failed", "TPU117", _STEP_FAILED, "{c.correction}, and run: {c.command}", exception),
    _Row("wrong-return", "TPU117", "{c.fit.step}: {c.error}",
         "return (jitted, args) or (jitted, args, kwargs): a function from jax.jit, and its arguments as "
         "jax.ShapeDtypeStruct with shardings over the devices that the function is given", frames),
    _Row("refused", "TPU119", "the TPU compiler refuses the step, and not for lack of memory: {c.error}",
         "change the operation that the compiler names, and run: {c.command}", exception),

    _Row("no-topology", "TPU063", _NO_TOPOLOGY,
         f"update the compiler with: {{c.pip}} --upgrade {JAX}; or {{c.skip}}", place=()),
    _Row("no-shape", "TPU063", _NO_TOPOLOGY, "{c.skip}", place=()),

    _Row("timeout", "TPU118", _ENDED + "was stopped after {c.limit}, {c.phase}",
         "let the import of {c.module} neither train, connect nor wait; or " + _MORE_TIME,
         output, when=lambda c: c.failure.phase in ("", "import")),
    _Row("timeout", "TPU118", _ENDED + "was stopped after {c.limit}, {c.phase}", _MORE_TIME, output),
    _Row("memory", "TPU118",
         _ENDED + "was stopped, because it needed more memory than the machine had left, {c.phase}",
         "close other programs, or use a machine with more memory, and run: " + _ALONE, output),
    _Row("crash", "TPU118", _CRASHED, "the system ends a process where memory runs out; run it alone: " + _ALONE,
         output, rf"signal {int(signal.SIGKILL)}$"),
    _Row("crash", "TPU118", _CRASHED, "the last lines that it printed are above; " + _AGAIN, output, when=output),
    _Row("crash", "TPU118", _CRASHED, "it printed nothing; " + _AGAIN, output),
    _Row("mute", "TPU118", _ENDED + "closed its answers and gave no result, {c.phase}",
         "let the program close no files that it did not open", output),
    _Row("malformed", "TPU118", _ENDED + "gave an answer that cannot be read: {c.error}, {c.phase}",
         "let the program neither fork nor write to a file descriptor that it did not open", output),
)
# fmt: on
"""The failures, those of one kind in the order in which they are tried; the last of a kind has no condition."""


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
        case = Case(project, outcome.job, outcome.failure, folder, time_limit, command)
        for finding in _findings(case):
            # Messages of one mistake may differ by the shapes of arrays, which are digits.
            key = (finding.id, finding.location, re.sub("[0-9]", "", finding.message))
            _, rungs = findings.setdefault(key, (finding, []))
            rungs.append(name(outcome.job))
    return tuple(
        finding._replace(details=(*finding.details, f"not compiled: {listed(list(dict.fromkeys(rungs)))}"))
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


def _findings(case: Case) -> Iterator[Finding]:
    if case.failure.kind == "xla-flag":
        yield from (_flag_finding(case, error) for error in case.failure.flags)
        return
    for row in _ROWS:
        match = re.match(row.pattern, case.failure.message)
        if row.kind == case.failure.kind and match and row.when(case):
            message, help_ = (text.format(c=case, m=match) for text in (row.message, row.help))
            location = case.project.document.value_location(_path(case.job, row.place))
            yield Finding.of(row.id, message, location, help=help_, details=row.details(case))
            return


def _path(job: Job, place: KeyPath) -> KeyPath:
    environment = job.environment
    return job.settings.source(place) if place else (*environment.sizes_path, environment.sizes.index(job.size))


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
_OF_THE_HOST: Final = ("xla_dump_", "xla_disable_hlo_passes", "xla_force_host_platform_device_count")
"""Beginnings of flags that MaxText sets in XLA_FLAGS, and that libtpu does not know.

Source: https://github.com/AI-Hypercomputer/maxtext/blob/main/benchmarks/maxtext_xpk_runner.py
"""


def _flag_finding(case: Case, error: FlagError) -> Finding:
    path, flag = _flag_place(case.job, error)
    location = case.project.document.text_location(path, flag)
    hint = f"delete {flag} from {dotted(path[:-1] if isinstance(path[-1], int) else path)}"
    reader = _READERS[error.variable]
    message = f"{reader.name} does not know the flag {error.name}"
    if error.reason:
        reason = error.reason[:1].lower() + error.reason[1:]
        message, hint = f"{reader.name} refuses {flag}: {reason}", f"give the flag another value, or {hint}"
    elif error.variable == XLA_FLAGS_VARIABLE and error.name.startswith(_OF_THE_HOST):
        hint = f"move {flag} to trainer.env.{XLA_VARIABLE}, which XLA on the host reads, or {hint}"
    elif error.nearest:
        hint = f"write {flag.replace(error.name, error.nearest, 1)}, or {hint}"
    end = f"at its start: {reader.name_on_tpu} reads the flags with the same parser"
    if error.of_program:
        end = f"at its first step: {reader.name_on_tpu} has the same compiler"
    details = (
        f"the program would end {end}",
        f"the compiler is that of {case.fit.python}; another version of {reader.package} may know other flags",
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
