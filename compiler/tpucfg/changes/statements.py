"""Sentences about a change, independent of their output format, and their grouping by environment or config."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from tpucfg.changes.facts import mark_as_other
from tpucfg.changes.shown_values import show_texts
from tpucfg.markdown import code, prose
from tpucfg.redaction import redact
from tpucfg.text_format import format_value, listed

_MAX_VALUE_LENGTH: Final = 200
"""Characters of a value: names of images and buckets are shorter."""
_MAX_LINE_LENGTH: Final = 1500
"""Characters of a line: one scope must not push the others out of a comment of 65,536 characters."""
_NO_VALUE: Final = "nothing"
_MAX_NAMES: Final = 8
"""Limit for names of environments; if there are more, the total is added."""
MAX_VARIANTS: Final = 3
"""Limit for texts that differ only in the name of their environment; more are replaced by one general text."""


class Risk(IntEnum):
    """The risk of a change; a review lists the highest first."""

    NONE = 0
    CAUTION = 1
    """Something becomes worse, but neither data nor access is affected."""
    ACCESS = 2
    """Access is granted, or a barrier against access is removed."""
    UNKNOWN = 3
    """The review cannot show the effect."""
    DESTRUCTIVE = 4
    """Data or the protection of data is lost, or the change can hide such a loss."""


class Statement(NamedTuple):
    """A sentence about one environment, one config or the whole project, without naming it."""

    template: str
    """The sentence, with `{}` for each value."""
    # Kept apart from the sentence: Markdown shows values as code, so no text from a spec can act as markup.
    values: tuple[str, ...] = ()
    risk: Risk = Risk.NONE
    headline: str = ""
    """A short form for the headline of the review; empty if its counts of resources and configs include the change."""

    @property
    def destructive(self) -> bool:
        """True if `--fail-on destructive` has to fail."""
        return self.risk is Risk.DESTRUCTIVE

    @property
    def markdown(self) -> str:
        """Markdown of the sentence, with each value as code."""
        return self.template.format(*map(code, _shown(self.values)))

    @property
    def plain(self) -> str:
        """Plain text of the sentence."""
        return self.template.format(*_shown(self.values))

    def with_env_placeholder(self, environment: str) -> "Statement":
        """Return the statement with `<env>` instead of the environment's name."""
        return self._replace(values=tuple(replace_name(value, environment) for value in self.values))


def replace_name(text: str, environment: str) -> str:
    """Return the text with `<env>` instead of the environment's name."""
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(environment)}(?![A-Za-z0-9])", "<env>", text)


class LocatedStatement(NamedTuple):
    """A statement and the environments or configs that it is about."""

    scope: str
    """`dev, prod` or `dev: v2-8`; empty for the whole project."""
    statement: Statement

    @property
    def plain(self) -> str:
        """Plain text of scope and statement, for JSON."""
        return f"{self.scope}: {self.statement.plain}" if self.scope else self.statement.plain


def join_statements(located: Iterable[LocatedStatement]) -> list[str]:
    """Return lines of Markdown, one for each scope."""
    by_scope: dict[str, list[str]] = {}
    for scope, statement in ((item.scope, item.statement.markdown) for item in located):
        by_scope.setdefault(scope, []).append(statement)
    return [
        f"**{prose(scope)}**: {_joined(statements)}" if scope else _joined(statements)
        for scope, statements in by_scope.items()
    ]


def _joined(statements: Sequence[str]) -> str:
    """Return the statements as one line, the last ones only counted if the line would be very long."""
    shown: list[str] = []
    remaining = _MAX_LINE_LENGTH
    for statement in statements:
        remaining -= len(statement)
        if shown and remaining < 0:
            return "; ".join([*shown, f"… and {len(statements) - len(shown):,} more"])
        shown.append(statement)
    return "; ".join(shown)


def _shown(values: Sequence[str]) -> list[str]:
    """Return the values as they are shown; two that differ are never shown as the same text."""
    shown = [*map(_short, values)]
    for index in range(1, len(values)):
        before, after = values[index - 1 : index + 1]
        if before != after and shown[index - 1] == shown[index]:
            texts = redact(before), redact(after)
            if texts[0] == texts[1]:
                shown[index] = mark_as_other(shown[index])
            else:
                shown[index - 1 : index + 1] = show_texts(*texts, _MAX_VALUE_LENGTH)[:2]
    return shown


def _short(value: str) -> str:
    return format_value(redact(value), quoted=False, max_length=_MAX_VALUE_LENGTH) or _NO_VALUE


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
    yield from exact.items() if len(exact) <= MAX_VARIANTS else [(general, [owner for _, owner in owned])]


def group_by_environment(owned: Iterable[tuple[str, Statement]]) -> Iterator[LocatedStatement]:
    """Yield the statements about environments; those that differ only in the environment's name are grouped."""
    return group_statements(owned, format_environments, lambda name, statement: statement.with_env_placeholder(name))


def format_environments(names: Sequence[str]) -> str:
    """Return the names of the environments; of many, their number and the first names."""
    if len(names) <= _MAX_NAMES:
        return listed(names)
    return f"{len(names)} environments ({listed(names)})"
