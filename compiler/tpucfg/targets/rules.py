"""Rules of the services about request bodies, as rows, and the findings about the rows.

A rule is about sizes, topology, hosts, machines, capacity or time. What a service refuses at once on submission beside
these has no rule: the message of the service is better.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import KeyPath, fields_at
from tpucfg.schemas import Problem
from tpucfg.text_format import dotted, format_value


class Rule(NamedTuple):
    """A rule about one field of a request body."""

    path: str
    """The pattern of its path. The rule reads each mapping that can have the field, whether it has the field or not."""
    refuses: Callable[[Any, Mapping[str, Any]], object]
    """Returns a true value for a refused value, None if it is missing, given the mapping that can have the field."""
    sentence: str
    """The reason, to follow the path and a colon; `{value}` is the value."""
    fix: str
    """The edit, in which `{path}` is the field's path."""
    source: str
    """The public page that states the rule."""
    id: str = "TPU074"
    at_key: bool = False
    """True if no value of the field is accepted, so that the problem is at its key."""


def rule_problems(rules: Iterable[Rule], data: Any, at: KeyPath = ()) -> Iterator[Problem]:
    """Yield the problems of a request body that fits the API's schema, or of the part of it at a path."""
    for rule in rules:
        for steps, value, parent in fields_at(data, rule.path):
            if rule.refuses(value, parent):
                path = (*at, *steps)
                sentence = rule.sentence.format(value=format_value(value, quoted=False))
                fix = rule.fix.format(path=dotted(path))
                yield service_problem(path, sentence, fix, rule.source)._replace(id=rule.id, at_key=rule.at_key)


def service_problem(path: KeyPath, sentence: str, fix: str, source: str) -> Problem:
    """Return the problem of a request body that the service would refuse, although it fits the API's schema."""
    return Problem("TPU074", f"{dotted(path)}: {sentence}", path, fix, details=(f"the rule: {source}",))
