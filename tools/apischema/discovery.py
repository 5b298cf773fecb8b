"""JSON Schemas of the messages that Google's discovery documents describe.

For a field, a discovery document has the type, `readOnly`, the enum, and in prose ("Required.") if it is required.
Three more decisions are made here, because the file is a request that creates a resource:

- A field that only the service writes is rejected. Google's servers would ignore it, so it can only be a mistake.
- An enum loses the values that the document marks as deprecated and the zero value (`…UNSPECIFIED…`), which is how
    protobuf encodes "not set"; a file leaves the field out instead.
- A required field that gcloud sets by a flag is optional in the file (`not_required`).

The documents are those of https://www.googleapis.com/discovery/v1/apis, as contained in google-api-python-client.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files

from apischema import Schema, closed, described, map_of

PACKAGE = "google-api-python-client"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFile:
    """A target's file, and where its messages differ from the discovery document."""

    target: str
    api: str
    """The discovery document's name, e.g. `tpu.v2`."""
    title: str
    left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Fields by message that the file must not have, with the reason."""
    not_required: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Fields by message that the document calls "Required." but a file may leave out, with the reason."""
    required_too: Mapping[str, list[str]] = field(default_factory=dict)
    """Fields by message without which a file would request nothing."""
    prefix: str = ""
    """Prefix of the document's message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root(TargetFile):
    """A file that is one message."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents(TargetFile):
    """A file of several messages, each a document with its `kind`."""

    messages: Mapping[str, str]
    """The messages by their key in the schema, in the order in which the objects are created."""


ROOTS = (
    Root(
        target="ai-platform",
        api="ml.v1",
        prefix="GoogleCloudMlV1__",
        message="Job",
        title="AI Platform Training: a training job (ml.v1 Job)",
        left_out={
            "Job": {
                "etag": "for updates only; a job that is being created has none",
                "predictionInput": "a batch prediction, which is no training job",
                "predictionOutput": "written by the service, though the document does not mark it",
                "trainingOutput": "written by the service, though the document does not mark it",
            },
        },
        # The flags: https://cloud.google.com/sdk/gcloud/reference/ai-platform/jobs/submit/training
        not_required={
            "Job": {"jobId": "gcloud's positional argument"},
            "TrainingInput": {
                "packageUris": "--packages or --package-path; none with a container",
                "pythonModule": "--module-name; none with a container",
                "region": "--region",
                "scaleTier": "--scale-tier",
            },
            "HyperparameterSpec": {"goal": 'its own description goes on "Defaults to MAXIMIZE"'},
        },
        required_too={"Job": ["trainingInput"]},
    ),
    Root(
        target="vertex-ai",
        api="aiplatform.v1",
        prefix="GoogleCloudAiplatformV1",
        message="CustomJobSpec",
        title="Vertex AI: a custom job (aiplatform.v1 CustomJobSpec)",
    ),
    Root(
        target="cloud-tpu",
        api="tpu.v2",
        message="QueuedResource",
        title="Cloud TPU: a queued resource (tpu.v2 QueuedResource)",
        left_out={
            "Node": {"health": "reported by the service, though the document does not mark it"}
        },
        required_too={"QueuedResource": ["tpu"], "Tpu": ["nodeSpec"]},
    ),
)

_UPDATES = "for updates only; an object that is being created has none"
COMPUTE_ENGINE = Documents(
    target="compute-engine",
    api="compute.v1",
    messages={
        "resourcePolicy": "ResourcePolicy",
        "instanceTemplate": "InstanceTemplate",
        "instanceGroupManager": "InstanceGroupManager",
        "instance": "Instance",
    },
    title="Compute Engine: the objects of a slice, each a document of its own (compute.v1)",
    left_out={
        "Instance": {"fingerprint": _UPDATES, "labelFingerprint": _UPDATES},
        "InstanceGroupManager": {"fingerprint": _UPDATES},
        "Metadata": {"fingerprint": _UPDATES},
        "NetworkInterface": {"fingerprint": _UPDATES},
        "Tags": {"fingerprint": _UPDATES},
    },
)

# https://protobuf.dev/programming-guides/json/: a 64-bit integer is written as a string and read as either.
FORMATS: Mapping[str, Schema] = {
    "int64": {"type": ["integer", "string"], "pattern": "^-?[0-9]+$"},
    "google-duration": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,9})?s$"},
    "google-datetime": {
        "type": "string",
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$",
    },
}
_PATTERN_IN_PROSE = re.compile(r"follow the `(\^[^`]+\$)` regex")


