"""The schemas in `schema/` name what the official types name, apart from the differences listed here.

A difference that is not listed means that a pinned package moved: the list, or the pin, has to follow.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud.aiplatform_v1.types import CustomJobSpec
from google.cloud.tpu_v2.types import QueuedResource
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from official import gke

SCHEMAS = Path(__file__).parents[2] / "schema"

WRITTEN_BY_THE_SERVICE = {
    "QueuedResource.createTime",
    "QueuedResource.name",
    "QueuedResource.state",
    "Node.apiVersion",
    "Node.createTime",
    "Node.health",
    "Node.healthDescription",
    "Node.id",
    "Node.multisliceNode",
    "Node.name",
    "Node.networkEndpoints",
    "Node.queuedResource",
    "Node.state",
    "Node.symptoms",
}
DEPRECATED = {
    "MachineSpec.acceleratorType=NVIDIA_TESLA_K80",
    "Scheduling.strategy=LOW_COST",
    "Scheduling.strategy=ON_DEMAND",
}
NOT_YET_IN_THE_CLIENT = {"Node.bootDiskConfig"}


class Against:
    """A schema, to be held against the official description of the same message."""

    def __init__(self, target: str) -> None:
        self.root: dict[str, Any] = json.loads((SCHEMAS / f"{target}.schema.json").read_text(encoding="utf-8"))
        self._seen: set[str] = set()

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the message that a `$ref` names, or the schema itself."""
        found: dict[str, Any] = self.root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        return found

    def protobuf(self, message: dict[str, Any], kind: Descriptor | None) -> Iterator[str]:
        """Yield the fields and enum values that only one of the schema and the protobuf type has."""
        assert kind is not None, f"no message, but the schema says {message}"
        if kind.name in self._seen:
            return
        self._seen.add(kind.name)
        official = {field.json_name: field for field in kind.fields}
        yield from (f"{kind.name}.{name}" for name in official.keys() ^ message["properties"].keys())
        for name in official.keys() & message["properties"].keys():
            inner = message["properties"][name]
            inner = inner.get("items", inner)
            yield from (f"{kind.name}.{name}={value}" for value in _odd_values(inner, official[name]))
            if "$ref" in inner:
                yield from self.protobuf(self.resolved(inner), official[name].message_type)

    def crd(self, schema: dict[str, Any], published: dict[str, Any], location: str) -> Iterator[str]:
        """Yield where types, fields, required fields and enums differ from a CustomResourceDefinition's."""
        ours = self.resolved(schema)
        kind = ["integer", "string"] if "x-kubernetes-int-or-string" in published else published["type"]
        if ours.get("type", "string") != kind or ours.get("enum", []) != sorted(
            published.get("enum", ours.get("enum", []))
        ):
            yield f"{location}: {kind}"
        elif "items" in published:
            yield from self.crd(ours["items"], published["items"], f"{location}[]")
        elif "additionalProperties" in published:
            yield from self.crd(ours["additionalProperties"], published["additionalProperties"], f"{location}{{}}")
        elif "properties" in published:
            fields: dict[str, Any] = published["properties"]
            yield from (f"{location}.{name}" for name in fields.keys() ^ ours["properties"].keys())
            yield from (
                f"{location}.{name} required"
                for name in set(published.get("required", [])) ^ set(ours.get("required", []))
            )
            for name in fields.keys() & ours["properties"].keys():
                yield from self.crd(ours["properties"][name], fields[name], f"{location}.{name}")


def _odd_values(schema: dict[str, Any], field: FieldDescriptor) -> set[str]:
    if "enum" not in schema:
        return set()
    assert field.enum_type is not None, f"{field.name} is no enum"
    # The zero value is how protobuf writes "not set".
    return {value.name for value in field.enum_type.values if value.number} ^ set(schema["enum"])


@pytest.mark.parametrize(
    ("target", "kind", "known"),
    [
        ("vertex-ai", CustomJobSpec, DEPRECATED),
        ("cloud-tpu", QueuedResource, WRITTEN_BY_THE_SERVICE | NOT_YET_IN_THE_CLIENT),
    ],
)
def test_fields_and_enums_are_those_of_the_protobuf_type(target: str, kind: Any, known: set[str]) -> None:
    """Every field and enum value of the protobuf type is in the schema and the other way round."""
    schema = Against(target)
    assert set(schema.protobuf(schema.root, kind.pb().DESCRIPTOR)) == known


def test_a_jobset_is_that_of_its_published_definition() -> None:
    """Types, fields, required fields and enums of gke.schema.json are those of JobSet's CustomResourceDefinition.

    It holds pods and all, which come from another package. The definition requires nothing above a replicated job,
    and knows what only a controller writes.
    """
    definition = yaml.load(gke.crd().read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    published = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema = Against("gke")
    assert set(schema.crd(schema.root, published, "")) == {
        ".apiVersion required",
        ".kind required",
        ".metadata required",
        ".spec required",
        ".spec.replicatedJobs required",
        ".spec.replicatedJobs[].template.spec.template.spec.ephemeralContainers",
        ".status",
    }
