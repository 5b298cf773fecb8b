"""Sentences about changed facts: risky ones each by itself, the others of one kind together, for all scopes alike."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from tpucfg.changes.facts import ABSENT, Absent, Change, FactChange, Scope, redact_change
from tpucfg.changes.meanings import JudgedChange, Meaning
from tpucfg.changes.statements import (
    MAX_VARIANTS,
    LocatedStatement,
    ShownPair,
    Statement,
    format_environments,
    replace_name,
    show_change,
)
from tpucfg.paths import grouped, pattern_steps
from tpucfg.text_format import dotted

_MAX_LENGTH: Final = 200
"""Characters of a value in a sentence."""
_MAX_FACTS: Final = 8
"""Facts of one kind that one sentence names; the fold shows all."""
_MAX_JOINED_LENGTH: Final = 500
"""Characters of the names and values in one sentence."""
_ANY_VALUE: Final = "several values"
_PLACE: Final = re.compile(r"\{([a-z]*)\}")
_FLAG_KINDS: Final = ("argument", "variable")
"""The kinds whose values are texts of a command line, and whose names are words of it."""
_PLAIN_KINDS: Final = (*_FLAG_KINDS, "price", "training", "XLA flag")
"""The kinds whose values are always texts, which are written without quotes."""


class Effect(NamedTuple):
    """A changed fact as a sentence shows it."""

    subject: str
    label: str
    """The name of the fact; empty if the subject is enough."""
    before: str | None
    """None if there was none."""
    after: str | None
    meaning: Meaning
    values: tuple[str, ...] = ()
    """The values of the meaning's condition."""
    note: str = ""
    """A clause about how the two values differ, if they look alike."""
    layer: str = ""
    baseline: str = ""
    """The size that the values before belong to, if it is another one."""
    varies: bool = False
    """True if scopes have too many different values to show."""


def effect_of(judged: JudgedChange, baseline: str = "") -> Effect:
    """Return a change with its meaning as it is shown, without secrets."""
    change, meaning = judged.change, judged.meaning
    name = change.name
    label = name[_count_literal(meaning.pattern) if meaning.subject else 1 :]
    before, after, note = _shown_values(change)
    return Effect(
        meaning.subject or str(name[0]),
        str(label[-1]) if name[0] in _FLAG_KINDS else dotted(label, ""),
        before,
        after,
        meaning,
        judged.values,
        note,
        change.layer,
        baseline,
    )


@lru_cache(maxsize=1024)
def _count_literal(pattern: str) -> int:
    """Return the number of steps before the first wildcard."""
    steps = pattern_steps(pattern)
    return next((index for index, step in enumerate(steps) if "*" in step), len(steps))


def _shown_values(change: FactChange) -> tuple[str | None, str | None, str]:
    kind, *name = change.name
    is_text = kind in _PLAIN_KINDS
    # The name of a secret's variable would make a reference to the secret, or a reason, look like a secret.
    value = Change(() if kind in ("secret", "allow") else tuple(name), change.before, change.after)
    # Only texts are keys of the cache: 1 and True would be the same key.
    is_cached = isinstance(value.before, str | Absent) and isinstance(value.after, str | Absent)
    shown = (_shown if is_cached else _shown.__wrapped__)(value, is_text=is_text)
    # A flag without a value, and the name of an item, need no value beside them.
    is_bare = ABSENT in (change.before, change.after) and all(
        value is ABSENT or value == "" or (value is None and is_text) for value in (change.before, change.after)
    )
    before, after = ("" if is_bare else shown.before), ("" if is_bare else shown.after)
    return None if change.before is ABSENT else before, None if change.after is ABSENT else after, shown.note


# Hundreds of configs share most changes.
@lru_cache(maxsize=8192)
def _shown(change: Change, *, is_text: bool) -> ShownPair:
    return show_change(redact_change(change), max_length=_MAX_LENGTH, flag=is_text)


# Grouping


def environments_of(scopes: Iterable[Scope]) -> str:
    """Return the names of the environments of several scopes, as the scope of one statement."""
    return format_environments([*dict.fromkeys(scope.environment for scope in scopes if scope.environment)])


def effect_statements(
    scoped: Iterable[tuple[Scope, Effect]], format_scope: Callable[[Sequence[Scope]], str]
) -> Iterator[LocatedStatement]:
    """Yield the effects, each once for all scopes that have it."""
    for owners, effects in grouped((tuple(scopes), effect) for effect, scopes in _shared(scoped)).items():
        text = format_scope(owners)
        risky = [effect for effect in effects if effect.meaning.risk]
        # All of them: a review that has no room for one gives another verdict.
        yield from (LocatedStatement(text, _statement([effect])) for effect in risky)
        harmless = [effect for effect in effects if not effect.meaning.risk]
        yield from (LocatedStatement(text, _statement(members)) for members in _of_one_kind(harmless))


