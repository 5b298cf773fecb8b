"""vertex-ai: `CustomJobSpec` of the package google-cloud-aiplatform, see `protobuf.py`."""

from collections.abc import Mapping, Sequence
from typing import Any

from google.cloud.aiplatform_v1.types import CustomJobSpec

from official import protobuf


def refusals(configs: Sequence[str | Mapping[str, Any]]) -> list[list[str]]:
    """Return the errors of each config."""
    return [protobuf.refusals(CustomJobSpec.pb(), config) for config in configs]
