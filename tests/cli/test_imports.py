"""What each command imports: a package that one of them does not need would make every start of it slower."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = {"typer", "yaml", "jsonschema_rs"}
"""What it takes to read a spec that is right: the parser, and the validator that says the quick yes."""
BROUGHT_BY_OTHERS = {"annotated_doc", "shellingham", "markupsafe", "cython_runtime"}

COMMANDS = {
    "--version": {"typer"},
    "check": SPEC,
    "check --spec examples/mistakes/tpucfg.yaml": SPEC,
    "check --format sarif": SPEC,
    "ladder": SPEC,
    "why learning_rate --env prod --size v3-32": SPEC,
    "submit --env prod --size v3-32": SPEC,
    "render --size v3-32": {*SPEC, "jinja2"},
    "sizes": {"typer", "yaml"},
    "schema": {"typer"},
}

_PROGRAM = """
import json, sys
before = set(sys.modules)
from tpucfg.cli.app import run
run(sys.argv[1:])
print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_command_imports_what_it_needs(command: str) -> None:
    """Beside the standard library a command loads these packages and no others."""
    program = [sys.executable, "-c", _PROGRAM, *command.split()]
    done = subprocess.run(program, cwd=ROOT, check=True, capture_output=True, text=True)
    loaded: list[str] = json.loads(done.stderr.splitlines()[-1])
    packages = {name.partition(".")[0] for name in loaded if not name.startswith("_")}

    assert packages - sys.stdlib_module_names - BROUGHT_BY_OTHERS - {"tpucfg"} == COMMANDS[command]
