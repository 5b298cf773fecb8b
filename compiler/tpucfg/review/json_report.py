"""The review as JSON, with the content of the comment."""

from typing import Any

from tpucfg.diff.change import redact_difference
from tpucfg.diff.describe import change_json, difference_json, dump_json
from tpucfg.findings import Finding, errors
from tpucfg.redaction import redact, redact_value
from tpucfg.review.changes.resource_change import ResourceChange, count_resources
from tpucfg.review.changes.scaling_table import Figures, ScalingRow
from tpucfg.review.markdown.commit_range import snapshot_json
from tpucfg.review.markdown.summary import headline
from tpucfg.review.review import EnvironmentReview, Problem, Review


def json_report(review: Review) -> str:
    """Return the review as JSON. The figures of a rung that are not whole numbers are floats."""
    data = {
        "spec": review.after.snapshot.repository_path,
        "base": snapshot_json(review.before.snapshot),
        "head": snapshot_json(review.after.snapshot),
        "headline": headline(review),
        "is_change": review.is_change,
        "is_destructive": review.is_destructive,
        "is_known": review.is_known,
        "errors": {
            name: [_finding(finding) for finding in errors(revision.findings)]
            for name, revision in (("base", review.before), ("head", review.after))
        },
        "meaning": {
            "statements": [
                {"text": located.plain, "destructive": located.statement.destructive}
                for located in review.impact.statements
            ],
            "rungs": [_row(row) for row in review.impact.rows],
            "new_warnings": [_finding(finding) for finding in review.impact.new_warnings],
            "ended_warnings": [_finding(finding) for finding in review.impact.ended_warnings],
            "allowed": [_finding(finding) for finding in review.impact.allowed],
        },
        "configs": difference_json(redact_difference(review.difference)),
        "environments": [_environment(environment) for environment in review.environments],
    }
    return dump_json(data)


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
    # Fractions are exact, but JSON has no type for them.
    return {
        name: int(value) if value.denominator == 1 else float(value)
        for name, value in figures.items()
        if value is not None
    }


def _environment(environment: EnvironmentReview) -> dict[str, Any]:
    return {
        "name": environment.environment,
        "source": environment.source,
        "has_no_stack": environment.has_no_stack,
        "counts": count_resources(environment.changes)._asdict(),
        "problem": _problem(environment.problem),
        "resources": [_resource(change) for change in environment.changes],
        "policies": [violation._asdict() for violation in environment.violations],
        "warnings": environment.warnings,
        "findings": [_finding(finding) for finding in environment.findings],
        "declared": [resource._asdict() for resource in environment.declared],
    }


def _problem(problem: Problem | None) -> dict[str, Any] | None:
    if problem is None:
        return None
    return {"reason": redact(problem.reason), "output": [redact(line) for line in problem.output]}


def _resource(change: ResourceChange) -> dict[str, Any]:
    data = change._asdict() | {
        "inputs": redact_value([change_json(input_change) for input_change in change.inputs]),
        "widened": [widening._asdict() for widening in change.widened],
        "destructive": change.destructive,
    }
    del data["environment"]  # the resource is listed below its environment
    return data
