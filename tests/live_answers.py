"""Answers of the services about a job `mnist-dev-SIZE`, as kubectl and gcloud print them, and stand-ins of both.

The fields are those of the APIs; `tests/official/test_live_answers.py` compares them with the services' own types:
JobSet https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/, pods
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodStatus, Kueue
https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta1/#kueue-x-k8s-io-v1beta1-Workload, custom jobs
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs, queued resources
https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources, nodes
https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes, instances
https://cloud.google.com/compute/docs/reference/rest/v1/instances, errors of a group
https://cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers/listErrors, entries of a log
https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry.
"""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jobs import program

STAND_IN: Final = Path(__file__).with_name("client_stand_in.py")
START: Final = "2026-03-01T10:00:00Z"
NO_QUOTA: Final = (
    "couldn't assign flavors to pod set slice: insufficient unused quota for google.com/tpu in flavor tpu, "
    "4 more needed"
)
NO_CAPACITY: Final = (
    "The zone 'projects/my-project/zones/us-east5-a' does not have enough resources available."
)

Answers = Mapping[str, Any]
"""The answer of a client by words of its command line, the first of which match: JSON, a text, or an error."""


def condition(kind: str, status: str = "True", **fields: str) -> dict[str, Any]:
    """Return a condition of Kubernetes."""
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": "2026-03-01T11:00:00Z",
        "reason": "Because",
        **fields,
    }


def jobset(
    *conditions: Mapping[str, Any], restarts: int = 0, suspend: bool = False
) -> dict[str, Any]:
    """Return a JobSet with one slice."""
    counts = {"ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": "mnist-dev-v6e-16",
            "uid": "5f1c",
            "creationTimestamp": "2026-03-01T09:00:00Z",
        },
        "spec": {"suspend": suspend, "replicatedJobs": []},
        "status": {
            "conditions": [*conditions],
            "restarts": restarts,
            "replicatedJobsStatus": [{"name": "slice", **counts}],
        },
    }


def pod(index: int, phase: str = "Running", **status: Any) -> dict[str, Any]:
    """Return a pod of a JobSet."""
    labels = {
        "jobset.sigs.k8s.io/job-index": "0",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    started = {"startTime": START} if phase != "Pending" else {}
    name = f"mnist-dev-v6e-16-slice-0-{index}-x2b4c"
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"phase": phase, **started, **status},
    }


def pods(*items: Mapping[str, Any]) -> dict[str, Any]:
    """Return a list of pods."""
    return {"apiVersion": "v1", "kind": "List", "items": [*items]}


def workloads(message: str = NO_QUOTA) -> dict[str, Any]:
    """Return the workload of a suspended JobSet."""
    pending = condition("QuotaReserved", "False", reason="Pending", message=message)
    return {
        "items": [
            {
                "metadata": {"name": "jobset-mnist-dev-v6e-16-1a2b3"},
                "status": {"conditions": [pending]},
            }
        ]
    }


def entries(*lines: str) -> list[dict[str, Any]]:
    """Return the entries of lines that a program printed every ten seconds, the newest first."""
    return [
        {
            "insertId": f"{number:04}",
            "timestamp": f"2026-03-01T10:{number // 6:02}:{number % 6 * 10:02}.5Z",
            "jsonPayload": {"message": line, "levelname": "INFO"},
        }
        for number, line in reversed([*enumerate(lines)])
    ]


STEPS: Final = tuple(f"step {number * 20:,} of 1,000: loss 0.5" for number in range(1, 7))
"""Lines of the included trainer, the last at step 120; a step takes half a second."""
KUBERNETES_LOG: Final = "".join(
    f"2026-03-01T10:0{number}:00.000000000Z {line}\n" for number, line in enumerate(STEPS)
)
"""The lines as `kubectl logs --timestamps` prints them, one a minute; a step takes three seconds."""
RUNNING: Final[Mapping[str, Answers]] = {
    "gke": {
        "get jobset/": jobset(),
        "get pods": pods(*(pod(index) for index in range(4))),
        "logs": KUBERNETES_LOG,
    },
    "vertex-ai": {
        "custom-jobs list": [
            {
                "name": "projects/1/locations/us-central1/customJobs/77",
                "displayName": "mnist-dev-v2-8",
                "state": "JOB_STATE_RUNNING",
                "createTime": "2026-03-01T09:00:00.123456Z",
                "startTime": START,
            }
        ],
        "logging read": entries(*STEPS),
    },
    "cloud-tpu": {
        "queued-resources list": [
            {
                "name": "projects/my-project/locations/us-east5-a/queuedResources/mnist-dev-v6e-16",
                "createTime": "2026-03-01T09:00:00.123456789Z",
                "state": {"state": "ACTIVE", "stateInitiator": "SERVICE", "activeData": {}},
            }
        ],
        "tpu-vm list": [
            {
                "name": "projects/my-project/locations/us-east5-a/nodes/mnist-dev-v6e-16",
                "state": "READY",
                "health": "HEALTHY",
                "createTime": START,
                "queuedResource": "projects/my-project/locations/us-east5-a/queuedResources/mnist-dev-v6e-16",
            }
        ],
    },
    "compute-engine": {
        "instances list": [
            {
                "name": f"mnist-dev-v6e-16-{end}",
                "status": "RUNNING",
                "creationTimestamp": "2026-03-01T02:00:00.000-08:00",
            }
            for end in ("a1b2", "c3d4", "e5f6", "g7h8")
        ],
        "logging read": entries(*STEPS),
    },
}
"""By target, the answers about a job that runs since START."""


class Failing(str):
    """An error that a client prints, before it exits with status 1."""

    __slots__ = ()


def install_clients(folder: Path, answers: Answers) -> Path:
    """Put a kubectl and a gcloud with these answers into a folder for the PATH, and return the file of their calls."""
    folder.mkdir(exist_ok=True)
    (folder / "answers.json").write_text(
        json.dumps(
            [[words, isinstance(answer, Failing), answer] for words, answer in answers.items()]
        )
    )
    for name in ("kubectl", "gcloud"):
        program(
            folder,
            name,
            f'exec {shlex.join([sys.executable, "-SE", str(STAND_IN), str(folder), name])} "$@"',
        )
    (folder / "calls").touch()
    return folder / "calls"
