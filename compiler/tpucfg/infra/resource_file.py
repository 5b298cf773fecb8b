"""The declared resources of specs as a file: `tpucfg infra --format json` writes it, and a review reads it.

A file is a sequence of JSON documents, one for each spec, so the output of several commands can be joined. An author of
the stack program of a spec can write anything into it: each field is checked, and nothing else is believed.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tpucfg.findings import Finding
from tpucfg.infra.resources import EnvironmentResources, Resource, Unseen, sort_resources
from tpucfg.spec import Environment
from tpucfg.strict_json import finite_float, strict_decoder
from tpucfg.text_format import printable

MAX_FILE_BYTES: Final = 64 * 2**20
"""Limit of a file: a spec with eight environments takes 150 kB."""
MALFORMED: Final = "the result of the stack program's process is malformed"
_MAX_DEPTH: Final = 64
"""Nesting limit of a resource's inputs; Google's deepest type has a dozen levels."""
_MAX_DIGITS: Final = 25
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_MAX_REASON_LINES: Final = 40
_MAX_LINE_LENGTH: Final = 2000


class ProgramFailure(NamedTuple):
    """The reason why the resources of an environment are unknown."""

    reason: str
    """A sentence, and below it lines of the program."""


Declared = EnvironmentResources | ProgramFailure
"""The resources that a stack program declares for an environment, or the reason why they are unknown."""


class ResourceFile(NamedTuple):
    """The contents of a file about the specs of one revision."""

    name: str
    """The file's name, for messages."""
    specs: Mapping[str, Mapping[str, Any]] = {}
    """The data of each environment, by the spec's path as it was given to `tpucfg infra`; not yet checked."""
    problem: str = ""
    """The reason why the file cannot be read; empty if it can."""

    def declared(self, spec: str, environments: Sequence[Environment]) -> dict[str, Declared]:
        """Return the resources of a spec's environments, or why they are unknown."""
        known = self.specs.get(spec, {})
        return {item.name: self._declared(spec, item, known) for item in environments}

    def _declared(self, spec: str, environment: Environment, known: Mapping[str, Any]) -> Declared:
        if self.problem:
            return ProgramFailure(f"{self.name} cannot be read: {self.problem}")
        if environment.name not in known:
            return ProgramFailure(f"{self.name} has no resources of {environment.name} in {spec}")
        return _parse_environment(environment, known[environment.name])


# Writing


def document_data(spec: str, declared: Mapping[str, Declared], findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the document of one spec as plain data."""
    return {
        "spec": spec,
        "environments": [environment_data(name, result) for name, result in declared.items()],
        "findings": [finding.data("id", "level", "message", "help", "location") for finding in findings],
    }


def environment_data(name: str, declared: Declared) -> dict[str, Any]:
    """Return the resources of an environment, or the reason why they are unknown, as plain data."""
    if isinstance(declared, ProgramFailure):
        return {"name": name, "problem": declared.reason}
    return {
        "name": name,
        "resources": [resource._asdict() for resource in declared.resources],
        "outputs": dict(sorted(declared.outputs.items())),
        "providers": [resource._asdict() for resource in declared.providers],
        "unseen": [[*item] for item in declared.unseen],
    }


# Reading


def read_resource_file(name: str, data: bytes) -> ResourceFile:
    """Read a file.

    Args:
        name: its name, for messages.
        data: its content, of which at most MAX_FILE_BYTES are accepted.
    """
    if len(data) > MAX_FILE_BYTES:
        return ResourceFile(name, problem=f"it is larger than {MAX_FILE_BYTES // 2**20} MiB")
    try:
        specs = [_environments(document) for document in _documents(data.decode("utf-8"))]
    except (ValueError, TypeError, RecursionError) as error:
        return ResourceFile(name, problem=printable(str(error))[:_MAX_LINE_LENGTH])
    by_path = dict(specs)
    problem = "" if len(by_path) == len(specs) else "a spec occurs twice"
    return ResourceFile(name, by_path, problem)


def parse_environment_line(environment: Environment, line: bytes) -> Declared:
    """Parse what the process of a stack program writes about one environment."""
    try:
        [data] = _documents(line.decode("utf-8"))
    except (ValueError, TypeError, RecursionError):
        return ProgramFailure(MALFORMED)
    return _parse_environment(environment, data)


def _documents(text: str) -> Iterator[Any]:
    """Yield the JSON documents of a text.

    Raises:
        ValueError: The text has anything else.
    """
    position, end = 0, len(text.rstrip())
    while position < end:
        start = _SPACE.match(text, position)
        document, position = _DECODER.raw_decode(text, start.end() if start else position)
        yield document


def _integer(text: str) -> float:
    # Longer ones take quadratic time to read, and no input of Google's has them.
    return int(text) if len(text) <= _MAX_DIGITS else finite_float(text)


_DECODER: Final[json.JSONDecoder] = strict_decoder(_integer)


def _environments(document: Any) -> tuple[str, dict[str, Any]]:
    """Return the spec of a document, and the data of each environment.

    Raises:
        TypeError: The document is another one.
    """
    spec, environments = (
        (document.get("spec"), document.get("environments")) if isinstance(document, dict) else ("", "")
    )
    if not isinstance(spec, str) or not isinstance(environments, list):
        raise TypeError("it is not the output of tpucfg infra --format json")
    named = [
        (item["name"], item) for item in environments if isinstance(item, dict) and isinstance(item.get("name"), str)
    ]
    by_name = dict(named)
    if len(by_name) != len(environments):
        raise TypeError(f"an environment of {spec} has no name of its own")
    return spec, by_name


def _parse_environment(environment: Environment, data: Any) -> Declared:
    try:
        if isinstance(data, dict) and data.get("name") == environment.name:
            if set(data) == {"name", "problem"}:
                return ProgramFailure(_bounded(*_texts([data["problem"]])))
            # Half a character, which JSON can escape, cannot be printed.
            json.dumps(data, ensure_ascii=False).encode()
            if set(data) == {"name", *EnvironmentResources._fields} - {"environment"}:
                return _parse_declared(environment, data)
    except (ValueError, TypeError, RecursionError):
        pass
    return ProgramFailure(MALFORMED)


def _bounded(reason: str) -> str:
    return "\n".join(line[:_MAX_LINE_LENGTH] for line in reason.splitlines()[:_MAX_REASON_LINES])


def _parse_declared(environment: Environment, data: Mapping[str, Any]) -> EnvironmentResources:
    outputs = _mapping(data["outputs"])
    resources, providers = (sort_resources(map(_parse_resource, data[key])) for key in ("resources", "providers"))
    unseen = tuple(sorted(Unseen(*_texts(fields)) for fields in data["unseen"]))
    return EnvironmentResources(environment, resources, outputs, providers, unseen)


def _parse_resource(fields: Any) -> Resource:
    if not isinstance(fields, dict) or set(fields) != set(Resource._fields):
        raise ValueError
    _texts([fields["type"], fields["name"], *_mapping(fields["secrets"]).values()])
    if not isinstance(fields["protect"], bool) or not isinstance(fields["retain"], bool):
        raise TypeError
    _mapping(fields["inputs"])
    _mapping(fields["options"])
    return Resource(**fields)


def _texts(items: Any) -> list[str]:
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise TypeError
    return items


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    _check_depth(value, _MAX_DEPTH)
    return value


def _check_depth(value: Any, levels_left: int) -> None:
    if not levels_left:
        raise ValueError
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(item, levels_left - 1)
