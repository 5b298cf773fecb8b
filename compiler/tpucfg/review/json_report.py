"""The review as JSON: headline, verdict, cautions and effects, and each value that differs as one flat fact."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

from tpucfg.changes.config_diff import redact_difference
from tpucfg.changes.facts import ABSENT, Change
from tpucfg.changes.figures import RungComparison, figure_values, row_label
from tpucfg.changes.statements import LocatedStatement, change_labels, format_keys
from tpucfg.findings import errors
from tpucfg.fit.rung_fit import verdict_text
from tpucfg.number_format import to_json_number
from tpucfg.redaction import redact_value
from tpucfg.review.cautions import give_verdict, repository_cautions
from tpucfg.review.comment import headline, repository_headline
from tpucfg.review.review import EnvironmentReview, RepositoryReview, Review
from tpucfg.text_format import json_text

_Values = tuple[str, str, Any, Any]
"""The scope and the name of a value, and the value before and after, either of which can be ABSENT."""


def json_report(reviewed: RepositoryReview) -> str:
    """Return the reviews as JSON. Numbers that are not whole are floats."""
    data = {
        "headline": repository_headline(reviewed),
        **give_verdict(reviewed)._asdict(),
        "cautions": [
            {"risk": caution.risk.name.lower(), "text": caution.text}
            for caution in repository_cautions(reviewed)
        ],
        "effects": [*_effects("", reviewed.statements)],
        "facts": [],
        "specs": [*map(_spec, reviewed.reviews)],
        "others": [*reviewed.others],
        "unjudged": [*reviewed.unjudged],
    }
    for review in reviewed.reviews:
        data["effects"] += _effects(review.path, review.impact.statements)
        data["facts"] += [_fact(review.path, *values) for values in _values(review)]
    return json_text(redact_value(data))


def _spec(review: Review) -> dict[str, str | None]:
    base, head = (
        revision.snapshot.commit.id if revision.snapshot.commit else None
        for revision in (review.before, review.after)
    )
    return {"spec": review.path, "base": base, "head": head, "headline": headline(review)}


def _effects(path: str, statements: Iterable[LocatedStatement]) -> Iterator[dict[str, str]]:
    """Yield the sentences that are no cautions."""
    for located in statements:
        if not located.statement.risk:
            yield {"spec": path, "text": located.plain}


# Facts


def _fact(path: str, scope: str, name: str, before: Any, after: Any) -> dict[str, Any]:
    """Return a value that differs; a value that is absent has no key."""
    values = {"before": before, "after": after}
    known = {key: _plain(value) for key, value in values.items() if value is not ABSENT}
    return {"spec": path, "scope": scope, "name": name, **known}


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else to_json_number(value)
    return value


def _values(review: Review) -> Iterator[_Values]:
    yield from _finding_values(review)
    yield from chain.from_iterable(map(_figure_values, (*review.impact.rows, *review.costs.rows)))
    for row in review.fits.rows:
        if row.differs:
            before = verdict_text(row.before) if row.before else ABSENT
            scope = f"{row.size} in {', '.join(row.environments)}"
            yield scope, "fit", before, verdict_text(row.after)
    yield from _config_values(review)
    yield from chain.from_iterable(map(_resource_values, review.environments))


def _finding_values(review: Review) -> Iterator[_Values]:
    """Yield the errors of head, and the warnings that differ."""
    for finding in (*errors(review.after.findings), *review.impact.new_warnings):
        yield str(finding.location), finding.id, ABSENT, finding.message
    for finding in review.impact.ended_warnings:
        yield str(finding.location), finding.id, finding.message, ABSENT


def _figure_values(row: RungComparison) -> Iterator[_Values]:
    before, after = figure_values(row.before), figure_values(row.after)
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield row_label(row), name, before.get(name, ABSENT), after.get(name, ABSENT)


def _config_values(review: Review) -> Iterator[_Values]:
    difference = redact_difference(review.difference)
    for keys, outcome in ((difference.added, "added"), (difference.removed, "removed")):
        if keys:
            yield format_keys(keys), "config", ABSENT, outcome
    for group in difference.groups:
        scope = format_keys(group.keys, difference.common)
        yield from _change_values(scope, "", group.changes)


def _resource_values(environment: EnvironmentReview) -> Iterator[_Values]:
    scope = environment.environment
    for change in environment.changes:
        name = f"{change.kind} {change.name}"
        yield scope, name, ABSENT, change.op
        if protection := change.protection:
            yield scope, f"{name}: protect", protection == "lifted", protection == "added"
        yield from _change_values(scope, f"{name}: ", change.inputs)


def _change_values(scope: str, prefix: str, changes: Sequence[Change]) -> Iterator[_Values]:
    for change, label in zip(changes, change_labels(changes), strict=True):
        yield scope, f"{prefix}{label}", change.before, change.after
