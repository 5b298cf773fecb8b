"""A review as JSON: the same as the comment, for programs."""

from typing import Any

from tpucfg.diff.change import redact_difference
from tpucfg.diff.describe import change_json, json_data, print_json
from tpucfg.findings import Finding, errors
from tpucfg.redaction import redact, redact_value
from tpucfg.review.changes.resource_change import ResourceChange, count_resources
from tpucfg.review.changes.scaling_table import Figures, ScalingRow
from tpucfg.review.markdown import commit_range as between
from tpucfg.review.markdown.summary import headline
from tpucfg.review.review import Part, Problem, Review


def json_text(review: Review) -> str:
    """The review; numbers of a rung that are no whole numbers are floats."""
    data = {
        "spec": review.after.snapshot.repository_path,
        "base": between.snapshot_json(review.before.snapshot),
        "head": between.snapshot_json(review.after.snapshot),
        "headline": headline(review),
        "is_change": review.is_change,
        "is_destructive": review.is_destructive,
        "is_known": review.is_known,
        "errors": {
            side: [_finding(it) for it in errors(made.findings)]
            for side, made in (("base", review.before), ("head", review.after))
        },
        "meaning": {
            "remarks": [{"text": it.plain, "grave": it.statement.destructive} for it in review.meaning.statements],
            "rungs": [_row(row) for row in review.meaning.rows],
            "new_warnings": [_finding(it) for it in review.meaning.new_warnings],
            "ended_warnings": [_finding(it) for it in review.meaning.ended_warnings],
            "allowed": [_finding(it) for it in review.meaning.allowed],
        },
        "configs": json_data(redact_difference(review.difference)),
        "environments": [_part(part) for part in review.parts],
    }
    return print_json(data)


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "id": finding.id,
        "level": finding.level,
        "message": redact(finding.message),
        "location": str(finding.location),
        "help": redact(finding.help),
    }


def _row(row: ScalingRow) -> dict[str, Any]:
    return {
        "size": row.size,
        "new_in": row.new_in,
        "against": row.baseline or None,
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
        "counts": count_resources(part.changes)._asdict(),
        "problem": _problem(part.problem),
        "resources": [_resource(change) for change in part.changes],
        "policies": [violation._asdict() for violation in part.violations],
        "warnings": part.warnings,
        "findings": [_finding(it) for it in part.new],
        "declared": [it._asdict() for it in part.declared],
    }


def _problem(problem: Problem | None) -> dict[str, Any] | None:
    return {"reason": redact(problem.reason), "said": [redact(line) for line in problem.said]} if problem else None


def _resource(change: ResourceChange) -> dict[str, Any]:
    inputs = [change_json(one) for one in change.inputs]
    plain = change._asdict() | {"inputs": redact_value(inputs), "widened": [it._asdict() for it in change.widened]}
    return {key: it for key, it in plain.items() if key != "environment"} | {"destructive": change.destructive}
