"""Sentences about a change, independent of their output format, and their grouping by environment or config."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from tpucfg.markdown import code, prose
from tpucfg.redaction import redact
from tpucfg.text_format import format_value, listed

_MAX_VALUE_LENGTH: Final = 200
"""Characters of a value: names of images and buckets are shorter."""
_MAX_NAMES: Final = 8
"""Limit for names of environments; if there are more, the total is added."""
_MAX_VARIANTS: Final = 3
"""Limit for texts that differ only in the name of their environment; more are replaced by one general text."""


class Statement(NamedTuple):
    """A sentence about one environment, one config or the whole project, without naming it."""

    template: str
    """The sentence, with `{}` for each value."""
    # Kept apart from the sentence: Markdown shows values as code, so no text from a spec can act as markup.
    values: tuple[str, ...] = ()
    destructive: bool = False
    """True if data, or the protection of data, is lost."""
    headline: str = ""
    """A short form for the headline of the review; empty if its counts of resources and configs include the change."""

    def with_env_placeholder(self, environment: str) -> "Statement":
        """Return the statement with `<env>` instead of the environment's name."""
        own_name = re.compile(rf"(?<![A-Za-z0-9]){re.escape(environment)}(?![A-Za-z0-9])")
        return self._replace(values=tuple(own_name.sub("<env>", value) for value in self.values))


class LocatedStatement(NamedTuple):
    """A statement and the environments or configs that it is about."""

    scope: str
    """`dev, prod` or `dev: v2-8`; empty for the whole project."""
    statement: Statement

    @property
    def plain(self) -> str:
        """Plain text of scope and statement, for JSON."""
        sentence = self.statement.template.format(*map(_short, self.statement.values))
        return f"{self.scope}: {sentence}" if self.scope else sentence

    @property
    def markdown(self) -> str:
        """Markdown of the statement without its scope."""
        return self.statement.template.format(*(code(_short(value)) for value in self.statement.values))


def join_statements(located: Iterable[LocatedStatement]) -> list[str]:
    """Return lines of Markdown, one for each scope."""
    by_scope: dict[str, list[str]] = {}
    for scope, statement in ((item.scope, item.markdown) for item in located):
        by_scope.setdefault(scope, []).append(statement)
    return [
        f"**{prose(scope)}**: {'; '.join(statements)}" if scope else "; ".join(statements)
        for scope, statements in by_scope.items()
    ]


def _short(value: str) -> str:
    return format_value(redact(value), quoted=False, max_length=_MAX_VALUE_LENGTH)


_Owner = TypeVar("_Owner")
_Text = TypeVar("_Text")


def group_statements(
    owned: Iterable[tuple[_Owner, Statement]],
    format_scope: Callable[[Sequence[_Owner]], str],
    to_general: Callable[[_Owner, Statement], Statement] = lambda _, statement: statement,
) -> Iterator[LocatedStatement]:
    """Yield each statement once, with all its owners, in the order of their first owner.

    Args:
        owned: pairs of an environment or a config and a statement about it.
        format_scope: returns the scope of several owners.
        to_general: returns the statement without its owner's name; statements that become equal are grouped.
    """
    groups: dict[Statement, list[tuple[Statement, _Owner]]] = {}
    for owner, statement in owned:
        groups.setdefault(to_general(owner, statement), []).append((statement, owner))
    for general, members in groups.items():
        for statement, owners in generalize(general, members):
            yield LocatedStatement(format_scope(owners), statement)


def generalize(general: _Text, owned: Sequence[tuple[_Text, _Owner]]) -> Iterator[tuple[_Text, list[_Owner]]]:
    """Yield the exact texts with their owners if there are few, otherwise the general text with all owners."""
    exact: dict[_Text, list[_Owner]] = {}
    for text, owner in owned:
        exact.setdefault(text, []).append(owner)
    yield from exact.items() if len(exact) <= _MAX_VARIANTS else [(general, [owner for _, owner in owned])]


def format_environments(names: Sequence[str]) -> str:
    """Return the names of the environments; of many, their number and the first names."""
    if len(names) <= _MAX_NAMES:
        return listed(names)
    return f"{len(names)} environments ({listed(names)})"
