"""Results of a worker process, which the stack program could have written itself: every field is checked."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.infra.resources import EnvironmentResources, Resource, Unseen, sort_resources
from tpucfg.spec.project import Environment

_MAX_DEPTH: Final = 64
"""Nesting limit of a resource's inputs; Google's deepest type has a dozen levels."""


class ProgramFailure(NamedTuple):
    """The reason why the resources of an environment are unknown."""

    reason: str


def complete_lines(output: bytes) -> Iterator[bytes]:
    """Yield the lines with a line break: a line without one was cut off."""
    return (line for line in output.splitlines(keepends=True) if line.endswith(b"\n"))


def parse_result(environment: Environment, line: bytes) -> EnvironmentResources | ProgramFailure:
    """Parse one line of the pipe."""
    try:
        result = json.loads(line, parse_constant=_reject_constant)
        if isinstance(result, dict) and result.get("environment") == environment.name:
            if set(result) == {"environment", "error"}:
                return ProgramFailure(str(result["error"]))
            if set(result) == {"environment", *EnvironmentResources._fields}:
                return _parse_declared(environment, result)
    except (ValueError, TypeError, RecursionError):
        pass
    return ProgramFailure("the result of the stack program's process is malformed")


def _reject_constant(constant: str) -> Any:
    """Reject NaN and infinities, which are not JSON."""
    raise ValueError(constant)


def _parse_declared(environment: Environment, result: Mapping[str, Any]) -> EnvironmentResources:
    outputs = result["outputs"]
    if not isinstance(outputs, dict):
        raise TypeError
    _check_depth(outputs, _MAX_DEPTH)
    resources, providers = (sort_resources(map(_parse_resource, result[key])) for key in ("resources", "providers"))
    unseen = tuple(sorted(Unseen(*_texts(fields)) for fields in result["unseen"]))
    return EnvironmentResources(environment, resources, outputs, providers, unseen)


def _parse_resource(fields: Any) -> Resource:
    if not isinstance(fields, dict) or set(fields) != set(Resource._fields):
        raise ValueError
    _texts([fields["type"], fields["name"]])
    if not isinstance(fields["protect"], bool) or not isinstance(fields["retain"], bool):
        raise TypeError
    for key in ("inputs", "options"):
        if not isinstance(fields[key], dict):
            raise TypeError
        _check_depth(fields[key], _MAX_DEPTH)
    return Resource(**fields | {"secrets": tuple(_texts(fields["secrets"]))})


def _texts(items: Any) -> list[str]:
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise TypeError
    return items


def _check_depth(value: Any, levels_left: int) -> None:
    if not levels_left:
        raise ValueError
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(item, levels_left - 1)
