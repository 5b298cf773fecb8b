"""What is said about a change, apart from how it is set."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from tpucfg.markdown import code, prose
from tpucfg.redaction import redact
from tpucfg.text_format import format_value, listed

_LONGEST: Final = 200
"""Characters of a value: a name of an image or a bucket is shorter."""

_MOST_NAMES: Final = 8
"""Environments that are named."""
_MOST_LIKE: Final = 3
"""Sentences that differ in their environment's name alone, before they become one."""


class Statement(NamedTuple):
    """A sentence about one environment or one config, without its subject."""

    template: str
    """With `{}` for each value."""
    values: tuple[str, ...] = ()
    destructive: bool = False
    """Whether data or its protection is at stake."""
    headline: str = ""
    """The same in the headline, for what no count of resources or configs tells."""

    def of_any(self, environment: str) -> "Statement":
        """The same with `<env>` in the place of the environment's name."""
        own = re.compile(rf"(?<![A-Za-z0-9]){re.escape(environment)}(?![A-Za-z0-9])")
        return self._replace(values=tuple(own.sub("<env>", value) for value in self.values))


class LocatedStatement(NamedTuple):
    """A fact and all that it is about."""

    where: str
    """`dev, prod` or `dev: v2-8`; empty where it is about the whole project."""
    statement: Statement

    @property
    def plain(self) -> str:
        """For programs."""
        said = self.statement.template.format(*(_short(it) for it in self.statement.values))
        return f"{self.where}: {said}" if self.where else said

    @property
    def markdown(self) -> str:
        """The sentence alone; values stand in code."""
        return self.statement.template.format(*(code(_short(it)) for it in self.statement.values))


def join_statements(remarks: Iterable[LocatedStatement]) -> list[str]:
    """Lines of Markdown: what is about the same is said in one."""
    lines: dict[str, list[str]] = {}
    for remark in remarks:
        lines.setdefault(remark.where, []).append(remark.markdown)
    return [f"**{prose(of)}**: {'; '.join(said)}" if of else "; ".join(said) for of, said in lines.items()]


def _short(value: str) -> str:
    return format_value(redact(value), quoted=False, longest=_LONGEST)


_Of = TypeVar("_Of")
_Said = TypeVar("_Said")


def group_statements(
    facts: Iterable[tuple[_Of, Statement]],
    where: Callable[[Sequence[_Of]], str],
    general: Callable[[_Of, Statement], Statement] = lambda _, fact: fact,
) -> Iterator[LocatedStatement]:
    """Each fact once, with everything that it is about, in the order of the first.

    Args:
        facts: with what each is about.
        where: says that of several.
        general: a fact without its owner's name, by which those of several owners are one.
    """
    owners: dict[Statement, list[tuple[_Of, Statement]]] = {}
    for owner, fact in facts:
        owners.setdefault(general(owner, fact), []).append((owner, fact))
    for fact, of in owners.items():
        for told, owned in generalize(fact, [(own, owner) for owner, own in of]):
            yield LocatedStatement(where(owned), told)


def generalize(general: _Said, of: Sequence[tuple[_Said, _Of]]) -> Iterator[tuple[_Said, list[_Of]]]:
    """What is said of several, in their own words while these are few."""
    exact: dict[_Said, list[_Of]] = {}
    for said, owner in of:
        exact.setdefault(said, []).append(owner)
    yield from exact.items() if len(exact) <= _MOST_LIKE else [(general, [owner for _, owner in of])]


def format_environments(names: Sequence[str]) -> str:
    """Environments by name; of many how many they are, and the first of them."""
    if len(names) <= _MOST_NAMES:
        return listed(names)
    return f"{len(names)} environments ({listed(names)})"
