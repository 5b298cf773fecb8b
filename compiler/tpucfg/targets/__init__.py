"""The targets by name.

A new target needs a module, a template, a schema, a row in TARGETS and its sizes in the catalog: docs/extend/target.md
lists every step.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final, cast

from tpucfg.targets.interface import Origin, RequestBody, Target

__all__ = ["TARGETS", "Origin", "RequestBody", "Target", "target_named"]

TARGETS: Final[Mapping[str, str]] = {
    "ai-platform": "tpucfg.targets.ai_platform",
    "vertex-ai": "tpucfg.targets.vertex_ai",
    "cloud-tpu": "tpucfg.targets.cloud_tpu",
    "compute-engine": "tpucfg.targets.compute_engine",
    "gke": "tpucfg.targets.gke",
}
"""Module names instead of modules, so that a target is imported only when a job uses it."""


@cache
def target_named(name: str) -> Target:
    """Return the target with a name of TARGETS."""
    return cast("Target", import_module(TARGETS[name]))
