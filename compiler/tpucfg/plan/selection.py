"""Which environments and sizes a command is about, and what is said where the spec does not have them."""

from collections.abc import Sequence
from typing import NamedTuple

from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import nearest


class Selection(NamedTuple):
    """Which jobs a command is about; empty means all."""

    environments: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    target: str | None = None
    """Instead of the target that the spec names."""
    run: str | None = None


SelectedSizes = tuple[tuple[Environment, tuple[str, ...]], ...]
"""The selected environments, each with its selected sizes."""


class SelectionError(Exception):
    """The command asks for an environment or a size that the spec does not have."""


def select_sizes(project: Project, selection: Selection) -> SelectedSizes:
    """The selected environments with their selected sizes, in the project's order.

    Raises:
        SelectionError: An environment or size is unknown, or an environment named beside a size lacks it.
    """
    _known_environments(project, selection)
    chosen = [
        (environment, tuple(size for size in environment.sizes if not selection.sizes or size in selection.sizes))
        for environment in project.environments.values()
        if not selection.environments or environment.name in selection.environments
    ]
    for size in selection.sizes:
        lacking = [environment.name for environment, _ in chosen if size not in environment.sizes]
        if lacking and (selection.environments or len(lacking) == len(chosen)):
            raise SelectionError(_no_such_size(project, size, lacking if selection.environments else []))
    return tuple((environment, sizes) for environment, sizes in chosen if sizes)


def _known_environments(project: Project, selection: Selection) -> None:
    for name in selection.environments:
        if name not in project.environments:
            near = nearest(name, tuple(project.environments))
            hint = f"did you mean {near}? " if near else ""
            known = ", ".join(project.environments)
            raise SelectionError(f"there is no environment {name}; {hint}the spec has {known}")


def _no_such_size(project: Project, size: str, lacking: Sequence[str]) -> str:
    ladders = [f"  {name}: {', '.join(environment.sizes)}" for name, environment in project.environments.items()]
    where = f"the ladder of {' and '.join(lacking)}" if lacking else "no ladder"
    said = f"{size} is not in {where}" if lacking else f"{size} is in {where}"
    return "\n".join([f"{said}. The ladders are:", *ladders])