def message_schema(root: Root) -> Schema:
    """Return the schema of a root message, with all reachable messages as `$defs`."""
    document = _document(root.api)
    messages: Mapping[str, Schema] = {
        name.removeprefix(root.prefix): message for name, message in document["schemas"].items()
    }
    reached = _reachable(messages, [root.message], root)
    body = reached.pop(root.message)
    return {"$comment": _comment(root.api, document), "$defs": reached, "title": root.title, **body}


def documents_schema(documents: Documents) -> Schema:
    """Return the schema of a mapping with a key for each document, with all reachable messages as `$defs`.

    `kind` distinguishes the documents of a file, so it is required, although the service would write it itself.
    """
    document = _document(documents.api)
    messages: Mapping[str, Schema] = document["schemas"]
    reached = _reachable(messages, [*documents.messages.values()], documents)
    for name in documents.messages.values():
        kind = {
            "const": messages[name]["properties"]["kind"]["default"],
            "description": "The type of the object.",
        }
        reached[name]["properties"]["kind"] = kind
        reached[name]["required"] = sorted([*reached[name].get("required", []), "kind"])
    fields = {key: {"$ref": f"#/$defs/{name}"} for key, name in documents.messages.items()}
    return {
        "$comment": _comment(documents.api, document),
        "$defs": reached,
        "title": documents.title,
        **closed(fields, []),
    }


def _comment(api: str, document: Schema) -> str:
    source = (
        f"{PACKAGE} {version(PACKAGE)}, discovery document {api} revision {document['revision']}"
    )
    return f"Generated by tools/api_schemas.py from {source}."


def _reachable(
    messages: Mapping[str, Schema], roots: list[str], file: TargetFile
) -> dict[str, Schema]:
    """Return the schemas of the root messages, and of all messages that their fields refer to."""
    reached: dict[str, Schema] = {}
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached[name] = _message(name, messages[name], file)
            waiting += re.findall(r"#/\$defs/(\w+)", json.dumps(reached[name]))
    return reached


def _document(api: str) -> Schema:
    text = (
        files("googleapiclient.discovery_cache")
        .joinpath("documents", f"{api}.json")
        .read_text(encoding="utf-8")
    )
    document: Schema = json.loads(text)
    return document


def _message(name: str, message: Schema, file: TargetFile) -> Schema:
    left_out, not_required = file.left_out.get(name, {}), file.not_required.get(name, {})
    fields: Mapping[str, Schema] = {
        key: field
        for key, field in message.get("properties", {}).items()
        if key not in left_out and not _is_output(field)
    }
    required = [
        key for key, field in fields.items() if _is_required(field) and key not in not_required
    ]
    properties = {key: _field(field, file.prefix) for key, field in fields.items()}
    schema = closed(properties, [*required, *file.required_too.get(name, [])])
    return described(schema, message.get("description", ""))


def _is_required(field: Schema) -> bool:
    # compute.v1 lists the methods that require a field. A message may be the body of several, such as those of zonal
    # and of regional groups, and a file is the body of one that creates an object: so any `insert` counts.
    methods: list[str] = field.get("annotations", {}).get("required", [])
    is_created = any(method.endswith(".insert") for method in methods)
    return is_created or field.get("description", "").startswith("Required.")


def _is_output(field: Schema) -> bool:
    # ml.v1 has it in prose only; tpu.v2 and compute.v1 have both.
    return bool(field.get("readOnly")) or field.get("description", "").startswith(
        ("Output only.", "[Output Only]")
    )


def _field(field: Schema, prefix: str) -> Schema:
    description = field.get("description", "")
    schema = described(_type(field, prefix), description)
    if match := _PATTERN_IN_PROSE.search(description):
        schema["pattern"] = match[1]
    return {**schema, "deprecated": True} if field.get("deprecated") else schema


def _type(field: Schema, prefix: str) -> Schema:
    if "$ref" in field:
        return {"$ref": f"#/$defs/{field['$ref'].removeprefix(prefix)}"}
    if "enum" in field:
        return {"type": "string", "enum": _values(field)}
    if field["type"] == "array":
        return {"type": "array", "items": _type(field["items"], prefix)}
    if "properties" in field:  # a message without a name, such as an item of instance metadata
        return closed(
            {key: _field(inner, prefix) for key, inner in field["properties"].items()}, []
        )
    if field["type"] == "object":
        return map_of(_type(field["additionalProperties"], prefix))
    return dict(FORMATS.get(field.get("format", ""), {"type": field["type"]}))


def _values(field: Schema) -> list[str]:
    values: list[str] = field["enum"]
    deprecated: list[bool] = field.get("enumDeprecated", [False] * len(values))
    return [
        value
        for value, old in zip(values, deprecated, strict=True)
        if not old and not value.endswith("UNSPECIFIED") and not value.startswith("UNSPECIFIED")
    ]
