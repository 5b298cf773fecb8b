"""`submit` on gke against a stand-in for kubectl and its cluster: what is asked, created, left and printed."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_cluster import cluster, install_kubectl
from process import COMMAND, ENVIRONMENT, Run, default_signals, run_here
from spec_factory import spec

pytestmark = pytest.mark.shell

NAME: Final = "mnist-dev-v5litepod-16"
ACCOUNT: Final = "serviceaccounts/tpu-mnist-dev"
OBJECTS: Final = [
    f"secretproviderclasses.secrets-store.csi.x-k8s.io/{NAME}",
    f"secretsyncs.secret-sync.gke.io/{NAME}",
    f"jobsets.jobset.x-k8s.io/{NAME}",
]
CONTEXT: Final = "--context=train"
NO_ROLE: Final = (
    'Error from server (Forbidden): error when creating "STDIN": jobs.batch is forbidden: User "a@b" cannot create '
    'resource "jobs" in API group "batch" in the namespace "default"'
)
INVALID: Final = (  # kubectl's form
    'The Job "x" is invalid: '
    'spec.template.spec.containers[0].volumeMounts[0].name: Not name: "data"'
)


def gke_spec(**changes: Any) -> dict[str, Any]:
    """Return a spec of one job with a secret."""
    return spec(
        target="gke",
        sizes=["v5litepod-16"],
        environments__dev={
            "project": "my-project-dev",
            "region": "us-central1",
            "kube_context": "train",
        },
        trainer={"image": "r.io/i:1", "secrets": {"HF_TOKEN": "hf/1"}},
        training={"tuned_on": "v5litepod-16", "batch_size": 1024, "train_steps": 4000},
        **changes,
    )


class Submitted:
    """The outcome of one `submit --execute`."""

    run: Run = staticmethod(run_here)

    def __init__(self, folder: Path, data: dict[str, Any], *options: str, **state: Any) -> None:
        (folder / "tpucfg.yaml").write_text(json.dumps(data))
        (folder / "bin").mkdir(exist_ok=True)
        install_kubectl(folder / "bin", folder / "cluster.json", **state)
        environment = {**ENVIRONMENT, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        completed = self.run(folder, "submit", "--execute", *options, env=environment)
        self.status, self.errors = completed.returncode, completed.stderr
        self.objects: list[str] = cluster(folder / "cluster.json")["objects"]
        self.calls: list[list[str]] = cluster(folder / "cluster.json")["calls"]

    def created(self) -> list[str]:
        """Return the words after the global options of each call that changes something."""
        changing = [
            call for call in self.calls if "--dry-run=server" not in call and "get" not in call
        ]
        return [" ".join(word for word in call if not word.startswith("--")) for call in changing]


class SubmittedByAProcess(Submitted):
    """The outcome of one `submit --execute` that gets a signal."""

    @staticmethod
    def run(
        folder: Path, *arguments: str, env: Mapping[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        """Run the command as a process."""
        with default_signals():
            return subprocess.run(
                [*COMMAND, *arguments],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )


def test_all_is_asked_before_anything_is_created(tmp_path: Path) -> None:
    """Requirements, every object and the pods' Job come first, then the objects in order, companions first."""
    job = Submitted(tmp_path, gke_spec(), objects=[ACCOUNT])
    assert job.status == 0, job.errors
    assert job.objects == [ACCOUNT, *OBJECTS]
    kinds = [
        "get" if "get" in call else "dry" if "--dry-run=server" in call else "create"
        for call in job.calls
    ]
    assert kinds == ["get"] * 2 + ["dry"] * 4 + ["create"] * 3
    assert all(CONTEXT in call for call in job.calls)
    deletions = [line for line in job.errors.splitlines() if line.startswith("delete it with: ")]
    assert [line.rpartition(" ")[2].partition("/")[0] for line in deletions] == [
        "jobset",
        "secretsyncs.secret-sync.gke.io",
        "secretproviderclasses.secrets-store.csi.x-k8s.io",
    ]


