"""`tpucfg infra`: the resources of each environment, without cloud access."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import specs

from process import COMMAND, run_here
from tpucfg.cli.app import run

pytestmark = pytest.mark.shell

ROOT = Path(__file__).resolve().parents[2]


def variables(**more: str) -> dict[str, str]:
    """Return an environment without credentials or network access."""
    without_cloud = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("GOOGLE_", "PULUMI_"))
    }
    unreachable = {
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "HTTP_PROXY": "http://127.0.0.1:1",
        "HOME": "/nonexistent",
    }
    return {**without_cloud, **unreachable, **more}


def tpucfg(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the command without credentials or network access; it starts the programs as processes."""
    return run_here(cwd, *arguments, env=variables())


def tpucfg_process(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process with further variables."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=variables(**more),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_text_does_not_depend_on_the_hash_seed() -> None:
    """Two processes with different hash seeds print equal text, and nothing on stderr."""
    first, second = (tpucfg_process("infra", PYTHONHASHSEED=seed) for seed in ("1", "2"))

    assert first.returncode == 0, first.stderr
    assert not first.stderr
    assert first.stdout == second.stdout
    assert (
        "storage.Bucket data-my-project-prod-mnist-prod-europe-west4 (protected, retained)"
        in first.stdout
    )


def test_json_lists_every_environment_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    """Resources are sorted by type and name, whole numbers are integers, and there is no finding."""
    assert run(["infra", "--spec", str(ROOT / "tpucfg.yaml"), "--format", "json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert [environment["name"] for environment in document["environments"]] == [
        "dev",
        "prod",
        "staging",
    ]
    for environment in document["environments"]:
        keys = [(resource["type"], resource["name"]) for resource in environment["resources"]]
        assert keys == sorted(keys)
    resources = document["environments"][0]["resources"]
    [bucket] = [resource for resource in resources if resource["type"].endswith(":Bucket")]
    assert json.dumps(bucket["inputs"]["lifecycleRules"][0]["condition"]["age"]) == "14"
    assert document["findings"] == []


def test_bundled_program_runs_without_a_pulumi_project(tmp_path: Path) -> None:
    """For a spec without a Pulumi project, the command runs the bundled stack program."""
    specs.write(tmp_path, specs.spec())

    printed = tpucfg("infra", cwd=tmp_path)

    assert printed.returncode == 0, printed.stderr
    assert "name: acme-dev-mnist-dev-us-central1" in printed.stdout


def test_own_program_of_a_project_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A project's own program runs with its stack's config, and a broken rule is an error in the spec."""
    spec = specs.write(tmp_path, specs.spec())
    (tmp_path / "Pulumi.yaml").write_text(
        "name: mine\nruntime: python\nmain: infra\nstackConfigDir: infra\n"
    )
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "Pulumi.dev.yaml").write_text("config:\n  mine:where: EUROPE-WEST4\n")
    (tmp_path / "infra" / "__main__.py").write_text(
        "import pulumi, pulumi_gcp\n"
        "pulumi_gcp.storage.Bucket('open', project='acme-dev', location=pulumi.Config().require('where'))\n"
    )

    assert run(["infra", "--spec", str(spec)]) == 1

    printed = capsys.readouterr()
    assert "location: EUROPE-WEST4" in printed.out
    assert "error[TPU090]: storage.Bucket open of dev is in EUROPE-WEST4" in printed.err
    assert "error[TPU091]" in printed.err


def test_error_of_the_spec_is_located_from_the_current_folder() -> None:
    """A spec with an error ends the command as it ends the others, although the program runs in another folder."""
    printed = tpucfg("infra", cwd=ROOT / "examples" / "mistakes")

    assert printed.returncode == 1
    assert printed.stderr.startswith("tpucfg.yaml:4:15: error[TPU021]")
    assert printed.stderr == tpucfg("render", cwd=ROOT / "examples" / "mistakes").stderr


def test_unknown_environment_is_a_usage_error() -> None:
    """An environment that the spec does not have is status 2, and the message lists the known ones."""
    printed = tpucfg("infra", "--env", "test")

    assert printed.returncode == 2
    assert "dev, prod, staging" in printed.stderr


def test_missing_package_is_reported_with_the_install_command(tmp_path: Path) -> None:
    """Without Pulumi, the command prints what to install, and other commands work."""
    blocked = tmp_path / "sitecustomize.py"
    blocked.write_text(
        "import sys\nsys.modules['pulumi'] = None\nsys.modules['pulumi_gcp'] = None\n"
    )
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "compiler")])

    printed = tpucfg_process("infra", PYTHONPATH=paths)

    assert printed.returncode == 1
    assert "pip install '/path/to/clone[infra]'" in printed.stderr
    assert tpucfg_process("check", PYTHONPATH=paths).returncode == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 / 0", "failed: stacks/__main__.py:1: ZeroDivisionError: division by zero"),
        ("raise SystemExit('stop')", "failed: stacks/__main__.py:1: SystemExit: stop"),
        (
            "import nothing_of_the_kind",
            "failed: stacks/__main__.py:1: ModuleNotFoundError: No module named",
        ),
        ("raise ValueError('\\x1b[2J')", "failed: stacks/__main__.py:1: ValueError: \\u001b[2J"),
        ("import pulumi; raise pulumi.RunError('no quota')", "tpucfg: dev: no quota\n"),
    ],
)
def test_exception_of_an_own_program_is_printed_once(
    tmp_path: Path, line: str, message: str
) -> None:
    """An exception of a project's own program is printed once, with its line, and not as an internal error."""
    assert run(["init", str(tmp_path), "--name", "mnist", "--infra"]) == 0
    program = tmp_path / "stacks" / "__main__.py"
    program.write_text(f"{line}\n{program.read_text()}")
    printed = tpucfg("infra", "--env", "dev", cwd=tmp_path)
    assert printed.returncode == 1
    assert printed.stderr.count(message) == 1
    assert len(printed.stderr.splitlines()) <= 2
    assert printed.stdout == ""


def test_no_other_command_imports_pulumi() -> None:
    """A check, which reads stack files too, does not import Pulumi."""
    code = "import sys; from tpucfg.cli.app import run; run(['check']); sys.exit('pulumi' in sys.modules)"

    assert (
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False
        ).returncode
        == 0
    )
