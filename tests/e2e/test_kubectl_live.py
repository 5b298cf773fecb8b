"""The questions of `tpucfg status --live` by the real kubectl, to a stand-in of an API server."""

import json
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from jobs import job
from live_answers import KUBERNETES_LOG, NO_QUOTA, jobset, pod, pods, workloads
from loopback import address, serving
from tpucfg.results.live import LiveAnswers, ServiceClient

CONTEXT: Final = "gke_my-project_us-east5_train"
GROUPS: Final = {"jobset.x-k8s.io/v1alpha2": "jobsets", "kueue.x-k8s.io/v1beta1": "workloads"}
"""The resource of each group that the stand-in has."""
EAST: Final = {"region": "us-east5", "kube_context": CONTEXT}


def _resources(group: str, *names: str) -> dict[str, Any]:
    """Return the answer to kubectl's question for the resources of a group."""
    kinds = {"jobsets": "JobSet", "workloads": "Workload", "pods": "Pod", "events": "Event"}
    resources = [
        {
            "name": name,
            "singularName": name[:-1],
            "namespaced": True,
            "kind": kinds[name],
            "verbs": ["get", "list"],
        }
        for name in names
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group,
        "resources": resources,
    }


def _discovery() -> dict[str, Any]:
    groups = [
        {
            "name": group.partition("/")[0],
            "versions": [{"groupVersion": group, "version": group.partition("/")[2]}],
            "preferredVersion": {"groupVersion": group, "version": group.partition("/")[2]},
        }
        for group in GROUPS
    ]
    return {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        "/api/v1": _resources("v1", "pods", "events"),
        **{f"/apis/{group}": _resources(group, name) for group, name in GROUPS.items()},
    }


class Cluster:
    """An API server with a few answers, by the end of the path, and the requests that it got."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.requests: list[tuple[str, str, dict[str, list[str]]]] = []

    def answer(self, method: str, path: str) -> tuple[int, bytes]:
        """Return the status and the body of a response."""
        parts = urlsplit(path)
        # gcloud's kubectl asks for the version, to start the kubectl of that version.
        known = _discovery() | {"/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.4"}}
        if parts.path in known:
            return 200, json.dumps(known[parts.path]).encode()
        self.requests.append((method, parts.path, parse_qs(parts.query)))
        for end, body in self.answers.items():
            if parts.path.endswith(end):
                return 200, body.encode() if isinstance(body, str) else json.dumps(body).encode()
        missing = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": "NotFound",
            "code": 404,
        }
        return 404, json.dumps({**missing, "message": f"{parts.path} not found"}).encode()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Let kubectl talk to the stand-in."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is missing")
    stand_in = Cluster()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer a request; any other method is an error of http.server."""
            status, body = stand_in.answer(self.command, self.path)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": address(server)}}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "no-token"}}],
        }
        (tmp_path / "config").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        monkeypatch.setenv("HOME", str(tmp_path))
        yield stand_in


def ask(queue: str | None = None) -> LiveAnswers:
    """Return the answers about a job of four hosts."""
    return ServiceClient().ask(
        job("gke", "v6e-16", environment=EAST, options={"queue": queue} if queue else {})
    )


def test_kubectl_gets_a_running_job(cluster: Cluster) -> None:
    """The JobSet, its pods by their label, and the log of the first host alone, with times and a limit of lines."""
    own = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "trainer"}]}}
    cluster.answers = {
        "/jobsets/mnist-dev-v6e-16": jobset(restarts=1),
        "/pods": pods(*(pod(index) | own for index in range(4))),
        "-0-0-x2b4c": pod(0) | own,
        "-0-0-x2b4c/log": KUBERNETES_LOG,
    }
    state, unanswered = ask()
    assert unanswered == ()
    assert (state.state, state.restarts) == ("running", 1)
    assert "step 120" in str(state.log)
    queries = {path.rpartition("/")[2]: query for _, path, query in cluster.requests}
    assert queries["pods"]["labelSelector"] == ["jobset.sigs.k8s.io/jobset-name=mnist-dev-v6e-16"]
    assert (queries["log"]["tailLines"], queries["log"]["timestamps"]) == (["200"], ["true"])
    assert queries["log"]["container"] == ["trainer"]


def test_kubectl_prints_nothing_for_a_job_that_is_not_there(cluster: Cluster) -> None:
    """A missing JobSet is no error of kubectl, and nothing else is asked."""
    state, unanswered = ask()
    assert (state.state, unanswered) == ("not found", ())
    assert len(cluster.requests) == 1


def test_kubectl_gets_the_workload_of_a_suspended_job(cluster: Cluster) -> None:
    """The label of Kueue finds the workload, whose message is the reason."""
    cluster.answers = {
        "/jobsets/mnist-dev-v6e-16": jobset(suspend=True),
        "/pods": pods(),
        "/workloads": workloads()
        | {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadList"},
    }
    state, unanswered = ask("tpu")
    assert (state.state, state.reason, unanswered) == ("waiting", NO_QUOTA, ())
    assert cluster.requests[-1][2]["labelSelector"] == ["kueue.x-k8s.io/job-uid=5f1c"]


def test_a_cluster_that_refuses_is_a_line(cluster: Cluster) -> None:
    """An error of the server is kubectl's own, on one line, with the command."""
    cluster.answers = {"/jobsets/mnist-dev-v6e-16": "no JSON"}
    state, (unanswered,) = ask()
    assert state.state == "unknown"
    assert unanswered.message.startswith("kubectl: ")
    assert unanswered.command.startswith(
        f"kubectl --context={CONTEXT} --namespace=default get jobset/"
    )
