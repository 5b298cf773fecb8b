"""Parsing of configs given as text or data."""

from collections.abc import Mapping
from typing import Any

import yaml


def as_data(config: str | Mapping[str, Any]) -> Any:
    """Return the data of a config, parsed with the YAML library of Google's client."""
    return yaml.safe_load(config) if isinstance(config, str) else dict(config)