def _shared(scoped: Iterable[tuple[Scope, Effect]]) -> Iterator[tuple[Effect, list[Scope]]]:
    """Yield each effect with its scopes; if there are too many different values, one effect without values."""
    for members in grouped((_without_values(effect), (effect, scope)) for scope, effect in scoped).values():
        exact = grouped(members)
        if len(exact) <= MAX_VARIANTS:
            yield from exact.items()
        else:
            yield _general(exact), [*dict.fromkeys(scope for scopes in exact.values() for scope in scopes)]


def _general(exact: Mapping[Effect, Sequence[Scope]]) -> Effect:
    """Return one effect for several that differ in the names of their environments, or in their values."""
    forms = {_with_placeholder(effect, scope.environment) for effect, scopes in exact.items() for scope in scopes}
    if len(forms) == 1:
        return forms.pop()
    first = next(iter(exact))
    before, after = (None if value is None else _ANY_VALUE for value in (first.before, first.after))
    return first._replace(before=before, after=after, layer="", varies=True)


def _with_placeholder(effect: Effect, environment: str) -> Effect:
    before, after = (
        None if value is None else replace_name(value, environment) for value in (effect.before, effect.after)
    )
    values = tuple(replace_name(value, environment) for value in effect.values)
    return effect._replace(before=before, after=after, values=values)


def _without_values(effect: Effect) -> Effect:
    before, after = (None if value is None else "" for value in (effect.before, effect.after))
    return effect._replace(before=before, after=after, values=(), note="", layer="", baseline="")


def _of_one_kind(effects: Sequence[Effect]) -> Iterator[list[Effect]]:
    """Yield effects that one sentence can have; an effect without a name, or with a sentence, has its own."""

    def kind(effect: Effect) -> object:
        is_alone = not effect.label or effect.meaning.sentence
        return effect if is_alone else (effect.baseline, effect.subject)

    yield from grouped((kind(effect), effect) for effect in effects).values()


# Sentences


def _statement(effects: Sequence[Effect]) -> Statement:
    """Return one sentence about effects of one kind; only the first ones if there are many."""
    shown = [*_first(effects)]
    meaning = effects[0].meaning
    head = effects[0].subject + "s" * (len(effects) > 1)
    clauses = [_clause(effect, "" if index else head) for index, effect in enumerate(shown)]
    more = f" and {len(effects) - len(shown):,} more, which the fold shows" if len(shown) < len(effects) else ""
    template = ", ".join(template for template, _ in clauses) + more
    values = tuple(value for _, values in clauses for value in values)
    return Statement(template, values, meaning.risk, meaning.headline.replace("{label}", effects[0].label))


def _first(effects: Sequence[Effect]) -> Iterator[Effect]:
    """Yield the effects that a sentence has room for, and always the first."""
    length = 0
    for index, effect in enumerate(effects[:_MAX_FACTS]):
        length += sum(len(value or "") for value in (effect.label, effect.before, effect.after))
        if index and length > _MAX_JOINED_LENGTH:
            return
        yield effect


def _clause(effect: Effect, head: str) -> tuple[str, tuple[str, ...]]:
    """Return the change of a fact in which layer of the spec, with its consequence, and the values in it."""
    meaning = effect.meaning
    if meaning.sentence:
        return _filled(meaning.sentence, effect)
    template, values = _event(effect, head)
    if effect.layer and not effect.baseline:
        template, values = f"{template} in {{}}", (*values, effect.layer)
    if meaning.consequence:
        consequence, more = _filled(meaning.consequence, effect)
        template, values = f"{template}: {consequence}", (*values, *more)
    return template, values


def _event(effect: Effect, head: str) -> tuple[str, tuple[str, ...]]:
    subject = " ".join(part for part in (head, "{}" if effect.label else "") if part)
    label = (effect.label,) if effect.label else ()
    if effect.baseline:
        now, then = ("not set" if effect.after is None else "{}"), ("without" if effect.before is None else "with {}")
        own, other = ((value,) if value is not None else () for value in (effect.after, effect.before))
        return f"{subject} {now}, unlike {{}} {then}", (*label, *own, effect.baseline, *other)
    if effect.varies:
        verb = "added" if effect.before is None else "removed" if effect.after is None else "changed"
        return f"{subject} {verb} (the values differ)", label
    if effect.before is None or effect.after is None:
        value = effect.after or effect.before
        event, shown = ("added", " ({})") if effect.before is None else ("removed", " (was {})")
        return (f"{subject} {event}{shown}", (*label, value)) if value else (f"{subject} {event}", label)
    note = f" ({effect.note})" if effect.note else ""
    return f"{subject} changed from {{}} to {{}}{note}", (*label, effect.before, effect.after)


def _filled(text: str, effect: Effect) -> tuple[str, tuple[str, ...]]:
    """Return a text of the table with `{}` in each place, and the values for them."""
    own = iter(effect.values)
    named = {"label": effect.label, "before": effect.before, "after": effect.after}
    values = (named[place] if place else next(own, "") for place in _PLACE.findall(text))
    return _PLACE.sub("{}", text), tuple(value or "" for value in values)
