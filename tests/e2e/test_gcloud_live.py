"""The questions of `tpucfg status --live` by the real gcloud, to a stand-in of the APIs on the loopback address.

gcloud filters some lists itself, so the stand-in's lists have neighbours that must not be taken for the job.
"""

import shutil
from collections.abc import Iterator, Mapping
from email.message import Message
from pathlib import Path
from typing import Any, Final

import pytest

from jobs import job, labels
from live_answers import NO_CAPACITY, RUNNING
from loopback import serving_json
from tpucfg.plan import Job
from tpucfg.results.live import LiveAnswers, ServiceClient

pytestmark = pytest.mark.shell

ZONE: Final = "https://www.googleapis.com/compute/v1/projects/my-project/zones/us-east5-a"
APIS: Final = {"TPU": "/", "AIPLATFORM": "/", "LOGGING": "/", "COMPUTE": "/compute/v1/"}
"""The settings of gcloud that name another server for an API, and the path at which it is:
https://cloud.google.com/sdk/gcloud/reference/config/set."""


def neighbour(item: Mapping[str, Any], key: str, suffix: str) -> list[dict[str, Any]]:
    """Return an item of a list after another one whose name only begins like it."""
    return [{**item, key: f"{item[key]}{suffix}"}, dict(item)]


(REQUEST,) = RUNNING["cloud-tpu"]["queued-resources list"]
(NODE,) = RUNNING["cloud-tpu"]["tpu-vm list"]
(CUSTOM_JOB,) = RUNNING["vertex-ai"]["custom-jobs list"]
INSTANCES: Final = RUNNING["compute-engine"]["instances list"]
GROUP: Final = {
    "name": "mnist-dev-v6e-16",
    "zone": ZONE,
    "selfLink": f"{ZONE}/instanceGroupManagers/mnist-dev-v6e-16",
}
RESPONSES: Final[Mapping[str, Any]] = {
    "/queuedResources": {"queuedResources": neighbour(REQUEST, "name", "-a1")},
    "/nodes": {"nodes": neighbour(NODE, "queuedResource", "-a1")},
    "/customJobs": {"customJobs": neighbour(CUSTOM_JOB, "displayName", "-a1")},
    "/instances": {
        "items": [
            {**INSTANCES[0], "zone": ZONE, "labels": labels("v6e-16", "a1")},
            *({**instance, "zone": ZONE, "labels": labels("v6e-16")} for instance in INSTANCES[:3]),
        ]
    },
    "/instanceGroupManagers": {"items": neighbour(GROUP, "name", "-a1")},
    # gcloud completes its list of groups by these.
    "/instanceGroups": {},
    "/autoscalers": {},
    "/listErrors": {
        "items": [
            {"error": {"code": "X", "message": NO_CAPACITY}, "timestamp": "2026-03-01T10:00:00Z"}
        ]
    },
    "/entries:list": {"entries": RUNNING["vertex-ai"]["logging read"]},
}
"""The responses by the end of a path."""


@pytest.fixture
def requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """Let gcloud talk to the stand-in, and return the requests."""
    if shutil.which("gcloud") is None:
        pytest.skip("gcloud is missing")
    requests: list[tuple[str, str]] = []

    def handle(method: str, path: str, _: Message, __: Any) -> tuple[int, Any]:
        requests.append((method, path))
        end = path.partition("?")[0]
        return next(
            ((200, body) for name, body in RESPONSES.items() if end.endswith(name)), (404, {})
        )

    (tmp_path / "token").write_text("no-token")
    settings = {
        "HOME": str(tmp_path),
        "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(tmp_path / "token"),
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
    }
    with serving_json(handle) as url:
        for name, value in settings.items() | {
            (f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}", url + APIS[api]) for api in APIS
        }:
            monkeypatch.setenv(name, value)
        yield requests


def ask(asked: Job) -> LiveAnswers:
    """Return the answers about a job."""
    return ServiceClient().ask(asked)


def test_gcloud_lists_the_job_alone(requests: list[tuple[str, str]]) -> None:
    """A custom job and a queued resource are found beside neighbours, and their logs are read."""
    custom = ask(job("vertex-ai", "v2-8"))
    assert custom.unanswered == ()
    assert custom.state.state == "running"
    assert "step 120" in str(custom.state.log)
    queued = ask(job("cloud-tpu", "v6e-16", environment={"region": "us-east5"}))
    assert (queued.unanswered, queued.state.state) == ((), "running")
    assert queued.state.started
    assert {method for method, path in requests if "entries:list" not in path} == {"GET"}


def test_gcloud_lists_the_instances_of_a_job(requests: list[tuple[str, str]]) -> None:
    """Labels choose the instances; as one of four is missing, the last error of the group is the reason."""
    state, unanswered = ask(job("compute-engine", "v6e-16", environment={"region": "us-east5"}))
    assert unanswered == ()
    assert (state.state, state.service_state) == ("waiting", "RUNNING, 3 of 4 hosts run")
    assert state.reason == NO_CAPACITY
    assert any("listErrors" in path for _, path in requests)
