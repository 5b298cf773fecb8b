"""Run the worker of `tpucfg fit` as a process, with requests in JSON."""

import atexit
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from spec_factory import ROOT

WORKER: Final = ROOT / "compiler" / "tpucfg" / "fit" / "worker" / "compile_step.py"
PROGRAMS: Final = ROOT / "tests" / "fit" / "programs"
"""A folder of user programs."""
ENVIRONMENT: Final = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_LOG_DIR": "disabled",
}
TIMEOUT_SECONDS: Final = 600
FORKING: Final = """
import json, os, runpy, signal, sys, traceback
import jax

def run(worker, folder, variables, names):
    os.environ.update(variables)
    os.chdir(folder)
    *standard, answers = [os.open(name, os.O_RDWR | os.O_CREAT) for name in names]
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    sys.stdin = open(0, closefd=False)
    sys.argv, sys.path[0] = [worker, str(answers)], os.path.dirname(worker)
    signal.alarm(SECONDS)
    runpy.run_path(worker, run_name="__main__")

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            run(*json.loads(line))
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
""".replace("SECONDS", str(TIMEOUT_SECONDS))
"""Runs the worker in a child for each line on stdin: JAX, whose import takes most of a run, is imported only once."""


class Slice(NamedTuple):
    """A slice of a request."""

    name: str
    devices: int
    options: Mapping[str, Any] = {}


class Outcome(NamedTuple):
    """The answers and the output of a worker."""

    answers: Sequence[Mapping[str, Any]]
    status: int
    stdout: str
    stderr: str

    @property
    def phases(self) -> list[str]:
        """The phases that began."""
        return [answer["phase"] for answer in self.answers if "phase" in answer]

    @property
    def result(self) -> Mapping[str, Any]:
        """The result of a worker that succeeded."""
        assert "result" in self.answers[-1], (self.answers[-1], self.stderr)
        return dict(self.answers[-1]["result"])

    @property
    def error(self) -> Mapping[str, Any]:
        """The error of a worker that failed."""
        assert "error" in self.answers[-1], self.answers[-1]
        return dict(self.answers[-1]["error"])


def compile_step(
    python: str,
    step: str,
    slice_: Slice,
    *,
    folder: Path = PROGRAMS,
    flags: Mapping[str, Any] | None = None,
    known: Sequence[Mapping[str, str]] = (),
    **environment: str,
) -> Outcome:
    """Run the worker with a request, in a child of a process that has imported JAX, and return its answers."""
    forking = _forking(python)
    assert forking.stdin
    assert forking.stdout
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name, each) for each in ("stdin", "stdout", "stderr", "answers")]
        files[0].write_text(_request(step, slice_, folder, flags, known), encoding="utf-8")
        names = [str(file) for file in files]
        line = json.dumps([str(WORKER), str(folder), environment, names])
        forking.stdin.write(f"{line}\n")
        forking.stdin.flush()
        status = int(forking.stdout.readline())
        _, stdout, stderr, answers = [file.read_text(encoding="utf-8") for file in files]
    return Outcome([json.loads(line) for line in answers.splitlines()], status, stdout, stderr)


@cache
def _forking(python: str) -> "subprocess.Popen[str]":
    """Start the program above, which ends with pytest."""
    process = subprocess.Popen(
        [python, "-B", "-c", FORKING],
        env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(process.communicate)
    return process


def compile_in_new_process(
    python: str,
    step: str,
    slice_: Slice,
    *,
    flags: Mapping[str, Any] | None = None,
    **environment: str,
) -> Outcome:
    """Run the worker as `tpucfg fit` does, in a process that has imported nothing."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [python, "-B", str(WORKER), str(writer)],
        cwd=PROGRAMS,
        env={**os.environ, **ENVIRONMENT, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[writer],
    )
    os.close(writer)
    request = _request(step, slice_, PROGRAMS, flags, ())
    stdout, stderr = process.communicate(request, timeout=TIMEOUT_SECONDS)
    with os.fdopen(reader, encoding="utf-8") as answers:
        return Outcome([json.loads(line) for line in answers], process.returncode, stdout, stderr)


def _request(
    step: str,
    slice_: Slice,
    folder: Path,
    flags: Mapping[str, Any] | None,
    known: Sequence[Mapping[str, str]],
) -> str:
    """Return the request in JSON."""
    request = {
        "step": step,
        "folder": str(folder),
        "slice": {"name": slice_.name, "options": dict(slice_.options), "devices": slice_.devices},
        "flags": dict(flags or {}),
        "known": list(known),
    }
    return json.dumps(request)
