"""JSON Schemas: the quick yes of a fast validator, and for a no the reasons, each as a finding with its place.

jsonschema-rs answers in microseconds and jsonschema explains; tests hold that both say the same. jsonschema is imported
only where there is something to explain, because it takes longer to import than most commands take to run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple

from tpucfg.findings import MAX_FINDINGS, Finding, Location
from tpucfg.package_data import data_folder
from tpucfg.yamldoc.document import Document, KeyPath

__all__ = [
    "CONFIG",
    "SPEC",
    "Problem",
    "RuleIds",
    "is_valid",
    "limit_problems",
    "load_schema",
    "schema_findings",
    "schema_problems",
]


class RuleIds(NamedTuple):
    """The ids under which one family of schemas reports: a spec's keys and a config's fields are other rules."""

    unknown: str
    missing: str
    type: str
    value: str
    exclusive: str
    noun: str
    """What a member of an object is called: `key` or `field`."""
    root: str
    """What the whole is called."""


SPEC: Final = RuleIds("TPU004", "TPU005", "TPU006", "TPU007", "TPU008", "key", "the file")
CONFIG: Final = RuleIds("TPU070", "TPU071", "TPU072", "TPU073", "TPU073", "field", "the config")


class Problem(NamedTuple):
    """One finding before it has a place."""

    id: str
    message: str
    path: KeyPath
    help: str = ""
    at_key: bool = False
    details: tuple[str, ...] = ()
    meant: str = ""
    """Of a member that is not known: the one that was most likely meant."""

    def finding_in(self, document: Document) -> Finding:
        """The finding, at its place in the document."""
        return self.finding_at(document.key(self.path) if self.at_key else document.value(self.path))

    def finding_at(self, location: Location) -> Finding:
        """The finding, at another place: a field of a rendered config, say, at the line of the spec it came from."""
        return Finding.of(self.id, self.message, location, help=self.help, details=self.details)


@cache
def load_schema(name: str) -> dict[str, Any]:
    """The schema of that name, from schema/<name>.schema.json."""
    schema: dict[str, Any] = json.loads((data_folder("schema") / f"{name}.schema.json").read_bytes())
    return schema


@cache
def _quick(name: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(load_schema(name), validate_formats=False)


def is_valid(name: str, data: Any) -> bool:
    """Whether the data fits the schema."""
    try:
        return bool(_quick(name).is_valid(data))
    except ValueError:  # a text with a lone surrogate: jsonschema-rs cannot take it in, jsonschema says what is wrong
        return False


def schema_findings(name: str, document: Document, ids: RuleIds) -> Iterator[Finding]:
    """Why the document does not fit the schema: one finding for one mistake, none where it fits."""
    found = schema_problems(name, document.data, ids, written=document.written)
    return (problem.finding_in(document) for problem in found)


def schema_problems(
    name: str, data: Any, ids: RuleIds, written: Callable[[KeyPath], str] | None = None
) -> Sequence[Problem]:
    """The same for data that is no document. `written` gives a scalar as its text has it: `3.10`, not 3.1."""
    if is_valid(name, data):
        return ()
    from tpucfg.schemas.explain import explain_errors

    return limit_problems(explain_errors(name, data, ids, written or (lambda _: "")))


def limit_problems(found: Iterable[Problem]) -> Sequence[Problem]:
    """The first of the problems, and one that says so where there are more."""
    listed = list(islice(found, MAX_FINDINGS + 1))
    if len(listed) <= MAX_FINDINGS:
        return listed
    message = f"there are more than {MAX_FINDINGS} mistakes, of which {MAX_FINDINGS} are listed"
    return [*listed[:MAX_FINDINGS], Problem("TPU010", message, (), "fix those first, and check again")]
