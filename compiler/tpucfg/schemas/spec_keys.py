"""Edits for unknown keys and values of a spec: the place, the form or the name in which the spec takes them.

The names are data of the schema. `x-synonyms` has names of other tools for the keys or values of a section, and
`x-opposites` names of switches with the opposite meaning. `x-derived` has names of values that a section, or at the
root any section, does not need, by what decides them. `x-replaced` has keys of other tools and of the services' APIs
whose values have another form here, by the key that has their meaning.

Every help line is an edit that works: it names a place that takes the key and does not have it yet.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import value_at, values_at
from tpucfg.schemas import load_schema, resolve_references, sections_of_key
from tpucfg.text_format import dotted, letters, nearest, quote_key, yaml_example
from tpucfg.yamldoc import KeyPath

_ABSENT: Final = object()
_CAPACITY: Final = ("capacity",)
_RESERVATION: Final = re.compile(
    r"(?:(projects/[a-z0-9][-a-z0-9.:]{3,62}/)(?:(?:zones|locations)/[^/]+/)?)?"
    r"reservations/([a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"
)
"""A reservation in the form of an API, which may have a zone that the spec works out itself."""
_REGION: Final = re.compile(r"(?:^|/locations/)([a-z]+-[a-z]+[0-9]+)(?:-[a-z])?(?=$|/)")
"""The region of itself, of a zone, or of a cluster's location."""
_SECONDS: Final = re.compile(r"[1-9][0-9]{0,8}[smhd]?")
_STEPS: Final = re.compile(r"(.+_)?steps?(_.+)?")


def key_advice(data: Any, path: KeyPath, key: str, value: Any) -> str:
    """Return the edit for an unknown key of the mapping at a path; an empty text if no section is known for it."""
    unknown = _UnknownKey(data, *_split_layer(path), key, value)
    for edit in _EDITS:
        if (advice := edit(unknown)) is not None:
            return advice
    return ""


def value_advice(path: KeyPath, value: Any) -> str:
    """Return the edit for another name of a capacity or a target, or for a share among counts; else an empty text."""
    _, section = _split_layer(path)
    if section[:2] == ("training", "steps") and isinstance(value, float) and 0 < value < 1:
        name = quote_key(str(path[-1]))
        return (
            f"{name} belongs under trainer.args: move it there, as a share of the run is no count"
        )
    return _text_advice(path, section, value) if isinstance(value, str) else ""


def _text_advice(path: KeyPath, section: KeyPath, text: str) -> str:
    name, synonyms = _reservation_name(text), _annotation(section, "x-synonyms")
    meant = _meant(synonyms, text)
    if section == _CAPACITY and meant == "reservation":
        return "for example: capacity: {reservation: chat-2026}"
    if section == _CAPACITY and not meant:
        meant = nearest(text, [word for word in synonyms if word != "reservation"])
        if name or not meant:
            return f"set {dotted(path)} to {yaml_example({'reservation': name or text})}"
    if section == (*_CAPACITY, "reservation") and name and name != text:
        return f"set {dotted(path)} to {name}"
    return f"did you mean {meant}?" if meant else ""


_SMALLER_IS_BETTER: Final = ("loss", "perplexity", "error")
"""Words in the names of metrics."""
_LOCATED: Final = ("zone", "zones", "cluster", "region")
"""The keys of an environment whose values have its region."""


def implied_value(data: Any, path: KeyPath) -> str | None:
    """Return the value of a missing key that others decide, such as the region of an environment's zones; else None."""
    environments = [value for _, value in values_at(data, "environments.*")]
    texts: Iterable[Any] = ()
    match path:
        case ("training", "tuned_on"):
            texts = (value_at(layer, ("sizes", 0)) for layer in (data, *environments))
        case ("environments", _, "region"):
            places = (
                (layer, key)
                for layer in (value_at(data, path[:2]), *environments)
                for key in _LOCATED
            )
            values = (
                text
                for layer, key in places
                for _, text in values_at(value_at(layer, (key,)), "**")
            )
            texts = (
                match[1]
                for text in values
                if isinstance(text, str) and (match := _REGION.search(text))
            )
        case ("gate", "goal"):
            metric = str(value_at(data, ("gate", "metric")))
            texts = ["min"] if any(word in metric.lower() for word in _SMALLER_IS_BETTER) else []
    return next((text for text in texts if isinstance(text, str)), None)


def synonym(path: KeyPath, key: str) -> str | None:
    """Return the key of the section at a path that has the meaning of another tool's name."""
    _, section = _split_layer(path)
    keys = _schema_at(section).get("properties", {})
    return _meant(
        {
            name: others
            for name, others in _annotation(section, "x-synonyms").items()
            if name in keys
        },
        key,
    )


def nearest_figure(name: str, known: Sequence[str]) -> str | None:
    """Return the figure that was most likely meant: by another tool's name, a part of its name, or a misspelling."""
    meant = synonym(("training",), name)
    parts = (figure for figure in known if name in figure.split("_"))
    return meant if meant in known else nearest(name, known) or next(parts, None)


