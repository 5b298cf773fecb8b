"""Rules that compare sections of a spec, each with a declaration of these sections.

A broken section is replaced by a stand-in that breaks no rule (`tpucfg.spec.recovery`). A rule that compares it with
another section could blame the stand-in, so such a rule is skipped.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from tpucfg.findings import Finding


class PartlyValid(Protocol):
    """A document or a project, of which sections may be broken."""

    @property
    def broken(self) -> frozenset[str]:
        """The sections that are replaced by stand-ins."""


_Rule = TypeVar("_Rule", bound=Callable[..., Iterable[Any]])


def compares(*sections: str) -> Callable[[_Rule], _Rule]:
    """Declare the sections that a rule compares: it yields nothing if one of them is broken.

    Without sections, each finding of the rule is about one section, and a stand-in has none.
    """

    def declare(rule: _Rule) -> _Rule:
        @wraps(rule)
        def checked(spec: PartlyValid, *args: Any, **named: Any) -> Iterable[Any]:
            return rule(spec, *args, **named) if spec.broken.isdisjoint(sections) else iter(())

        checked.sections = sections  # type: ignore[attr-defined]
        return cast("_Rule", checked)

    return declare


def apply_rules(
    rules: Iterable[Callable[..., Iterable[Finding]]], spec: PartlyValid, *args: Any
) -> Iterator[Finding]:
    """Yield the findings of rules. A rule without a declaration runs only on a spec without a broken section."""
    for rule in rules:
        if not spec.broken or hasattr(rule, "sections"):
            yield from rule(spec, *args)
