"""What a spec says and nothing uses. Only a complete check can tell: of every environment, on the target it names."""

from collections.abc import Collection, Iterator
from typing import Final

from tpucfg.findings import Finding
from tpucfg.spec.document import Path
from tpucfg.spec.model import Project
from tpucfg.wording import dotted

_OF_ONE_TARGET: Final = {
    ("trainer", "worker_image"): "ai-platform",
    ("trainer", "runtime"): "ai-platform",
    ("trainer", "python"): "ai-platform",
}
"""Keys outside `targets` that only one target reads; `kube_context` is gke's, and stands in each environment."""


_OF_RESOURCES: Final = ("TPU094",)
"""Allowable findings about the resources of a stack, which only `tpucfg infra` looks at."""


def idle_settings(project: Project) -> Iterator[Finding]:
    """A warning for each setting of a target that no environment has."""
    used = {environment.target for environment in project.environments.values()}
    settings: list[tuple[Path, str]] = [(("targets", name), name) for name in project.targets]
    settings += _OF_ONE_TARGET.items()
    for path, target in settings:
        if target not in used and project.document.node(path):
            yield _unused(project, path, f"{target} reads it, and no environment has that target")
    for environment in project.environments.values():
        if environment.kube_context and environment.target != "gke":
            path = (*environment.path, "kube_context")
            yield _unused(project, path, f"gke reads it, and {environment.name} is on {environment.target}")


def _unused(project: Project, path: Path, why: str) -> Finding:
    message = f"{dotted(path)} changes nothing: {why}"
    return Finding.of("TPU061", message, project.document.key(path), help=f"delete {dotted(path)}")


def idle_allowances(project: Project, occurred: Collection[str]) -> Iterator[Finding]:
    """A warning for each id that is allowed and is not among those that occurred."""
    for id_ in project.allow:
        if id_ not in occurred and id_ not in _OF_RESOURCES:
            place = project.document.key(("allow", id_))
            yield Finding.of("TPU013", f"{id_} is allowed and did not occur", place, help=f"delete allow.{id_}")