# The schema and its annotations.


def _split_layer(path: KeyPath) -> tuple[KeyPath, KeyPath]:
    """Split a path into the path of its layer, which is empty at the top, and the section inside it."""
    length = 0
    if path[:1] == ("environments",):
        length = 4 if path[2:3] == ("overrides",) else 2
    elif path[:1] == ("overrides",):
        length = 2
    return (path[:length], path[length:]) if len(path) >= length else ((), path)


def _schema_at(path: KeyPath) -> Mapping[str, Any]:
    """Return the schema of a value of a spec; empty if the spec takes none at the path."""
    schema = load_schema("tpucfg")
    part: Mapping[str, Any] = schema
    for step in path:
        below = part.get("properties", {}).get(step, part.get("additionalProperties"))
        part = resolve_references(schema, below)
    return part


def _annotation(section: KeyPath, keyword: str) -> Mapping[str, Any]:
    return resolve_references(load_schema("tpucfg"), _schema_at(section).get(keyword))


def _meant(names: Mapping[str, list[str]], text: str) -> str | None:
    """Return the name that has a text as another form or name; only letters and digits count."""
    meant = letters(text)
    return next(
        (name for name, others in names.items() if meant in map(letters, (name, *others))), None
    )


# Edits for a key. Each returns None if it does not apply.


class _UnknownKey(NamedTuple):
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

    @property
    def name(self) -> str:
        """The key in a message."""
        return quote_key(self.key)

    def at(self, *path: str | int) -> Any:
        """Return the spec's value at a path, or _ABSENT."""
        return value_at(self.data, path, _ABSENT)

    def has(self, *path: str | int) -> bool:
        """Return True if the spec has a value at a path."""
        return self.at(*path) is not _ABSENT

    def listed_under(self, keyword: str, path: KeyPath) -> str | None:
        """Return the entry of an annotation at a path that lists the key."""
        entries = _annotation(path, keyword).items()
        return next(
            (entry for entry, words in entries if letters(self.key) in map(letters, words)), None
        )

    @property
    def names(self) -> dict[str | int, str | int]:
        """The environment and the size of the layer, or of each."""
        environments = self.at("environments")
        only = (
            next(iter(environments))
            if isinstance(environments, dict) and len(environments) == 1
            else "<name>"
        )
        return {"environments": only, "overrides": "<size>"} | dict(
            zip(self.layer[::2], self.layer[1::2], strict=True)
        )

    def located(self, section: KeyPath) -> KeyPath:
        """Return the path of a section with the names of the layer."""
        steps = pairwise(("", *section))
        return tuple(
            self.names.get(before, step) if step == "<name>" else step for before, step in steps
        )

    def deletion(self, *existing: str | int) -> str:
        """Return the edit for a key whose meaning an existing key has."""
        return f"delete {self.name}: {dotted(existing)} is already set"

    def replacement(self, place: KeyPath, key: str, value: Any) -> str:
        """Return the edit that gives the key's meaning to another key."""
        if self.has(*place, key):
            return self.deletion(*place, key)
        return f"replace it by {key}: {yaml_example(value)} {where(place)}"


def where(place: KeyPath) -> str:
    """Return the place of a section in a sentence."""
    return f"under {dotted(place)}" if place else "at the top of the file"


def _of_a_size(unknown: _UnknownKey) -> str | None:
    """Return the edit for a zone, which an environment takes by size."""
    if unknown.key not in ("zone", "zones") or not isinstance(unknown.value, str):
        return None
    place = (*unknown.located(("environments", "<name>")), "zones", unknown.names["overrides"])
    if unknown.has(*place):
        return unknown.deletion(*place)
    return f"delete {unknown.key}, and set {dotted(place)} to {yaml_example(unknown.value)}"


def _opposite(unknown: _UnknownKey) -> str | None:
    """Return the edit for a switch whose opposite is a key: `internal_ips` for `external_ips`."""
    meant = unknown.listed_under("x-opposites", unknown.section)
    return unknown.replacement(unknown.path, meant, unknown.value is False) if meant else None


def _steps_of_override(unknown: _UnknownKey) -> str | None:
    """Return the edit for `steps` in an override, which has the counts as keys of its own."""
    layer, key = unknown.layer, unknown.key
    if (
        unknown.section
        or layer[:1] != ("overrides",)
        or key != "steps"
        or not isinstance(unknown.value, dict)
    ):
        return None
    return f"move the keys of {dotted((*layer, key))} to {dotted(layer)} itself"


