"""Specs for the tests of the stack: the smallest that is whole, with what a test wants otherwise."""

from pathlib import Path
from typing import Any

import yaml

PROJECT, NUMBER = "acme-dev", 123456789012


def spec(environment: dict[str, Any] | None = None, *, env: str = "dev", **top: Any) -> dict[str, Any]:
    """A spec with one environment; the first argument changes the environment, the others the top."""
    return {
        "version": 1,
        "name": "mnist",
        "target": "vertex-ai",
        "sizes": ["v2-8"],
        "environments": {env: {"project": PROJECT, "region": "us-central1", **(environment or {})}},
        "trainer": {"image": "us-docker.pkg.dev/acme-dev/train/mnist:1.0"},
        "training": {"tuned_on": "v2-8", "batch_size": 1024, "train_steps": 4000},
        **top,
    }


def write(folder: Path, data: dict[str, Any]) -> Path:
    """The spec as a file in a folder."""
    path = folder / "tpucfg.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path
