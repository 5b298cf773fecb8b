"""Changes of jobs, environments and the spec: all facts of both revisions, compared and put into sentences."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tpucfg.changes.describe import format_keys
from tpucfg.changes.effects import Effect, effect_of, effect_statements, environments_of
from tpucfg.changes.facts import Fact, FactChange, Scope, by_name, compare, sorted_keys
from tpucfg.changes.figures import Jobs, rung_baselines
from tpucfg.changes.job_facts import argument_orders, job_facts
from tpucfg.changes.job_meanings import JOB_MEANINGS
from tpucfg.changes.meanings import Comparison, Meaning, judged
from tpucfg.changes.project_facts import project_facts
from tpucfg.changes.project_meanings import PROJECT_MEANINGS
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement

MEANINGS: Final[tuple[Meaning, ...]] = (*JOB_MEANINGS, *PROJECT_MEANINGS)
"""The first row that matches and applies decides."""
_OF_SIZE: Final = ("figure", "machine type", "topology", "zone", "XLA flag")
"""The kinds of facts that follow from a size, in which a new rung may differ from the one it is compared with."""
_Baselines = Mapping[Scope, tuple[str, bool]]
"""The size that a new job is compared with, and True if that is a rung of the head."""


def fact_statements(
    before: CompiledRevision, after: CompiledRevision, changed_configs: Collection[Scope]
) -> Iterator[LocatedStatement]:
    """Yield the changed facts of the spec, of the environments that both revisions have, and of the jobs of the head.

    Args:
        before: The base.
        after: The head.
        changed_configs: The configs that differ, each of which must have a changed fact.
    """
    old, new = before.jobs, after.jobs
    baselines = dict(_baselines(old, new))
    comparison = _comparison(before, after, (old, new), baselines)
    changes = [*compare(comparison.before, comparison.after), *_reordered(old, new)]
    changes += _unexplained(changes, changed_configs)
    owned = [*_effects(changes, comparison, baselines)]
    kept, known = [key for key in new if key in old], sorted_keys(new)
    yield from effect_statements(_of(owned, lambda scope: not scope.size), environments_of)
    yield from effect_statements(_of(owned, old.__contains__), lambda keys: format_keys(keys, kept))
    added = _of(owned, lambda scope: bool(scope.size) and scope not in old)
    yield from effect_statements(added, lambda keys: format_keys(sorted_keys(keys), known))


def _comparison(
    before: CompiledRevision, after: CompiledRevision, jobs: tuple[Jobs, Jobs], baselines: _Baselines
) -> Comparison:
    """Return the facts of both revisions, those before also of each new job that is compared with another one."""
    old, new = ({key: job_facts(job) for key, job in of_revision.items()} for of_revision in jobs)
    compared = [fact for key in new if key in old for fact in old[key]]
    for key, (size, is_in_head) in baselines.items():
        rung = (new if is_in_head else old)[Scope(key.environment, size)]
        compared += [fact._replace(scope=key) for fact in rung if fact.name[0] not in _OF_SIZE]
        compared += [fact for fact in new[key] if fact.name[0] in _OF_SIZE]
    return Comparison(
        by_name([*project_facts(before, after), *compared]),
        by_name([*project_facts(after, before), *_joined(new.values())]),
        _joined(old.values()),
    )


def _joined(facts: Iterable[Sequence[Fact]]) -> list[Fact]:
    return [fact for some in facts for fact in some]


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
        result = judged(change, MEANINGS, comparison)
        is_news = result.meaning.risk or not change.scope.size or comparison.is_kept(change.scope)
        if is_news and not result.meaning.is_silent:
            size, _ = baselines.get(change.scope, ("", False))
            yield change.scope, effect_of(result, size)


def _of(owned: Iterable[tuple[Scope, Effect]], is_wanted: Callable[[Scope], bool]) -> list[tuple[Scope, Effect]]:
    return [(scope, effect) for scope, effect in owned if is_wanted(scope)]


def _reordered(before: Jobs, after: Jobs) -> Iterator[FactChange]:
    """Yield the jobs whose arguments are in another order."""
    for key in after:
        if key in before:
            old, new = argument_orders(before[key], after[key])
            if old != new:
                yield FactChange(key, ("order", "arguments"), old, new)


def _unexplained(changes: Iterable[FactChange], configs: Collection[Scope]) -> list[FactChange]:
    """Return a change for each config that differs although no fact of its job, environment or spec does."""
    scopes = {change.scope for change in changes}
    return [
        FactChange(key, ("config",), "", "changed")
        for key in configs
        if not scopes & {key, Scope(key.environment), Scope()}
    ]
