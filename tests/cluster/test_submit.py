"""`submit` with the real kubectl against a real API server: what is created, refused, printed and left."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running_cluster import READER, SECRET_KINDS, TOKEN, Cluster, definition, write_kubeconfig
from teams import ACCOUNT, CONTEXT, JOB, SECRETS, Team, deletions, extra, new_team


@pytest.fixture
def team(cluster: Cluster, tmp_path: Path) -> Iterator[Team]:
    """Return a namespace of its own."""
    with new_team(cluster, tmp_path) as created:
        yield created


@pytest.mark.telling
def test_a_job_is_created_watched_and_deleted_by_the_printed_commands(team: Team) -> None:
    """The account is created with its annotation, a second start is refused, and the deletion leaves only it.

    A printed command that kubectl refuses, and a second start that harms the first, are caught here.
    """
    started = team.run("submit", "--execute")
    assert started.returncode == 0, started.stderr
    assert team.left() == [JOB, ACCOUNT]
    annotations = team.cluster.kubectl(
        "get", ACCOUNT, f"--namespace={team.namespace}", "--output=jsonpath={.metadata.annotations}"
    ).stdout
    assert "iam.gke.io/gcp-service-account" in annotations
    running = team.running_pods()
    again = team.run("submit", "--execute")
    assert again.returncode == 1
    assert team.running_pods() == running
    assert "already exists, so the job may be running, and was left as it is" in again.stderr
    watch = next(
        line.partition(":  ")[2]
        for line in started.stderr.splitlines()
        if line.startswith("watch it with:")
    )
    assert JOB.rpartition("/")[2] in team.paste(f"timeout 5 {watch} || true").stdout
    assert deletions(started)
    for line in deletions(started):
        deleted = team.paste(line)
        assert deleted.returncode == 0, deleted.stderr
    assert team.left() == [ACCOUNT]


def test_the_printed_command_creates_the_same(team: Team) -> None:
    """The line of `submit` without --execute renders the job and gives it to kubectl."""
    printed = team.run("submit", gke={"service_account": "default"}).stdout
    created = team.paste(printed)
    assert created.returncode == 0, created.stderr
    assert team.left() == [JOB]


def test_secrets_need_their_kinds(team: Team) -> None:
    """Without them nothing is created; with them all objects are, and the printed commands delete each kind."""
    refused = team.run("submit", "--execute", **SECRETS)
    assert (refused.returncode, team.left()) == (1, [])
    assert "the cluster does not know the kind SecretProviderClass" in refused.stderr
    assert refused.stderr.splitlines()[-1].endswith("nothing was created")
    team.cluster.define(*map(definition, SECRET_KINDS))
    crds = [f"crd/{plural}.{group}" for plural, (group, _, _) in SECRET_KINDS.items()]
    try:
        started = team.run("submit", "--execute", **SECRETS)
        assert started.returncode == 0, started.stderr
        for line in deletions(started):
            assert team.paste(line).returncode == 0
        assert all(team.cluster.names(plural, team.namespace) == [] for plural in SECRET_KINDS)
        assert team.left() == [ACCOUNT]
    finally:
        team.cluster.kubectl("delete", *crds)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"gke": extra(containers=[{"name": "trainer", "ports": [{"containerPort": 70000}]}])},
            "the cluster refuses the pods' Job: ",
        ),
        ({"gke": {"priority": "urgent"}}, "priorityclasses.scheduling.k8s.io/urgent is missing"),
        pytest.param(
            {"gke": {"queue": "tpu"}},
            "localqueues.kueue.x-k8s.io/tpu is missing",
            marks=pytest.mark.telling,  # a job that waits for ever for a queue that is not there
        ),
        ({"gke": {"service_account": "trainer"}}, "serviceaccount/trainer is missing"),
    ],
)
def test_what_the_server_refuses_is_not_created(
    team: Team, changes: dict[str, Any], message: str
) -> None:
    """The server is asked first, and its reason is printed."""
    refused = team.run("submit", "--execute", **changes)
    assert (refused.returncode, team.left()) == (1, [])
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_missing_namespace_is_made_by_the_help(team: Team) -> None:
    """The help line is the command that makes it."""
    refused = team.run(
        "submit",
        "--execute",
        gke={"namespace": f"{team.namespace}-2", "service_account": "default"},
    )
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
    assert team.left() == [JOB]


@pytest.mark.parametrize(("server", "context"), [("https://127.0.0.1:1", CONTEXT), (None, "other")])
def test_a_cluster_that_does_not_answer_is_said(
    team: Team, server: str | None, context: str
) -> None:
    """Nothing listens there, or kubectl has no such context."""
    write_kubeconfig(team.folder / "kubeconfig", server or team.cluster.server, TOKEN, [context])
    refused = team.run("submit", "--execute")
    assert (refused.returncode, team.left()) == (1, [])
    assert "the cluster does not answer: " in refused.stderr


def test_a_quota_that_is_used_up_is_named(team: Team) -> None:
    """Nothing is created, and the help is the command that shows the quota."""
    metadata, hard = (
        {"name": "jobs", "namespace": team.namespace},
        {"count/jobsets.jobset.x-k8s.io": "0"},
    )
    team.cluster.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    )
    team.cluster.kubectl(
        "wait",
        "--for=jsonpath={.status.used}",
        "resourcequota/jobs",
        f"--namespace={team.namespace}",
        "--timeout=120s",
    )
    refused = team.run("submit", "--execute")
    assert (refused.returncode, team.left()) == (1, [])
    assert "exceeded quota: jobs" in refused.stderr
    (line,) = [
        row for row in refused.stderr.splitlines() if row.startswith("help: look at the quota: ")
    ]
    assert "count/jobsets" in team.paste(line.removeprefix("help: look at the quota: ")).stdout
