"""Validation of configs by Google's and Kubernetes' own code, with one function for every target.

    official.refusals("vertex-ai", {"workerPoolSpecs": [...]})   # [] if the official code accepts it

Each target's module documents the scope of its check.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

Message: TypeAlias = Mapping[str, Any]
"""A config as data."""

MODULES = {
    name: f"official.{name.replace('-', '_')}"
    for name in ("ai-platform", "vertex-ai", "cloud-tpu", "compute-engine", "gke")
}


def refusals(target: str, config: str | Message) -> list[str]:
    """Return the errors of the official code for this config (text or data); an empty list if it is valid."""
    return all_refusals(target, [config])[0]


def all_refusals(target: str, configs: Sequence[str | Message]) -> list[list[str]]:
    """Return the errors of each config; faster for many configs than single calls (gke starts one process)."""
    errors: list[list[str]] = import_module(MODULES[target]).refusals(configs)
    return errors