def test_a_missing_account_is_created_and_bound(tmp_path: Path) -> None:
    """The stack's Kubernetes account is created with its annotation; an account of the spec's own is an error."""
    job = Submitted(tmp_path, gke_spec())
    assert job.status == 0, job.errors
    assert job.objects == [ACCOUNT, *OBJECTS]
    own = Submitted(tmp_path, gke_spec(targets={"gke": {"service_account": "trainer"}}))
    assert (own.status, own.objects) == (1, [])
    assert (
        "serviceaccount/trainer is missing: Kubernetes refuses every pod of the job" in own.errors
    )
    assert "create serviceaccount trainer && " in own.errors


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            {"missing_kinds": ["SecretSync"]},
            "the cluster does not know the kind SecretSync\nhelp: gcloud container",
        ),
        (
            {"missing_kinds": ["JobSet"]},
            "the cluster does not know the kind JobSet\nhelp: install JobSet: https://",
        ),
        (
            {"errors": {"dry Job": INVALID}},
            'the cluster refuses the pods\' Job: The Job "x" is invalid: spec.templ',
        ),
        (
            {
                "errors": {
                    "dry JobSet": 'Error from server (NotFound): error when creating "STDIN": namespaces "a" not found'
                }
            },
            "the cluster has no namespace a\nhelp: create it: kubectl --context=train create namespace a",
        ),
        (
            {"errors": {"dry JobSet": NO_ROLE}},
            f"you may not create jobset/{NAME}: jobs.batch is forbidden",
        ),
        (
            {"objects": OBJECTS[2:]},
            f"jobset/{NAME} already exists, so the job may be running, and was left as it is",
        ),
        (
            {"errors": {"dry SecretSync": "Unable to connect to the server: EOF"}},
            "the cluster does not answer: Unable",
        ),
        (
            {"errors": {"get serviceaccount": 'error: context "train" does not exist'}},
            'answer: error: context "train"',
        ),
    ],
)
def test_a_refusal_creates_nothing(tmp_path: Path, state: dict[str, Any], message: str) -> None:
    """Each refusal is printed with what to do, and nothing was created."""
    job = Submitted(tmp_path, gke_spec(), **state)
    assert job.status == 1
    assert message in job.errors
    assert job.errors.splitlines()[-1].endswith("nothing was created")
    assert job.created() == []
    assert job.objects == state.get("objects", [])


@pytest.mark.parametrize(("end", "status"), [("<none>", 1), ("Completed", 0)])
def test_a_run_has_one_job_at_a_time(tmp_path: Path, end: str, status: int) -> None:
    """Another job of the run that has not ended writes to the same folder, and the help deletes it."""
    data = gke_spec()
    data["trainer"]["args"] = {"model_dir": "${run_dir}"}
    listed = {"jobsets.jobset.x-k8s.io": f"mnist-dev-v5litepod-64-a1   {end}"}
    job = Submitted(tmp_path, data, "--run", "a1", objects=[ACCOUNT], listed=listed)
    assert job.status == status
    assert ("jobset/mnist-dev-v5litepod-64-a1 is of the same run" in job.errors) == bool(status)
    assert ("delete jobset/mnist-dev-v5litepod-64-a1; or name another run" in job.errors) == bool(
        status
    )
    assert sum("tpucfg-environment=dev,tpucfg-run=a1" in " ".join(call) for call in job.calls) == 1


def test_a_started_run_keeps_its_steps(tmp_path: Path) -> None:
    """The steps that only --step had are recorded, so that the next submission goes on behind them."""
    data = gke_spec() | {"sizes": ["v5litepod-16", "v5litepod-64"]}
    data["trainer"]["args"] = {"model_dir": "${run_dir}"}
    options = ("--size", "v5litepod-64", "--run", "a1")
    job = Submitted(tmp_path, data, *options, "--step", "v5litepod-16:1000", objects=[ACCOUNT])
    assert (job.status, "recorded v5litepod-16: step 1000 of a1" in job.errors) == (0, True)
    again = Submitted(tmp_path, data, *options, objects=[ACCOUNT])
    assert (
        "goes on at step 1,000 of 1,750, with 1,024,000 examples seen on v5litepod-16"
        in again.errors
    )
    assert len((tmp_path / "results" / "dev.jsonl").read_text().splitlines()) == 1
    left = [ACCOUNT, "jobsets.jobset.x-k8s.io/mnist-dev-v5litepod-64-a1"]
    (line,) = [
        line
        for line in Submitted(tmp_path, data, *options, objects=left).errors.splitlines()
        if "watch it" in line
    ]
    assert "--run" not in line


