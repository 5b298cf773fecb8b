"""The objects of a job on Compute Engine, created by `submit --execute` and by the lines that `submit` prints."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compute_api import ComputeApi, serving_compute
from jobs import program
from process import COMMAND, ENVIRONMENT, default_signals, run_here
from spec_factory import spec

pytestmark = pytest.mark.shell

REGION = "/compute/v1/projects/my-project/regions/us-east5"
ZONE = "/compute/v1/projects/my-project/zones/us-east5-a"
POLICY = f"{REGION}/resourcePolicies/mnist-dev-v6e-16"
TEMPLATE = f"{REGION}/instanceTemplates/mnist-dev-v6e-16"
GROUP = f"{ZONE}/instanceGroupManagers/mnist-dev-v6e-16"
INSTANCE = f"{ZONE}/instances/mnist-dev-v6e-4"
ALL = [POLICY, TEMPLATE, GROUP]
PAGE = "<!DOCTYPE html><title>502</title>"


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ComputeApi]:
    """Serve an empty project, and write a spec for it; the pause before a second request is short."""
    monkeypatch.setattr("tpucfg.cli.start_job._PAUSE_SECONDS", 0.01)
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
        environments={
            "dev": {"project": "my-project", "region": "us-east5", "capacity": "flex-start"}
        },
        trainer={"image": "r.io/i:1", "max_run_duration": "1h", "args": args},
        training={"tuned_on": "v6e-4", "batch_size": 64, "train_steps": 100},
    )
    (folder / "tpucfg.yaml").write_text(json.dumps(data))


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a command that finds the stand-ins."""
    return {**ENVIRONMENT, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def run(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in the folder of the spec."""
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )


def tpucfg(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in the folder of the spec."""
    return run_here(folder, *arguments, env=environment(folder))


def submit(folder: Path, size: str = "v6e-16") -> "subprocess.CompletedProcess[str]":
    """Run `tpucfg submit --execute`."""
    return tpucfg(folder, "submit", "--size", size, "--execute")


def paste(folder: Path, size: str = "v6e-16") -> "subprocess.CompletedProcess[str]":
    """Paste into bash what `tpucfg submit` prints."""
    printed = tpucfg(folder, "submit", "--size", size)
    assert printed.returncode == 0, printed.stderr
    return run(folder, "bash", "-c", printed.stdout)


@pytest.mark.parametrize("start", [submit, paste])
def test_the_objects_are_those_of_the_config(tmp_path: Path, api: ComputeApi, start: Any) -> None:
    """Each object is created in order, with exactly its document as the request."""
    completed = start(tmp_path)
    assert completed.returncode == 0, completed.stderr
    rendered = json.loads(tpucfg(tmp_path, "render", "--size", "v6e-16", "--format", "json").stdout)
    assert list(api.objects.items()) == list(zip(ALL, rendered.values(), strict=True))
    completed = start(tmp_path, "v6e-4")
    assert completed.returncode == 0, completed.stderr
    assert re.search(r'timestamp>="20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"', completed.stderr)
    rendered = json.loads(tpucfg(tmp_path, "render", "--size", "v6e-4", "--format", "json").stdout)
    assert api.objects[INSTANCE] == rendered["instance"]


def test_equal_objects_of_an_earlier_run_are_reused(tmp_path: Path, api: ComputeApi) -> None:
    """A group deletes itself, and the next start creates only the group."""
    assert submit(tmp_path).returncode == 0
    del api.objects[GROUP]
    api.requests.clear()
    completed = submit(tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert [path for method, path in api.requests if method == "POST"] == [GROUP.rpartition("/")[0]]


def test_a_running_job_is_not_started_twice(tmp_path: Path, api: ComputeApi) -> None:
    """A group of the name is refused, and stays with what it refers to."""
    assert submit(tmp_path).returncode == 0
    before = dict(api.objects)
    completed = submit(tmp_path)
    assert completed.returncode != 0
    assert "already exists, so the job may be running" in completed.stderr
    assert "Traceback" not in completed.stderr
    assert api.objects == before


def test_a_group_that_another_start_makes_stays(tmp_path: Path, api: ComputeApi) -> None:
    """A group that appears between the look-up and the request is neither deleted nor called this start's."""

    def start_another(method: str, path: str) -> None:
        if method == "POST" and path.endswith("/instanceGroupManagers"):
            api.objects[GROUP] = {"name": "mnist-dev-v6e-16"}

    api.on_request = start_another
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert "was not created: " in completed.stderr.splitlines()[-2]
    assert DELETIONS[GROUP] not in completed.stderr.splitlines()[-1]
    assert GROUP in api.objects
    assert ("POST", GROUP.rpartition("/")[0]) in api.requests
    assert ("DELETE", GROUP) not in api.requests


def test_each_object_has_a_command_of_its_own(tmp_path: Path, api: ComputeApi) -> None:
    """Below the command that creates all objects, the one of each is printed in order, as a comment."""
    printed = tpucfg(tmp_path, "submit", "--size", "v6e-16").stdout.splitlines()
    commands = [
        line.removeprefix("#   ") for line in printed if line.startswith("#   tpucfg render ")
    ]
    assert printed[1] == "tpucfg submit --env dev --size v6e-16 --execute"
    for command in commands:
        assert run(tmp_path, "bash", "-euo", "pipefail", "-c", command).returncode == 0
    assert [path for method, path in api.requests if method == "POST"] == [
        path.rpartition("/")[0] for path in ALL
    ]


@pytest.mark.parametrize("answer", [(200, PAGE), (403, "{}"), (503, PAGE), (0, None)])
def test_a_look_up_without_an_answer_ends_the_start(
    tmp_path: Path, api: ComputeApi, answer: tuple[int, Any]
) -> None:
    """If it is unknown whether an object exists, nothing is created."""
    api.intercepted = lambda method, _: answer if method == "GET" else None
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert "cannot be looked up, " in completed.stderr
    assert not any(method == "POST" for method, _ in api.requests)


def test_waits_that_a_proxy_answers_decide_nothing(tmp_path: Path, api: ComputeApi) -> None:
    """A group that was accepted is started, even if each wait for it is answered by a page."""

    def intercept(_: str, path: str) -> Any:
        return (200, PAGE) if path.endswith("/wait") and TEMPLATE in api.objects else None

    api.intercepted = intercept
    completed = submit(tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert "accepted, and " in completed.stderr
    assert not any(method == "DELETE" for method, _ in api.requests)


@pytest.mark.parametrize("answer", [(200, PAGE), (502, PAGE), (0, None)])
def test_an_unclear_creation_is_called_so(
    tmp_path: Path, api: ComputeApi, answer: tuple[int, Any]
) -> None:
    """Without an operation as the answer, the last line names the object that may yet appear, and how to delete it."""
    api.intercepted = lambda method, path: (
        answer if method == "POST" and path.endswith("/instanceGroupManagers") else None
    )
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert "bad/illegal format" not in completed.stderr
    *_, before, last = completed.stderr.splitlines()
    assert (
        "instanceGroupManager mnist-dev-v6e-16: not there yet; its request may still"
        in completed.stderr
    )
    assert "unclear if it was created" in before
    assert before.endswith("instanceGroupManager mnist-dev-v6e-16")
    assert "instanceGroupManager mnist-dev-v6e-16 is charged while it exists" in last
    assert commands_in(last) == {DELETIONS[path] for path in ALL}


def test_the_last_line_names_what_is_charged(tmp_path: Path, api: ComputeApi) -> None:
    """A group that could be neither created as a whole nor deleted is in the last line."""
    api.lost = "instanceGroupManagers"
    api.intercepted = lambda method, path: (
        (0, None) if method == "DELETE" and path == GROUP else None
    )
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert GROUP in api.objects
    last = completed.stderr.splitlines()[-1]
    assert "instanceGroupManager mnist-dev-v6e-16 is charged while it exists" in last
    assert DELETIONS[GROUP] in last


def test_commands_that_are_pasted_together_ask_nothing(tmp_path: Path, api: ComputeApi) -> None:
    """A question of the first deletion would read the second one as its answer."""
    api.refused = "resourcePolicies"
    announced = submit(tmp_path).stderr.partition("if this is killed")[2].splitlines()[1:4]
    assert [line.split()[-1] for line in announced] == ["--quiet"] * 3


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (
            "v6e-4",
            (
                "describe mnist-dev-v6e-4 '--format=value(status)'",
                "get-serial-port-output mnist-dev-v6e-4 ",
            ),
        ),
        (
            "v6e-16",
            (
                "list-instances mnist-dev-v6e-16",
                "get-serial-port-output HOST ",
                "list-errors mnist-dev-v6e-16 ",
            ),
        ),
    ],
)
def test_commands_for_a_person(
    tmp_path: Path, api: ComputeApi, size: str, words: tuple[str, ...]
) -> None:
    """The state is printed without the start-up script, the log as text; what a host has printed has a command."""
    printed = tpucfg(tmp_path, "submit", "--size", size).stdout
    for word in (*words, "--order=asc", "value(timestamp,jsonPayload.message)", " GB of disk and "):
        assert word in printed
    assert not api.requests


def test_another_template_of_the_name_is_refused(tmp_path: Path, api: ComputeApi) -> None:
    """A template of a changed job is neither reused nor replaced."""
    assert submit(tmp_path).returncode == 0
    del api.objects[GROUP]
    before = dict(api.objects)
    write_spec(tmp_path, changed="1")
    completed = submit(tmp_path)
    assert completed.returncode != 0
    assert api.objects == before
    assert (
        "instanceTemplate mnist-dev-v6e-16 already exists, made from other values or by another"
        in completed.stderr
    )
    assert DELETIONS[TEMPLATE] in completed.stderr


def commands_in(text: str) -> set[str]:
    """Return the commands of a text that delete objects."""
    return set(
        re.findall(
            r"gcloud compute [a-z -]+ delete mnist-dev-\S+ --project=my-project --\w+=[\w-]+", text
        )
    )


DELETIONS = {
    POLICY: "gcloud compute resource-policies delete mnist-dev-v6e-16 --project=my-project --region=us-east5",
    TEMPLATE: "gcloud compute instance-templates delete mnist-dev-v6e-16 --project=my-project --region=us-east5",
    GROUP: "gcloud compute instance-groups managed delete mnist-dev-v6e-16 --project=my-project --zone=us-east5-a",
    INSTANCE: "gcloud compute instances delete mnist-dev-v6e-4 --project=my-project --zone=us-east5-a",
}
PROBLEMS = {
    "refused": "Quota exceeded",
    "failing": "no TPUs",
    "lost": "Empty reply from server",
    "late": "Empty reply from server",
    "page": "",
}
"""Events during the creation of an object, and the words about them."""


@pytest.mark.parametrize(
    ("problem", "path"),
    [
        *((problem, path) for problem in ("refused", "failing") for path in (*ALL, INSTANCE)),
        *((problem, GROUP) for problem in ("lost", "late", "page")),
        ("lost", POLICY),
    ],
)
def test_a_failure_leaves_nothing_charged_or_unnamed(
    tmp_path: Path, api: ComputeApi, path: str, problem: str
) -> None:
    """If a request is refused or lost, or its operation fails, nothing else is created.

    What is charged is deleted, and the last line has the commands for what is left.
    """
    setattr(api, problem, path.split("/")[-2])
    completed = submit(tmp_path, path.rpartition("mnist-dev-")[2])
    assert completed.returncode == 1, completed.stderr
    assert PROBLEMS[problem] in completed.stderr
    assert "Traceback" not in completed.stderr
    assert api.objects.keys() <= {POLICY, TEMPLATE}
    last = completed.stderr.splitlines()[-1]
    assert {DELETIONS[left] for left in api.objects} <= commands_in(last)
    may_be_charged = bool({DELETIONS[GROUP], DELETIONS[INSTANCE]} & commands_in(last))
    assert ("is charged while it exists; delete: " in last) == may_be_charged


def test_a_wait_that_fails_decides_nothing(tmp_path: Path, api: ComputeApi) -> None:
    """An unavailable service is asked again, and the objects stay; only the error of an operation is a failure."""
    api.unavailable = 1
    assert submit(tmp_path).returncode == 0
    assert [*api.objects] == ALL


def test_an_accepted_group_is_started(tmp_path: Path, api: ComputeApi) -> None:
    """If no wait is answered, a group that was accepted may run, so that it is not deleted."""

    def fail_waits(_: str, path: str) -> None:
        api.unavailable = 9 if path.endswith("instanceGroupManagers") else api.unavailable

    api.on_request = fail_waits
    completed = submit(tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert "accepted, and " in completed.stderr
    assert not any(method == "DELETE" for method, _ in api.requests)


class Interruption:
    """Runs `tpucfg submit --execute`, and sends it a signal when the server receives each of certain requests."""

    def __init__(self, folder: Path, api: ComputeApi, *signals: tuple[str, str, int]) -> None:
        self._pending = [*signals]
        self._started = threading.Event()
        api.on_request = self._interrupt
        with default_signals():
            self._process = subprocess.Popen(
                [*COMMAND, "submit", "--size", "v6e-16", "--execute"],
                cwd=folder,
                env=environment(folder),
                stderr=subprocess.PIPE,
                text=True,
            )
        self._started.set()
        self.stderr = self._process.communicate()[1]
        self.status = self._process.returncode

    def _interrupt(self, method: str, path: str) -> None:
        self._started.wait()
        if self._pending and method == self._pending[0][0] and path.endswith(self._pending[0][1]):
            self._process.send_signal(self._pending.pop(0)[2])


@pytest.mark.parametrize(
    ("collection", "number"),
    [
        ("/instanceTemplates", signal.SIGTERM),
        ("/instanceGroupManagers", signal.SIGINT),
        ("/instanceGroupManagers", signal.SIGHUP),
    ],
)
def test_an_interrupted_start_leaves_nothing_charged(
    tmp_path: Path, api: ComputeApi, collection: str, number: int
) -> None:
    """A signal while an object is posted ends the start; a group is deleted, and the others are named."""
    interrupted = Interruption(tmp_path, api, ("POST", collection, number))
    assert interrupted.status == 130
    assert POLICY in api.objects
    assert GROUP not in api.objects
    named = interrupted.stderr.partition("not deleted; run:")[2]
    assert {DELETIONS[left] for left in api.objects} <= commands_in(named)
    assert "Traceback" not in interrupted.stderr


@pytest.mark.parametrize(
    ("first", "second"), [(signal.SIGHUP, signal.SIGHUP), (signal.SIGINT, signal.SIGTERM)]
)
def test_a_later_signal_does_not_end_the_deletion(
    tmp_path: Path, api: ComputeApi, first: int, second: int
) -> None:
    """A terminal that closes sends SIGHUP twice, and a canceled CI job Ctrl-C and then SIGTERM."""
    group = ("POST", "/instanceGroupManagers", first)
    interrupted = Interruption(
        tmp_path, api, group, ("DELETE", "/instanceGroupManagers/mnist-dev-v6e-16", second)
    )
    assert interrupted.status == 130
    assert GROUP not in api.objects
    assert "Traceback" not in interrupted.stderr


def test_an_interrupted_deletion_has_named_all(tmp_path: Path, api: ComputeApi) -> None:
    """A second Ctrl-C ends the deletion; the commands that delete the rest are printed before."""
    api.failing = "instanceGroupManagers"
    interrupted = Interruption(
        tmp_path, api, ("DELETE", "/instanceGroupManagers/mnist-dev-v6e-16", signal.SIGINT)
    )
    assert interrupted.status == 130
    announced = interrupted.stderr.partition("deleting instanceGroupManager")[2]
    assert commands_in(announced) == {DELETIONS[path] for path in ALL}


def test_a_killed_start_has_named_all(tmp_path: Path, api: ComputeApi) -> None:
    """The commands that delete everything are printed before the first object is created."""
    api.refused = "resourcePolicies"
    completed = submit(tmp_path)
    assert completed.stderr.index("if this is killed") < completed.stderr.index("Quota exceeded")
    assert commands_in(completed.stderr) == {DELETIONS[path] for path in ALL}


def test_without_a_reader_nothing_is_created(tmp_path: Path, api: ComputeApi) -> None:
    """If the commands that delete everything cannot be printed, there is nothing to delete."""
    submit_command = shlex.join([*COMMAND, "submit", "--size", "v6e-16", "--execute"])
    run(tmp_path, "bash", "-c", f"{submit_command} 2>&1 | head -n 1")
    assert not any(method == "POST" for method, _ in api.requests)


def test_an_unfinished_deletion_is_named(tmp_path: Path, api: ComputeApi) -> None:
    """An object whose deletion does not end in time is not called deleted."""
    api.lost, api.is_deletion_slow = "instanceGroupManagers", True
    completed = submit(tmp_path)
    assert "instanceGroupManager mnist-dev-v6e-16: still being deleted" in completed.stderr
    assert f"exists; delete: {DELETIONS[GROUP]}" in completed.stderr.splitlines()[-1]


def test_free_objects_stay_for_the_next_start(tmp_path: Path, api: ComputeApi) -> None:
    """No request deletes a policy whose template was refused, and the next start reuses it."""
    api.refused = "instanceTemplates"
    completed = submit(tmp_path)
    assert f"it costs nothing; delete: {DELETIONS[POLICY]}" in completed.stderr.splitlines()[-1]
    assert not any(method == "DELETE" for method, _ in api.requests)
    api.refused = ""
    assert submit(tmp_path).returncode == 0
    assert [*api.objects] == ALL


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (403, '{"error": "blocked"}'),
        (403, '{"error": {"errors": ["a"]}}'),
        (403, "[1]"),
        (403, "<html>"),
        (200, "<html>"),
    ],
)
def test_the_answer_of_a_proxy_is_an_error(
    tmp_path: Path, api: ComputeApi, status: int, answer: str
) -> None:
    """An answer of any form is an error, and no traceback."""
    program(tmp_path / "bin", "curl", f"printf '%s\\n{status}\\n' {shlex.quote(answer)}")
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert (
        "resourcePolicy mnist-dev-v6e-16 cannot be looked up, nothing started: " in completed.stderr
    )
    assert "Traceback" not in completed.stderr
    assert not api.requests


def test_a_failure_leaves_earlier_objects_alone(tmp_path: Path, api: ComputeApi) -> None:
    """An equal policy of an earlier run is not of this call, so that a failure does not name it."""
    assert submit(tmp_path).returncode == 0
    del api.objects[GROUP], api.objects[TEMPLATE]
    api.failing = "instanceGroupManagers"
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert list(api.objects) == [POLICY, TEMPLATE]
    assert commands_in(completed.stderr.splitlines()[-1]) == {DELETIONS[TEMPLATE]}


def test_a_group_may_wait_for_its_machines(tmp_path: Path, api: ComputeApi) -> None:
    """The last operation may last as long as the capacity is missing, which is no failure."""
    api.slow = "instanceGroupManagers"
    completed = submit(tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert "accepted, and " in completed.stderr
    assert DELETIONS[GROUP] in completed.stderr


@pytest.mark.parametrize("path", [POLICY, TEMPLATE])
def test_a_template_must_not_wait(tmp_path: Path, api: ComputeApi, path: str) -> None:
    """An object that another one refers to has to exist, and the waits for it are bounded."""
    api.slow = path.split("/")[-2]
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert GROUP not in api.objects
    assert "was not created in time" in completed.stderr
    assert DELETIONS[path] in completed.stderr.splitlines()[-1]


def test_without_a_network_nothing_is_created(tmp_path: Path, api: ComputeApi) -> None:
    """A curl without an answer is an error, and no traceback."""
    program(tmp_path / "bin", "curl", "exit 7")
    completed = submit(tmp_path)
    assert completed.returncode == 1
    assert "cannot be looked up, nothing started: no answer" in completed.stderr
    assert api.requests == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--document", "instance"), "--document needs --format json"),
        (("--document", "", "--format", "json"), "dev/v6e-4/config.json has no object "),
        (("--document", "group", "--format", "json"), "dev/v6e-4/config.json has no object group"),
        (
            ("--document", "instance", "--format", "json"),
            "dev/v6e-16/config.json has no object instance",
        ),
    ],
)
def test_an_object_is_printed_alone(
    tmp_path: Path, api: ComputeApi, options: tuple[str, ...], message: str
) -> None:
    """`render --document` prints one object, and prints nothing if a config lacks it, naming those that there are."""
    completed = tpucfg(tmp_path, "render", *options)
    assert completed.returncode == 2
    assert message in completed.stderr
    assert completed.stdout == ""
    assert not api.objects


def test_other_targets_have_no_objects(tmp_path: Path) -> None:
    """A field of another target's request body is no object."""
    data = spec(
        target="cloud-tpu",
        sizes=["v2-8"],
        training={"tuned_on": "v2-8", "batch_size": 8, "train_steps": 1},
    )
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(data))
    completed = tpucfg(tmp_path, "render", "--format", "json", "--document", "tpu")
    assert completed.returncode == 2
    assert "config.json is one object, which --document cannot divide" in completed.stderr
    assert completed.stdout == ""
