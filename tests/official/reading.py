"""Configs as data, whether they come as text or not."""

from collections.abc import Mapping
from typing import Any

import yaml


def as_data(config: str | Mapping[str, Any]) -> Any:
    """Return the data of a config, read by the YAML reader that Google's client uses too."""
    return yaml.safe_load(config) if isinstance(config, str) else dict(config)
