"""What each command imports: start-up time is mostly imports, and each of these was paid for once by accident."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spec_factory import ROOT, WITHOUT, spec

NEVER = {"pydantic", "rich", "pulumi", "pulumi_gcp", "requests", "pytest", "hypothesis", "ruamel"}
"""No command has a use for them."""
WATCHED = NEVER | {"yaml", "jinja2", "jsonschema", "jsonschema_rs", "asyncio", "xml", "sqlite3", "tpucfg.results"}
"""What takes longer to import than it looks, and the room that only what was measured needs."""
AND_TELL = """
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
    """Which of the watched packages a command has imported when it ends; `folder` is where the answer is left."""
    path = folder / "modules"
    ended = subprocess.run(
        [sys.executable, "-c", AND_TELL.replace("{path!r}", repr(str(path))), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "compiler")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == status, ended.stderr
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
    ("ladder", "--format", "html"): {"yaml", "jsonschema_rs", "xml", "jinja2", "tpucfg.results"},
    ("status",): {"yaml", "jsonschema_rs", "tpucfg.results"},
    ("submit", "--size", "v3-32"): {"yaml", "jsonschema_rs"},
    ("sizes",): {"yaml"},
    ("diff",): {"yaml", "jsonschema_rs"},
    ("diff", "examples", "examples"): {"yaml"},
    ("review", "--help"): {"yaml"},
    ("schema",): set(),
}
"""By command: what it needs, and nothing beside it."""


@pytest.mark.parametrize("arguments", PINNED, ids=" ".join)
def test_a_command_imports_what_it_needs(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Version and help read no YAML, and a check passes without a template engine or an explanation."""
    assert imported(tmp_path, *arguments) == PINNED[arguments]


def test_an_explanation_is_imported_where_there_is_something_to_explain(tmp_path: Path) -> None:
    """The slowest of all imports, jsonschema, comes only when a spec does not fit."""
    (tmp_path / "wrong.yaml").write_text(json.dumps({"version": 2}))
    assert "jsonschema" in imported(tmp_path, "check", "--spec", str(tmp_path / "wrong.yaml"), status=1)


@pytest.mark.parametrize("target", ["vertex-ai", "ai-platform", "cloud-tpu", "gke"])
def test_no_command_imports_what_nobody_needs(tmp_path: Path, target: str) -> None:
    """Whatever the target: no web framework's models, no terminal art, no infrastructure engine."""
    made = spec(
        target=target,
        sizes=["v3-8"],
        environments__dev__region="europe-west4",
        environments__dev__kube_context="c",
        trainer__runtime="2.2" if target == "ai-platform" else WITHOUT,
        training__tuned_on="v3-8",
    )
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(made))
    for command in ("render", "check", "submit"):
        assert not imported(tmp_path, command, "--spec", str(tmp_path / "tpucfg.yaml")) & NEVER
