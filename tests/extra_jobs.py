"""Jobs of every target, and their request bodies with any `extra`."""

from copy import deepcopy
from typing import Any, Final

import pytest

from jobs import job
from tpucfg.plan import Job
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.extra import Merged, merge_extra
from tpucfg.yamldoc.document import KeyPath

ENV: Final = {
    "env": {"A": "1", "EMPTY": ""},
    "xla_flags": {"v5e": ["--xla_a=1"], "v6e": ["--xla_a=1"]},
}
FULL: Final = {
    **ENV,
    "secrets": {"TOKEN": "hf/3"},
    "mounts": {"/data": "${bucket}/data"},
    "restarts": 2,
    "max_run_duration": "12h",
}
_DISK: Final = {"source": "projects/acme/zones/us-central1-a/disks/data"}
EVERYTHING: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("vertex-ai", "v2-32", {"trainer": ENV}),
    (
        "vertex-ai",
        "v5litepod-16",
        {"trainer": {**ENV, "max_run_duration": "1h"}, "capacity": {"reservation": "r"}},
    ),
    ("vertex-ai", "v5litepod-4", {"trainer": {**ENV, "restarts": 0}, "capacity": "spot"}),
    (
        "cloud-tpu",
        "v5litepod-16",
        {"trainer": ENV, "capacity": "spot", "environment": {"labels": {"a": "b"}}},
    ),
    ("cloud-tpu", "v6e-16x2", {"trainer": ENV, "options": {"network": "n"}}),
    (
        "cloud-tpu",
        "v5litepod-256",
        {
            "trainer": FULL,
            "capacity": {"reservation": "r"},
            "options": {
                "subnetwork": "s",
                "external_ips": False,
                "tags": ["t"],
                "data_disks": [_DISK],
            },
        },
    ),
    ("compute-engine", "v6e-4", {"trainer": ENV, "environment": {"labels": {"a": "b"}}}),
    ("compute-engine", "v6e-16", {"trainer": ENV, "capacity": "spot", "options": {"network": "n"}}),
    (
        "compute-engine",
        "v6e-8",
        {"trainer": FULL, "capacity": "flex-start", "options": {"external_ips": False}},
    ),
    (
        "compute-engine",
        "tpu7x-128",
        {
            "trainer": FULL,
            "capacity": {"reservation": "r"},
            "options": {"subnetwork": "s", "disk_gb": 500, "tags": ["t"], "data_disks": [_DISK]},
            "environment": {"labels": {"a": "b"}},
        },
    ),
    (
        "gke",
        "v6e-16",
        {"trainer": ENV, "options": {"queue": "q"}, "environment": {"labels": {"a": "b"}}},
    ),
    ("gke", "v6e-16x2", {"trainer": ENV, "capacity": {"reservation": "r"}}),
    ("gke", "v6e-16x2", {"trainer": ENV, "options": {"queue": "q", "topology_aware": True}}),
    ("gke", "v5litepod-1", {"trainer": ENV}),
    (
        "gke",
        "v6e-256x2",
        {
            "trainer": FULL,
            "capacity": "spot",
            "options": {"priority": "high", "image_pull_secrets": ["p"], "host_network": True},
        },
    ),
    ("gke", "tpu7x-128", {"trainer": FULL, "options": {"compute_class": "c", "queue": "q"}}),
    ("ai-platform", "v2-8", {"trainer": {"runtime": "2.2"}}),
    (
        "ai-platform",
        "v2-8",
        {"trainer": {"runtime": "2.2", "max_run_duration": "1h"}, "options": {"machine": "basic"}},
    ),
)
"""Jobs that use most settings of their target."""
EVERY_JOB: Final = pytest.mark.parametrize(
    ("target", "size", "changes"),
    EVERYTHING,
    ids=lambda value: value if isinstance(value, str) else "with",
)


def planned(target: str, size: str, **changes: Any) -> tuple[Job, RequestBody]:
    """Return a job without `extra` and its request body."""
    job_ = job(target, size, **deepcopy(changes))
    return job_, target_named(target).request_body(job_)


def merged(job_: Job, body: RequestBody, extra: Any) -> Merged:
    """Return the body of a job as if the job had this `extra`."""
    options = {**job_.options, "extra": extra}
    settings = job_.settings._replace(targets={job_.target: options})
    return merge_extra(job_._replace(settings=settings), body)


def value_at(data: Any, path: KeyPath) -> Any:
    """Return the value at a path."""
    for step in path:
        data = data[step]
    return data
