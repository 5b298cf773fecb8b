"""Run the worker of `tpucfg fit` as a process, with requests in JSON."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
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
    """Run the worker with a request, and return its answers."""
    request = {
        "step": step,
        "folder": str(folder),
        "slice": {"name": slice_.name, "options": dict(slice_.options), "devices": slice_.devices},
        "flags": dict(flags or {}),
        "known": list(known),
    }
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [python, "-B", str(WORKER), str(writer)],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[writer],
    )
    os.close(writer)
    stdout, stderr = process.communicate(json.dumps(request), timeout=TIMEOUT_SECONDS)
    with os.fdopen(reader, encoding="utf-8") as answers:
        return Outcome([json.loads(line) for line in answers], process.returncode, stdout, stderr)
