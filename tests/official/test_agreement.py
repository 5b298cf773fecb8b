"""The schemas in `schema/` have the fields and values of the official types, except for the differences listed here.

A new difference means that a pinned package has changed: update the list or the pin.
"""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from official import gke

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

pytestmark = pytest.mark.official

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


class SchemaComparison:
    """A schema, compared with the official definition of its message."""

    def __init__(self, target: str) -> None:
        self.root: dict[str, Any] = json.loads(
            (SCHEMAS / f"{target}.schema.json").read_text(encoding="utf-8")
        )
        self._seen: set[str] = set()

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the message of a `$ref`, or the schema itself."""
        message: dict[str, Any] = (
            self.root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        )
        return message

    def protobuf(self, message: dict[str, Any], kind: "Descriptor | None") -> Iterator[str]:
        """Yield the fields and enum values that only one of schema and protobuf type has."""
        assert kind is not None, f"no message, but the schema says {message}"
        if kind.name in self._seen:
            return
        self._seen.add(kind.name)
        official = {field.json_name: field for field in kind.fields}
        yield from (
            f"{kind.name}.{name}" for name in official.keys() ^ message["properties"].keys()
        )
        for name in official.keys() & message["properties"].keys():
            inner = message["properties"][name]
            inner = inner.get("items", inner)
            yield from (
                f"{kind.name}.{name}={value}" for value in _odd_values(inner, official[name])
            )
            if "$ref" in inner:
                yield from self.protobuf(self.resolved(inner), official[name].message_type)

    def crd(
        self, schema: dict[str, Any], published: dict[str, Any], location: str
    ) -> Iterator[str]:
        """Yield the paths at which types, fields, required fields or enums differ from a CustomResourceDefinition."""
        definition = self.resolved(schema)
        kind = (
            ["integer", "string"]
            if "x-kubernetes-int-or-string" in published
            else published["type"]
        )
        if definition.get("type", "string") != kind or definition.get("enum", []) != sorted(
            published.get("enum", definition.get("enum", []))
        ):
            yield f"{location}: {kind}"
        elif "items" in published:
            yield from self.crd(definition["items"], published["items"], f"{location}[]")
        elif "additionalProperties" in published:
            yield from self.crd(
                definition["additionalProperties"],
                published["additionalProperties"],
                f"{location}{{}}",
            )
        elif "properties" in published:
            fields: dict[str, Any] = published["properties"]
            yield from (
                f"{location}.{name}" for name in fields.keys() ^ definition["properties"].keys()
            )
            yield from (
                f"{location}.{name} required"
                for name in set(published.get("required", [])) ^ set(definition.get("required", []))
            )
            for name in fields.keys() & definition["properties"].keys():
                yield from self.crd(
                    definition["properties"][name], fields[name], f"{location}.{name}"
                )


def _odd_values(schema: dict[str, Any], field: "FieldDescriptor") -> set[str]:
    if "enum" not in schema:
        return set()
    assert field.enum_type is not None, f"{field.name} is no enum"
    # The zero value encodes "not set" in protobuf.
    return {value.name for value in field.enum_type.values if value.number} ^ set(schema["enum"])


@pytest.mark.parametrize(
    ("target", "kind", "known"),
    [
        ("vertex-ai", "google.cloud.aiplatform_v1.types.CustomJobSpec", DEPRECATED),
        (
            "cloud-tpu",
            "google.cloud.tpu_v2.types.QueuedResource",
            WRITTEN_BY_THE_SERVICE | NOT_YET_IN_THE_CLIENT,
        ),
    ],
)
def test_fields_and_enums_equal_the_protobuf_type(target: str, kind: str, known: set[str]) -> None:
    """Schema and protobuf type have equal fields and enum values."""
    schema = SchemaComparison(target)
    module, _, name = kind.rpartition(".")
    message = getattr(
        import_module(module), name
    )  # not at the top: its import takes longer than all other tests'
    assert set(schema.protobuf(schema.root, message.pb().DESCRIPTOR)) == known


def test_jobset_equals_its_published_definition() -> None:
    """Types, fields, required fields and enums of gke.schema.json equal those of JobSet's CustomResourceDefinition.

    The definition includes pods, whose schema comes from another package. It requires nothing above a replicated job,
    and has fields that only a controller writes. It requires the names of rules, which JobSet's webhook adds.
    """
    definition = yaml.load(gke.crd().read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    published = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema = SchemaComparison("gke")
    assert set(schema.crd(schema.root, published, "")) == {
        ".apiVersion required",
        ".kind required",
        ".metadata required",
        ".spec required",
        ".spec.failurePolicy.rules[].name required",
        ".spec.replicatedJobs required",
        ".spec.replicatedJobs[].template.spec.template.spec.ephemeralContainers",
        ".spec.volumeClaimPolicies[].templates[].status",
        ".status",
    }
