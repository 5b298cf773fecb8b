"""Isolation of the stack program in a worker process: crashes, forged output, limits and secrets."""

from pathlib import Path

import pytest

from repositories import project
from tpucfg.infra.isolated_runner import (
    TIMEOUT_SECONDS,
    ProgramFailure,
    ProgramRequest,
    ProgramResults,
    run_isolated,
)
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.spec.parse import load_project

FORGED_RESULT = """
import json, os, sys
os.write(int(sys.argv[2]), json.dumps({line!r}).encode() + b"\\n")
os._exit(0)
"""


def _run(folder: Path, prepended: str = "", timeout: float = 60.0) -> ProgramResults:
    """Run the stack program of a new project, with some code prepended to it."""
    repository = project(folder)
    program = folder / "stacks" / "__main__.py"
    program.write_text(f"{prepended}\n{program.read_text().replace('from __future__', '#')}")
    spec, _ = load_project(repository.spec)
    assert spec is not None
    (results,) = run_isolated([ProgramRequest(repository.spec, spec, ("dev", "prod"))], timeout)
    return results


def test_results_have_the_declared_resources(tmp_path: Path) -> None:
    """The results have each environment's resources, sorted, with their protection."""
    results = _run(tmp_path)
    prod = results["prod"]

    assert [*results] == ["dev", "prod"]
    assert isinstance(prod, EnvironmentResources)
    assert [*prod.resources] == sorted(prod.resources, key=lambda resource: (resource.type, resource.name))
    buckets = [resource for resource in prod.resources if resource.kind == "storage.Bucket"]
    assert [(bucket.name, bucket.protect) for bucket in buckets] == [("data-us-central1", True)]


@pytest.mark.parametrize(
    ("prepended", "reason"),
    [
        ("import os; os._exit(0)", "ended its process with status 0 before"),
        ("import os; os.kill(os.getpid(), 9)", "ended its process by signal 9 before"),
        ("import time; time.sleep(600)", "was stopped after the timeout of 5 seconds"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        (FORGED_RESULT.format(line={"environment": "dev", "resources": [{}], "outputs": {}}), "is malformed"),
        (FORGED_RESULT.format(line={"environment": "prod", "error": ""}), "is malformed"),
    ],
    ids=["silent", "killed", "hangs", "exits", "other form", "other environment"],
)
def test_misbehaving_program_is_a_failure(tmp_path: Path, prepended: str, reason: str) -> None:
    """A program that exits, hangs or forges malformed results makes the environment unknown, not unchanged."""
    result = _run(tmp_path, prepended, 5.0 if "sleep" in prepended else 60.0)["dev"]

    assert isinstance(result, ProgramFailure)
    assert reason in result.reason


def test_output_size_is_limited(tmp_path: Path) -> None:
    """A program that writes without end is stopped at the size limit."""
    prepended = "import os, sys\nwhile True: os.write(int(sys.argv[2]), b' ' * 65536)"

    assert _run(tmp_path, prepended)["dev"] == ProgramFailure("the stack program declares more than 32 MiB")


def test_program_receives_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables with credentials, or with access to later steps of a workflow, are removed from the environment."""
    names = ("GITHUB_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "PULUMI_CONFIG_PASSPHRASE", "GITHUB_ENV", "TPUCFG_PLAIN")
    for name in names:
        monkeypatch.setenv(name, "x")
    result = _run(tmp_path, f"import os\nraise ValueError([name for name in {names} if name in os.environ])")["dev"]

    assert isinstance(result, ProgramFailure)
    assert result.reason.endswith("ValueError: ['TPUCFG_PLAIN']")


def test_default_timeout_allows_a_slow_machine() -> None:
    """The default timeout is at least a minute."""
    assert TIMEOUT_SECONDS >= 60
