"""The consequences of a change: the facts of both revisions compared and put into sentences, and their warnings."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from tpucfg.changes.config_diff import Difference
from tpucfg.changes.effects import Effect, effect_of, effect_statements, environments_of
from tpucfg.changes.facts import ABSENT, Fact, FactChange, Scope, by_name, compare, sorted_keys
from tpucfg.changes.figures import Jobs, ScalingRow, ladder_changes, ratio_changes, rung_baselines, scaling_rows
from tpucfg.changes.meanings import Comparison, judge
from tpucfg.changes.records import NO_RECORDS, RevisionRecords, result_statements
from tpucfg.changes.revision_facts import allowed, job_facts, spec_facts
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.changes.spec_meanings import MEANINGS
from tpucfg.changes.statements import LocatedStatement, format_keys
from tpucfg.findings import Finding
from tpucfg.findings.finding import ALLOWED_PREFIX
from tpucfg.results.cost import run_limit

_OF_SIZE: Final = ("figure", "machine type", "topology", "zone", "XLA flag")
"""The kinds of facts that follow from a size, in which a new rung may differ from the one it is compared with."""
_NUMBER: Final = re.compile("[0-9][0-9,.]*[×%]?")
"""A word of a warning that is a number."""
_Baselines = Mapping[Scope, tuple[str, bool]]
"""The size that a new job is compared with, and True if that is a rung of the head."""
_Scoped = list[tuple[Scope, Effect]]


class Impact(NamedTuple):
    """Consequences of a change."""

    statements: tuple[LocatedStatement, ...]
    """Those with the highest risk first."""
    rows: tuple[ScalingRow, ...]
    """The rungs that are new or have other figures."""
    new_warnings: tuple[Finding, ...]
    """Warnings that the change adds; if the base has errors, all warnings of the head."""
    ended_warnings: tuple[Finding, ...]
    """Warnings that the change resolves, without those that only change their text or become allowed."""
    allowed: tuple[Finding, ...] = ()
    """Findings that the change turns into notes, as the spec now allows them."""
    changed_warnings: tuple[Finding, ...] = ()
    """Warnings of both revisions in which only numbers differ."""


def compute_impact(
    before: CompiledRevision,
    after: CompiledRevision,
    difference: Difference,
    records: tuple[RevisionRecords, RevisionRecords] = (NO_RECORDS, NO_RECORDS),
) -> Impact:
    """Return the consequences of a change between two revisions without errors, whose configs differ as given."""
    statements = [*_fact_statements(before, after, difference.changed), *result_statements(*records)]
    new_warnings, changed_warnings = _new_and_changed_warnings(before, after)
    return Impact(
        tuple(sorted(statements, key=lambda located: -located.statement.risk)),
        scaling_rows(before.jobs, after.jobs),
        tuple(new_warnings),
        tuple(_ended_warnings(before, after)),
        tuple(_newly_allowed(before, after)),
        tuple(changed_warnings),
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
    changes += ratio_changes(old, new)
    scoped = [*_effects(changes, comparison, baselines)]
    kept, known = [key for key in new if key in old], sorted_keys([*old, *new])
    yield from effect_statements(_of(scoped, lambda scope: not scope.size), environments_of)
    yield from effect_statements(_of(scoped, kept.__contains__), lambda keys: format_keys(keys, kept))
    others = _of(scoped, lambda scope: bool(scope.size) and scope not in kept)
    yield from effect_statements(others, lambda keys: format_keys(sorted_keys(keys), known))


def _comparison(before: CompiledRevision, after: CompiledRevision, baselines: _Baselines) -> Comparison:
    """Return the facts of both revisions, those before also of each new job that is compared with another one."""
    old, new = (
        {key: [*limits.get(key, ()), *job_facts(job)] for key, job in revision.jobs.items()}
        for revision in (before, after)
        for limits in (_limit_facts(revision),)
    )
    compared = [fact for key in new if key in old for fact in old[key]]
    for key, (size, is_in_head) in baselines.items():
        rung = (new if is_in_head else old)[Scope(key.environment, size)]
        compared += [fact._replace(scope=key) for fact in rung if fact.name[0] not in _OF_SIZE]
        compared += [fact for fact in new[key] if fact.name[0] in _OF_SIZE]
    return Comparison(
        by_name([*spec_facts(before, after), *compared]),
        by_name([*spec_facts(after, before), *(fact for facts in new.values() for fact in facts)]),
        [fact for facts in old.values() for fact in facts],
    )


def _limit_facts(revision: CompiledRevision) -> dict[Scope, list[Fact]]:
    """Return the reason why a run has no limit of time, of each job without one."""
    limits = ((config_key(job), run_limit(job, body)) for job, body in revision.request_bodies)
    return {key: [Fact(key, ("unlimited run",), limit.unbounded)] for key, limit in limits if limit.unbounded}


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
        result = judge(change, MEANINGS, comparison)
        is_of_job = change.scope.size and change.name[0] != "rung"
        is_news = result.meaning.risk or not is_of_job or comparison.is_kept(change.scope)
        if is_news and not result.meaning.is_silent:
            size, _ = baselines.get(change.scope, ("", False))
            yield change.scope, effect_of(result, size)


def _of(scoped: Iterable[tuple[Scope, Effect]], is_wanted: Callable[[Scope], bool]) -> _Scoped:
    return [(scope, effect) for scope, effect in scoped if is_wanted(scope)]


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
    return {(finding.id, finding.message): finding for finding in revision.findings if finding.level == "warning"}


def _new_and_changed_warnings(before: CompiledRevision, after: CompiledRevision) -> tuple[list[Finding], list[Finding]]:
    """Return the warnings of the head that are new, and those with other numbers than in the base.

    A warning that only has lost words, such as a size that is removed, is neither.
    """
    words: dict[str, set[str]] = {}
    for id_, message in _warnings(before):
        words.setdefault(id_, set()).update(_words(message))
    new, changed = [], []
    for (id_, message), finding in _warnings(after).items():
        added = _words(message) - words.get(id_, set())
        if id_ not in words or not all(map(_NUMBER.fullmatch, added)):
            new.append(finding)
        elif added:
            changed.append(finding)
    return new, changed


def _words(message: str) -> set[str]:
    return {word.strip(",;:.()") for word in message.split()}


def _ended_warnings(before: CompiledRevision, after: CompiledRevision) -> Iterator[Finding]:
    old, new = _warnings(before), _warnings(after)
    # A warning with another text has not ended, and neither has one that is allowed now.
    remaining = {id_ for id_, _ in new.keys() - old.keys()} | {*(after.project.allow if after.project else ())}
    yield from (finding for key, finding in old.items() if key not in new and finding.id not in remaining)


def _newly_allowed(before: CompiledRevision, after: CompiledRevision) -> Iterator[Finding]:
    """Yield the findings that the change turns into notes, without the reason for allowing them."""
    rules = {rule for rule, *_ in allowed(after, before).keys() - allowed(before, after).keys()}
    for finding in after.findings:
        if finding.id in rules and finding.details and finding.details[-1].startswith(ALLOWED_PREFIX):
            yield finding._replace(details=finding.details[:-1])
