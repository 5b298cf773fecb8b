"""Errors of jsonschema, with the annotations of the schema that their explanations need."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from tpucfg.findings import MAX_FINDINGS
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import grouped
from tpucfg.schemas import SPEC, RuleIds, load_schema, resolve_references, sections_of_key
from tpucfg.schemas.spec_keys import implied_value, key_advice, synonym, value_advice
from tpucfg.text_format import dotted, format_value, nearest, yaml_example
from tpucfg.yamldoc import KeyPath


@cache
def strict_validator(name: str) -> Any:
    """Return a validator of jsonschema, modified to accept exactly the data that jsonschema-rs accepts."""

    def check_pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not matches_pattern(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    # jsonschema compares all pairs of items, which is quadratic; the schemas use uniqueItems only for lists of texts.
    def check_unique(_: Any, is_required: bool, instance: Any, __: Any) -> Iterator[Any]:
        texts = (
            [item for item in instance if isinstance(item, str)]
            if isinstance(instance, list)
            else []
        )
        if is_required and len(set(texts)) < len(texts):
            yield ValidationError("an item occurs twice")

    keywords = {"pattern": check_pattern, "uniqueItems": check_unique}
    strict: Any = extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call] # untyped in the stubs
    return strict(load_schema(name))


def matches_pattern(pattern: str, text: str) -> bool:
    """Return True if a text matches a pattern of JSON Schema."""
    # In Python, `$` also matches before a final line break; in JSON Schema, it does not.
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text) is not None


class ErrorContext(NamedTuple):
    """One error of jsonschema, with everything that its explanation needs."""

    error: Any
    name: str
    """The name of the schema."""
    ids: RuleIds
    source_text: Callable[[KeyPath], str]
    """Returns the source text of a scalar."""
    data: Any = None
    """The whole document."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """The whole schema, in which references are resolved."""
        return load_schema(self.name)

    def takes(self, value: Any) -> bool:
        """Return True if the part of the schema that refuses the invalid value takes another one."""
        validator = strict_validator(self.name).evolve(schema=self.error.schema)
        return value is not None and bool(validator.is_valid(value))

    @property
    def path(self) -> KeyPath:
        """The path of the invalid value."""
        return tuple(self.error.absolute_path)

    @property
    def subject(self) -> str:
        """The path as the subject of a message: `environments.dev.region`, or `the file`."""
        return dotted(self.path, self.ids.root)

    @property
    def value_text(self) -> str:
        """The invalid value; a number in its source text, if that is known."""
        is_number = isinstance(self.error.instance, int | float) and not isinstance(
            self.error.instance, bool
        )
        return (is_number and self.source_text(self.path)) or format_value(self.error.instance)

    @property
    def pattern_message(self) -> str:
        """The mismatched pattern in words; empty if the error is about another keyword."""
        return (
            self.error.schema.get("patternErrorMessage", "")
            if self.error.validator == "pattern"
            else ""
        )

    @property
    def absent_keys(self) -> list[str]:
        """The known keys that the object does not have."""
        return [
            key for key in self.error.schema.get("properties", ()) if key not in self.error.instance
        ]

    @property
    def intended_keys(self) -> set[str]:
        """The known keys that the object has under a similar name."""
        schema = self.error.schema
        if schema.get("additionalProperties", True) is not False or not isinstance(
            self.error.instance, dict
        ):
            return set()
        first_keys = islice(self.error.instance.items(), MAX_FINDINGS)
        if any(self.advice(self.path, key, value).startswith("set ") for key, value in first_keys):
            return set(schema.get("required", ()))  # the advice replaces the whole object
        known, absent = schema.get("properties", ()), self.absent_keys
        # Limited, because finding the nearest of several names is slow, and an object may have thousands of keys.
        unknown = islice((key for key in self.error.instance if key not in known), MAX_FINDINGS)
        return {near for key in unknown if (near := self.nearest_key(key, absent))}

    def nearest_key(self, key: str, names: Sequence[str]) -> str | None:
        """Return the name that was most likely meant by an unknown key; of a spec, also by another tool's name."""
        meant = synonym(self.path, key) if self.ids == SPEC else None
        candidates = (meant, key.partition(":")[0])
        return next((name for name in candidates if name in names), None) or nearest(key, names)

    def advice(self, path: KeyPath, key: str, value: Any) -> str:
        """Return the edit for an unknown key that belongs to another section of a spec, or an empty text."""
        return key_advice(self.data, path, key, value) if self.ids == SPEC else ""

    @property
    def advice_on_value(self) -> str:
        """The edit for a value of a spec that has another name or unit, or an empty text."""
        return value_advice(self.path, self.error.instance) if self.ids == SPEC else ""

    @property
    def misplaced_keys(self) -> dict[str | int, list[str]]:
        """By missing member of the root: the root's keys that belong inside it."""
        if self.path or self.intended_keys or not isinstance(self.error.instance, dict):
            return {}
        required = {*self.error.schema.get("required", ())} - self.error.instance.keys()
        first_keys = islice(self.error.instance, MAX_FINDINGS)
        sections = ((next(sections_of_key(self.name, key), ()), key) for key in first_keys)
        return grouped(
            (section[0], key) for section, key in sections if section and section[0] in required
        )

    @property
    def misplaced_in_override(self) -> str:
        """The edit for a key of an override that is no setting of training.steps, and belongs to another section."""
        # The schema takes any name there: which ones are valid depends on training.steps.
        of_any_name = "additionalProperties" in list(self.error.absolute_schema_path)[-2:]
        match self.path:
            case ("overrides", _, str(key)) if of_any_name:
                return self.advice(self.path[:2], key, self.error.instance)
        return ""

    def example(self, *, key: bool = False) -> str:
        """Return a help line with a valid value, `for example: batch_size: 1024`, or with a valid key, or no text."""
        annotations = (
            self._annotations() if key else self._with_implied(self._annotations(), self.path)
        )
        example = _first_example(annotations, () if key else self.path[-1:])
        return f"for example: {example}" if example else ""

    def example_of(self, key: str) -> str:
        """Return a member of the object with an example of its value; the bare key if the schema has no example."""
        member = resolve_references(
            self.schema, self.error.schema.get("properties", {}).get(key, {})
        )
        return _first_example(self._with_implied(member, (*self.path, key)), (key,)) or f"{key}:"

    def _with_implied(self, annotations: Mapping[str, Any], path: KeyPath) -> Mapping[str, Any]:
        """Return the annotations of a value, whose example is the value that the rest of a spec implies, if any."""
        implied = implied_value(self.data, path) if self.ids == SPEC else None
        return {**annotations, "examples": [implied]} if implied else annotations

    def _annotations(self) -> Mapping[str, Any]:
        """Return the schema of the value; annotations beside a reference override the referenced schema."""
        node: Any = self.schema
        for step in list(self.error.absolute_schema_path)[:-1]:
            node = (resolve_references(self.schema, node) if isinstance(node, dict) else node)[step]
        return resolve_references(self.schema, node)


def _first_example(annotations: Mapping[str, Any], key: KeyPath) -> str:
    constant = [annotations["const"]] if "const" in annotations else []
    examples = annotations.get("examples") or annotations.get("enum") or constant
    if not examples:
        return ""
    return (
        f"{key[0]}: {yaml_example(examples[0])}"
        if key and isinstance(key[0], str)
        else yaml_example(examples[0])
    )


def did_you_mean(near: str | None) -> str:
    """Return a help line with the name that was most likely meant, or an empty text."""
    return f"did you mean {near}?" if near else ""
