"""Keys of a spec that take another form in another section: zones, topologies, figures, and names of other tools.

Each function returns the exact edit for a key and its value, or None if it does not apply.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.text_format import dotted, nearest, quote_key, yaml_example
from tpucfg.yamldoc.document import KeyPath

ABSENT: Final = object()
"""The value at a path that a document does not have."""
_ZONE: Final = re.compile(r"([a-z]+(?:-[a-z]+)+[0-9]{1,2})-[a-z][a-z0-9]{0,4}")
"""A zone, which starts with its region: https://cloud.google.com/compute/docs/regions-zones."""
_TOPOLOGY: Final = re.compile(r"[1-9][0-9]{0,3}(?:x[1-9][0-9]{0,3}){1,2}")
_SIZE: Final = re.compile(r"[a-z0-9]+-([0-9]{1,6})(?:x[0-9]{1,3})?")
_OPPOSITES: Final = {"internal_ips": "external_ips", "no_external_ips": "external_ips", "private_ips": "external_ips"}
"""Names of a switch for internal addresses, the opposite of the key of `cloud-tpu` and `compute-engine`.

https://cloud.google.com/sdk/gcloud/reference/compute/tpus/tpu-vm/create (--internal-ips)
"""
_WITH_ADDRESSES: Final = (("targets", "cloud-tpu"), ("targets", "compute-engine"))
_PLAN_RULES: Final = {"batch_rule": ("keep", "batch_size"), "learning_rate_rule": ("keep", "learning_rate")}
"""Rules of `training`: the value that keeps a figure on every rung, and the figure."""
_FOR_ALL: Final = ("sequence_length", "batch_rule", "learning_rate_rule", "flags", "tuned_on")
"""Keys of `training` that have one value for the whole ladder."""
_STEPS: Final = re.compile(r"(.+_)?steps?(_.+)?")


def value_at(data: Any, path: KeyPath) -> Any:
    """Return the value at a path, or ABSENT."""
    for step in path:
        if not isinstance(data, dict) or step not in data:
            return ABSENT
        data = data[step]
    return data


class UnknownKey(NamedTuple):
    """A key of a spec in a section that does not have it."""

    data: Any
    """The whole spec, which may be invalid."""
    layer: KeyPath
    """The path of the layer; empty at the top."""
    section: KeyPath
    """The path of the section below the layer."""
    key: str
    value: Any

    @property
    def path(self) -> KeyPath:
        """The path of the section."""
        return (*self.layer, *self.section)

    def has(self, *path: str | int) -> bool:
        """Return True if the spec has a value at a path."""
        return value_at(self.data, path) is not ABSENT

    def environments(self) -> list[str]:
        """Return the environments to which the layer applies, in the order of the file."""
        if self.layer[:1] == ("environments",):
            return [str(self.layer[1])]
        environments = value_at(self.data, ("environments",))
        return list(environments) if isinstance(environments, dict) else []

    def sizes(self, environment: str) -> list[str]:
        """Return the sizes to which the layer applies in an environment."""
        if self.layer[-2:-1] == ("overrides",):
            return [str(self.layer[-1])]
        own = value_at(self.data, ("environments", environment, "sizes"))
        sizes = value_at(self.data, ("sizes",)) if own is ABSENT else own
        return [size for size in sizes if isinstance(size, str)] if isinstance(sizes, list) else []


def moved_key(unknown: UnknownKey) -> str | None:
    """Return the edit for a key that takes another form elsewhere; None if none is known."""
    return next((hint for edit in _EDITS if (hint := edit(unknown))), None)


def _zone(unknown: UnknownKey) -> str | None:
    """Return the edit that sets a zone for the sizes of the layer, in the environment of the zone's region."""
    key, zone = unknown.key, unknown.value
    if key not in ("zone", "zones") or not (isinstance(zone, str) and (match := _ZONE.fullmatch(zone))):
        return None
    for name in unknown.environments():
        sizes = unknown.sizes(name)
        if sizes and value_at(unknown.data, ("environments", name, "region")) == match[1]:
            return _zone_of_sizes(unknown, name, sizes)
    return f"delete {key}: no environment that it applies to is in {match[1]}"


def _zone_of_sizes(unknown: UnknownKey, environment: str, sizes: list[str]) -> str:
    """Return the edit that adds sizes to the zones of an environment."""
    key, place = unknown.key, ("environments", environment)
    present = value_at(unknown.data, (*place, "zones"))
    zones = present if isinstance(present, dict) else {}
    new = {size: unknown.value for size in sizes if size not in zones}
    if not new:
        return f"delete {key}: {dotted((*place, 'zones'))} has the zones"
    if zones or key == "zones":
        return f"delete {key}, and set {dotted((*place, 'zones'))} to {yaml_example({**zones, **new})}"
    return f"replace it by zones: {yaml_example(new)} under {dotted(place)}"


