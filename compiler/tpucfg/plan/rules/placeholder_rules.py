"""Placeholders whose value a job does not have: a length that the spec does not set, a topology that is not known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tpucfg.findings import Finding
from tpucfg.plan.job import Job
from tpucfg.spec.layers import Layered
from tpucfg.spec.placeholders import TRAINER_KEYS
from tpucfg.spec.project import Project
from tpucfg.spec.settings import Settings
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath


class _Placeholder(NamedTuple):
    """A placeholder that may lack a value."""

    is_missing: Callable[[Job], bool]
    problem: str
    """A clause with the sizes concerned as `{}`."""
    hint: str


_MISSING: Final[Mapping[str, _Placeholder]] = {
    "sequence_length": _Placeholder(
        lambda job: job.rung.sequence_length is None,
        "training.sequence_length is not set",
        "set training.sequence_length to 2048, or to the tokens of one of your examples",
    ),
    "topology": _Placeholder(
        lambda job: job.slice.topology is None,
        "no source states the topology of {}",
        "replace it by the text that the program needs",
    ),
}


def missing_values(jobs: Sequence[Job], project: Project) -> Iterator[Finding]:
    """Yield an error for each placeholder that would be an empty text in some of the jobs."""
    for name, placeholder in _MISSING.items():
        uses: dict[int, tuple[KeyPath, ...]] = {}
        sizes: dict[KeyPath, dict[str, None]] = {}
        for job in jobs:
            if placeholder.is_missing(job):
                # Jobs share settings, whose texts are searched once.
                key = id(job.settings)
                uses[key] = uses[key] if key in uses else tuple(_uses(job.settings, name))
                for path in uses[key]:
                    sizes.setdefault(path, {})[job.size] = None
        for path, names in sizes.items():
            problem = placeholder.problem.format(listed(tuple(names)))
            message = f"{dotted(path)} has ${{{name}}}, but {problem}"
            location = project.document.text_location(path, f"${{{name}}}")
            yield Finding.of("TPU113", message, location, help=placeholder.hint)


def _uses(settings: Settings, name: str) -> Iterator[KeyPath]:
    """Yield the path of each text of the trainer that contains the placeholder."""
    for key in TRAINER_KEYS:
        if layered := settings.layers.find("trainer", key):
            for path, text in _texts(layered):
                if f"${{{name}}}" in text.replace("$${", ""):
                    yield path


def _texts(layered: Layered) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(layered.value, str):
        yield layered.path, layered.value
    elif isinstance(layered.value, list):
        yield from (((*layered.path, index), item) for index, item in enumerate(layered.value) if isinstance(item, str))
    for child in layered.children().values():
        yield from _texts(child)
