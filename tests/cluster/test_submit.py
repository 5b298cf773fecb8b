"""`submit` with the real kubectl against a real API server: what is created, refused, printed and left."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from running_cluster import READER, SECRET_KINDS, TOKEN, Cluster, definition, write_kubeconfig

from process import COMMAND, ENVIRONMENT
from spec_factory import spec

CONTEXT: Final = "gke_my-project-dev_us-central1_train"
SECRETS: Final = {"trainer__secrets": {"HF_TOKEN": "hf/1"}}


class Team:
    """A namespace of the cluster, and the folder of a spec whose jobs run there."""

    def __init__(self, cluster: Cluster, folder: Path, namespace: str) -> None:
        self.cluster, self.folder, self.namespace = cluster, folder, namespace
        write_kubeconfig(folder / "kubeconfig", cluster.server, TOKEN, [CONTEXT])

    def run(self, *words: str, **changes: Any) -> "subprocess.CompletedProcess[str]":
        """Run a command of tpucfg for a spec of one job."""
        environment = {
            "project": "my-project-dev",
            "region": "us-central1",
            "cluster": "projects/my-project-dev/locations/us-central1/clusters/train",
        }
        targets = {"gke": {"namespace": self.namespace, **changes.pop("gke", {})}}
        data = spec(
            target="gke",
            sizes=["v5litepod-16"],
            environments={"dev": environment},
            training={"tuned_on": "v5litepod-16", "batch_size": 1024, "train_steps": 4000},
            targets=targets,
            **changes,
        )
        (self.folder / "tpucfg.yaml").write_text(json.dumps(data))
        return self._run([*COMMAND, *words])

    def paste(self, text: str) -> "subprocess.CompletedProcess[str]":
        """Run a printed command as a user pastes it."""
        return self._run(["bash", "-euo", "pipefail", "-c", text.replace("tpucfg ", f"{' '.join(COMMAND)} ")])

    def _run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        path = f"{self.cluster.programs}:{os.environ['PATH']}"
        environment = {**ENVIRONMENT, "PATH": path, "KUBECONFIG": str(self.folder / "kubeconfig")}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    def left(self) -> list[str]:
        """Return the objects of jobs in the namespace, without those of every namespace."""
        kinds = ["jobsets.jobset.x-k8s.io", "serviceaccounts"]
        names = [name for kind in kinds for name in self.cluster.names(kind, self.namespace)]
        return [name for name in names if name != "serviceaccount/default"]


def deletions(started: "subprocess.CompletedProcess[str]") -> list[str]:
    """Return the commands that delete what a submission created."""
    lines = (line.partition("delete it with: ") for line in started.stderr.splitlines())
    return [command for before, _, command in lines if command and not before]


def extra(**fields: Any) -> dict[str, Any]:
    """Return the settings of gke that add fields to the pods."""
    pod = {"spec": {"template": {"spec": fields}}}
    return {"extra": {"spec": {"replicatedJobs": [{"name": "slice", "template": pod}]}}}


@pytest.fixture
def team(cluster: Cluster, tmp_path: Path) -> Iterator[Team]:
    """Return a namespace of its own."""
    namespace = f"team-{tmp_path.name[-20:].strip('-_').replace('_', '-').lower()}"
    cluster.kubectl("create", "namespace", namespace)
    (tmp_path / "spec").mkdir()
    yield Team(cluster, tmp_path / "spec", namespace)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def test_a_job_is_created_watched_and_deleted_by_the_printed_commands(team: Team) -> None:
    """The account is created with its annotation, a second start is refused, and the deletion leaves only it."""
    started = team.run("submit", "--execute")
    assert started.returncode == 0, started.stderr
    job, account = "jobset.jobset.x-k8s.io/mnist-dev-v5litepod-16", "serviceaccount/tpu-mnist-dev"
    assert team.left() == [job, account]
    annotations = team.cluster.kubectl(
        "get", account, f"--namespace={team.namespace}", "--output=jsonpath={.metadata.annotations}"
    ).stdout
    assert "iam.gke.io/gcp-service-account" in annotations
    again = team.run("submit", "--execute")
    assert again.returncode == 1
    assert "already exists, so the job may be running, and was left as it is" in again.stderr
    assert deletions(started)
    for line in deletions(started):
        deleted = team.paste(line)
        assert deleted.returncode == 0, deleted.stderr
    assert team.left() == [account]


def test_the_printed_command_creates_the_same(team: Team) -> None:
    """The line of `submit` without --execute renders the job and gives it to kubectl."""
    printed = team.run("submit", gke={"service_account": "default"}).stdout
    created = team.paste(printed)
    assert created.returncode == 0, created.stderr
    assert team.left() == ["jobset.jobset.x-k8s.io/mnist-dev-v5litepod-16"]


def test_secrets_need_their_kinds(team: Team) -> None:
    """Without them nothing is created; with them all objects are, and the printed commands delete each kind."""
    refused = team.run("submit", "--execute", **SECRETS)
    assert (refused.returncode, team.left()) == (1, [])
    assert "the cluster does not know the kind SecretProviderClass" in refused.stderr
    assert refused.stderr.splitlines()[-1].endswith("nothing was created")
    team.cluster.create(*map(definition, SECRET_KINDS))
    crds = [f"crd/{plural}.{group}" for plural, (group, _, _) in SECRET_KINDS.items()]
    team.cluster.kubectl("wait", "--for=condition=Established", *crds, "--timeout=30s")
    try:
        started = team.run("submit", "--execute", **SECRETS)
        assert started.returncode == 0, started.stderr
        for line in deletions(started):
            assert team.paste(line).returncode == 0
        assert all(team.cluster.names(plural, team.namespace) == [] for plural in SECRET_KINDS)
        assert team.left() == ["serviceaccount/tpu-mnist-dev"]
    finally:
        team.cluster.kubectl("delete", *crds)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"gke": extra(containers=[{"name": "trainer", "ports": [{"containerPort": 70000}]}])},
            "the cluster refuses the pods' Job: ",
        ),
        ({"gke": {"priority": "high"}}, "priorityclasses.scheduling.k8s.io/high is missing"),
        ({"gke": {"queue": "tpu"}}, "localqueues.kueue.x-k8s.io/tpu is missing"),
        ({"gke": {"service_account": "trainer"}}, "serviceaccount/trainer is missing"),
    ],
)
def test_what_the_server_refuses_is_not_created(team: Team, changes: dict[str, Any], message: str) -> None:
    """The server is asked first, and its reason is printed."""
    refused = team.run("submit", "--execute", **changes)
    assert (refused.returncode, team.left()) == (1, [])
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_missing_namespace_is_made_by_the_help(team: Team) -> None:
    """The help line is the command that makes it."""
    refused = team.run("submit", "--execute", gke={"namespace": f"{team.namespace}-2", "service_account": "default"})
    assert refused.returncode == 1
    assert f"the cluster has no namespace {team.namespace}-2" in refused.stderr
    (line,) = [row for row in refused.stderr.splitlines() if row.startswith("help: create it: ")]
    assert team.paste(line.removeprefix("help: create it: ")).returncode == 0


def test_jobs_that_may_not_be_created_are_no_obstacle(team: Team) -> None:
    """A user who may create JobSets and read nothing else gets notes, and the job."""
    rule = {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"], "verbs": ["create", "get"]}
    metadata = {"name": "trainers", "namespace": team.namespace}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}
    subject = {"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": "trainers", "apiGroup": "rbac.authorization.k8s.io"}
    team.cluster.create(
        {**kind, "kind": "Role", "rules": [rule]},
        {**kind, "kind": "RoleBinding", "subjects": [subject], "roleRef": role},
    )
    write_kubeconfig(team.folder / "kubeconfig", team.cluster.server, READER, [CONTEXT])
    started = team.run("submit", "--execute", gke={"service_account": "default"})
    assert started.returncode == 0, started.stderr
    assert "note: the pods were not checked, because you may not create a Job" in started.stderr
    assert "note: nodes cannot be looked up: " in started.stderr
    assert team.left() == ["jobset.jobset.x-k8s.io/mnist-dev-v5litepod-16"]


@pytest.mark.parametrize(("server", "context"), [("https://127.0.0.1:1", CONTEXT), (None, "other")])
def test_a_cluster_that_does_not_answer_is_said(team: Team, server: str | None, context: str) -> None:
    """Nothing listens there, or kubectl has no such context."""
    write_kubeconfig(team.folder / "kubeconfig", server or team.cluster.server, TOKEN, [context])
    refused = team.run("submit", "--execute")
    assert (refused.returncode, team.left()) == (1, [])
    assert "the cluster does not answer: " in refused.stderr
