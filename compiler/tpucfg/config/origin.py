"""Which entry of a target's ORIGINS a path of its message falls under."""

from collections.abc import Sequence

from tpucfg.plan.model import Job
from tpucfg.spec.document import Path
from tpucfg.targets import Origin, target_named


def origin_of(target: str, path: Path) -> Origin | None:
    """Where the field at the path comes from; None for a field that only `extra` can have brought in."""
    steps = [str(step) for step in path]
    for pattern, origin in target_named(target).ORIGINS.items():
        if _matches(pattern.split("."), steps):
            return origin
    return None


def spec_path(origin: Origin, job: Job) -> Path:
    """The path that an origin of kind `spec` names: `*` stands for the job's environment."""
    return tuple(job.environment.name if step == "*" else step for step in origin.what.split("."))


def _matches(pattern: Sequence[str], steps: Sequence[str]) -> bool:
    """`*` stands for any one step, a final `**` for any number of them."""
    if pattern and pattern[-1] == "**":
        pattern = pattern[:-1]
        steps = steps[: len(pattern)]
    return len(pattern) == len(steps) and all(want in ("*", step) for want, step in zip(pattern, steps, strict=True))
