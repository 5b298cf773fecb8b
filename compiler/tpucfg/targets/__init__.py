"""The targets, by the name that a spec gives them. A new one is a module, a template, a schema and a row here."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final, cast

from tpucfg.targets.interface import Command, Origin, RequestBody, Submission, SubmissionError, Target

__all__ = ["TARGETS", "Command", "Origin", "RequestBody", "Submission", "SubmissionError", "Target", "target_named"]

TARGETS: Final[Mapping[str, str]] = {
    "ai-platform": "tpucfg.targets.ai_platform",
    "vertex-ai": "tpucfg.targets.vertex_ai",
    "cloud-tpu": "tpucfg.targets.cloud_tpu",
    "gke": "tpucfg.targets.gke",
}
"""Each module is imported only when one of its jobs is planned."""


@cache
def target_named(name: str) -> Target:
    """The target of that name, which must be one of TARGETS."""
    return cast("Target", import_module(TARGETS[name]))
