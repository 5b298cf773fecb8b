"""`tpucfg status --live`, with stand-ins of kubectl and gcloud on the PATH."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from jobs import program
from live_answers import RUNNING, Answers, Failing, install_clients, jobset, pods
from process import COMMAND, ENVIRONMENT, default_signals, run_here

pytestmark = pytest.mark.shell

SPEC = {
    "version": 1,
    "name": "mnist",
    "target": "gke",
    "sizes": ["v6e-8", "v6e-16"],
    "environments": {
        "dev": {
            "project": "my-project",
            "region": "us-east5",
            "kube_context": "gke_my-project_us-east5_train",
        },
        "prod": {"project": "my-project-prod", "region": "us-east5", "target": "vertex-ai"},
    },
    "trainer": {"image": "us-docker.pkg.dev/my-project/train/mnist:1.0", "max_run_duration": "12h"},
    "training": {"tuned_on": "v6e-8", "batch_size": 8, "train_steps": 1000},
    "allow": {"TPU045": "the program scales its rate"},
    "prices": {"v6e": 2},
}


def status(folder: Path, *options: str, answers: Answers | None = None) -> tuple[str, list[str]]:
    """Return what the command prints, and the calls of the clients; it never fails."""
    (folder / "tpucfg.yaml").write_text(json.dumps(SPEC))
    calls = install_clients(folder / "bin", answers or {})
    environment = {**ENVIRONMENT, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    completed = run_here(folder, "status", *options, env=environment)
    assert (completed.returncode, completed.stderr) == (0, "")
    return completed.stdout, calls.read_text().splitlines()


def test_nothing_is_asked_without_the_option(tmp_path: Path) -> None:
    """A status starts no client, and has no live table."""
    printed, calls = status(tmp_path)
    assert calls == []
    assert "live" not in printed


def test_the_clients_are_asked_to_read_only(tmp_path: Path) -> None:
    """Each call is one that lists, gets or reads, and no shell is between."""
    answers = {
        **RUNNING["gke"],
        **RUNNING["vertex-ai"],
        "custom-jobs list": RUNNING["vertex-ai"]["custom-jobs list"],
    }
    _, calls = status(tmp_path, "--live", answers=answers)
    verbs = (" get ", " logs ", " list ", " read ")
    assert calls
    assert [call for call in calls if not any(verb in call for verb in verbs)] == []


def test_a_running_job_has_a_row_below_its_ladder(tmp_path: Path) -> None:
    """State, step, cost and restarts are a table of their own, and a job that is not there has the next command."""
    answers = {
        "get jobset/mnist-dev-v6e-16": jobset(restarts=1),
        "get pods": RUNNING["gke"]["get pods"],
    }
    answers["logs"] = RUNNING["gke"]["logs"]
    printed, _ = status(tmp_path, "--env", "dev", "--live", answers=answers)
    ladder, title, columns, absent, running, _, line = printed.splitlines()[-7:]
    assert ladder == ""
    assert title.startswith("dev, live at 20")
    assert columns.split("  ")[0] == "job"
    assert absent.split()[:3] == ["mnist-dev-v6e-8", "not", "found"]
    assert running.split()[:9] == [
        "mnist-dev-v6e-16",
        "running",
        "(4",
        "of",
        "4",
        "pods)",
        "120",
        "of",
        "500",
    ]
    assert running.split()[-2:] == ["384.00", "1"]
    assert line.startswith("mnist-dev-v6e-8 is not there")
    assert line.endswith("start it with: tpucfg submit --env dev --size v6e-8")


def test_the_options_choose_the_jobs(tmp_path: Path) -> None:
    """A size, a run and an environment select jobs; the ladder stays whole."""
    printed, calls = status(tmp_path, "--env", "dev", "--live", "--size", "v6e-16", "--run", "a1")
    assert [call for call in calls if "jobset/mnist-dev-v6e-16-a1 " in call] == calls
    assert "\nv6e-8 " in printed
    assert "tpucfg submit --env dev --size v6e-16 --run a1" in printed


def test_several_runs_are_rows_of_one_table(tmp_path: Path) -> None:
    """A sweep is read at once: each run is asked for, in the order of the command."""
    printed, _ = status(
        tmp_path, "--env", "dev", "--live", "--size", "v6e-16", "--run", "a1", "--run", "a2"
    )
    rows = [line.split()[0] for line in printed.splitlines() if " not found " in line]
    assert rows == ["mnist-dev-v6e-16-a1", "mnist-dev-v6e-16-a2"]


def test_a_service_that_fails_does_not_hide_the_others(tmp_path: Path) -> None:
    """The failure of one cluster is one line for all its jobs, and the other environment is shown."""
    answers = {"kubectl": Failing("Unable to connect to the server: EOF"), **RUNNING["vertex-ai"]}
    printed, _ = status(tmp_path, "--live", answers=answers)
    failures = [line for line in printed.splitlines() if "Unable to connect" in line]
    assert len(failures) == 1
    assert failures[0].startswith(
        "mnist-dev-v6e-8, mnist-dev-v6e-16: kubectl: Unable to connect to the server: EOF; try:"
    )
    assert "running (JOB_STATE_RUNNING)" in printed


def test_json_has_the_live_state(tmp_path: Path) -> None:
    """Each job is an object with numbers, and unknown values are null; without --live there is no such key."""
    printed, _ = status(
        tmp_path, "--live", "--format", "json", "--size", "v6e-16", answers=RUNNING["gke"]
    )
    (live,) = json.loads(printed)["environments"][0]["live"]
    live.pop("usd_so_far")
    assert live == {
        "job": "mnist-dev-v6e-16",
        "size": "v6e-16",
        "run": None,
        "probe": False,
        "state": "running",
        "service_state": "4 of 4 pods",
        "reason": None,
        "step": 120,
        "steps": 500,
        "seconds_per_step": 3.0,
        "least_step_seconds": None,
        "forecast_step_seconds": None,
        "started": "2026-03-01T10:00:00+00:00",
        "ended": None,
        "usd_at_most": 384.0,
        "restarts": 0,
        "unanswered": [],
    }
    environments: list[dict[str, Any]] = json.loads(status(tmp_path, "--format", "json")[0])[
        "environments"
    ]
    assert not any("live" in environment for environment in environments)


@pytest.mark.parametrize("format", ["text", "markdown", "json"])
def test_hostile_answers_are_escaped(tmp_path: Path, format: str) -> None:
    """Escape sequences, Markdown and credentials in a service's text do not reach the terminal or the page."""
    reason = "\x1b[2J | <script> `x` ![](https://evil.example) ya29.a0AfH6SMBx1234567890\n\n# title"
    failed = jobset({"type": "Failed", "status": "True", "message": reason})
    printed, _ = status(
        tmp_path,
        "--env",
        "dev",
        "--live",
        "--format",
        format,
        answers={"get jobset/": failed, "get pods": pods()},
    )
    assert "\x1b" not in printed
    assert "ya29" not in printed
    assert "\n# title" not in printed
    if format == "markdown":
        assert "<script>" not in printed
        assert "![](" not in printed


def test_options_of_live_need_it(tmp_path: Path) -> None:
    """--size without --live is an error of use, as the ladder is always whole."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(SPEC))
    completed = run_here(tmp_path, "status", "--size", "v6e-8")
    assert completed.returncode == 2
    assert "add --live" in completed.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_clients(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C, and the end of a CI job, end the command at once, and with it the clients and what these started."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(SPEC))
    (tmp_path / "bin").mkdir()
    program(
        tmp_path / "bin",
        "kubectl",
        f'echo $$ >> "{tmp_path}/pids"; sleep 600 & echo $! >> "{tmp_path}/pids"; wait',
    )
    environment = {**ENVIRONMENT, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = [*COMMAND, "status", "--live", "--env", "dev"]
    with (
        default_signals(),
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as process,
    ):
        pids = tmp_path / "pids"
        while not pids.exists() or len(pids.read_text().split()) < 4:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(20) != 0
    for _ in range(500):
        if not any(_is_running(int(pid)) for pid in pids.read_text().split()):
            return
        time.sleep(0.02)
    pytest.fail("a client still runs")


def _is_running(pid: int) -> bool:
    """Return True for a process that has not ended; one that no parent has waited for has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
