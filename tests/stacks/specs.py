"""Minimal specs for the tests of the stack program, with changes per test."""

from pathlib import Path
from typing import Any

import yaml

import spec_factory

PROJECT, NUMBER = "acme-dev", 123456789012


def spec(
    environment: dict[str, Any] | None = None, *, env: str = "dev", **top: Any
) -> dict[str, Any]:
    """Return a spec with one environment; `environment` adds keys to it, `top` replaces top-level keys."""
    environments = {env: {"project": PROJECT, "region": "us-central1", **(environment or {})}}
    image = "us-docker.pkg.dev/acme-dev/train/mnist:1.0"
    return (
        spec_factory.spec(sizes=["v2-8"], environments=environments, trainer={"image": image}) | top
    )


def write(folder: Path, data: dict[str, Any]) -> Path:
    """Write the spec into a folder and return its path."""
    path = folder / "tpucfg.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path
