"""Compile the training step of each rung with the real TPU compiler, each in a process of the user's Python."""

import json
import os
import shutil
import time
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.fit.answers import (
    OF_THE_MODULE,
    OF_THE_PYTHON,
    XLA_VARIABLE,
    FitFailure,
    StepResult,
    process_failure,
)
from tpucfg.fit.fit_file import Compiler, FitFile, FitResult
from tpucfg.fit.inputs import (
    IMAGE_PYTHON,
    FitInputs,
    Topology,
    UnknownTopology,
    compiler_topology,
    compiler_variables,
    container_environment,
    fit_inputs,
    worker_environment,
)
from tpucfg.fit.rung_fit import ProgramFiles, fit_key
from tpucfg.fit.worker_process import Launch, Limits, Observer, Task, TaskEnd, run_tasks
from tpucfg.plan import Job
from tpucfg.spec import Project

CHANGED_HASH: Final = "0" * 16
"""Replaces the hash of a file that was written while its rung was compiled: no file has it, so it counts as changed."""


class Seconds(NamedTuple):
    """The duration of a compilation, which never becomes part of a result."""

    total: float
    """From the start of the process to its end."""
    lower: float | None
    compile: float | None
    """None if the step was known."""


class Outcome(NamedTuple):
    """The compilation of one rung."""

    job: Job
    result: FitResult | None
    """None after a failure."""
    failure: FitFailure | None = None
    seconds: Seconds | None = None
    """None if no process was started for this rung."""
    is_known: bool = False
    """True if an equal step was compiled before, whose figures are reused."""
    is_committed: bool = False
    """True if these figures are from the file of results, which may have been written by hand."""


class _Compilation(NamedTuple):
    """A rung, or the same rung of several environments with equal inputs."""

    jobs: tuple[Job, ...]
    inputs: FitInputs
    topology: Topology
    python: str
    """The path of the Python, or of docker."""
    key: Hashable
    """All that decides it: several compilations of a search are of one rung."""

    @property
    def name(self) -> str:
        """The rung's name in messages."""
        return f"{'/'.join(job.environment.name for job in self.jobs)} {self.jobs[0].size}"

    @property
    def scope(self) -> Hashable:
        """The inputs of the compiler besides the step itself."""
        return _compiler_scope(self.jobs[0].size, self.inputs)


def compile_rungs(
    project: Project,
    jobs: Sequence[Job],
    file: FitFile,
    folder: Path,
    limits: Limits,
    observe: Observer,
    *,
    are_alike: bool = True,
) -> Generator[Outcome, None, None]:
    """Compile the training steps of jobs, and yield an outcome for each job that names one, as they end.

    Closing the iterator ends all processes.

    Args:
        project: The project.
        jobs: The jobs.
        file: The known results, whose figures are reused for a step that the compiler would compile in the same way.
        folder: The spec's folder.
        limits: The limits of the processes.
        observe: Called several times a second with the compilations that run.
        are_alike: True if jobs of one size may have equal steps, so that one waits for the result of another.
    """
    compilations: list[_Compilation] = []
    for outcome in _prepare(project, jobs, folder):
        if isinstance(outcome, Outcome):
            yield outcome
        else:
            compilations.append(outcome)
    launcher = _Launcher(file.results.values(), folder)
    tasks = {
        launcher.task(each, each.scope if are_alike else each.key): each for each in compilations
    }
    ends = run_tasks(tuple(tasks), limits, observe)
    try:
        for task, end in ends:
            yield from launcher.outcomes(tasks[task], end)
    finally:
        ends.close()


def python_path(folder: Path, python: str) -> str | None:
    """Return the path of `trainer.fit.python`; None if there is no such program."""
    if "/" in python:
        path = folder / python
        return str(path) if path.is_file() and os.access(path, os.X_OK) else None
    return shutil.which(python)


def _prepare(
    project: Project, jobs: Iterable[Job], folder: Path
) -> Iterator[Outcome | _Compilation]:
    """Yield the compilations of jobs, one for jobs with equal inputs, and the jobs that cannot be compiled."""
    compilations: dict[Hashable, _Compilation] = {}
    for job in jobs:
        fit, inputs, place = (
            job.settings.trainer.fit,
            fit_inputs(project, job),
            compiler_topology(job.slice),
        )
        if fit is None or inputs is None:
            continue
        python = (
            shutil.which("docker")
            if fit.python == IMAGE_PYTHON
            else python_path(folder, fit.python)
        )
        if fit.python == IMAGE_PYTHON and not inputs.image:
            yield Outcome(job, None, FitFailure("no-image"))
        elif python is None:
            yield Outcome(job, None, FitFailure("no-docker" if inputs.image else "no-python"))
        elif isinstance(place, UnknownTopology):
            yield Outcome(job, None, FitFailure("no-shape", place.reason))
        else:
            key = (job.size, python, json.dumps(inputs._asdict(), sort_keys=True))
            known = compilations.get(key, _Compilation((), inputs, place, python, key))
            compilations[key] = known._replace(jobs=(*known.jobs, job))
    yield from compilations.values()


