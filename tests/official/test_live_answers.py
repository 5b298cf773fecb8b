"""The answers with which `tpucfg status --live` is tested are messages of the services' own types."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from live_answers import NO_CAPACITY, RUNNING, condition, jobset, pod
from official import gke
from official.gcloud_types import type_errors

pytestmark = pytest.mark.official

PROTOBUF = {
    ("vertex-ai", "custom-jobs list"): ("google.cloud.aiplatform_v1.types", "CustomJob"),
    ("cloud-tpu", "queued-resources list"): ("google.cloud.tpu_v2.types", "QueuedResource"),
    ("cloud-tpu", "tpu-vm list"): ("google.cloud.tpu_v2.types", "Node"),
}
"""Modules whose import takes a second, so that only these tests import them, and not every collection."""
GCLOUD = {
    ("compute-engine", "instances list"): ("compute", "v1", "Instance"),
    ("vertex-ai", "logging read"): ("logging", "v2", "LogEntry"),
}


@pytest.mark.parametrize("answer", PROTOBUF, ids=" ".join)
def test_answers_are_protobuf_messages(answer: tuple[str, str]) -> None:
    """Each item of a list has only fields and enum values of its message."""
    from official import protobuf

    target, words = answer
    module, message = PROTOBUF[answer]
    kind = getattr(import_module(module), message).pb()
    assert [protobuf.refusals(kind, item) for item in RUNNING[target][words]] == [[]]


@pytest.mark.parametrize("answer", GCLOUD, ids=" ".join)
def test_answers_are_messages_of_gcloud(answer: tuple[str, str]) -> None:
    """Each item of a list is a message of gcloud's own types."""
    target, words = answer
    assert [
        error for item in RUNNING[target][words] for error in type_errors(*GCLOUD[answer], item)
    ] == []


def test_the_error_of_a_group_is_a_message_of_gcloud() -> None:
    """`list-errors` prints the errors of a group as the API has them."""
    error = {"error": {"message": NO_CAPACITY}, "timestamp": "2026-03-01T10:00:00Z"}
    assert type_errors("compute", "v1", "InstanceManagedByIgmError", error) == []


def test_a_jobset_has_the_status_of_its_definition() -> None:
    """The status of the stand-in is valid by JobSet's own CustomResourceDefinition."""
    definition = yaml.safe_load(gke.crd().read_text(encoding="utf-8"))
    (version,) = definition["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert {*jobset()["status"]} <= {*status["properties"]}
    body = jobset(condition("Suspended", "False", message="resumed"), restarts=2)["status"]
    assert [error.message for error in Draft202012Validator(status).iter_errors(body)] == []


def test_a_pod_has_fields_of_kubernetes() -> None:
    """Every field of the stand-in's pods is one of Kubernetes' own models."""
    from kubernetes import client

    waiting = {
        "name": "trainer",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}},
    }
    unscheduled = condition("PodScheduled", "False", message="0/8 nodes are available")
    status = pod(0, "Pending", conditions=[unscheduled], containerStatuses=[waiting])["status"]
    assert [*_unknown_fields(client.V1PodStatus, status)] == []
    assert [*_unknown_fields(client.V1PodStatus, pod(0)["status"])] == []
    assert [*_unknown_fields(client.V1PodStatus, {"faze": 1})] == ["faze"]


def _unknown_fields(model: Any, data: Any) -> Iterator[str]:
    """Yield the fields that a model of Kubernetes' Python client does not have."""
    from kubernetes import client

    types = {model.attribute_map[name]: kind for name, kind in model.openapi_types.items()}
    for key, value in data.items():
        if key not in types:
            yield key
            continue
        kind = types[key].removeprefix("list[").removesuffix("]")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield from _unknown_fields(getattr(client, kind), item)