def test_what_an_ended_job_left_is_deleted_alone(tmp_path: Path) -> None:
    """The JobSet is deleted by its ttl, and the objects of its secrets stay: the help has their commands only."""
    job = Submitted(tmp_path, gke_spec(), objects=[ACCOUNT, *OBJECTS[:2]])
    assert (job.status, job.created()) == (1, [])
    (line,) = [line for line in job.errors.splitlines() if line.startswith("help: delete it: ")]
    assert (line.count("delete secretsyncs"), line.count("delete jobset")) == (1, 0)
    assert "already exists, left by an earlier job" in job.errors


def test_an_existing_job_can_be_watched_deleted_or_named_anew(tmp_path: Path) -> None:
    """The help of AlreadyExists has the commands, and the existing job is left."""
    job = Submitted(tmp_path, gke_spec(), objects=OBJECTS)
    (line,) = [line for line in job.errors.splitlines() if line.startswith("help: watch it: ")]
    assert f"delete it: kubectl {CONTEXT} --namespace=default delete jobset/{NAME}; kubectl" in line
    assert line.endswith("or add --run ID, which is in names")


@pytest.mark.parametrize(
    ("state", "note"),
    [
        (
            {"errors": {"dry Job": NO_ROLE}},
            "note: the pods were not checked, because you may not create a Job: jobs",
        ),
        (
            {"nodes": 0},
            "note: no nodes now match --selector=cloud.google.com/gke-tpu-accelerator=tpu-v5-lite-podslice,",
        ),
        ({"nodes": 3}, "note: 3 nodes now match"),
        ({"warnings": ["unknown field"]}, f"note: jobset/{NAME}: unknown field"),
        (
            {"errors": {"get nodes": NO_ROLE.replace("create", "list")}},
            "note: nodes cannot be looked up: ",
        ),
        (
            {"errors": {"get serviceaccount": NO_ROLE.replace("create", "get")}},
            "note: serviceaccount/tpu-mnist-dev cannot be looked up: ",
        ),
        (
            {
                "errors": {
                    "dry JobSet": 'Error from server (BadRequest): admission webhook "w" does not support dry run'
                }
            },
            f"note: jobset/{NAME} was not checked: ",
        ),
    ],
)
def test_what_does_not_prevent_the_job_is_a_note(
    tmp_path: Path, state: dict[str, Any], note: str
) -> None:
    """Questions that the caller may not ask, and nodes that are not there yet, are notes; the job starts."""
    job = Submitted(tmp_path, gke_spec(), **{"objects": [ACCOUNT], **state})
    assert job.status == 0, job.errors
    assert note in job.errors
    assert job.objects == [ACCOUNT, *OBJECTS]


@pytest.mark.parametrize(
    ("options", "state", "message"),
    [
        (
            {"queue": "tpu"},
            {},
            "localqueues.kueue.x-k8s.io/tpu is missing: with Kueue the job waits for ever, and with",
        ),
        (
            {"queue": "tpu"},
            {"missing_kinds": ["localqueues.kueue.x-k8s.io"]},
            "localqueues.kueue.x-k8s.io/tpu is miss",
        ),
        (
            {"priority": "high"},
            {},
            "priorityclasses.scheduling.k8s.io/high is missing: Kubernetes refuses every pod",
        ),
    ],
)
def test_a_missing_queue_or_priority_is_an_error(
    tmp_path: Path, options: dict[str, str], state: dict[str, Any], message: str
) -> None:
    """A job that would wait for ever, or start without its queue, is not created."""
    job = Submitted(tmp_path, gke_spec(targets={"gke": options}), objects=[ACCOUNT], **state)
    assert (job.status, job.objects) == (1, [ACCOUNT])
    assert message in job.errors
    name = [f"{next(iter(message.split(' is miss')))}"]
    assert (
        Submitted(tmp_path, gke_spec(targets={"gke": options}), objects=[ACCOUNT, *name]).status
        == 0
    )


