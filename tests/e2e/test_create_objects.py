"""The objects of a job on Compute Engine, created by `submit --execute` and by the lines that `submit` prints."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compute_api import ComputeApi, serving_compute
from jobs import program
from process import COMMAND, ENVIRONMENT
from spec_factory import spec

REGION = "/compute/v1/projects/my-project/regions/us-east5"
ZONE = "/compute/v1/projects/my-project/zones/us-east5-a"
POLICY = f"{REGION}/resourcePolicies/mnist-dev-v6e-16"
TEMPLATE = f"{REGION}/instanceTemplates/mnist-dev-v6e-16"
GROUP = f"{ZONE}/instanceGroupManagers/mnist-dev-v6e-16"
INSTANCE = f"{ZONE}/instances/mnist-dev-v6e-4"
ALL = [POLICY, TEMPLATE, GROUP]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ComputeApi]:
    """Serve an empty project, and write a spec for it."""
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "tpucfg", f'exec {shlex.quote(sys.executable)} -m tpucfg "$@"')
    write_spec(tmp_path)
    with serving_compute(tmp_path / "bin") as compute:
        yield compute


def write_spec(folder: Path, **args: Any) -> None:
    """Write a spec with a rung of one host and one of four; `args` are the program's."""
    data = spec(
        target="compute-engine",
        sizes=["v6e-4", "v6e-16"],
        environments={"dev": {"project": "my-project", "region": "us-east5", "capacity": "flex-start"}},
        trainer={"image": "r/i:1", "max_run_duration": "1h", "args": args},
        training={"tuned_on": "v6e-4", "batch_size": 64, "train_steps": 100},
    )
    (folder / "tpucfg.yaml").write_text(json.dumps(data))


def run(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in the folder of the spec."""
    environment = {**ENVIRONMENT, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def submit(folder: Path, size: str = "v6e-16") -> "subprocess.CompletedProcess[str]":
    """Run `tpucfg submit --execute`."""
    return run(folder, *COMMAND, "submit", "--size", size, "--execute")


def paste(folder: Path, size: str = "v6e-16") -> "subprocess.CompletedProcess[str]":
    """Paste into bash what `tpucfg submit` prints."""
    printed = run(folder, *COMMAND, "submit", "--size", size)
    assert printed.returncode == 0, printed.stderr
    return run(folder, "bash", "-c", printed.stdout)


STARTS = pytest.mark.parametrize("start", [submit, paste])


@STARTS
def test_the_objects_are_those_of_the_config(tmp_path: Path, api: ComputeApi, start: Any) -> None:
    """Each object is created in order, with exactly its document as the request."""
    completed = start(tmp_path)
    assert completed.returncode == 0, completed.stderr
    rendered = json.loads(run(tmp_path, *COMMAND, "render", "--size", "v6e-16", "--format", "json").stdout)
    assert list(api.objects.items()) == list(zip(ALL, rendered.values(), strict=True))
    completed = start(tmp_path, "v6e-4")
    assert completed.returncode == 0, completed.stderr
    rendered = json.loads(run(tmp_path, *COMMAND, "render", "--size", "v6e-4", "--format", "json").stdout)
    assert api.objects[INSTANCE] == rendered["instance"]


@STARTS
def test_equal_objects_of_an_earlier_run_are_reused(tmp_path: Path, api: ComputeApi, start: Any) -> None:
    """A group deletes itself, and the next start creates only the group."""
    assert start(tmp_path).returncode == 0
    del api.objects[GROUP]
    api.requests.clear()
    completed = start(tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert [path for method, path in api.requests if method == "POST"] == [GROUP.rpartition("/")[0]]


@STARTS
def test_a_running_job_is_not_started_twice(tmp_path: Path, api: ComputeApi, start: Any) -> None:
    """A group of the name is refused, and stays with what it refers to."""
    assert start(tmp_path).returncode == 0
    before = dict(api.objects)
    completed = start(tmp_path)
    assert completed.returncode != 0
    assert "already exists" in completed.stderr
    assert api.objects == before


@STARTS
def test_another_template_of_the_name_is_refused(tmp_path: Path, api: ComputeApi, start: Any) -> None:
    """A template of a changed job is neither reused nor replaced."""
    assert start(tmp_path).returncode == 0
    del api.objects[GROUP]
    before = dict(api.objects)
    write_spec(tmp_path, changed="1")
    completed = start(tmp_path)
    assert completed.returncode != 0
    assert api.objects == before
    if start is submit:
        assert "another instanceTemplate of the name mnist-dev-v6e-16 exists" in completed.stderr
        assert "--request DELETE" in completed.stderr


@pytest.mark.parametrize("problem", ["refused", "failing"])
@pytest.mark.parametrize("path", [*ALL, INSTANCE])
def test_a_failure_leaves_nothing_behind(tmp_path: Path, api: ComputeApi, path: str, problem: str) -> None:
    """If a request is refused or its operation fails, the objects that were created before are deleted again."""
    setattr(api, problem, path.split("/")[-2])
    completed = submit(tmp_path, path.rpartition("mnist-dev-")[2])
    assert completed.returncode == 1
    assert ("Quota exceeded" if problem == "refused" else "no TPUs") in completed.stderr
    assert "Traceback" not in completed.stderr
    assert api.objects == {}


def test_a_failure_leaves_earlier_objects_alone(tmp_path: Path, api: ComputeApi) -> None:
    """An equal policy of an earlier run is not of this call, so that a failure does not delete it."""
    assert submit(tmp_path).returncode == 0
    del api.objects[GROUP], api.objects[TEMPLATE]
    api.failing = "instanceGroupManagers"
    assert submit(tmp_path).returncode == 1
    assert list(api.objects) == [POLICY]


def test_a_group_may_wait_for_its_machines(tmp_path: Path, api: ComputeApi) -> None:
    """The last operation may last as long as the capacity is missing, which is no failure."""
    api.slow = "instanceGroupManagers"
    completed = submit(tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert "still being created" in completed.stderr
    assert "delete it with" in completed.stderr


def test_a_template_must_not_wait(tmp_path: Path, api: ComputeApi) -> None:
    """An object that another one refers to has to exist; the policy is deleted again."""
    api.slow = "instanceTemplates"
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert "was not created in time" in completed.stderr
    assert POLICY not in api.objects


def test_without_a_network_nothing_is_created(tmp_path: Path, api: ComputeApi) -> None:
    """A curl without an answer is an error, and no traceback."""
    program(tmp_path / "bin", "curl", "exit 7")
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert "cannot be looked up: no answer" in completed.stderr
    assert api.requests == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--document", "instance"), "--document needs --format json"),
        (("--document", "group", "--format", "json"), "a config has no object group"),
    ],
)
def test_an_object_is_printed_alone(tmp_path: Path, api: ComputeApi, options: tuple[str, ...], message: str) -> None:
    """`render --document` prints one object, and names those that there are."""
    completed = run(tmp_path, *COMMAND, "render", "--size", "v6e-4", *options)
    assert completed.returncode == 2
    assert message in completed.stderr
    assert not api.objects
