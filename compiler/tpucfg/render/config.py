"""The config of a job: its text by the target's template, parsed again to compare it with the request body."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from tpucfg import __version__
from tpucfg.findings import Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan import Job
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.objects import companions_of, documents
from tpucfg.yamldoc.reader import read_text
from tpucfg.yamldoc.writer import to_yaml, yaml_entry

# The fields of a request body as YAML, where a template places them.


class FieldWriter:
    """One mapping of a request body, written field by field and in the mapping's own order.

    A template lists the fields that a target writes, in the target's order, and ends with `others`. It thus shows the
    structure of its file, while fields that only the spec's `extra` adds are still written.
    """

    def __init__(self, mapping: dict[str, Any], indent: int = 0) -> None:
        self._mapping = mapping
        self._indent = indent
        self._unwritten = list(mapping)
        self._margin = ""
        """The indent of the next field. Empty for the first field, which the template itself indents."""

    def value(self, key: str) -> str:
        """Return the value of a key that the template writes itself."""
        value = self._take(key)
        return to_yaml(value, self._indent if isinstance(value, list) else self._indent + 2)

    def nested(self, key: str) -> "FieldWriter":
        """Return a writer for the mapping of a key that the template writes itself."""
        return FieldWriter(self._take(key), self._indent + 2)

    def entries(self, key: str) -> Iterator["FieldWriter"]:
        """Yield a writer for each mapping in the list of a key that the template writes itself."""
        return (FieldWriter(item, self._indent + 2) for item in self._take(key))

    def documents(self) -> "Iterator[tuple[str, FieldWriter]]":
        """Yield each key with a writer for its mapping, which the template writes as a document of its own."""
        return ((key, FieldWriter(self._take(key))) for key in self._unwritten.copy())

    def field(self, key: str) -> str:
        """Return the lines of the field if it is the next one, and nothing otherwise.

        `extra` adds fields at a mapping's end, and replaces a list by mappings whose keys have another order. A field
        that is not next is left to `others`, so that the order is kept.
        """
        return self._lines(key) if self._unwritten and self._unwritten[0] == key else ""

    def others(self) -> str:
        """Return the lines of all fields that are not written yet."""
        return "".join([self._lines(key) for key in self._unwritten.copy()]) if self._unwritten else ""

    def _lines(self, key: str) -> str:
        margin = self._margin
        return f"{margin}{yaml_entry(key, self._take(key), self._indent)}\n"

    def _take(self, key: str) -> Any:
        self._unwritten.remove(key)
        self._margin = " " * self._indent
        return self._mapping[key]


# Filters, because jinja2 calls a filter directly, but a method only after checks that take longer than the method.
FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "value": FieldWriter.value,
    "nested": FieldWriter.nested,
    "entries": FieldWriter.entries,
    "documents": FieldWriter.documents,
    "field": FieldWriter.field,
    "others": FieldWriter.others,
}


# The config.


_CANONICAL_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class Config(NamedTuple):
    """The rendered file of one job."""

    job: Job
    request_body: RequestBody
    companions: tuple[RequestBody, ...]
    """The objects that are created before the request body; most jobs have none."""
    text: str
    """All of them as YAML documents, below a header comment, the request body last."""

    @property
    def documents(self) -> tuple[RequestBody, ...]:
        """The values of the text's documents, in order."""
        return (*self.companions, *documents(target_named(self.job.target), self.request_body))


def render_config(job: Job, request_body: RequestBody) -> Config:
    """Render the config of a job as YAML, by its target's template."""
    # Only commands that render import the writer and the template engine.
    from tpucfg.render.config import FieldWriter

    companions = companions_of(job)
    values = {
        "version": __version__,
        "job": job,
        "slice": job.slice,
        "companions": [FieldWriter(companion) for companion in companions],
        "body": FieldWriter(request_body),
        "digest": job_hash(job, request_body),
    }
    return Config(job, request_body, companions, _template(f"{job.target}/config.yaml.j2").render(values))


@cache
def _template(name: str) -> Any:
    return config_template_engine().get_template(name)


@cache
def config_template_engine() -> Any:
    """Return the template engine of the configs, with filters that write values as YAML and quote them."""
    from tpucfg import templating
    from tpucfg.render.config import FILTERS
    from tpucfg.yamldoc.writer import to_yaml

    return templating.template_engine(yaml=to_yaml, **FILTERS)


def round_trip_finding(config: Config) -> Finding | None:
    """Return an error if the text, parsed again, differs from the request body, which is a mistake in the template."""
    from tpucfg.yamldoc.writer import round_trips

    name = f"{config.job.name}.yaml"
    if round_trips(config.text, *config.documents):
        return None
    if syntax_errors := read_text(config.text, name, several=len(config.documents) > 1).findings:
        return syntax_errors[0]
    message = f"the rendered text of {config.job.name} differs from its job: its template is at fault"
    return Finding.of("TPU079", message, Location(f"templates/{config.job.target}/config.yaml.j2"))


def job_hash(job: Job, request_body: RequestBody) -> str:
    """Return a hash of the resolved job, which changes if and only if the effect of the config changes."""
    # hashlib loads OpenSSL, and `check` computes no hash.
    import hashlib

    resolved = [job.target, job.name, request_body, *companions_of(job)]
    return hashlib.sha256(_CANONICAL_JSON.encode(resolved).encode()).hexdigest()[:16]
