"""Stack programs in processes of their own: crashes, forged output, limits and secrets."""

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from process import default_signals
from repositories import project
from tpucfg.infra.resources import EnvironmentResources, ProgramFailure
from tpucfg.infra.stack_program import TIMEOUT_SECONDS, ProgramRequest, ProgramResults, run_programs
from tpucfg.spec.parse import load_project

pytestmark = pytest.mark.shell

FORGED_RESULT = """
import json, os
os.write(3, json.dumps({line!r}).encode() + b"\\n")
os._exit(0)
"""


def _run(
    folder: Path,
    prepended: str = "",
    timeout: float = 60.0,
    environments: tuple[str, ...] = ("dev",),
) -> ProgramResults:
    """Run the stack program of a new project, with some code prepended to it."""
    repository = project(folder)
    program = folder / "stacks" / "__main__.py"
    program.write_text(f"{prepended}\n{program.read_text()}")
    spec, _ = load_project(repository.spec)
    assert spec is not None
    (results,) = run_programs([ProgramRequest(repository.spec, spec, environments)], timeout)
    return results


def test_results_have_the_declared_resources(tmp_path: Path) -> None:
    """The results have each environment's resources, sorted, with their protection."""
    results = _run(tmp_path, environments=("dev", "prod"))
    prod = results["prod"]

    assert [*results] == ["dev", "prod"]
    assert isinstance(prod, EnvironmentResources)
    assert [*prod.resources] == sorted(
        prod.resources, key=lambda resource: (resource.type, resource.name)
    )
    buckets = [resource for resource in prod.resources if resource.kind == "storage.Bucket"]
    name = "data-my-project-prod-mnist-prod-us-central1"
    assert [(bucket.name, bucket.protect) for bucket in buckets] == [(name, True)]


def test_error_of_the_spec_has_its_path_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that the program prints has the spec's path in its project, also for a relative path of the spec."""
    repository = project(tmp_path / "p")
    repository.edit(("name: mnist", "name: handwritten-digits-of-mnist"))
    monkeypatch.chdir(tmp_path)
    path = Path("p", "tpucfg.yaml")
    spec, _ = load_project(path)
    assert spec is not None

    (results,) = run_programs([ProgramRequest(path, spec, ("dev",))])

    result = results["dev"]
    assert isinstance(result, ProgramFailure)
    assert "\ntpucfg.yaml:" in result.reason
    assert str(tmp_path) not in result.reason


