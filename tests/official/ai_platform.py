"""ai-platform: the `ml.v1` client's request builder, and the message types of gcloud, see `gcloud_types.py`.

The service has no protobuf package, and the request builder sends any body.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import httplib2
from googleapiclient.discovery import build

from official.gcloud_types import type_errors
from official.reading import as_data

API = "ml", "v1"


def refusals(configs: Sequence[str | Mapping[str, Any]]) -> list[list[str]]:
    """Return the errors of each config."""
    return [
        [*type_errors(*API, "GoogleCloudMlV1Job", data), *_builder_errors(data)]
        for data in map(as_data, configs)
    ]


def _builder_errors(data: object) -> list[str]:
    service = _service()
    try:
        request = service.projects().jobs().create(parent="projects/p", body=data)
    except (TypeError, ValueError) as refusal:
        return [f"{type(refusal).__name__}: {refusal}"]
    return [] if json.loads(request.body) == data else ["the request builder sends another body"]


@cache
def _service() -> Any:
    return build(*API, static_discovery=True, http=httplib2.Http())
