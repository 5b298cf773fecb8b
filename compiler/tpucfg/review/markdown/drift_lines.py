"""Drift in a comment: lines for the cautions and for their own block, and a fold with every difference."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.changes.describe import change_diff, change_labels
from tpucfg.changes.facts import ABSENT, Change
from tpucfg.changes.shown_values import show_change
from tpucfg.markdown import code, html, html_code, items, prose
from tpucfg.redaction import redact
from tpucfg.review.changes.resources.drift import Drift
from tpucfg.review.changes.resources.undeclared_grants import BucketAccess
from tpucfg.review.markdown.section import Block, Item, Section, code_block, fold
from tpucfg.review.review import EnvironmentReview
from tpucfg.text_format import format_count, listed

_MAX_CHANGES: Final = 4
"""Differences that a line names; the fold has all of them."""
_MAX_VALUE_LENGTH: Final = 80
_MAX_LINES: Final = 40
_MAX_GRANTS: Final = 10
_ABSENT: Final = "nothing"
_PREFIX: Final = "drift: "


def drift_line(drift: Drift, access: Sequence[str] = ()) -> str:
    """Return the drift of one resource as a line of Markdown, without its environment.

    Args:
        drift: the drift.
        access: Markdown about the access that the drift opens, or that the update grants again.
    """
    label = f"{_PREFIX}{code(drift.kind)} {code(drift.name)}"
    if drift.deleted:
        return f"{label} was deleted in the cloud{_recreation(drift, access)}"
    opened = "".join(f" {text};" for text in access)
    shown = _changes(drift)[:_MAX_CHANGES]
    names = [_difference(change, name) for change, name in zip(shown, change_labels(shown), strict=True)]
    omitted = len(_changes(drift)) - len(shown)
    more = f", and {omitted:,} more" if omitted else ""
    return f"{label}{opened} differs in the cloud: {', '.join(names)}{more}{_outcome(drift)}{_knowledge(drift)}"


def drift_block(environments: Sequence[EnvironmentReview]) -> str:
    """Return what differs in the cloud without being a caution: known drift, and what no program sets."""
    lines = [
        f"**{prose(environment.environment)}**: {line}"
        for environment in environments
        for line in (*_harmless_drift(environment), *_notes_on_access(environment))
    ]
    return f"**Drift**\n\n{items(lines, _MAX_LINES)}" if lines else ""


def access_lines(access: BucketAccess) -> Iterator[str]:
    """Yield a line of Markdown for each grant on the bucket that the stack does not declare."""
    for grant in access.grants[:_MAX_GRANTS]:
        condition = f", if {code(redact(grant.condition))}" if grant.condition else ""
        members = f" ({grant.members:,} members)" if grant.members > 1 else ""
        whom = f"everyone, through {code(grant.who)}" if grant.is_public else f"{code(grant.who)}{members}"
        yield (
            f"drift: the bucket {code(access.bucket)} grants {code(grant.role)} to {whom}{condition}, "
            "which the stack does not declare"
        )
    omitted = len(access.grants) - _MAX_GRANTS
    if omitted > 0:
        grants = format_count(omitted, "more grant")
        yield f"drift: the bucket {code(access.bucket)} has {grants} that the stack does not declare"


def drift_sections(environments: Sequence[EnvironmentReview]) -> list[Section]:
    """Return a fold with every difference for each environment that has drift."""
    return [_section(environment) for environment in environments if environment.drift]


def _harmless_drift(environment: EnvironmentReview) -> Iterator[str]:
    return (drift_line(drift).removeprefix(_PREFIX) for drift in environment.drift if not drift.risk)


def _notes_on_access(environment: EnvironmentReview) -> Iterator[str]:
    access = environment.bucket_access
    if access and access.has_defaults:
        yield (
            f"owners, editors and viewers of the project have access to the bucket {code(access.bucket)}, as Cloud "
            f"Storage grants it on each new bucket ({code('roles/storage.legacy…')})"
        )
    if access and access.assumed:
        agents = listed([*map(code, access.assumed)], _MAX_GRANTS)
        yield f"{agents} counts as declared: only a preview knows the project's number, which is not compared"
    if access and not access.bucket and not access.problem:
        yield "the bucket does not exist yet, so that it has no grants"


def _section(environment: EnvironmentReview) -> Section:
    name, count = environment.environment, len(environment.drift)
    resources = f"{format_count(count, 'resource')} that differ{'s' * (count == 1)} in the cloud"
    blocks = [block for drift in environment.drift for block in _blocks(drift)]
    return fold(f"drift of {prose(name)}", f"drift of {html_code(name)}: {html(resources)}", blocks)


def _blocks(drift: Drift) -> Iterator[Block]:
    """Yield the resource with its URN, which `allow_drift` takes, and its differences."""
    title = f"{code(drift.kind)} {code(drift.name)}, {code(redact(drift.urn))}"
    yield Block((Item(f"{title}{': deleted in the cloud' * drift.deleted}", drift.name),))
    changes = _changes(drift)
    differences = [
        Item("\n".join(change_diff(change, label, flag=False)), label)
        for change, label in zip(changes, change_labels(changes), strict=True)
    ]
    if differences:
        yield code_block(differences, "diff")


def _changes(drift: Drift) -> list[Change]:
    """Return all differences, first those that open access, last those of properties that no program sets."""
    opening = {widening.what for widening in drift.widened}
    return [*sorted(drift.changes, key=lambda change: change.path[0] not in opening), *drift.unmanaged]


def _recreation(drift: Drift, access: Sequence[str]) -> str:
    if not drift.recreated:
        return ""
    grants = f" and {'; '.join(access)}" if access else ""
    if drift.loses_data:
        return f" with its data; the update creates it again, empty{grants}"
    return f"; the update creates it again{grants}"


def _difference(change: Change, label: str) -> str:
    shown = show_change(change, max_length=_MAX_VALUE_LENGTH)
    old, new = (
        _ABSENT if value is ABSENT else code(text)
        for value, text in ((change.before, shown.before), (change.after, shown.after))
    )
    return f"{code(label)}: {old} → {new}{f' ({shown.note})' if shown.note else ''}"


def _outcome(drift: Drift) -> str:
    """Return what the update does to the drift, as a clause."""
    kept = [change for change in _changes(drift) if change.path not in drift.reverted]
    if not drift.reverted:
        return "; the update leaves it"
    names = listed([*map(code, dict.fromkeys(change_labels(kept)))], _MAX_CHANGES)
    return f"; the update reverts it, except {names}" if kept else "; the update reverts it"


def _knowledge(drift: Drift) -> str:
    if not drift.known_in:
        return ""
    reason = prose(redact(drift.reason))
    if drift.is_known:
        return f" (known: {reason})"
    if drift.known_in == "base":
        return " (`allow_drift` covers neither access nor deletion)"
    return f" (this change adds it to `allow_drift`: {reason})"
