"""A review as JSON: the same as the comment, for programs."""

from typing import Any

from tpucfg.diff.formats import json_data
from tpucfg.diff.wording import as_json, canonical
from tpucfg.findings import Finding, errors
from tpucfg.review import between
from tpucfg.review.model import Part, Problem, Review
from tpucfg.review.redact import redacted, redacted_difference, redacted_value
from tpucfg.review.resources import ResourceChange, counted
from tpucfg.review.rungs import Figures, Row
from tpucfg.review.summary import headline


def json_text(review: Review) -> str:
    """The review; numbers of a rung that are no whole numbers are floats."""
    data = {
        "spec": review.after.side.inside,
        "base": between.as_json(review.before.side),
        "head": between.as_json(review.after.side),
        "headline": headline(review),
        "is_change": review.is_change,
        "is_destructive": review.is_destructive,
        "is_known": review.is_known,
        "errors": {
            side: [_finding(it) for it in errors(made.findings)]
            for side, made in (("base", review.before), ("head", review.after))
        },
        "meaning": {
            "remarks": [{"text": it.plain, "grave": it.fact.grave} for it in review.meaning.remarks],
            "rungs": [_row(row) for row in review.meaning.rows],
            "new_warnings": [_finding(it) for it in review.meaning.new],
            "ended_warnings": [_finding(it) for it in review.meaning.gone],
            "allowed": [_finding(it) for it in review.meaning.allowed],
        },
        "configs": json_data(redacted_difference(review.difference)),
        "environments": [_part(part) for part in review.parts],
    }
    return canonical(data)


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "id": finding.id,
        "level": finding.level,
        "message": redacted(finding.message),
        "place": str(finding.place),
        "help": redacted(finding.help),
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "size": row.size,
        "new_in": row.environments,
        "against": row.against or None,
        "before": _figures(row.before),
        "after": _figures(row.after),
    }


def _figures(figures: Figures) -> dict[str, int | float]:
    known = {name: value for name, value in figures.items() if value is not None}
    return {name: int(value) if value.denominator == 1 else float(value) for name, value in known.items()}


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": part.environment,
        "source": part.source,
        "has_no_stack": part.has_no_stack,
        "counts": counted(part.changes)._asdict(),
        "problem": _problem(part.problem),
        "resources": [_resource(change) for change in part.changes],
        "policies": [violation._asdict() for violation in part.violations],
        "warnings": part.warnings,
        "findings": [_finding(it) for it in part.new],
        "declared": [it._asdict() for it in part.declared],
    }


def _problem(problem: Problem | None) -> dict[str, Any] | None:
    return {"reason": redacted(problem.reason), "said": [redacted(line) for line in problem.said]} if problem else None


def _resource(change: ResourceChange) -> dict[str, Any]:
    inputs = [as_json(one) for one in change.inputs]
    plain = change._asdict() | {"inputs": redacted_value(inputs), "widened": [it._asdict() for it in change.widened]}
    return {key: it for key, it in plain.items() if key != "environment"} | {"destructive": change.destructive}
