"""What Google's and Kubernetes' own code says of a config: one function for every target.

    official.refusals("vertex-ai", {"workerPoolSpecs": [...]})   # [] where the official code takes it

What each target's check covers, and what it does not, stands in its module.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

Message: TypeAlias = Mapping[str, Any]
"""A config as data."""

MODULES = {name: f"official.{name.replace('-', '_')}" for name in ("ai-platform", "vertex-ai", "cloud-tpu", "gke")}


def refusals(target: str, config: str | Message) -> list[str]:
    """Return what the official code has against this config (text or data); nothing where it takes it."""
    return all_refusals(target, [config])[0]


def all_refusals(target: str, configs: Sequence[str | Message]) -> list[list[str]]:
    """Return the refusals of each config; for many of them faster than one by one (gke is one process)."""
    found: list[list[str]] = import_module(MODULES[target]).refusals(configs)
    return found
