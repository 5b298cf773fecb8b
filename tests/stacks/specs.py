"""Specs for the tests of the stack: the smallest that is whole, with what a test wants otherwise."""

from pathlib import Path
from typing import Any

import yaml

import spec_factory

PROJECT, NUMBER = "acme-dev", 123456789012


def spec(environment: dict[str, Any] | None = None, *, env: str = "dev", **top: Any) -> dict[str, Any]:
    """A spec with one environment; the first argument changes the environment, the others the top."""
    environments = {env: {"project": PROJECT, "region": "us-central1", **(environment or {})}}
    image = "us-docker.pkg.dev/acme-dev/train/mnist:1.0"
    return spec_factory.spec(sizes=["v2-8"], environments=environments, trainer={"image": image}) | top


def write(folder: Path, data: dict[str, Any]) -> Path:
    """The spec as a file in a folder."""
    path = folder / "tpucfg.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path
