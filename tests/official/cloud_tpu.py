"""cloud-tpu: `QueuedResource` of `google.cloud.tpu_v2`, from the package google-cloud-tpu, see `protobuf.py`."""

from collections.abc import Mapping, Sequence
from typing import Any

from google.cloud.tpu_v2.types import QueuedResource

from official import protobuf


def refusals(configs: Sequence[str | Mapping[str, Any]]) -> list[list[str]]:
    """Return the errors of each config."""
    return [protobuf.refusals(QueuedResource.pb(), config) for config in configs]
