"""Explain a layered setting of a job: the layer that sets it, and the layers that it overrides."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tpucfg.plan.job import Job
from tpucfg.plan.provenance import Reason
from tpucfg.spec.layers import Layered, layers_of, takes_away
from tpucfg.spec.project import Project
from tpucfg.text_format import dotted, format_value
from tpucfg.yamldoc.document import Document, KeyPath

DEFAULTS: Final[Mapping[KeyPath, str]] = {("capacity",): "on-demand"}
"""The settings that have a value on every target if no layer sets them."""


class _Entry(NamedTuple):
    """The part of one layer in the value of a setting."""

    layer: KeyPath
    path: KeyPath
    text: str
    """The value in this layer."""


def setting_reasons(project: Project, job: Job, setting: KeyPath) -> Iterator[Reason]:
    """Yield the origin of a setting, given its path below the layers, or one line for each value of a mapping."""
    value = job.settings.layers.find(*map(str, setting))
    if value is not None and _is_merged(value, setting) and value.value:
        for key in value.value:
            yield from list(setting_reasons(project, job, (*setting, key)))[:1]
        return
    entries = _entries(project.document, job, setting)
    if not entries:
        default = f"it is {DEFAULTS[setting]}" if setting in DEFAULTS else "the target's default applies"
        yield Reason(f"no layer sets {dotted(setting)}: {default}")
        return
    *others, winner = entries
    location = project.document.key_location
    yield Reason(f"{dotted(winner.path)}: {winner.text}{_set_in(winner.layer)}", location(winner.path))
    for entry in reversed(others):
        yield Reason(f"{dotted(entry.path)}: {entry.text}, which {_name(winner.layer)} overrides", location(entry.path))


def layer_reasons(project: Project, job: Job, setting: KeyPath) -> Iterator[Reason]:
    """Yield the lines of every layer that takes part in a setting whose value is printed elsewhere, the last first."""
    value = job.settings.layers.find(*map(str, setting))
    first, *others = setting_reasons(project, job, setting)
    if value is not None and _is_merged(value, setting):
        for entry in reversed(_entries(project.document, job, setting)):
            yield Reason(f"{dotted(entry.path)}{_set_in(entry.layer)}", project.document.key_location(entry.path))
    else:
        winner = _entries(project.document, job, setting)[-1]
        yield first._replace(text=f"{dotted(winner.path)}{_set_in(winner.layer)}")
        yield from others


def _is_merged(value: Layered, setting: KeyPath) -> bool:
    """Return True for a mapping to which every layer may add; a reservation is one value, although a mapping."""
    return isinstance(value.value, dict) and setting[:1] != ("capacity",)


def _entries(document: Document, job: Job, setting: KeyPath) -> list[_Entry]:
    """Return the parts of the layers in a setting, from the first layer to the one that wins."""
    layers = layers_of(document.data, job.environment.name, job.size)
    return [entry for layer in layers if (entry := _entry(document, layer, setting))]


def _entry(document: Document, layer: Layered, setting: KeyPath) -> _Entry | None:
    value = layer
    for depth, key in enumerate(setting):
        child = value.children().get(str(key))
        if child is None:
            return None
        if takes_away(child.value, setting[:depth]):
            return _Entry(layer.path, child.path, "taken away")
        value = child
    return _Entry(layer.path, value.path, _text(document, value))


def _text(document: Document, value: Layered) -> str:
    return document.source_text(value.path) or format_value(value.value)


def _set_in(layer: KeyPath) -> str:
    return f", set in {_name(layer)}" if layer else ""


def _name(layer: KeyPath) -> str:
    return dotted(layer, "the top of the file")
