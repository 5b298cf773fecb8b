"""Checks of trainer settings that a service does not have, in every layer."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Settings, Trainer
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath


class Unsupported(NamedTuple):
    """A setting of the trainer that a service does not have."""

    key: str
    """The key of `trainer`."""
    problem: str
    """The reason, as a sentence without its full stop."""
    fix: str
    """The edit that helps instead, as an imperative to follow the deletion of the key; may be empty."""
    source: str
    """The public page."""


_IS_SET: Final[dict[str, Callable[[Trainer, Slice], object]]] = {
    # Flags for other generations have no effect on the slice.
    "xla_flags": lambda trainer, slice_: trainer.xla_flags.get(slice_.generation),
    "restarts": lambda trainer, _: trainer.restarts is not None,
}
"""Tests that a setting has an effect, for keys whose value alone does not show it."""


def unsupported_settings(
    project: Project, environment: Environment, slices: Sequence[Slice], rows: Sequence[Unsupported]
) -> Iterator[Finding]:
    """Yield an error for each of the settings that the environment's sizes have, once for each layer."""
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        for row in rows:
            is_set = _IS_SET.get(row.key, lambda trainer, _, key=row.key: getattr(trainer, key))
            if is_set(settings.trainer, slice_):
                yield _finding(project, environment, settings, row)


def _finding(project: Project, environment: Environment, settings: Settings, row: Unsupported) -> Finding:
    path = settings.source(("trainer", row.key))
    hint = removal_hint(project, environment, path, row.key)
    return Finding.of(
        "TPU059",
        row.problem,
        project.document.key_location(path),
        help=f"{hint}, {row.fix}" if row.fix else hint,
        details=(f"see {row.source}",),
    )


def removal_hint(project: Project, environment: Environment, path: KeyPath, *keys: str) -> str:
    """Return the edit that takes a setting of the trainer away for one environment, whichever layer has it."""
    own = path[:2] == environment.path or len(project.environments) == 1
    return f"delete {dotted(path)}" if own else f"set {dotted((*environment.path, 'trainer', *keys))} to null"