@pytest.mark.parametrize(
    ("prepended", "reason"),
    [
        ("import os; os._exit(0)", "ended its process with status 0 before"),
        ("import os; os.kill(os.getpid(), 9)", "ended its process by signal 9 before"),
        ("import time; time.sleep(600)", "was stopped after the timeout of 1 seconds"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        (
            FORGED_RESULT.format(line={"name": "dev", "resources": [{}], "outputs": {}}),
            "is malformed",
        ),
        (FORGED_RESULT.format(line={"name": "prod", "problem": ""}), "is malformed"),
    ],
    ids=["silent", "killed", "hangs", "exits", "other form", "other environment"],
)
def test_misbehaving_program_is_a_failure(tmp_path: Path, prepended: str, reason: str) -> None:
    """A program that exits, hangs or forges malformed results makes the environment unknown, not unchanged."""
    result = _run(tmp_path, prepended, 1.0 if "sleep" in prepended else 60.0)["dev"]

    assert isinstance(result, ProgramFailure)
    assert reason in result.reason


def test_output_size_is_limited(tmp_path: Path) -> None:
    """A program that writes without end is stopped at the size limit."""
    prepended = "import os\nwhile True: os.write(3, b' ' * 65536)"

    assert _run(tmp_path, prepended)["dev"] == ProgramFailure(
        "the stack program declares more than 32 MiB"
    )


def test_program_receives_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables with credentials, or with access to later steps of a workflow, are removed from the environment."""
    values = dict.fromkeys(
        ("GITHUB_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "PULUMI_CONFIG_PASSPHRASE", "GITHUB_ENV"),
        "x",
    )
    values |= {
        "SENTRY_DSN": "x",
        "DATABASE": "https://name:password@host.example/",
        "TPUCFG_PLAIN": "x",
    }
    names = [*values]
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    result = _run(
        tmp_path, f"import os\nraise ValueError([name for name in {names} if name in os.environ])"
    )["dev"]

    assert isinstance(result, ProgramFailure)
    assert result.reason.endswith("ValueError: []")


def test_program_finds_no_credentials_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every folder in which a tool looks for credentials is one that is empty, and deleted after the run."""
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    prepended = """
import os
names = ("XDG_CONFIG_HOME", "CLOUDSDK_CONFIG", "PULUMI_HOME")
folders = {os.environ.get(name, os.environ["HOME"]) for name in names}
raise ValueError([sorted(folders), os.listdir(os.path.expanduser("~"))])
"""
    result = _run(tmp_path, prepended)["dev"]

    assert isinstance(result, ProgramFailure)
    (folder,), content = ast.literal_eval(result.reason.partition("ValueError: ")[2])
    assert content == []
    assert not Path(folder).exists()


def test_program_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    """After the timeout, no process of the program's group is left either."""
    seconds = f"200{os.getpid()}"
    prepended = f"import subprocess, time\nsubprocess.Popen(['sleep', '{seconds}'])\ntime.sleep(90)"

    result = _run(tmp_path, prepended, 5.0)["dev"]

    assert isinstance(result, ProgramFailure)
    assert "was stopped after the timeout" in result.reason
    assert [name for name in _command_lines() if seconds in name] == []


def test_program_can_use_a_temporary_folder(tmp_path: Path) -> None:
    """The program's temporary files are allowed, and deleted after the run."""
    prepended = "import tempfile\nfile = tempfile.NamedTemporaryFile(delete=False)\nraise ValueError(file.name)"
    result = _run(tmp_path, prepended)["dev"]

    assert isinstance(result, ProgramFailure)
    assert "tpucfg-program-" in result.reason
    assert not Path(result.reason.partition("ValueError: ")[2]).parent.exists()


def test_output_for_the_log_is_bounded_and_without_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program's prints reach stderr with a prefix, so that no line is a command to the service that shows the log."""
    _run(
        tmp_path,
        "print('::add-mask::x\\n ::stop-commands::y\\nz ##[group]\\x1b[2J' + 'a' * 100_000)",
    )

    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert "add-mask" not in printed.out
    assert lines[:2] == ["  | : :add-mask::x", "  |  : :stop-commands::y"]
    assert lines[2].startswith("  | z # #[group]\\u001b[2Ja")
    assert "more bytes" in lines[-1]
    assert len(printed.err) < 70_000


@pytest.mark.parametrize(
    "line", ["import pulumi_gcp.newer", "import pulumi_typing", "import pulumi.rnutime"]
)
def test_failed_import_is_no_missing_package(tmp_path: Path, line: str) -> None:
    """Only tpucfg decides that Pulumi is missing: a program that cannot import a module of it has failed."""
    result = _run(tmp_path, line)["dev"]

    assert isinstance(result, ProgramFailure)
    assert "ModuleNotFoundError" in result.reason


def test_answer_cannot_claim_missing_packages(tmp_path: Path) -> None:
    """A program that writes to the pipe that packages are missing has failed."""
    result = _run(tmp_path, FORGED_RESULT.format(line={"name": "dev", "missing": "pulumi"}))["dev"]

    assert result == ProgramFailure("the result of the stack program's process is malformed")


def _command_lines() -> list[str]:
    """Return the command lines of all processes."""
    printed = subprocess.run(
        ["ps", "-A", "-o", "command="], capture_output=True, text=True, check=True
    )
    return printed.stdout.splitlines()


def test_default_timeout_allows_a_slow_machine() -> None:
    """The default timeout is at least a minute."""
    assert TIMEOUT_SECONDS >= 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_takes_the_program_and_its_folder_away(
    tmp_path: Path, number: signal.Signals
) -> None:
    """A canceled CI job leaves no process that a change started, and no folder."""
    repository = project(tmp_path / "project")
    program, started = repository.folder / "stacks" / "__main__.py", tmp_path / "started"
    program.write_text(
        f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )
    folders = tmp_path / "folders"
    folders.mkdir()
    command = [sys.executable, "-m", "tpucfg", "infra", "--env", "dev"]
    with default_signals():
        process = subprocess.Popen(
            command,
            cwd=repository.folder,
            env={**os.environ, "TMPDIR": str(folders)},
            stderr=subprocess.DEVNULL,
        )
    while not (started.exists() and started.read_text()):
        assert process.poll() is None
        time.sleep(0.05)

    process.send_signal(number)

    assert process.wait(30) == 130
    assert [*folders.iterdir()] == []
    assert not Path(f"/proc/{started.read_text()}").exists()
