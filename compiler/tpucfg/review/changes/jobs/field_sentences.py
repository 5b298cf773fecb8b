"""Sentences about changed fields of configs: dangerous ones each by itself, the others of one kind together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tpucfg.changes.facts import Scope
from tpucfg.changes.statements import LocatedStatement, Risk, Statement
from tpucfg.review.changes.jobs.job_fields import ORDER_OF
from tpucfg.review.changes.jobs.verdicts import Verdict

_MAX_FIELDS: Final = 8
"""Fields of one kind that one sentence names; the fold shows all."""
_MAX_LENGTH: Final = 500
"""Characters of the names and values in one sentence."""
_MAX_DANGEROUS: Final = 16
"""Sentences about dangerous fields of the same configs."""
_MAX_VARIANTS: Final = 3
"""Values of a field that are shown if they differ between configs."""
_HEADLINES: Final = {Risk.ACCESS: "more access for jobs"}
_Scope = Callable[[Sequence[Scope]], str]


class FieldChange(NamedTuple):
    """A changed field as it is shown."""

    subject: str
    label: str
    """The name of the field; empty if the subject is enough."""
    before: str | None
    """None if there was none, or if both values are too long to show."""
    after: str | None
    note: str = ""
    """A clause about how the two differ, if they look alike."""
    verdict: Verdict = Verdict()
    varies: bool = False
    """True if configs have too many different values to show."""
    layer: str = ""
    """The layer of the spec that sets it; empty for the top."""


def field_statements(owned: Iterable[tuple[Scope, FieldChange]], format_scope: _Scope) -> Iterator[LocatedStatement]:
    """Yield the changes of all configs, each once for all configs that have it."""
    by_scope: dict[tuple[Scope, ...], list[FieldChange]] = {}
    for change, keys in _shared(owned):
        by_scope.setdefault(tuple(keys), []).append(change)
    for configs, changes in by_scope.items():
        scope = format_scope(configs)
        dangerous = [change for change in changes if change.verdict.risk]
        yield from (LocatedStatement(scope, _dangerous(change)) for change in dangerous[:_MAX_DANGEROUS])
        if omitted := dangerous[_MAX_DANGEROUS:]:
            risk = max(change.verdict.risk for change in omitted)
            text = f"{len(omitted):,} more dangerous fields, which the fold shows"
            yield LocatedStatement(scope, Statement(text, risk=risk))
        harmless = [change for change in changes if not change.verdict.risk]
        yield from (LocatedStatement(scope, statement) for statement in _joined(harmless))


def _shared(owned: Iterable[tuple[Scope, FieldChange]]) -> Iterator[tuple[FieldChange, list[Scope]]]:
    """Yield each change with its configs; if there are too many different values, one change without values."""
    groups: dict[FieldChange, dict[FieldChange, list[Scope]]] = {}
    for key, change in owned:
        exact = groups.setdefault(_without_values(change), {})
        exact.setdefault(change, []).append(key)
    for general, exact in groups.items():
        if len(exact) <= _MAX_VARIANTS:
            yield from exact.items()
        else:
            keys = dict.fromkeys(key for members in exact.values() for key in members)
            yield general, [*keys]


def _without_values(change: FieldChange) -> FieldChange:
    before, after = (None if value is None else "" for value in (change.before, change.after))
    return change._replace(before=before, after=after, note="", varies=True)


def _dangerous(change: FieldChange) -> Statement:
    template, values = _clause(change, _head(change.subject, 1))
    verdict = change.verdict
    return Statement(
        f"{template}: {verdict.consequence}", (*values, *verdict.values), verdict.risk, _HEADLINES.get(verdict.risk, "")
    )


def _joined(changes: Sequence[FieldChange]) -> Iterator[Statement]:
    """Yield one sentence for all fields of a kind."""
    by_subject: dict[str, list[FieldChange]] = {}
    for change in changes:
        # A field without a name has a sentence of its own.
        by_subject.setdefault(change.subject if change.label else f"{change.subject}\0", []).append(change)
    for members in by_subject.values():
        shown = [*_first_fields(members)]
        omitted = len(members) - len(shown)
        head = _head(members[0].subject, len(members) if members[0].label else 1)
        clauses = [_clause(change, "" if index and change.label else head) for index, change in enumerate(shown)]
        template = ", ".join(text for text, _ in clauses)
        if omitted > 0:
            template += f" and {omitted:,} more, which the fold shows"
        yield Statement(template, tuple(value for _, values in clauses for value in values))


def _first_fields(changes: Sequence[FieldChange]) -> Iterator[FieldChange]:
    """Yield the fields that a sentence has room for, and always the first."""
    length = 0
    for change in changes[:_MAX_FIELDS]:
        length += sum(len(value or "") for value in (change.label, change.before, change.after))
        if length > _MAX_LENGTH and change is not changes[0]:
            return
        yield change


def _head(subject: str, count: int) -> str:
    return subject if count == 1 or subject == ORDER_OF else f"{subject}s"


def _clause(change: FieldChange, head: str) -> tuple[str, tuple[str, ...]]:
    """Return what happened to a field in which layer of the spec, and the values in it."""
    template, values = _event(change, head)
    return (f"{template} in {{}}", (*values, change.layer)) if change.layer else (template, values)


def _event(change: FieldChange, head: str) -> tuple[str, tuple[str, ...]]:
    subject = " ".join(part for part in (head, "{}" if change.label else "") if part)
    label = (change.label,) if change.label else ()
    note = f" ({change.note})" if change.note else ""
    if change.varies:
        verb = "added" if change.before is None else "removed" if change.after is None else "changed"
        return f"{subject} {verb} (the values differ)", label
    if change.before is None and change.after is None:
        return f"{subject} changed", label
    if change.before is None:
        return (f"{subject} added ({{}})", (*label, change.after)) if change.after else (f"{subject} added", label)
    if change.after is None:
        was = (change.before,) if change.before else ()
        return f"{subject} removed{' (was {})' if was else ''}", (*label, *was)
    return f"{subject} changed from {{}} to {{}}{note}", (*label, change.before, change.after)