class _Launcher:
    """The compilations of a run, and the results that later ones can reuse."""

    def __init__(self, known: Iterable[FitResult], folder: Path) -> None:
        self._folder = folder
        self._known: dict[Hashable, dict[tuple[Compiler, str], FitResult]] = {}
        for result in known:
            if result.forecast or not result.fits:  # one of an earlier version has no forecast yet
                self._add(result)
        self._compiled: set[tuple[Hashable, Compiler, str]] = set()
        """The steps that this run has compiled itself."""
        self._failures: dict[Hashable, FitFailure] = {}
        """The failures that other compilations would have as well."""
        self._started: dict[Hashable, float] = {}

    def task(self, compilation: _Compilation, lane: Hashable) -> Task:
        """Return the task of a compilation."""
        return Task(compilation.name, lambda: self._launch(compilation), lane)

    def outcomes(self, compilation: _Compilation, end: TaskEnd) -> Iterator[Outcome]:
        """Yield the outcome of each job of a compilation that has ended."""
        first = self._outcome(compilation, end)
        for job in compilation.jobs:
            result = first.result._replace(key=fit_key(job)) if first.result else None
            yield first._replace(job=job, result=result)

    def _launch(self, compilation: _Compilation) -> Launch | None:
        if any(scope in self._failures for scope in _failure_scopes(compilation)):
            return None
        self._started[compilation.key] = time.time()
        inputs = compilation.inputs
        environment = container_environment(inputs) if inputs.image else worker_environment(inputs)
        return Launch(
            compilation.python, self._folder, environment, self._request(compilation), inputs.image
        )

    def _request(self, compilation: _Compilation) -> Mapping[str, Any]:
        place, inputs = compilation.topology, compilation.inputs
        return {
            "step": inputs.step,
            "folder": str(self._folder),
            "slice": {"name": place.name, "options": dict(place.options), "devices": place.devices},
            "flags": dict(inputs.flags),
            "known": [
                {**compiler.payload, "stablehlo": stablehlo}
                for compiler, stablehlo in self._known.get(compilation.scope, {})
            ],
        }

    def _outcome(self, compilation: _Compilation, end: TaskEnd) -> Outcome:
        job = compilation.jobs[0]
        if end is None:
            scopes = _failure_scopes(compilation)
            return Outcome(
                job,
                None,
                next(self._failures[scope] for scope in scopes if scope in self._failures),
            )
        answer = end.answer
        if not isinstance(answer, StepResult):
            failure = process_failure(end, compilation.inputs, compilation.python)
            return self._failed(compilation, failure, Seconds(end.seconds, None, None))
        seconds = Seconds(end.seconds, answer.lower_seconds, answer.compile_seconds)
        result = self._result(compilation, answer)
        if result is None:
            return self._failed(
                compilation,
                FitFailure("malformed", "a known step that was never compiled"),
                seconds,
            )
        self._add(result)
        is_known, step = (
            answer.figures is None,
            (compilation.scope, result.compiler, result.stablehlo),
        )
        if not is_known:
            self._compiled.add(step)
        return Outcome(
            job,
            result,
            seconds=seconds,
            is_known=is_known,
            is_committed=is_known and step not in self._compiled,
        )

    def _result(self, compilation: _Compilation, answer: StepResult) -> FitResult | None:
        """Return the result with the figures of the answer, or those of a known step; None if that is not known."""
        key = fit_key(compilation.jobs[0])
        files = _hashes(self._folder, answer.files, self._started[compilation.key])
        if answer.figures is None:
            known = self._known.get(compilation.scope, {}).get((answer.compiler, answer.stablehlo))
            return (
                known._replace(key=key, inputs=compilation.inputs, files=files) if known else None
            )
        return FitResult(
            key, compilation.inputs, files, answer.compiler, answer.stablehlo, *answer.figures
        )

    def _failed(
        self, compilation: _Compilation, failure: FitFailure, seconds: Seconds | None
    ) -> Outcome:
        of_python, of_module, of_flags = _failure_scopes(compilation)
        if failure.kind in OF_THE_PYTHON:
            self._failures.setdefault(of_python, failure)
        elif failure.kind in OF_THE_MODULE or (
            failure.kind == "timeout" and failure.phase == "import"
        ):
            self._failures.setdefault(of_module, failure)
        elif failure.kind == "xla-flag":
            self._failures.setdefault(of_flags, failure)
        return Outcome(compilation.jobs[0], None, failure, seconds)

    def _add(self, result: FitResult) -> None:
        scope = _compiler_scope(result.key.size, result.inputs)
        self._known.setdefault(scope, {})[result.compiler, result.stablehlo] = result


def _compiler_scope(size: str, inputs: FitInputs) -> Hashable:
    return (
        size,
        inputs.topology,
        inputs.chips_per_host,
        inputs.xla_flags,
        compiler_variables(inputs),
        inputs.image,
    )


def _failure_scopes(compilation: _Compilation) -> tuple[Hashable, Hashable, Hashable]:
    """Return the keys of failures that compilations share by their Python, by their module, and by their XLA flags."""
    python, inputs = compilation.inputs.image or compilation.python, compilation.inputs
    flags = ("flags", python, inputs.xla_flags, inputs.env.get(XLA_VARIABLE))
    return ("python", python), ("module", python, inputs.step), flags


def _hashes(folder: Path, files: Iterable[str], started: float) -> Mapping[str, str]:
    """Return the hashes of files that are below the folder, also behind symbolic links."""
    root = folder.resolve()
    inside = [file for file in files if (folder / file).resolve().is_relative_to(root)]
    hashes = ProgramFiles(folder).hashes(inside)
    return {
        file: CHANGED_HASH if _is_newer(folder / file, started) else value
        for file, value in hashes.items()
    }


def _is_newer(path: Path, started: float) -> bool:
    try:
        # The time of the last change, not of the last write: a copy can bring an old one, or one of another clock.
        return path.stat().st_ctime > started
    except OSError:
        return True
