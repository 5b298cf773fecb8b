"""Isolation of the stack program in a worker process: crashes, forged output, limits and secrets."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from repositories import project
from tpucfg.infra.isolation import landlock
from tpucfg.infra.isolation.isolated_runner import TIMEOUT_SECONDS, ProgramRequest, ProgramResults, run_isolated
from tpucfg.infra.isolation.worker_results import ProgramFailure
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.spec.parse import load_project

FORGED_RESULT = """
import json, os, sys
os.write(int(sys.argv[2]), json.dumps({line!r}).encode() + b"\\n")
os._exit(0)
"""

needs_landlock = pytest.mark.skipif(not landlock.version(), reason="the kernel has no Landlock")


@pytest.fixture(params=["process namespace", "orphans adopted"])
def way(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Run a test once with each means to stop all processes of a program."""
    if request.param == "orphans adopted":
        folder = tmp_path_factory.mktemp("site")
        (folder / "sitecustomize.py").write_text(
            "from tpucfg.infra.isolation import kernel\nkernel.enter_pid_namespace = lambda: False\n"
        )
        paths = [str(folder), str(Path(landlock.__file__).parents[2])]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return str(request.param)


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
    values = dict.fromkeys(
        ("GITHUB_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "PULUMI_CONFIG_PASSPHRASE", "GITHUB_ENV"), "x"
    )
    values |= {"SENTRY_DSN": "x", "DATABASE": "https://name:password@host.example/", "TPUCFG_PLAIN": "x"}
    names = [*values]
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    result = _run(tmp_path, f"import os\nraise ValueError([name for name in {names} if name in os.environ])")["dev"]

    assert isinstance(result, ProgramFailure)
    assert result.reason.endswith("ValueError: ['TPUCFG_PLAIN']")


def test_double_fork_does_not_outlive_the_run(tmp_path: Path, way: str) -> None:
    """A process that leaves the program's group, session and parent is dead when the run is over."""
    seconds = f"100{os.getpid()}"
    prepended = f"""
import os
if not os.fork():
    os.setsid()
    if not os.fork():
        os.closerange(0, 64)
        os.execvp("sleep", ["sleep", "{seconds}"])
    os._exit(0)
os.wait()
"""

    result = _run(tmp_path, prepended)["dev"]

    assert isinstance(result, EnvironmentResources), (way, result)
    assert [name for name in _command_lines() if seconds in name] == []


def test_program_is_stopped_with_what_it_started(tmp_path: Path, way: str) -> None:
    """After the timeout, no process of the program is left either."""
    seconds = f"200{os.getpid()}"
    prepended = (
        f"import subprocess, time\nsubprocess.Popen(['sleep', '{seconds}'], start_new_session=True)\ntime.sleep(90)"
    )

    result = _run(tmp_path, prepended, 5.0)["dev"]

    assert isinstance(result, ProgramFailure), way
    assert "was stopped after the timeout" in result.reason
    assert [name for name in _command_lines() if seconds in name] == []


@needs_landlock
def test_program_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    """The comment, the checkout, git's files and the installed packages can be neither written, moved nor deleted."""
    comment = tmp_path / "comment.md"
    comment.write_text("caution")
    attempts = (
        f"open({str(comment)!r}, 'w')",
        f"open({str(comment)!r}, 'a')",
        f"os.truncate({str(comment)!r}, 0)",
        f"os.unlink({str(comment)!r})",
        f"os.rename({str(comment)!r}, {str(tmp_path / 'moved')!r})",
        f"os.link({str(comment)!r}, os.environ['TMPDIR'] + '/linked')",
        f"os.symlink('/dev/null', {str(tmp_path / 'linked')!r})",
        f"os.mkdir({str(tmp_path / 'folder')!r})",
        f"open({str(tmp_path / '.git' / 'config')!r}, 'a')",
        "open(os.path.join(os.path.dirname(__import__('tpucfg').__file__), 'redaction.py'), 'a')",
        "open(os.path.expanduser('~/.gitconfig'), 'a')",
        "open('/tmp/' + str(os.getpid()), 'w')",
        f"open('/proc/{os.getpid()}/mem', 'r+b')",
        f"open('/proc/{os.getpid()}/environ')",
        f"open('/proc/{os.getpid()}/fd/1', 'w')",
    )

    assert _succeeding(tmp_path, attempts) == "[]"
    assert comment.read_text() == "caution"


@needs_landlock
def test_program_cannot_reach_other_processes_or_services(tmp_path: Path) -> None:
    """It can neither signal tpucfg nor connect to a service: Docker's would write for it."""
    attempts = (
        f"os.kill({os.getpid()}, 0)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.create_connection(('127.0.0.1', listening.getsockname()[1]), 5)",
    )

    assert _succeeding(tmp_path, attempts, "import socket\nlistening = socket.create_server(('127.0.0.1', 0))") == "[]"


def test_program_can_use_a_temporary_folder(tmp_path: Path) -> None:
    """The program's temporary files are allowed, and deleted after the run."""
    prepended = "import tempfile\nfile = tempfile.NamedTemporaryFile(delete=False)\nraise ValueError(file.name)"
    result = _run(tmp_path, prepended)["dev"]

    assert isinstance(result, ProgramFailure)
    assert "tpucfg-program-" in result.reason
    assert not Path(result.reason.partition("ValueError: ")[2]).parent.exists()


def test_output_for_the_log_is_bounded_and_without_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program's prints reach stderr with a prefix, so that no line is a command to the service that shows the log."""
    _run(tmp_path, "print('::add-mask::x\\n ::stop-commands::y\\nz ##[group]\\x1b[2J' + 'a' * 100_000)")

    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert "add-mask" not in printed.out
    assert lines[:2] == ["  | : :add-mask::x", "  |  : :stop-commands::y"]
    assert lines[2].startswith("  | z # #[group]\\u001b[2Ja")
    assert "more bytes" in lines[-1]
    assert len(printed.err) < 70_000


@pytest.mark.parametrize("line", ["import pulumi_gcp.newer", "import pulumi_typing", "import pulumi.rnutime"])
def test_failed_import_is_no_missing_package(tmp_path: Path, line: str) -> None:
    """Only tpucfg decides that Pulumi is missing: a program that cannot import a module of it has failed."""
    result = _run(tmp_path, line)["dev"]

    assert isinstance(result, ProgramFailure)
    assert "ModuleNotFoundError" in result.reason


def test_answer_cannot_claim_missing_packages(tmp_path: Path) -> None:
    """A program that writes to the pipe that packages are missing has failed."""
    result = _run(tmp_path, FORGED_RESULT.format(line={"environment": "dev", "missing": "pulumi"}))["dev"]

    assert result == ProgramFailure("the result of the stack program's process is malformed")


def _succeeding(folder: Path, attempts: Sequence[str], setup: str = "") -> str:
    """Return the list of the attempts that a program succeeds with, as text."""
    prepended = f"""
import os
{setup}
def succeeds(attempt):
    try:
        eval(attempt)
    except OSError:
        return False
    return True
raise ValueError([attempt for attempt in {[*attempts]!r} if succeeds(attempt)])
"""
    result = _run(folder, prepended)["dev"]
    assert isinstance(result, ProgramFailure)
    return result.reason.partition("ValueError: ")[2] or result.reason


def _command_lines() -> list[str]:
    """Return the command lines of all processes."""
    printed = subprocess.run(["ps", "-A", "-o", "command="], capture_output=True, text=True, check=True)
    return printed.stdout.splitlines()


def test_default_timeout_allows_a_slow_machine() -> None:
    """The default timeout is at least a minute."""
    assert TIMEOUT_SECONDS >= 60
