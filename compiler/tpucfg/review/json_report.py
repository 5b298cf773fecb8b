"""The review as JSON, with the content of the comment."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from tpucfg.changes.config_diff import redact_difference
from tpucfg.changes.facts import Change
from tpucfg.changes.figures import RungRow, figure_values
from tpucfg.changes.fits import FitRow
from tpucfg.changes.programs import Problem
from tpucfg.changes.resources import ResourceChange, count_resources
from tpucfg.changes.statements import LocatedStatement, Statement, change_json, difference_json
from tpucfg.findings import Finding, errors
from tpucfg.fit.rung_fit import RungFit
from tpucfg.git.snapshots import Snapshot
from tpucfg.number_format import to_json_number
from tpucfg.redaction import redact, redact_report, redact_value
from tpucfg.review.cautions import Caution, give_verdict, spec_cautions
from tpucfg.review.comment import headline, repository_headline
from tpucfg.review.review import EnvironmentReview, RepositoryReview, Review
from tpucfg.text_format import json_text


def json_report(reviewed: RepositoryReview) -> str:
    """Return the reviews as JSON. Numbers that are not whole are floats."""
    data = {
        "headline": repository_headline(reviewed),
        **give_verdict(reviewed)._asdict(),
        "statements": _data(reviewed.statements),
        "specs": [_review(review) for review in reviewed.reviews],
        "failures": [failure._asdict() for failure in reviewed.failures],
        "others": reviewed.others,
        "unjudged": reviewed.unjudged,
    }
    return json_text(data)


def _review(review: Review) -> dict[str, Any]:
    revisions = {"base": review.before, "head": review.after}
    impact, costs, fits = review.impact, review.costs, review.fits
    data = {
        "spec": review.path,
        **{name: revision.snapshot for name, revision in revisions.items()},
        "headline": headline(review),
        "is_change": review.is_change,
        "is_destructive": review.is_destructive,
        "is_known": review.is_known,
        "errors": {name: errors(revision.findings) for name, revision in revisions.items()},
        "cautions": spec_cautions(review),
        "meaning": {
            "statements": impact.statements,
            "rungs": impact.rows,
            **_fields(impact, *_WARNINGS),
        },
        "costs": {"rungs": costs.rows, "notes": costs.notes},
        "fits": {**_fields(fits, "problem", "run_problem"), "rungs": fits.rows},
    }
    configs = difference_json(redact_difference(review.difference))
    environments = _data(review.environments)
    return {**_data(data), "configs": configs, "environments": environments}


def _data(value: Any) -> Any:
    """Return a value of a review as data for JSON: tuples with names as objects, texts without secrets."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else to_json_number(value)
    if isinstance(value, Mapping):
        return {key: _data(item) for key, item in value.items()}
    if to_object := _OBJECTS.get(type(value)):
        return _data(to_object(value))
    if hasattr(value, "_asdict"):
        return _data(value._asdict())
    return [_data(item) for item in value] if isinstance(value, list | tuple) else value


def _fields(value: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return a revision; all values of the working tree are null."""
    commit = snapshot.commit
    return {
        "revision": snapshot.title if snapshot.exported_to else None,
        "commit": commit.id if commit else None,
        "merges": (commit.merges or None) if commit else None,
    }


def _statement(statement: Statement) -> dict[str, Any]:
    return {
        "text": statement.plain,
        "risk": statement.risk.name.lower(),
        "destructive": statement.destructive,
    }


def _rung(row: RungRow) -> dict[str, Any]:
    figures = {"before": figure_values(row.before), "after": figure_values(row.after)}
    return {**_fields(row, "size", "environments"), "against": row.baseline or None, **figures}


def _environment(environment: EnvironmentReview) -> dict[str, Any]:
    return {
        "name": environment.environment,
        "source": environment.source,
        "has_no_stack": environment.preview.has_no_stack,
        "counts": count_resources(environment.changes),
        **_fields(environment, "problem", "unverified"),
        "resources": environment.changes,
        "policies": environment.preview.violations,
        **_fields(environment.preview, "warnings", "drift"),
        **_fields(environment, "findings", "declared"),
    }


def _resource(change: ResourceChange) -> dict[str, Any]:
    data = {**change._asdict(), "destructive": change.destructive}
    del data["environment"]  # the resource is listed below its environment
    return data


def _fit(fit: RungFit) -> dict[str, Any]:
    data: dict[str, Any] = {
        "verdict": fit.verdict,
        "as_committed": not fit.is_trusted,
        "changes": fit.changes,
    }
    if result := fit.current:
        data |= {**result.memory._asdict(), "flops": result.flops, **result.compiler._asdict()}
    return data


_WARNINGS: Final = ("new_warnings", "ended_warnings", "allowed")
_OBJECTS: Final[Mapping[type, Callable[[Any], Any]]] = {
    Caution: lambda caution: {"risk": caution.risk.name.lower(), "text": caution.text},
    Change: lambda change: redact_value(change_json(change)),
    EnvironmentReview: _environment,
    Finding: lambda finding: {
        **_fields(finding, "id", "level", "message"),
        "location": str(finding.location),
        "help": finding.help,
    },
    FitRow: lambda row: _fields(row, "size", "environments", "before", "after"),
    LocatedStatement: lambda located: {
        "scope": located.scope,
        **_statement(located.statement),
        "text": located.plain,
    },
    Problem: lambda problem: {
        "reason": problem.reason,
        "output": [*map(redact_report, problem.output)],
    },
    ResourceChange: _resource,
    RungFit: _fit,
    RungRow: _rung,
    Snapshot: _snapshot,
    Statement: _statement,
}
"""The keys of values that JSON shows otherwise than by their fields."""
