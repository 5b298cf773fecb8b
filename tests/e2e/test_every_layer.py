"""A project with every layer and every kind of setting, from the check to the command that starts a job."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs import parts
from process import Run

pytestmark = pytest.mark.shell

SPEC = Path(__file__).parent / "every_layer.yaml"
SIZES = ("v5litepod-16", "v5litepod-64", "v5litepod-256", "v5litepod-256x2")
each_target = pytest.mark.parametrize("target", ["gke", "cloud-tpu"])


@pytest.fixture
def chat(tpucfg: Run, tmp_path: Path) -> Run:
    """Return the command in a folder with the project."""
    shutil.copy(SPEC, tmp_path / "tpucfg.yaml")
    return tpucfg


def jobset(chat: Run, environment: str, size: str) -> dict[str, Any]:
    """Return the JobSet of a config, which follows the objects of its secrets."""
    config = chat("render", "--env", environment, "--size", size).stdout
    *companions, jobset = yaml.safe_load_all(config)
    assert [companion["kind"] for companion in companions] == ["SecretProviderClass", "SecretSync"]
    assert isinstance(jobset, dict)
    return jobset


@each_target
def test_the_project_has_no_errors(chat: Run, target: str) -> None:
    """Both targets that run several slices take the project, with warnings only."""
    checked = chat("check", "--target", target)
    assert checked.returncode == 0, checked.stdout
    assert "8 configs" in checked.stdout.splitlines()[-1]
    assert ": error[" not in checked.stdout


@each_target
def test_every_config_is_written_and_valid(chat: Run, target: str, tmp_path: Path) -> None:
    """Each environment has a folder for each size, and a second run changes nothing."""
    assert chat("render", "--target", target, "--out", "configs").returncode == 0
    written = sorted(
        path.relative_to(tmp_path / "configs")
        for path in (tmp_path / "configs").rglob("config.yaml")
    )
    assert {(path.parts[-3], path.parts[-2]) for path in written} == {
        (environment, size) for environment in ("dev", "prod") for size in SIZES
    }
    assert "8 configs, 8 unchanged" in chat("render", "--target", target, "--out", "configs").stderr


def test_layers_reach_the_jobsets(chat: Run) -> None:
    """Capacity follows the environment, variables the size, and the deadline the size of an environment."""
    by_job = {(env, size): jobset(chat, env, size) for env in ("dev", "prod") for size in SIZES[2:]}
    pods = {key: parts(body)[1] for key, body in by_job.items()}
    deadlines = {key: parts(body)[0]["activeDeadlineSeconds"] for key, body in by_job.items()}

    assert {
        key: "cloud.google.com/gke-spot" in pod["nodeSelector"] for key, pod in pods.items()
    } == {key: key[0] == "dev" for key in pods}
    assert {
        key: pod["nodeSelector"].get("cloud.google.com/reservation-name")
        for key, pod in pods.items()
    } == {key: "chat-2026" if key[0] == "prod" else None for key in pods}
    names = {
        key: [item["name"] for item in pod["containers"][0]["env"]] for key, pod in pods.items()
    }
    assert {key: "NCCL_DEBUG" in variables for key, variables in names.items()} == {
        key: key[1] == "v5litepod-256" for key in pods
    }
    assert all(
        {"HF_HOME", "LIBTPU_INIT_ARGS", "WANDB_API_KEY"} <= {*variables}
        for variables in names.values()
    )
    assert deadlines == {
        key: 172_800 if key == ("prod", "v5litepod-256x2") else 43_200 for key in pods
    }


def test_several_slices_are_several_jobs(chat: Run) -> None:
    """Two slices have two replicas with the topology of one, and the program's mesh has the devices of both."""
    body = jobset(chat, "prod", "v5litepod-256x2")
    (replicated,) = body["spec"]["replicatedJobs"]
    job_spec, pod = parts(body)

    assert (replicated["replicas"], job_spec["parallelism"]) == (2, 64)
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "16x16"
    assert "--mesh=data=128,model=4" in pod["containers"][0]["args"]


def test_a_secret_is_a_reference(chat: Run) -> None:
    """The configs of an environment name the secret of its own project, and no value."""
    for environment in ("dev", "prod"):
        config = chat("render", "--env", environment, "--size", "v5litepod-16").stdout
        assert f"projects/acme-{environment}/secrets/wandb/versions/3" in config


def test_the_end_and_its_cost_are_printed(chat: Run) -> None:
    """Before a job starts, its capacity and the most that it can cost are known."""
    printed = chat(
        "submit", "--env", "dev", "--size", "v5litepod-16", "--target", "cloud-tpu"
    ).stdout
    assert "# capacity: spot" in printed
    assert "at most $115.20: 12h × 16 chips × $0.6" in printed


def test_the_differences_are_those_of_the_layers(chat: Run, tmp_path: Path) -> None:
    """Two folders of configs, before and after a change in one layer, differ in the jobs of that layer alone."""
    assert chat("render", "--out", "before").returncode == 0
    spec = tmp_path / "tpucfg.yaml"
    spec.write_text(spec.read_text().replace("    capacity: spot\n", "    capacity: on-demand\n"))
    assert chat("render", "--out", "after").returncode == 0

    printed = chat("diff", "before", "after").stdout
    assert "4 configs change, 4 stay as they are" in printed
    assert "gke-spot" in printed
