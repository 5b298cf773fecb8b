"""A false Python: a program that stands in for `trainer.fit.python`, and behaves as a test wants."""

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pytest

from tpucfg.cli.app import run
from tpucfg.fit.fit_file import fit_path

GIB: Final = 1 << 30
RESULT: Final[dict[str, Any]] = {
    "jax": "0.10.2",
    "libtpu": "0.0.42.1",
    "python": "3.11.7",
    "files": ["step.py"],
    "stablehlo": "a" * 64,
    "known": False,
    "fits": True,
    "hbm": {"used": 7 * GIB, "available": 15 * GIB, "exact": True},
    "flops": 10**14,
    "flops_8bit": 0,
    "uncounted": [],
    "forecast": {
        "seconds": 2.5,
        "parts": {"products": 2.0, "fusions": 0.5},
        "is_reliable": True,
        "uncounted": [],
    },
    "seconds": {"lower": 0.5, "compile": 30.25},
}
"""The result of a step that is compiled and fits."""

_PRELUDE: Final = """\
import json, os, signal, subprocess, sys, time
sys.argv.pop(1)  # -B
DESCRIPTOR, REQUEST = int(sys.argv[2]), json.load(sys.stdin)
RESULT = {result}
def answer(**row):
    os.write(DESCRIPTOR, json.dumps(row).encode() + b"\\n")
def known(result):
    keys = ("jax", "libtpu", "stablehlo")
    if {{key: result[key] for key in keys}} not in REQUEST["known"]:
        return result
    return {{key: result[key] for key in (*keys, "python", "files")}} | {{"known": True}}
answer(phase="import")
"""
SPEC: Final = """\
version: 1
name: chat
target: gke
sizes: [v5litepod-16, v5litepod-64]
environments:
  dev: {project: acme-dev, region: us-west4, kube_context: dev}
trainer:
  image: us-docker.pkg.dev/acme/train/chat:1.0
  fit: {step: "step:abstract_step", python: ./python}
training: {tuned_on: v5litepod-16, batch_size: 256, train_steps: 4000}
"""


class Folder:
    """A folder with a spec, whose Python is false; it is the current folder."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self._capsys = capsys
        (path / "step.py").write_text("def abstract_step(devices, flags): ...\n")
        self.spec()

    def spec(self, *replacements: tuple[str, str]) -> None:
        """Write the spec with other parts."""
        text = SPEC
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (self.path / "tpucfg.yaml").write_text(text)

    def python(self, behavior: str) -> None:
        """Write the false Python, which runs these lines of Python after it has announced the import."""
        prelude = _PRELUDE.format(result=repr(RESULT))
        # Isolated and without site packages, it starts in ten milliseconds.
        file = self.path / "python"
        file.write_text(f"#!{sys.executable} -IS\n{prelude}{dedent(behavior)}\n")
        file.chmod(0o755)

    def fit(self, *options: str) -> tuple[int, str, str]:
        """Run `tpucfg fit`, and return its exit status, stdout and stderr."""
        status = run(["fit", *options])
        return status, *self._capsys.readouterr()

    def file(self) -> list[dict[str, Any]]:
        """Return the results in results/fit.json."""
        results: list[dict[str, Any]] = json.loads(fit_path(self.path).read_text())["results"]
        return results