def test_without_a_queue_topology_aware_needs_the_default_one(tmp_path: Path) -> None:
    """A job that a queue should place is not created where its namespace has no queue for it."""
    training = {"tuned_on": "v6e-16", "batch_size": 1024, "train_steps": 4000}
    data = gke_spec(targets={"gke": {"topology_aware": True}}) | {
        "sizes": ["v6e-16"],
        "training": training,
    }
    job = Submitted(tmp_path, data, objects=[ACCOUNT])
    assert (job.status, job.objects) == (1, [ACCOUNT])
    assert (
        "localqueues.kueue.x-k8s.io/default is missing: the job starts at once, on any nodes"
        in job.errors
    )
    queue = "localqueues.kueue.x-k8s.io/default"
    assert Submitted(tmp_path, data, objects=[ACCOUNT, queue]).status == 0


@pytest.mark.parametrize(
    "error", ['Error from server (InternalError): error when creating "STDIN": etcd', "lost"]
)
@pytest.mark.parametrize("kind", ["SecretProviderClass", "SecretSync", "JobSet"])
def test_a_failure_leaves_no_jobset(tmp_path: Path, kind: str, error: str) -> None:
    """A JobSet is deleted, also one whose answer was lost; the last line has the command for each other object."""
    job = Submitted(tmp_path, gke_spec(), errors={kind: error})
    assert job.status == 1
    assert OBJECTS[2] not in job.objects
    last = job.errors.splitlines()[-1]
    assert last.startswith("help: it costs nothing; delete: ")
    assert all(_deletion(name) in last for name in job.objects), last


def _deletion(name: str) -> str:
    return f"delete {name}".replace("serviceaccounts/", "serviceaccount/")


def test_a_canceled_start_leaves_no_jobset(tmp_path: Path) -> None:
    """A SIGTERM while the JobSet is created, as of a CI job that is canceled, deletes it and names the others."""
    job = SubmittedByAProcess(tmp_path, gke_spec(), errors={"JobSet": "interrupted"})
    assert job.status == 130, job.errors
    assert OBJECTS[2] not in job.objects
    named = job.errors.partition("not deleted; run:")[2]
    assert all(_deletion(name) in named for name in job.objects), job.errors


def test_what_cannot_be_deleted_is_named(tmp_path: Path) -> None:
    """The last lines name what remains, with the commands that delete it."""
    refusal = "Error from server (Forbidden): no"
    errors = {"JobSet": "lost", "delete jobset": refusal}
    job = Submitted(tmp_path, gke_spec(), objects=[ACCOUNT], errors=errors)
    assert (job.status, job.objects) == (1, [ACCOUNT, *OBJECTS])
    *_, before, last = job.errors.splitlines()
    assert before.endswith(f", jobset/{NAME}")
    charged = f"help: jobset/{NAME} is charged while it exists; delete: "
    assert last.startswith(
        f"{charged}kubectl {CONTEXT} --namespace=default delete jobset/{NAME}; kubectl"
    )


def test_an_object_of_another_submission_stays(tmp_path: Path) -> None:
    """If another submission creates the JobSet in between, its JobSet is not deleted."""
    exists = f'Error from server (AlreadyExists): error when creating "STDIN": jobsets.jobset.x-k8s.io "{NAME}" already'
    job = Submitted(tmp_path, gke_spec(), objects=[ACCOUNT], errors={"JobSet": exists})
    assert (job.status, job.objects) == (1, [ACCOUNT, *OBJECTS[:2]])
    assert not any("delete jobset" in call for call in job.created())


def test_several_objects_are_printed_as_one_command_each(tmp_path: Path) -> None:
    """Below `submit --execute` are the commands of the objects in order, which create the same when they are pasted."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(gke_spec()))
    lines = run_here(tmp_path, "submit", "--run", "a1").stdout.splitlines()
    assert lines[1] == "tpucfg submit --env dev --size v5litepod-16 --run a1 --execute"
    documents = [line for line in lines if "--document" in line]
    assert [line.split(" --document ")[1].split()[0] for line in documents] == [
        "SecretProviderClass",
        "SecretSync",
        "JobSet",
    ]
    (tmp_path / "bin").mkdir()
    install_kubectl(tmp_path / "bin", tmp_path / "cluster.json")
    pasted = "\n".join(
        line.removeprefix("#   ").replace("tpucfg render", f"{COMMAND[0]} -m tpucfg render")
        for line in documents
    )
    environment = {**ENVIRONMENT, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", pasted], cwd=tmp_path, env=environment, check=True
    )
    assert cluster(tmp_path / "cluster.json")["objects"] == [f"{name}-a1" for name in OBJECTS]
