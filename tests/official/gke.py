"""gke: JobSet's and Kubernetes' own Go code; `tools/cluster/refusals/main.go` documents its scope.

`make cluster` builds the program of the newest release. That of the oldest is built for the first test that needs it,
in three minutes of CPU time, and is kept with the other programs.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import control_plane
import tool_cache

from required import missing

NEWEST: Final = "newest"
OLDEST: Final = "oldest"
"""The newest release of JobSet, from which schema/ is made, and the oldest that configs are for."""
OLDEST_MODULES: Final = Path(__file__).with_name("oldest.mod")


def refusals(configs: Sequence[str | Mapping[str, Any]], release: str = NEWEST) -> list[list[str]]:
    """Return the errors of each config by a release of JobSet. Skips the calling test if the cluster is not built."""
    texts = [config if isinstance(config, str) else json.dumps(config) for config in configs]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    command = [_program(release), crd(release)]
    completed = subprocess.run(command, input=lines, text=True, capture_output=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return [json.loads(line) for line in completed.stdout.splitlines()]


@cache
def crd(release: str = NEWEST) -> Path:
    """Return the path of JobSet's CustomResourceDefinition. Skips the calling test if the cluster is not built."""
    _built_programs()
    modules = _modules(release)
    _go("mod", "download", *modules, control_plane.JOBSET)
    module = _go("list", *modules, "-m", "-f", "{{.Dir}}", control_plane.JOBSET)
    return Path(module, "config", "components", "crd", "bases", "jobset.x-k8s.io_jobsets.yaml")


def _program(release: str) -> Path:
    """Return the program that refuses configs."""
    programs = _built_programs()
    return programs / "refusals" if release == NEWEST else _oldest_program()


def _built_programs() -> Path:
    """Return the programs of the cluster, whose module has the sources of both releases."""
    programs = control_plane.find()
    if programs is None:
        missing("official", "the checks of JobSet are not built: make cluster")
    return programs


@cache
def _oldest_program() -> Path:
    """Build the program of the oldest release, if its sources have changed."""
    sources = (
        OLDEST_MODULES,
        OLDEST_MODULES.with_suffix(".sum"),
        control_plane.MODULE / "refusals" / "main.go",
    )
    content = b"".join(source.read_bytes() for source in sources)
    key = hashlib.sha256(content + " ".join(tool_cache.GO_BUILD).encode()).hexdigest()[:12]
    program = tool_cache.cache_folder() / f"refusals-{key}"
    if not program.exists():
        # Built under a temporary name, so that an interrupted or concurrent build leaves no incomplete program.
        unfinished = program.with_suffix(f".{os.getpid()}")
        log_file = program.with_suffix(".log")
        arguments = [*_modules(OLDEST), "-ldflags=-s -w", "-o", str(unfinished), "./refusals"]
        failed = tool_cache.go_build(control_plane.MODULE, log_file, arguments)
        assert not failed, log_file.read_text(encoding="utf-8")
        unfinished.replace(program)
    return program


def _modules(release: str) -> tuple[str, ...]:
    """Return Go's option for the modules of a release."""
    return () if release == NEWEST else (f"-modfile={OLDEST_MODULES}",)


def _go(*arguments: str) -> str:
    completed = subprocess.run(
        ["go", *arguments], cwd=control_plane.MODULE, text=True, capture_output=True, check=False
    )
    assert completed.returncode == 0, f"go {' '.join(arguments)}: {completed.stderr}"
    return completed.stdout.strip()
