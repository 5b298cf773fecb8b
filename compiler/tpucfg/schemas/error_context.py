"""The validator that explains: jsonschema's, made to say yes exactly where the quick one does."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from tpucfg.findings import MAX_FINDINGS
from tpucfg.schemas import RuleIds, load_schema
from tpucfg.text_format import dotted, format_value, nearest, yaml_example
from tpucfg.yamldoc.document import KeyPath


@cache
def strict_validator(name: str) -> Any:
    """The validator of jsonschema that explains; it says yes exactly where the quick one does."""

    def whole(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not matches_pattern(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    def unique(_: Any, wanted: bool, instance: Any, __: Any) -> Iterator[Any]:
        # Of texts alone, as the items of all such lists are: the library's own takes the square of their number.
        texts = [item for item in instance if isinstance(item, str)] if isinstance(instance, list) else []
        if wanted and len(set(texts)) < len(texts):
            yield ValidationError("an item is there twice")

    rules = {"pattern": whole, "uniqueItems": unique}
    strict: Any = extend(Draft202012Validator, rules)  # type: ignore[no-untyped-call]  # as the stubs have it
    return strict(load_schema(name))


def matches_pattern(pattern: str, text: str) -> bool:
    """`$` of Python also matches before a last line break; that of JSON Schema's regular expressions does not."""
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text) is not None


# What an explanation can look up: the annotations of the schema that was broken, and where else a key is known.


class ErrorContext(NamedTuple):
    """One error of jsonschema, with what its explanation needs."""

    error: Any
    schema: Mapping[str, Any]
    """The whole schema, in which references are looked up."""
    ids: RuleIds
    written: Callable[[KeyPath], str]
    """A scalar as its text has it."""

    @property
    def path(self) -> KeyPath:
        """The value that breaks the rule."""
        return tuple(self.error.absolute_path)

    @property
    def where(self) -> str:
        """The same in words."""
        return dotted(self.path, self.ids.root)

    @property
    def found(self) -> str:
        """The value; a number as it is written, where that is known."""
        is_number = isinstance(self.error.instance, int | float) and not isinstance(self.error.instance, bool)
        return (is_number and self.written(self.path)) or format_value(self.error.instance)

    @property
    def words(self) -> str:
        """The broken pattern in words; empty where another rule is broken."""
        return self.error.schema.get("patternErrorMessage", "") if self.error.validator == "pattern" else ""

    @property
    def absent(self) -> list[str]:
        """The object's known keys that it does not have."""
        return [key for key in self.error.schema.get("properties", ()) if key not in self.error.instance]

    @property
    def misspelt(self) -> set[str]:
        """Keys that the object has under a name which it does not take."""
        rule = self.error.schema
        if rule.get("additionalProperties", True) is not False or not isinstance(self.error.instance, dict):
            return set()
        known, absent = rule.get("properties", ()), self.absent
        others = islice((key for key in self.error.instance if key not in known), MAX_FINDINGS)
        return {near for key in others if (near := nearest(key, absent))}

    @property
    def misplaced(self) -> dict[str, list[str]]:
        """Keys that belong into a member which the object should have and has not, by that member."""
        found: dict[str, list[str]] = {}
        for key in islice(self.error.instance, MAX_FINDINGS) if isinstance(self.error.instance, dict) else ():
            home = section_of_key(key, self.schema, self.path) or ""
            for member in self.error.schema.get("required", ()):
                below = f"under {dotted((*self.path, member))}"
                if member not in self.error.instance and home.removesuffix("[]") == below:
                    found.setdefault(member, []).append(key)
        return {} if self.misspelt else found

    def example(self) -> str:
        """How the value would look: `for example: batch_size: 1024`."""
        said = _said(self._annotations(), self.path[-1:])
        return f"for example: {said}" if said else ""

    def example_key(self) -> str:
        """How a key of the object would look."""
        said = _said(self._annotations(), ())
        return f"for example: {said}" if said else ""

    def example_of(self, key: str) -> str:
        """How one of the object's members would look; the bare key where the schema does not say."""
        return (
            _said(resolve_references(self.schema, self.error.schema.get("properties", {}).get(key, {})), (key,))
            or f"{key}:"
        )

    def _annotations(self) -> Mapping[str, Any]:
        """Of the schema that was broken, and of the references that led to it, which know the place better."""
        node: Any = self.schema
        for step in list(self.error.absolute_schema_path)[:-1]:
            node = (resolve_references(self.schema, node) if isinstance(node, dict) else node)[step]
        return resolve_references(self.schema, node)


def _said(annotations: Mapping[str, Any], key: KeyPath) -> str:
    examples = annotations.get("examples") or annotations.get("enum", [])
    if not examples:
        return ""
    return f"{key[0]}: {yaml_example(examples[0])}" if key and isinstance(key[0], str) else yaml_example(examples[0])


def resolve_references(schema: Mapping[str, Any], part: Any) -> Mapping[str, Any]:
    """A part of the schema with what it refers to; what stands beside a reference goes before it."""
    while isinstance(part, dict) and "$ref" in part:
        beside = {key: value for key, value in part.items() if key != "$ref"}
        part = {**_looked_up(schema, part["$ref"]), **beside}
    return part if isinstance(part, dict) else {}


def _looked_up(schema: Mapping[str, Any], reference: str) -> Any:
    node: Any = schema
    for step in reference.removeprefix("#/").split("/"):
        node = node[step]
    return node


def section_of_key(key: str, schema: Mapping[str, Any], path: KeyPath) -> str | None:
    """Where in the schema a key of that name is known, the nearest to the root first: `under training`."""
    if key in schema.get("properties", {}):
        return "at the top of the file" if path else None
    return next((f"under {where}" for where, names in _objects(schema) if key in names), None)


def _objects(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object below the root with its members, breadth first, each definition once."""
    waiting: list[tuple[str, Any]] = [("", schema)]
    seen: set[str] = set()
    for where, part in waiting:
        reference = part.get("$ref")
        if reference in seen:
            continue
        seen.update([reference] if reference else [])
        rule = resolve_references(schema, part)
        members = rule.get("properties", {})
        if where:
            yield where.removeprefix("."), members
        below = [(f"{where}.{name}", member) for name, member in members.items()]
        below += [(f"{where}.<name>", rule.get("additionalProperties")), (f"{where}[]", rule.get("items"))]
        waiting += [(name, member) for name, member in below if isinstance(member, dict)]


def did_you_mean(near: str | None) -> str:
    """The help where something else was most likely meant; empty where nothing was."""
    return f"did you mean {near}?" if near else ""
