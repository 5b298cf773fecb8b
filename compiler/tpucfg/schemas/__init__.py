"""JSON Schemas: the quick yes of a fast validator, and for a no the reasons, each as a finding with its place.

jsonschema-rs answers in microseconds and jsonschema explains; tests hold that both say the same. jsonschema is imported
only where there is something to explain, because it takes longer to import than most commands take to run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple

from tpucfg.findings import MOST, Finding, Place
from tpucfg.resources import folder
from tpucfg.spec.document import Document, Path

__all__ = ["CONFIG", "SPEC", "Ids", "Problem", "bounded", "explain", "load", "problems", "valid"]


class Ids(NamedTuple):
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


SPEC: Final = Ids("TPU004", "TPU005", "TPU006", "TPU007", "TPU008", "key", "the file")
CONFIG: Final = Ids("TPU070", "TPU071", "TPU072", "TPU073", "TPU073", "field", "the config")


class Problem(NamedTuple):
    """One finding before it has a place."""

    id: str
    message: str
    path: Path
    help: str = ""
    at_key: bool = False
    details: tuple[str, ...] = ()
    meant: str = ""
    """Of a member that is not known: the one that was most likely meant."""

    def found_in(self, document: Document) -> Finding:
        """The finding, at its place in the document."""
        return self.found_at(document.key(self.path) if self.at_key else document.value(self.path))

    def found_at(self, place: Place) -> Finding:
        """The finding, at another place: a field of a rendered config, say, at the line of the spec it came from."""
        return Finding.of(self.id, self.message, place, help=self.help, details=self.details)


@cache
def load(name: str) -> dict[str, Any]:
    """The schema of that name, from schema/<name>.schema.json."""
    schema: dict[str, Any] = json.loads((folder("schema") / f"{name}.schema.json").read_bytes())
    return schema


@cache
def _quick(name: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(load(name), validate_formats=False)


def valid(name: str, data: Any) -> bool:
    """Whether the data fits the schema."""
    try:
        return bool(_quick(name).is_valid(data))
    except ValueError:  # a text with a lone surrogate: jsonschema-rs cannot take it in, jsonschema says what is wrong
        return False


def explain(name: str, document: Document, ids: Ids) -> Iterator[Finding]:
    """Why the document does not fit the schema: one finding for one mistake, none where it fits."""
    found = problems(name, document.data, ids, written=document.written)
    return (problem.found_in(document) for problem in found)


def problems(name: str, data: Any, ids: Ids, written: Callable[[Path], str] | None = None) -> Sequence[Problem]:
    """The same for data that is no document. `written` gives a scalar as its text has it: `3.10`, not 3.1."""
    if valid(name, data):
        return ()
    from tpucfg.schemas.explanations import explained

    return bounded(explained(name, data, ids, written or (lambda _: "")))


def bounded(found: Iterable[Problem]) -> Sequence[Problem]:
    """The first of the problems, and one that says so where there are more."""
    listed = list(islice(found, MOST + 1))
    if len(listed) <= MOST:
        return listed
    message = f"there are more than {MOST} mistakes, of which {MOST} are listed"
    return [*listed[:MOST], Problem("TPU010", message, (), "fix those first, and check again")]
