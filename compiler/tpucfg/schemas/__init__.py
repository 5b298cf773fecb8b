"""Validate data against the project's JSON Schemas, and explain each mistake in a sentence.

jsonschema-rs decides in microseconds if data is valid. jsonschema, whose errors have enough details for a helpful
message, explains invalid data; it is imported only then, because the import takes longer than most commands. Tests
compare the two validators on every file of the repository and on random data.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final

from tpucfg.findings import MAX_FINDINGS, Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.package_data import data_folder
from tpucfg.paths import value_at
from tpucfg.yamldoc import Document, KeyPath


class RuleIds(NamedTuple):
    """The rule ids of a family of schemas: a spec's keys and a config's fields have different rules."""

    unknown: str
    missing: str
    type: str
    value: str
    exclusive: str
    noun: str
    """The word for a member of an object: `key` or `field`."""
    root: str
    """The word for the whole document."""


SPEC: Final = RuleIds("TPU004", "TPU005", "TPU006", "TPU007", "TPU008", "key", "the file")
CONFIG: Final = RuleIds("TPU070", "TPU071", "TPU072", "TPU073", "TPU073", "field", "the config")


class Problem(NamedTuple):
    """A finding without a location."""

    id: str
    message: str
    path: KeyPath
    help: str = ""
    at_key: bool = False
    """True if the key is at fault, not its value."""
    details: tuple[str, ...] = ()
    meant: str = ""
    """For an unknown key: the known key that was most likely meant."""

    def finding_in(self, document: Document) -> Finding:
        """Return the finding at its location in the document."""
        return self.finding_at(
            document.key_location(self.path) if self.at_key else document.value_location(self.path)
        )

    def finding_at(self, location: Location) -> Finding:
        """Return the finding at another location, such as the line of the spec that a rendered field is based on."""
        return Finding.of(self.id, self.message, location, help=self.help, details=self.details)


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return the schema in schema/<name>.schema.json."""
    schema: dict[str, Any] = json.loads(
        (data_folder("schema") / f"{name}.schema.json").read_bytes()
    )
    return schema


def resolve_references(schema: Mapping[str, Any], part: Any) -> Mapping[str, Any]:
    """Return a part of the schema with its references resolved; keywords beside a reference have priority."""
    while isinstance(part, dict) and "$ref" in part:
        overriding = {key: value for key, value in part.items() if key != "$ref"}
        part = {**value_at(schema, part["$ref"].removeprefix("#/").split("/")), **overriding}
    return part if isinstance(part, dict) else {}


def sections_of_key(name: str, key: str) -> Iterator[KeyPath]:
    """Yield the path of each object of a schema that has a key, the nearest to the root first; `<name>` is any name."""
    schema = load_schema(name)
    queue: list[tuple[KeyPath, Any, tuple[str, ...]]] = [((), schema, ())]
    # The list grows while it is iterated, as the queue of a breadth-first search.
    for path, part, outer in queue:
        reference = part.get("$ref", "")
        if reference and reference in outer:
            continue
        resolved = resolve_references(schema, part)
        members = resolved.get("properties", {})
        if key in members:
            yield path
        below = [
            *members.items(),
            ("<name>", resolved.get("additionalProperties")),
            (0, resolved.get("items")),
        ]
        queue += [
            ((*path, step), child, (*outer, reference))
            for step, child in below
            if isinstance(child, dict)
        ]


@cache
def _fast_validator(name: str) -> Any:
    # Imported here, so that commands without validation start faster.
    import jsonschema_rs

    return jsonschema_rs.validator_for(load_schema(name), validate_formats=False)


def is_valid(name: str, data: Any) -> bool:
    """Return True if the data is valid."""
    try:
        return bool(_fast_validator(name).is_valid(data))
    except ValueError:
        # jsonschema-rs cannot convert a lone surrogate; jsonschema can, and explains the mistake.
        return False


def schema_findings(name: str, document: Document, ids: RuleIds) -> Iterator[Finding]:
    """Yield one finding for each mistake in a document."""
    problems = schema_problems(name, document.data, ids, source_text=document.source_text)
    return (problem.finding_in(document) for problem in problems)


def schema_problems(
    name: str, data: Any, ids: RuleIds, source_text: Callable[[KeyPath], str] | None = None
) -> Sequence[Problem]:
    """Return one problem for each mistake in plain data.

    `source_text` returns the source text of a scalar: `3.10`, not 3.1.
    """
    if is_valid(name, data):
        return ()
    from tpucfg.schemas.explain import explain_errors

    return limit_problems(explain_errors(name, data, ids, source_text or (lambda _: "")))


def limit_problems(problems: Iterable[Problem]) -> Sequence[Problem]:
    """Return at most MAX_FINDINGS problems, followed by one about the limit if some were left out."""
    first_problems = list(islice(problems, MAX_FINDINGS + 1))
    if len(first_problems) <= MAX_FINDINGS:
        return first_problems
    message = f"there are more than {MAX_FINDINGS} mistakes; the first {MAX_FINDINGS} are listed"
    return [
        *first_problems[:MAX_FINDINGS],
        Problem("TPU010", message, (), "fix those first, and check again"),
    ]
