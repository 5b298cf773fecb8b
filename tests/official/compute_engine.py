"""compute-engine: the message types of gcloud for `compute.v1`, see `gcloud_types.py`; each document is a message."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from official.gcloud_types import type_errors

API = "compute", "v1"
MESSAGES = {
    "compute#resourcePolicy": "ResourcePolicy",
    "compute#instanceTemplate": "InstanceTemplate",
    "compute#instanceGroupManager": "InstanceGroupManager",
    "compute#instance": "Instance",
}
"""The messages by the kind of a document."""


def refusals(configs: Sequence[str | Mapping[str, Any]]) -> list[list[str]]:
    """Return the errors of each config: the text of a file, or its documents by their keys."""
    return [[*_errors(config)] for config in configs]


def _errors(config: str | Mapping[str, Any]) -> Iterator[str]:
    documents = list(yaml.safe_load_all(config)) if isinstance(config, str) else [config]
    if len(documents) == 1 and isinstance(documents[0], dict) and "kind" not in documents[0]:
        documents = list(documents[0].values())
    for data in documents:
        kind = data.get("kind") if isinstance(data, dict) else None
        if kind in MESSAGES:
            yield from type_errors(*API, MESSAGES[kind], data)
        else:
            yield f"not a message of a config: {kind}"