def _opposite(unknown: UnknownKey) -> str | None:
    """Return the edit for a switch of internal addresses, which turns the one of external addresses off."""
    key, path = unknown.key, unknown.path
    meant = _OPPOSITES.get(key.lower().replace("-", "_")) if unknown.section in _WITH_ADDRESSES else None
    if not meant:
        return None
    if unknown.has(*path, meant):
        return f"delete {quote_key(key)}: {dotted((*path, meant))} is already set"
    return f"replace it by {meant}: {yaml_example(unknown.value is False)} under {dotted(path)}"


def _size_setting(unknown: UnknownKey) -> str | None:
    """Return the edit for a topology outside an override: that of the only size that can have it."""
    key, topology = unknown.key, unknown.value
    is_in_place = unknown.layer[:1] == ("overrides",) and not unknown.section
    if key != "topology" or not isinstance(topology, str) or is_in_place:
        return None
    sizes = {size for name in unknown.environments() for size in unknown.sizes(name)}
    fitting = [size for size in sorted(sizes) if _may_have(size, topology)]
    if len(fitting) != 1:
        return "topology belongs under overrides.<size>: move it there, or delete it"
    place = ("overrides", fitting[0])
    if unknown.has(*place, key):
        return f"delete {key}: {dotted((*place, key))} is already set"
    return f"replace it by {key}: {topology} under {dotted(place)}"


def _may_have(size: str, topology: str) -> bool:
    """Return True if a topology has the number of a size, which counts chips or, with two to a chip, TensorCores."""
    match = _SIZE.fullmatch(size)
    if match is None or not _TOPOLOGY.fullmatch(topology):
        return False
    chips = 1
    for axis in topology.split("x"):
        chips *= int(axis)
    return int(match[1]) in (chips, 2 * chips)


def step_setting(unknown: UnknownKey) -> str | None:
    """Return the edit for a count of steps in `training`; one that is nearly the name of a key is a misspelling."""
    key, value = unknown.key, unknown.value
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    is_there = unknown.path in ((), ("training",))
    if not (is_there and is_count and _STEPS.fullmatch(key)) or nearest(key, ("train_steps",)):
        return None
    if unknown.has("training", "steps", key):
        return f"delete {dotted((*unknown.path, key))}: training.steps.{key} is already set"
    return f"{key} belongs under training.steps: move it there, or delete it"


def _in_override(unknown: UnknownKey) -> str | None:
    """Return the edit for a key of `training` that an override does not have."""
    layer, key, value = unknown.layer, unknown.key, unknown.value
    if unknown.section or layer[-2:-1] != ("overrides",):
        return None
    figures = ("overrides", str(layer[-1]))
    if key == "steps" and isinstance(value, dict) and layer == figures:
        return f"move the keys of {dotted((*layer, key))} to {dotted(layer)} itself"
    if key not in _FOR_ALL:
        return None
    keeping, figure = _PLAN_RULES.get(key, (None, ""))
    if value == keeping and unknown.has("training", figure) and not unknown.has(*figures, figure):
        number = value_at(unknown.data, ("training", figure))
        return f"replace it by {figure}: {yaml_example(number)} under {dotted(figures)}"
    return f"delete {key}: training.{key} is one for all sizes, so that their results can be compared"


def _in_capacity(unknown: UnknownKey) -> str | None:
    """Return the edit for a key beside the name of a reservation: its project is a part of the name."""
    path, key, value = unknown.path, unknown.key, unknown.value
    if unknown.section != ("capacity",) or key not in ("project", "zone"):
        return None
    name = value_at(unknown.data, (*path, "reservation"))
    if key == "project" and isinstance(value, str) and isinstance(name, str) and "/" not in name:
        return f"set {dotted(path)} to {yaml_example({'reservation': f'projects/{value}/reservations/{name}'})}"
    return f"delete {key}: a reservation is given by its name alone, or with its project"


_EDITS: Final[tuple[Callable[[UnknownKey], str | None], ...]] = (
    _in_capacity,
    _zone,
    _opposite,
    _in_override,
    _size_setting,
)


def environment_places(unknown: UnknownKey, schema: Mapping[str, Any]) -> Iterator[KeyPath]:
    """Yield the environments that take a key of theirs which another section has; of several, `<name>`."""
    if unknown.key in schema["$defs"]["environment"]["properties"]:
        names = unknown.environments()
        missing = [name for name in names if not unknown.has("environments", name, unknown.key)] or names[:1]
        if missing:
            yield ("environments", missing[0] if len(missing) == 1 else "<name>")