def _replaced(unknown: _UnknownKey) -> str | None:
    """Return the edit for a key of another tool, or of a service's API, whose value has another form here."""
    in_capacity = (
        unknown.section == _CAPACITY
    )  # a mapping in place of a name: `{type: spot}`, `{spot: true}`
    meant = "capacity" if in_capacity else unknown.listed_under("x-replaced", ())
    if meant is None or (
        unknown.section and unknown.section[0] not in ("trainer", "targets", "capacity")
    ):
        return None
    text = str(unknown.value)
    if unknown.value in (None, False):
        return f"delete {unknown.name}"
    if meant == "trainer.max_run_duration":
        duration = (
            (text if text[-1:].isalpha() else f"{text}s") if _SECONDS.fullmatch(text) else "12h"
        )
        return unknown.replacement((*unknown.layer, "trainer"), "max_run_duration", duration)
    synonyms = _annotation(_CAPACITY, "x-synonyms")
    words = [
        word
        for each in (text, unknown.key)
        if (word := _meant(synonyms, each)) not in (None, "reservation")
    ]
    if in_capacity:
        return f"set {dotted(unknown.path)} to {words[0]}" if words else ""
    value = (
        {"reservation": _reservation_name(text) or text}
        if meant == "reservation"
        else [*words, "spot"][0]
    )
    return unknown.replacement(unknown.layer, "capacity", value)


def _reservation_name(text: str) -> str | None:
    """Return a reservation of an API in the form of a spec, without its zone."""
    match = _RESERVATION.fullmatch(text)
    if match is None:
        return None
    return f"{match[1]}reservations/{match[2]}" if match[1] else match[2]


def _explained(unknown: _UnknownKey) -> str | None:
    """Return the edit for a key whose meaning something else decides, here or in every section."""
    reason = unknown.listed_under("x-derived", unknown.path) or unknown.listed_under(
        "x-derived", ()
    )
    return f"delete {unknown.name}: {reason}" if reason else None


def _synonym(unknown: _UnknownKey) -> str | None:
    """Return the edit for another tool's name of a key, which may be set, or excluded by an alternative."""
    meant = synonym(unknown.path, unknown.key)
    if meant is None:
        return None
    present = _present(unknown, unknown.path, meant)
    if present is None:
        return f"did you mean {meant}?"
    deletion = unknown.deletion(*unknown.path, present)
    return (
        deletion
        if present == meant
        else f"{deletion}, and excludes {meant}, which has this meaning"
    )


def _present(unknown: _UnknownKey, place: KeyPath, key: str) -> str | None:
    """Return the key itself if a section has it, or the key of the section that excludes it; None if it is free."""
    _, section = _split_layer(place)
    schema = _schema_at(section)
    one_of = [name for branch in schema.get("oneOf", ()) for name in branch["required"]]
    excluding: list[str] = schema.get("not", {}).get("required", [])
    alternatives = [name for names in (one_of, excluding) if key in names for name in names]
    return next((name for name in (key, *alternatives) if unknown.has(*place, name)), None)


def _is_step_setting(unknown: _UnknownKey) -> bool:
    """Return True for a count of steps in `training`; one that is nearly the name of a key is a misspelling."""
    key, value = unknown.key, unknown.value
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    is_there = unknown.path in ((), ("training",)) and not synonym(("training",), key)
    return bool(is_there and is_count and _STEPS.fullmatch(key)) and not nearest(
        key, ("train_steps",)
    )


def _misplaced(unknown: _UnknownKey) -> str | None:
    """Return the edit that moves a key to a section that takes it."""
    place = next((place for place in _places(unknown) if place != unknown.path), None)
    if place is None:
        # A key of another target is no misspelling of one that this target has.
        is_of_target = unknown.section[:1] == ("targets",) and any(
            sections_of_key("tpucfg", unknown.key)
        )
        return f"delete {unknown.name}" if is_of_target else None
    present = _present(unknown, place, unknown.key)
    if present == unknown.key:
        return f"delete {dotted((*unknown.path, unknown.key))}: {dotted((*place, unknown.key))} is already set"
    instead = f"in place of {present}, " if present else ""
    return f"{unknown.name} belongs {where(place)}: move it there, {instead}or delete it"


def _places(unknown: _UnknownKey) -> Iterator[KeyPath]:
    """Yield the paths of the sections that take a key, those of the same layer first."""
    if _is_step_setting(unknown):
        yield ("training", "steps")
    places = map(unknown.located, sections_of_key("tpucfg", unknown.key))
    for place in sorted(places, key=lambda place: -len({*place} & {*unknown.layer})):
        if place[-2:-1] != ("targets",) or place[-1] == _target_of(unknown):
            yield place


def _target_of(unknown: _UnknownKey) -> Any:
    """Return the target of the layer's environment, or of most."""
    own = (
        unknown.at(*unknown.layer[:2], "target")
        if unknown.layer[:1] == ("environments",)
        else _ABSENT
    )
    return unknown.at("target") if own is _ABSENT else own


_EDITS: Final[tuple[Callable[[_UnknownKey], str | None], ...]] = (
    _explained,
    _synonym,
    _of_a_size,
    _opposite,
    _steps_of_override,
    _replaced,
    _misplaced,
)
"""The first edit that applies is the advice."""
