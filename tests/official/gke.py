"""gke: JobSet's and Kubernetes' own Go code; `jobset/main.go` documents its scope.

The program is built once for each release into `.cache/`, and again when its sources change. `make cluster` compiles
nearly all that the newest one needs; without it, each takes three minutes of CPU time.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).parent / "jobset"
NEWEST, OLDEST = "go.mod", "oldest.mod"
"""The modules of the newest release of JobSet that schema/ is made from, and of the oldest that configs are for."""
CACHE = Path(__file__).parents[2] / ".cache" / "official"
REQUIRED = "TPUCFG_REQUIRE_OFFICIAL"
"""Environment variable that turns a missing Go from a reason to skip into a failure."""


def refusals(configs: Sequence[str | Mapping[str, Any]], modules: str = NEWEST) -> list[list[str]]:
    """Return the errors of each config by a release of JobSet. Skips the calling test if Go is missing."""
    _need_go()
    texts = [config if isinstance(config, str) else json.dumps(config) for config in configs]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    completed = subprocess.run(
        [_program(modules), crd(modules)], input=lines, text=True, capture_output=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return [json.loads(line) for line in completed.stdout.splitlines()]


@cache
def crd(modules: str = NEWEST) -> Path:
    """Return the path of JobSet's CustomResourceDefinition. Skips the calling test if Go is missing."""
    _need_go()
    _go("mod", "download", f"-modfile={modules}", "sigs.k8s.io/jobset")
    module = _go("list", f"-modfile={modules}", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/jobset")
    return Path(module, "config", "components", "crd", "bases", "jobset.x-k8s.io_jobsets.yaml")


@cache
def _program(modules: str) -> Path:
    sums = f"{modules.removesuffix('.mod')}.sum"
    sources = b"".join((SOURCES / name).read_bytes() for name in (modules, sums, "main.go"))
    program = CACHE / f"jobset-{hashlib.sha256(sources).hexdigest()[:16]}"
    if not program.exists():
        # Built under a temporary name, so that an interrupted or concurrent build leaves no incomplete program.
        unfinished = program.with_suffix(f".{os.getpid()}")
        _go("build", f"-modfile={modules}", "-trimpath", "-o", str(unfinished), ".")
        unfinished.replace(program)
    return program


def _go(*arguments: str) -> str:
    completed = subprocess.run(
        ["go", *arguments], cwd=SOURCES, text=True, capture_output=True, check=False
    )
    assert completed.returncode == 0, f"go {' '.join(arguments)}: {completed.stderr}"
    return completed.stdout.strip()


def _need_go() -> None:
    if shutil.which("go") is not None:
        return
    reason = "Go is missing, which JobSet's own types need"
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{reason}, and {REQUIRED}=1")
    pytest.skip(reason)
