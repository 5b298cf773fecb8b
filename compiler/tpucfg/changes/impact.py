"""The consequences of a change: the facts of both revisions compared and put into sentences, and their warnings."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from tpucfg.changes.config_diff import Difference
from tpucfg.changes.facts import (
    ABSENT,
    PLACE,
    Change,
    Comparison,
    Fact,
    FactChange,
    Meaning,
    Risk,
    Scope,
    by_name,
    compare,
    fill,
    judge,
    redact_change,
    sorted_keys,
)
from tpucfg.changes.figures import (
    Jobs,
    RungComparison,
    ladder_changes,
    rung_baselines,
    scaling_rows,
)
from tpucfg.changes.records import NO_RECORDS, RevisionRecords, result_statements
from tpucfg.changes.revision_facts import allowed, job_facts, spec_facts
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.changes.spec_meanings import MEANINGS
from tpucfg.changes.statements import (
    LocatedStatement,
    Statement,
    format_environments,
    format_keys,
    show_change,
)
from tpucfg.findings import Finding
from tpucfg.findings.finding import ALLOWED_PREFIX
from tpucfg.paths import grouped, pattern_steps
from tpucfg.results.cost import run_limit
from tpucfg.text_format import dotted

_MAX_LENGTH: Final = 200
"""Characters of a value in a sentence."""
_FLAG_KINDS: Final = ("argument", "variable")
"""The kinds whose values are texts of a command line, and whose names are words of it."""
_SUBJECTS: Final = dict.fromkeys(("option", "environment", "training"), "setting")
"""The words for kinds of facts that are keys of the spec."""


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


def effect_of(
    change: FactChange, meaning: Meaning, values: tuple[str, ...] = (), baseline: str = ""
) -> Effect:
    """Return a change with its meaning, and the values of its condition, as it is shown, without secrets."""
    kind, *name = change.name
    label = change.name[_count_literal(meaning.pattern) if meaning.subject else 1 :]
    # Only in `extra` can a number and its text differ.
    is_text = kind != "field"
    # The name of a secret's variable would make a reference to the secret, or a reason, look like a secret.
    value = Change(() if kind in ("secret", "allow") else tuple(name), *change.values)
    shown = show_change(redact_change(value), max_length=_MAX_LENGTH, flag=is_text)
    # A flag without a value, and the name of an item, need no value beside them.
    is_bare = ABSENT in change.values and all(
        value is ABSENT or value == "" or (value is None and is_text) for value in change.values
    )
    # A value that the sentence does not have must not keep scopes with other values from sharing it.
    is_bare |= bool(meaning.sentence) and {"before", "after"}.isdisjoint(
        PLACE.findall(meaning.sentence)
    )
    before, after = ("", "") if is_bare else (shown.before, shown.after)
    return Effect(
        meaning.subject or _SUBJECTS.get(str(kind), str(kind)),
        str(label[-1]) if kind in _FLAG_KINDS else dotted(label, ""),
        None if change.before is ABSENT else before,
        None if change.after is ABSENT else after,
        meaning,
        values,
        shown.note,
        change.layer,
        baseline,
    )


def _count_literal(pattern: str) -> int:
    """Return the number of steps before the first wildcard."""
    steps = pattern_steps(pattern)
    return next((index for index, step in enumerate(steps) if "*" in step), len(steps))


# Grouping


def effect_statements(
    scoped: Iterable[tuple[Scope, Effect]], format_scope: Callable[[Sequence[Scope]], str]
) -> Iterator[LocatedStatement]:
    """Yield the effects, each once for all scopes that have it."""
    shared = grouped((effect, scope) for scope, effect in scoped)
    for owners, effects in grouped(
        (tuple(scopes), effect) for effect, scopes in shared.items()
    ).items():
        text = format_scope(owners)
        risky = [effect for effect in effects if effect.meaning.risk]
        # All of them: a review that has no room for one gives another verdict.
        yield from (LocatedStatement(text, _statement([effect])) for effect in risky)
        harmless = [effect for effect in effects if not effect.meaning.risk]
        yield from (
            LocatedStatement(text, _statement(members)) for members in _of_one_kind(harmless)
        )


def _of_one_kind(effects: Sequence[Effect]) -> Iterator[list[Effect]]:
    """Yield effects that one sentence can have; an effect without a name, or with a sentence, has its own."""

    def kind(effect: Effect) -> object:
        is_alone = not effect.label or effect.meaning.sentence
        return effect if is_alone else (effect.baseline, effect.subject)

    yield from grouped((kind(effect), effect) for effect in effects).values()


# Sentences


def _statement(effects: Sequence[Effect]) -> Statement:
    """Return one sentence about effects of one kind."""
    meaning = effects[0].meaning
    head = effects[0].subject + "s" * (len(effects) > 1)
    clauses = [_clause(effect, "" if index else head) for index, effect in enumerate(effects)]
    template = ", ".join(template for template, _ in clauses)
    values = tuple(value for _, values in clauses for value in values)
    return Statement(
        template, values, meaning.risk, meaning.headline.replace("{label}", effects[0].label)
    )


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
        now = "not set" if effect.after is None else "{}"
        then = "without" if effect.before is None else "with {}"
        named = (*label, effect.after, effect.baseline, effect.before)
        values = tuple(value for value in named if value is not None)
        return f"{subject} {now}, unlike {{}} {then}", values
    if effect.before is None or effect.after is None:
        event, shown = ("added", " ({})") if effect.before is None else ("removed", " (was {})")
        if value := effect.after or effect.before:
            return f"{subject} {event}{shown}", (*label, value)
        return f"{subject} {event}", label
    note = f" ({effect.note})" if effect.note else ""
    return f"{subject} changed from {{}} to {{}}{note}", (*label, effect.before, effect.after)


def _filled(text: str, effect: Effect) -> tuple[str, tuple[str, ...]]:
    places = {"label": effect.label, "before": effect.before, "after": effect.after}
    return fill(text, places, effect.values)


# The impact


_OF_SIZE: Final = ("figure", "machine type", "topology", "zone", "XLA flag")
"""The kinds of facts that follow from a size, in which a new rung may differ from the one it is compared with."""
_Baselines = Mapping[Scope, tuple[str, bool]]
"""The size that a new job is compared with, and True if that is a rung of the head."""


class Impact(NamedTuple):
    """Consequences of a change."""

    statements: tuple[LocatedStatement, ...]
    """Those with the highest risk first."""
    rows: tuple[RungComparison, ...]
    """The rungs that are new or have other figures."""
    new_warnings: tuple[Finding, ...]
    """Warnings that the change adds, or whose text it changes; if the base has errors, all warnings of the head."""
    ended_warnings: tuple[Finding, ...]
    """Warnings that the change resolves, without those that only change their text or become allowed."""
    allowed: tuple[Finding, ...] = ()
    """Findings that the change turns into notes, as the spec now allows them."""


_LOSING: Final = {
    "TPU044": (
        "no checkpoint is written before the end of a run, so a failure loses all of it ({}, below)",
        "no checkpoint in time",
    ),
    "TPU128": (
        "runs share a folder, and each goes on with the checkpoints of another ({}, below)",
        "runs share a folder",
    ),
}
"""Warnings about work that can be lost: where they are new, they are cautions, with these sentences and headlines."""


def compute_impact(
    before: CompiledRevision,
    after: CompiledRevision,
    difference: Difference,
    records: tuple[RevisionRecords, RevisionRecords] = (NO_RECORDS, NO_RECORDS),
) -> Impact:
    """Return the consequences of a change between two revisions without errors, whose configs differ as given."""
    old, new = _warnings(before), _warnings(after)
    statements = [
        *_fact_statements(before, after, difference.changed),
        *result_statements(*records),
    ]
    for id_ in sorted({id_ for id_, _ in new if id_ in _LOSING} - {id_ for id_, _ in old}):
        text, headline = _LOSING[id_]
        statements.append(LocatedStatement("", Statement(text, (id_,), Risk.CAUTION, headline)))
    return Impact(
        tuple(sorted(statements, key=lambda located: -located.statement.risk)),
        scaling_rows(before.jobs, after.jobs),
        tuple(finding for key, finding in new.items() if key not in old),
        tuple(_ended_warnings(before, after)),
        tuple(_newly_allowed(before, after)),
    )


def impact_of_broken_spec(before: CompiledRevision, after: CompiledRevision) -> Impact:
    """Return what is known if a revision has errors: changes to `allow`, and the warnings of a head without errors."""
    # A base with errors has no jobs to compare with, which does not make those of the head new.
    without_jobs = after._replace(request_bodies=())
    statements = tuple(_fact_statements(before, without_jobs, ())) if after.project else ()
    warnings = () if after.is_broken else tuple(_warnings(after).values())
    return Impact(statements, (), warnings, (), tuple(_newly_allowed(before, after)))


# Facts


def _fact_statements(
    before: CompiledRevision, after: CompiledRevision, changed_configs: Collection[Scope]
) -> Iterator[LocatedStatement]:
    """Yield the changed facts of the spec, of its environments, and of the jobs of the head.

    Args:
        before: The base.
        after: The head.
        changed_configs: The configs that differ, each of which must have a changed fact.
    """
    old, new = before.jobs, after.jobs
    baselines = dict(_baselines(old, new))
    comparison = _comparison(before, after, baselines)
    changes = [*compare(comparison.before, comparison.after)]
    changes += _unexplained(changes, changed_configs)
    changes += ladder_changes(old, new)
    scoped = [*_effects(changes, comparison, baselines)]
    kept, known = [key for key in new if key in old], sorted_keys([*old, *new])
    yield from effect_statements(
        (item for item in scoped if not item[0].size), _format_environments
    )
    yield from effect_statements(
        (item for item in scoped if item[0] in kept), lambda keys: format_keys(keys, kept)
    )
    others = (item for item in scoped if item[0].size and item[0] not in kept)
    yield from effect_statements(others, lambda keys: format_keys(sorted_keys(keys), known))


def _format_environments(scopes: Iterable[Scope]) -> str:
    return format_environments(
        [*dict.fromkeys(scope.environment for scope in scopes if scope.environment)]
    )


def _comparison(
    before: CompiledRevision, after: CompiledRevision, baselines: _Baselines
) -> Comparison:
    """Return the facts of both revisions, those before also of each new job that is compared with another one."""
    old, new = _facts_by_job(before), _facts_by_job(after)
    compared = [fact for key in new if key in old for fact in old[key]]
    for key, (size, is_in_head) in baselines.items():
        rung = (new if is_in_head else old)[Scope(key.environment, size)]
        compared += [fact._replace(scope=key) for fact in rung if fact.name[0] not in _OF_SIZE]
        compared += [fact for fact in new[key] if fact.name[0] in _OF_SIZE]
    return Comparison(
        by_name([*spec_facts(before, after), *compared]),
        by_name([*spec_facts(after, before), *chain(*new.values())]),
        [*chain(*old.values())],
    )


def _facts_by_job(revision: CompiledRevision) -> dict[Scope, list[Fact]]:
    """Return the facts of each job, first the reason why its run has no limit of time."""
    facts = {}
    for job, body in revision.request_bodies:
        key, reason = config_key(job), run_limit(job, body).unbounded
        limits = [Fact(key, ("unlimited run",), reason)] if reason else []
        facts[key] = [*limits, *job_facts(job)]
    return facts


def _baselines(before: Jobs, after: Jobs) -> Iterator[tuple[Scope, tuple[str, bool]]]:
    """Yield each new job with the size that it is compared with.

    Without a rung below or one that it replaces, as of a ladder that becomes shorter, it is compared with the largest
    rung that its environment had; in a new environment with none.
    """
    largest = {key.environment: key.size for key in before}
    for key, (baseline, is_rung_below) in rung_baselines(before, after):
        if size := baseline or largest.get(key.environment, ""):
            yield key, (size, is_rung_below)


def _effects(
    changes: Iterable[FactChange], comparison: Comparison, baselines: _Baselines
) -> Iterator[tuple[Scope, Effect]]:
    """Yield the effects of changes; of a job that is compared with none, only the risky ones."""
    for change in changes:
        meaning, values = judge(change, MEANINGS, comparison)
        is_of_job = change.scope.size and change.name[0] != "rung"
        is_compared = not is_of_job or comparison.is_kept(change.scope)
        # In a new environment, what another job of the base has is no news, but for access.
        is_news = (
            is_compared
            or meaning.risk > Risk.CAUTION
            or (meaning.risk and not comparison.is_known(change))
        )
        if is_news and not meaning.is_silent:
            size, _ = baselines.get(change.scope, ("", False))
            yield change.scope, effect_of(change, meaning, values, size)


def _unexplained(changes: Iterable[FactChange], configs: Collection[Scope]) -> list[FactChange]:
    """Return a change for each config that differs although no fact of its job, environment or spec does."""
    scopes = {change.scope for change in changes}
    return [
        FactChange(key, ("config",), ABSENT, "changed")
        for key in configs
        if not scopes & {key, Scope(key.environment), Scope()}
    ]


# Warnings


def _warnings(revision: CompiledRevision) -> dict[tuple[str, str], Finding]:
    """Return the warnings of a revision by id and message, and not by location: an edit elsewhere moves lines."""
    return {
        (finding.id, finding.message): finding
        for finding in revision.findings
        if finding.level == "warning"
    }


def _ended_warnings(before: CompiledRevision, after: CompiledRevision) -> Iterator[Finding]:
    old, new = _warnings(before), _warnings(after)
    # A warning with another text has not ended, and neither has one that is allowed now.
    remaining = {id_ for id_, _ in new.keys() - old.keys()} | {
        *(after.project.allow if after.project else ())
    }
    yield from (
        finding for key, finding in old.items() if key not in new and finding.id not in remaining
    )


def _newly_allowed(before: CompiledRevision, after: CompiledRevision) -> Iterator[Finding]:
    """Yield the findings that the change turns into notes, without the reason for allowing them."""
    rules = {rule for rule, *_ in allowed(after, before).keys() - allowed(before, after).keys()}
    for finding in after.findings:
        if (
            finding.id in rules
            and finding.details
            and finding.details[-1].startswith(ALLOWED_PREFIX)
        ):
            yield finding._replace(details=finding.details[:-1])
