"""The review as JSON, with the content of the comment."""

from typing import Any

from tpucfg.changes.config_diff import redact_difference
from tpucfg.changes.costs import MEASURES, CostChanges, RunCost
from tpucfg.changes.describe import change_json, difference_json
from tpucfg.changes.drift import Drift
from tpucfg.changes.figures import Figures, ScalingRow
from tpucfg.changes.fits import FitChanges
from tpucfg.changes.programs import Problem
from tpucfg.changes.resources import ResourceChange, count_resources
from tpucfg.changes.statements import LocatedStatement, Statement
from tpucfg.findings import Finding, errors
from tpucfg.fit.rung_fit import RungFit
from tpucfg.git.snapshots import Snapshot
from tpucfg.number_format import to_json_number
from tpucfg.redaction import redact, redact_report, redact_value
from tpucfg.review.cautions import give_verdict, spec_cautions
from tpucfg.review.review import EnvironmentReview, RepositoryReview, Review
from tpucfg.review.summary import headline, repository_headline
from tpucfg.text_format import json_text


def json_report(reviewed: RepositoryReview) -> str:
    """Return the reviews as JSON. The figures of a rung that are not whole numbers are floats."""
    data = {
        "headline": repository_headline(reviewed),
        **give_verdict(reviewed)._asdict(),
        "statements": [_located(located) for located in reviewed.statements],
        "specs": [_review(review) for review in reviewed.reviews],
        "failures": [failure._asdict() for failure in reviewed.failures],
        "others": reviewed.others,
    }
    return json_text(data)


def _review(review: Review) -> dict[str, Any]:
    return {
        "spec": review.after.snapshot.repository_path,
        "base": _revision(review.before.snapshot),
        "head": _revision(review.after.snapshot),
        "headline": headline(review),
        "is_change": review.is_change,
        "is_destructive": review.is_destructive,
        "is_known": review.is_known,
        "errors": {
            name: [_finding(finding) for finding in errors(revision.findings)]
            for name, revision in (("base", review.before), ("head", review.after))
        },
        "cautions": [{"risk": caution.risk.name.lower(), "text": caution.text} for caution in spec_cautions(review)],
        "meaning": {
            "statements": [_located(located) for located in review.impact.statements],
            "rungs": [_row(row) for row in review.impact.rows],
            "new_warnings": [_finding(finding) for finding in review.impact.new_warnings],
            "ended_warnings": [_finding(finding) for finding in review.impact.ended_warnings],
            "allowed": [_finding(finding) for finding in review.impact.allowed],
        },
        "costs": _costs(review.costs),
        "fits": _fits(review.fits),
        "configs": difference_json(redact_difference(review.difference)),
        "environments": [_environment(environment) for environment in review.environments],
    }


def _revision(snapshot: Snapshot) -> dict[str, Any]:
    """Return a revision; all values of the working tree are null."""
    commit = snapshot.commit
    return {
        "revision": snapshot.title if snapshot.exported_to else None,
        "commit": commit.id if commit else None,
        "merges": (commit.merges or None) if commit else None,
    }


def _located(located: LocatedStatement) -> dict[str, Any]:
    return {"scope": located.scope, "text": located.plain, **_risk(located.statement)}


def _risk(statement: Statement) -> dict[str, Any]:
    return {"risk": statement.risk.name.lower(), "destructive": statement.destructive}


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


def _figures(figures: Figures) -> dict[str, float]:
    # Fractions are exact, but JSON has no type for them.
    return {
        name: int(number.value) if number.value.denominator == 1 else float(number.value)
        for name, number in figures.items()
        if number is not None
    }


def _costs(costs: CostChanges) -> dict[str, Any]:
    return {
        "largest": {
            key: {
                "config": largest.place or None,
                "before": to_json_number(largest.before),
                "after": to_json_number(largest.after),
                "configs": largest.configs,
                "unknown": largest.unknown,
            }
            for key, largest in costs.largest.items()
        },
        "rungs": [
            {
                "size": row.size,
                "environments": row.environments,
                "against": row.baseline or None,
                "before": _run_cost(row.before),
                "after": _run_cost(row.after),
            }
            for row in costs.rows
        ],
        "notes": costs.notes,
    }


def _run_cost(cost: RunCost | None) -> dict[str, float | None] | None:
    return {measure.key: to_json_number(measure.get(cost)) for measure in MEASURES if measure.column} if cost else None


def _fits(fits: FitChanges) -> dict[str, Any]:
    return {
        "problem": redact(fits.problem),
        "run_problem": redact(fits.run_problem),
        "rungs": [
            {
                "size": row.size,
                "environments": row.environments,
                "before": _fit(row.before),
                "after": _fit(row.after),
            }
            for row in fits.rows
        ],
    }


def _fit(fit: RungFit | None) -> dict[str, Any] | None:
    if fit is None:
        return None
    result = fit.current
    known = {**result.memory._asdict(), "flops": result.flops, **result.compiler._asdict()} if result else {}
    changes = [redact(change) for change in fit.changes]
    return {"verdict": fit.verdict, "as_committed": not fit.is_trusted, "changes": changes, **known}


def _environment(environment: EnvironmentReview) -> dict[str, Any]:
    return {
        "name": environment.environment,
        "source": environment.source,
        "has_no_stack": environment.has_no_stack,
        "counts": count_resources(environment.changes)._asdict(),
        "problem": _problem(environment.problem),
        "unverified": redact(environment.unverified),
        "resources": [_resource(change) for change in environment.changes],
        "policies": [violation._asdict() for violation in environment.violations],
        "warnings": environment.warnings,
        "drift": [_drift(drift) for drift in environment.drift],
        "findings": [_finding(finding) for finding in environment.findings],
        "declared": [resource._asdict() for resource in environment.declared],
    }


def _drift(drift: Drift) -> dict[str, Any]:
    paths = [list(path) for path in drift.reverted]
    return drift._asdict() | {
        "changes": redact_value([change_json(change) for change in drift.changes]),
        "unmanaged": redact_value([change_json(change) for change in drift.unmanaged]),
        "urn": redact(drift.urn),
        "reverted": paths,
        "widened": [widening._asdict() for widening in drift.widened],
        "risk": drift.risk.name.lower(),
    }


def _problem(problem: Problem | None) -> dict[str, Any] | None:
    if problem is None:
        return None
    return {"reason": redact(problem.reason), "output": [redact_report(line) for line in problem.output]}


def _resource(change: ResourceChange) -> dict[str, Any]:
    data = change._asdict() | {
        "inputs": redact_value([change_json(input_change) for input_change in change.inputs]),
        "widened": [widening._asdict() for widening in change.widened],
        "statements": [{"text": statement.plain, **_risk(statement)} for statement in change.statements],
        "destructive": change.destructive,
    }
    del data["environment"]  # the resource is listed below its environment
    return data
