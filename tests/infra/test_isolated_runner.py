"""A stack program in a process of its own: what it may do, and what of it reaches who asks."""

from pathlib import Path

import pytest

from repositories import project
from tpucfg.infra import isolated_runner as apart
from tpucfg.infra.isolated_runner import ProgramFailure, ProgramRequest, ProgramResults, run_isolated
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.spec.parse import load_project

LYING = """
import json, os, sys
os.write(int(sys.argv[2]), json.dumps({line!r}).encode() + b"\\n")
os._exit(0)
"""


def _answers(folder: Path, first: str = "", limit: float = 60.0) -> ProgramResults:
    """Of a new project whose stack program begins with something else."""
    made = project(folder)
    program = folder / "stacks" / "__main__.py"
    program.write_text(f"{first}\n{program.read_text().replace('from __future__', '#')}")
    spec, _ = load_project(made.spec)
    assert spec is not None
    (answers,) = run_isolated([ProgramRequest(made.spec, spec, ("dev", "prod"))], limit)
    return answers


def test_what_it_declares_comes_back(tmp_path: Path) -> None:
    """Each environment's resources, sorted, with what protects them."""
    answers = _answers(tmp_path)
    prod = answers["prod"]

    assert [*answers] == ["dev", "prod"]
    assert isinstance(prod, EnvironmentResources)
    assert [*prod.resources] == sorted(prod.resources, key=lambda it: (it.type, it.name))
    assert [it.name for it in prod.resources if it.kind == "storage.Bucket" and it.protect] == ["data-us-central1"]


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("import os; os._exit(0)", "ended its process with status 0, before"),
        ("import os; os.kill(os.getpid(), 9)", "ended its process by the signal 9, before"),
        ("import time; time.sleep(600)", "had not ended after 5 seconds, and was stopped"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        (LYING.format(line={"environment": "dev", "resources": [{}], "outputs": {}}), "not in the form"),
        (LYING.format(line={"environment": "prod", "error": ""}), "not in the form"),
    ],
    ids=["silent", "killed", "hangs", "exits", "other form", "other environment"],
)
def test_what_it_does_instead_is_told(tmp_path: Path, first: str, said: str) -> None:
    """Whoever ends the process, hangs or lies in form leaves the environment unknown, and not without changes."""
    answer = _answers(tmp_path, first, 5.0 if "sleep" in first else 60.0)["dev"]

    assert isinstance(answer, ProgramFailure)
    assert said in answer.reason


def test_what_is_too_much_is_not_read(tmp_path: Path) -> None:
    """A program that writes without end is stopped at the bound."""
    first = "import os, sys\nwhile True: os.write(int(sys.argv[2]), b' ' * 65536)"

    assert _answers(tmp_path, first)["dev"] == ProgramFailure("the stack program declares more than 32 MiB")


def test_it_has_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that give rights, or that later steps of a workflow obey, are not the program's."""
    given = ("GITHUB_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "PULUMI_CONFIG_PASSPHRASE", "GITHUB_ENV", "TPUCFG_PLAIN")
    for name in given:
        monkeypatch.setenv(name, "x")
    answer = _answers(tmp_path, f"import os\nraise ValueError([it for it in {given} if it in os.environ])")["dev"]

    assert isinstance(answer, ProgramFailure)
    assert answer.reason.endswith("ValueError: ['TPUCFG_PLAIN']")
    assert apart.TIMEOUT_SECONDS >= 60
