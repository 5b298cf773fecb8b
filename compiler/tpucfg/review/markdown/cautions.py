"""Risks that a reviewer must not miss: lost data, lifted protection, wider access, and unknown changes."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.markdown import code, prose
from tpucfg.redaction import redact
from tpucfg.review.changes.resource_change import BUCKET, STATEFUL_TYPES, ResourceChange, Widening
from tpucfg.review.changes.statements import format_environments, generalize, join_statements
from tpucfg.review.review import EnvironmentReview, Review

_WIDENING_TEMPLATES: Final = {
    "new": "grants {what} to {who}",
    "broader": "grants the broader {what} to {who}",
    "basic": "grants the basic role {what} to {who}",
    "public": "grants {what} to everyone, through {who}",
    "opens": "no longer prevents access to single objects: {what}",
    "policy": "replaces a whole IAM policy: {what}",
}
_ALWAYS_RISKY: Final = ("basic", "public", "opens", "policy")
"""Kinds of access that are a risk on new resources too, unlike a grant of a specific role."""
_UNKNOWN_MEMBER: Final = "an unknown member"
_REMOVALS: Final = {"replace": "is replaced", "delete": "is deleted"}
_CODE: Final = re.compile(r"`[^`]+`")


def cautions(review: Review) -> list[str]:
    """Return each risk as a line of Markdown; environments with the same risk share a line."""
    unprotected = {*_unprotected_environments(review)}
    # The key is the line with a placeholder; the values are the exact lines with their environments.
    lines: dict[str, list[tuple[str, str]]] = {}
    for environment in review.environments:
        name = environment.environment
        for line in _environment_cautions(environment, is_reported=name in unprotected):
            lines.setdefault(_with_placeholder(line, name), []).append((line, name))
    statements = join_statements(located for located in review.impact.statements if located.statement.destructive)
    grouped = (pair for general, exact in lines.items() for pair in generalize(general, exact))
    return [*statements, *(f"**{prose(format_environments(names))}**: {line}" for line, names in grouped)]


def _with_placeholder(line: str, environment: str) -> str:
    """Return the line with `<env>` instead of the environment's name.

    Only inside code: a name such as `data` can be a word of the sentence too.
    """
    own_name = re.compile(rf"(?<![A-Za-z0-9]){re.escape(environment)}(?![A-Za-z0-9])")
    return _CODE.sub(lambda match: own_name.sub("<env>", match[0]), line)


def _unprotected_environments(review: Review) -> Iterator[str]:
    """Yield the environments whose spec lifts the protection, which a statement reports for the whole environment."""
    before, after = (
        revision.project.environments if revision.project else {} for revision in (review.before, review.after)
    )
    return (name for name in before if name in after and before[name].protect and not after[name].protect)


def _environment_cautions(environment: EnvironmentReview, *, is_reported: bool) -> Iterator[str]:
    """Yield the risks in one environment.

    Args:
        environment: its review.
        is_reported: True if a statement already reports that the environment loses its protection.
    """
    changes = environment.changes
    if not is_reported:
        lifted = [change for change in changes if change.protection == "lifted"]
        yield from _shared_caution(lifted, "is no longer protected")
    for op, removal in _REMOVALS.items():
        refused = [change for change in changes if change.op == op and change.refused]
        text = f"{removal}, which Pulumi refuses while it is protected: lift the protection first, in a separate update"
        yield from _shared_caution(refused, text)
    for change in changes:
        yield from _change_cautions(change, is_new=environment.is_new)
    yield from _bucket_region_conflict(environment)
    for finding in environment.findings:
        message = _without_environment(environment.environment, finding.message)
        yield f"{code(finding.id)} {prose(redact(message))}"
    for violation in environment.violations:
        resource = f" ({code(violation.name)})" if violation.name else ""
        yield f"the {prose(violation.level)} policy {code(violation.policy)}{resource}: {prose(violation.message)}"
    if environment.problem:
        yield f"{_problem_consequence(environment)}: {prose(redact(environment.problem.reason))}"


def _shared_caution(changes: Sequence[ResourceChange], text: str) -> Iterator[str]:
    """Yield one line for all changes; it names one resource, preferably one that contains data."""
    if changes:
        first = min(changes, key=lambda change: change.type not in STATEFUL_TYPES)
        others = len(changes) - 1
        more = f" (and {others:,} more resource{'s' * (others != 1)})" if others else ""
        yield f"{_label(first)}{more} {text}"


def _change_cautions(change: ResourceChange, *, is_new: bool) -> Iterator[str]:
    removal = _REMOVALS.get(change.op)
    # A refused removal is reported with its remedy.
    if removal and change.loses_data and not change.refused:
        because = f" (because of {', '.join(map(code, change.because))})" if change.because else ""
        yield f"{_label(change)} {removal}{because}: **its data is lost**"
    for widening in change.widened:
        if widening.why in _ALWAYS_RISKY or not is_new:
            yield f"{_label(change)} {_describe_widening(widening)}"


def _describe_widening(widening: Widening) -> str:
    member = code(widening.who) if widening.who else _UNKNOWN_MEMBER
    return _WIDENING_TEMPLATES[widening.why].format(what=code(widening.what), who=member)


def _bucket_region_conflict(environment: EnvironmentReview) -> Iterator[str]:
    """Yield a caution for a bucket that is deleted and created under the same name, which Google refuses."""
    buckets = [change for change in environment.changes if change.type == BUCKET]
    deleted = {_bucket_name(change) for change in buckets if change.op == "delete"}
    created = [_bucket_name(change) for change in buckets if change.op == "create"]
    for name in created:
        if name and name in deleted:
            key = f"environments.{environment.environment}.bucket"
            yield (
                f"the bucket {code(name)} exists already and cannot move to another region: set {code(key)} to another "
                "name, or remove that key, as the default name contains the region"
            )


def _bucket_name(change: ResourceChange) -> str:
    name = next((item for item in change.inputs if item.path == ("name",)), None)
    value = None if name is None else name.before if change.op == "delete" else name.after
    return value if isinstance(value, str) else ""


def _without_environment(environment: str, message: str) -> str:
    """Return a finding's message without the environment's name, which already starts the line."""
    return re.sub(rf" of {re.escape(environment)}(?![A-Za-z0-9-])", "", message, count=1)


def _problem_consequence(environment: EnvironmentReview) -> str:
    is_from_program = environment.declared or (environment.source == "program" and environment.changes)
    if is_from_program:
        return "only the changes that the stack program declares are shown"
    return "changes to resources are unknown"


def _label(change: ResourceChange) -> str:
    return f"{code(change.kind)} {code(change.name)}"
