"""Which entry of a target's ORIGINS a path of its message falls under."""

import re
from collections.abc import Sequence
from typing import Final

from tpucfg.plan.model import Job
from tpucfg.spec.document import Path
from tpucfg.targets import Origin, target_named

_STEP: Final = r"\[([^]]+)\]|([^.[]+)"


def origin_of(target: str, path: Path) -> Origin | None:
    """Where the field at the path comes from; None for a field that only `extra` can have brought in."""
    steps = [str(step) for step in path]
    for pattern, origin in target_named(target).ORIGINS.items():
        if _matches(steps_of(pattern), steps):
            return origin
    return None


def steps_of(pattern: str) -> list[str]:
    """The steps of a pattern; a key that has dots itself stands in brackets: `labels.[kueue.x-k8s.io/queue-name]`."""
    return [quoted or plain for quoted, plain in re.findall(_STEP, pattern)]


def spec_path(origin: Origin, job: Job) -> Path:
    """The path of the spec that an origin of kind `spec` names, for this job: `<env>` and `<size>` are filled in."""
    filled = {"<env>": job.environment.name, "<size>": job.size}
    return tuple(filled.get(step, step) for step in origin.what.split("."))


def _matches(pattern: Sequence[str], steps: Sequence[str]) -> bool:
    """`*` stands for any one step, a final `**` for any number of them."""
    if pattern and pattern[-1] == "**":
        pattern = pattern[:-1]
        steps = steps[: len(pattern)]
    return len(pattern) == len(steps) and all(want in ("*", step) for want, step in zip(pattern, steps, strict=True))
