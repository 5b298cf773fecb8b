"""The imports of each command: start-up time is mostly imports, and each of these was once imported by accident."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spec_factory import ROOT, WITHOUT, spec

pytestmark = pytest.mark.shell

NEVER = {"pydantic", "rich", "pulumi", "pulumi_gcp", "requests", "pytest", "hypothesis", "ruamel"}
"""Packages that no command needs."""
WATCHED = (
    NEVER
    | {"yaml", "jinja2", "jsonschema", "jsonschema_rs", "asyncio", "xml", "sqlite3"}
    | {
        "tpucfg.results",
        "tpucfg.fit",
    }
)
"""Packages that are slow to import, and those of tpucfg that only specs with measurements or a training step need."""
RUN_AND_LIST = """
import os, sys
from tpucfg.__main__ import main
os._exit = sys.exit
sys.argv = ["tpucfg", *sys.argv[1:]]
try:
    main()
finally:
    print("\\n".join(sys.modules), file=open({path!r}, "w"))
"""


def imported(folder: Path, *arguments: str, status: int = 0) -> set[str]:
    """Return the watched packages that a command has imported; `folder` is for the list."""
    path = folder / "modules"
    process = subprocess.run(
        [sys.executable, "-c", RUN_AND_LIST.replace("{path!r}", repr(str(path))), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "compiler")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == status, process.stderr
    return set(path.read_text().split()) & WATCHED


PINNED: dict[tuple[str, ...], set[str]] = {
    ("--version",): set(),
    ("--help",): set(),
    ("check", "--help"): {"yaml"},
    ("render", "--help"): {"yaml"},
    ("check",): {"yaml", "jsonschema_rs"},
    ("check", "--size", "v3-32", "--format", "json"): {"yaml", "jsonschema_rs"},
    ("render", "--size", "v3-32"): {"yaml", "jsonschema_rs", "jinja2"},
    ("ladder",): {"yaml", "jsonschema_rs"},
    ("ladder", "--format", "markdown"): {"yaml", "jsonschema_rs"},
    ("ladder", "--format", "svg"): {"yaml", "jsonschema_rs", "xml", "tpucfg.results"},
    ("status",): {"yaml", "jsonschema_rs", "tpucfg.results"},
    ("submit", "--size", "v3-32"): {"yaml", "jsonschema_rs", "tpucfg.results"},
    ("fit", "--help"): {"yaml", "tpucfg.results", "tpucfg.fit"},
    ("tune", "--help"): {"yaml", "tpucfg.results", "tpucfg.fit"},
    ("sizes",): {"yaml"},
    ("diff",): {"yaml", "jsonschema_rs"},
    ("diff", "examples", "examples"): {"yaml"},
    ("review", "--help"): set(),
    ("schema",): set(),
    ("import", "--help"): {"yaml"},
}
"""The watched packages that each command needs."""


@pytest.mark.parametrize("arguments", PINNED, ids=" ".join)
def test_a_command_imports_only_what_it_needs(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A command imports the watched packages that it is listed with, and no other."""
    assert imported(tmp_path, *arguments) == PINNED[arguments]


@pytest.mark.parametrize(
    ("arguments", "packages"),
    [
        (("check",), {"yaml", "jsonschema_rs", "tpucfg.fit", "tpucfg.results"}),
        (("render",), {"yaml", "jsonschema_rs", "jinja2", "tpucfg.fit"}),
        (("ladder",), {"yaml", "jsonschema_rs", "tpucfg.fit"}),
        (("submit",), {"yaml", "jsonschema_rs", "tpucfg.fit", "tpucfg.results"}),
    ],
)
def test_a_spec_with_a_step_needs_few_more(
    tmp_path: Path, arguments: tuple[str, ...], packages: set[str]
) -> None:
    """With `trainer.fit`, commands read the fits, and import nothing else."""
    path = tmp_path / "tpucfg.yaml"
    path.write_text(json.dumps(spec(trainer__fit={"step": "trainer.fit:abstract_step"})))
    assert imported(tmp_path, *arguments, "--spec", str(path)) == packages


def test_jsonschema_is_imported_only_for_an_invalid_spec(tmp_path: Path) -> None:
    """jsonschema, the slowest import of all, explains the errors of a spec and is imported only if there are any."""
    (tmp_path / "wrong.yaml").write_text(json.dumps({"version": 2}))
    assert "jsonschema" in imported(
        tmp_path, "check", "--spec", str(tmp_path / "wrong.yaml"), status=1
    )


def test_readers_of_fits_do_not_import_what_compiles(tmp_path: Path) -> None:
    """A command that reads results/fit.json starts no process, so it does not import what `tpucfg fit` needs."""
    (tmp_path / "tpucfg.yaml").write_text(
        json.dumps(spec(trainer__fit={"step": "trainer.fit:abstract_step"}))
    )
    for command in ("check", "ladder", "submit"):
        imported(tmp_path, command, "--spec", str(tmp_path / "tpucfg.yaml"))
        modules = {
            name
            for name in (tmp_path / "modules").read_text().split()
            if name.startswith("tpucfg.fit.")
        }
        assert "tpucfg.fit.rung_fit" in modules
        assert not modules & {
            "tpucfg.fit.launcher",
            "tpucfg.fit.worker_process",
            "tpucfg.fit.failure_findings",
        }


TARGETS = ("vertex-ai", "ai-platform", "cloud-tpu", "compute-engine", "gke")
RUN_ALL = """
import sys
from tpucfg.cli.app import run
for target in sys.argv[2:]:
    for command in ("render", "check", "submit"):
        assert run([command, "--spec", f"{target}.yaml"]) == 0, (command, target)
print("\\n".join(sys.modules), file=open(sys.argv[1], "w"))
"""


def test_no_target_imports_unneeded_packages(tmp_path: Path) -> None:
    """For every target, the commands import no package that none of them needs."""
    for target in TARGETS:
        (tmp_path / f"{target}.yaml").write_text(json.dumps(spec_of(target)))
    command = [sys.executable, "-c", RUN_ALL, "modules", *TARGETS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "compiler")}
    process = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    modules = set((tmp_path / "modules").read_text().split())
    assert "tpucfg.cli.submit" in modules
    assert not modules & NEVER


def spec_of(target: str) -> dict[str, Any]:
    """Return a spec of one rung."""
    size = "v6e-4" if target == "compute-engine" else "v3-8"
    return spec(
        target=target,
        sizes=[size],
        environments__dev__region="us-east5" if size == "v6e-4" else "europe-west4",
        environments__dev__kube_context="c",
        trainer__runtime="2.2" if target == "ai-platform" else WITHOUT,
        training__tuned_on=size,
    )
