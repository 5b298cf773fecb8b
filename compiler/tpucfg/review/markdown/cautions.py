"""What a reader must not miss: data that goes, protection that falls, access that opens, and what is not known."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.markdown import code, prose
from tpucfg.redaction import redact
from tpucfg.review.changes.resource_change import BUCKET, STATEFUL_TYPES, ResourceChange, Widening
from tpucfg.review.changes.statements import format_environments, generalize, join_statements
from tpucfg.review.review import Part, Review

_OPENED: Final = {
    "new": "gives {what} to {who}",
    "broader": "gives {who} the broader {what}",
    "basic": "gives the basic role {what} to {who}",
    "public": "gives {what} to everybody, by {who}",
    "opens": "lets single objects be opened: {what}",
    "policy": "writes a whole policy anew: {what}",
}
_GOES: Final = {"replace": "is replaced", "delete": "is deleted"}
_CODE: Final = re.compile(r"`[^`]+`")
_LIFT: Final = "lift that first, in an update of its own"
_BROAD: Final = ("basic", "public", "opens", "policy")
"""Openings that are cause for alarm whatever they are part of; a grant of a resource that is new is not."""


def cautions(review: Review) -> list[str]:
    """Each as a line of Markdown, environments that have the same in common named together."""
    lines: dict[str, list[tuple[str, str]]] = {}
    unprotected = {*_unprotected(review)}
    for part in review.parts:
        for line in _of_part(part, is_told=part.environment in unprotected):
            lines.setdefault(_of_any(line, part.environment), []).append((line, part.environment))
    told = join_statements(remark for remark in review.meaning.statements if remark.statement.destructive)
    few = (pair for general, of in lines.items() for pair in generalize(general, of))
    return [*told, *(f"**{prose(format_environments(names))}**: {line}" for line, names in few)]


def _of_any(line: str, environment: str) -> str:
    """The line with `<env>` in the place of the environment's name, in code alone: elsewhere that is a word."""
    own = re.compile(rf"(?<![A-Za-z0-9]){re.escape(environment)}(?![A-Za-z0-9])")
    return _CODE.sub(lambda match: own.sub("<env>", match[0]), line)


def _unprotected(review: Review) -> Iterator[str]:
    """The environments whose spec lifts the protection, which is told of the whole environment."""
    before, after = (made.project.environments if made.project else {} for made in (review.before, review.after))
    return (name for name in before if name in after and before[name].protect and not after[name].protect)


def _of_part(part: Part, *, is_told: bool) -> Iterator[str]:
    if not is_told:
        yield from _together("is protected no longer", [it for it in part.changes if it.protection == "lifted"])
    for op, goes in _GOES.items():
        refused = [it for it in part.changes if it.op == op and it.refused]
        yield from _together(f"{goes}, which Pulumi refuses while it is protected: {_LIFT}", refused)
    for change in part.changes:
        yield from _of_change(change, is_new=part.is_first)
    yield from _stuck(part)
    for finding in part.new:
        yield f"{code(finding.id)} {prose(redact(_without(part.environment, finding.message)))}"
    for violation in part.violations:
        of = f" ({code(violation.name)})" if violation.name else ""
        yield f"the {prose(violation.level)} policy {code(violation.policy)}{of}: {prose(violation.message)}"
    if part.problem:
        known = part.declared or (part.source == "program" and part.changes)
        instead = (
            "what the stack program declares is shown, as" if known else "what happens to its resources is not known:"
        )
        yield f"{instead} {prose(redact(part.problem.reason))}"


def _without(environment: str, message: str) -> str:
    """What a finding says of a resource, without its environment: the line begins with that."""
    return re.sub(rf" of {re.escape(environment)}(?![A-Za-z0-9-])", "", message, count=1)


def _stuck(part: Part) -> Iterator[str]:
    """A bucket that is to be somewhere else under the name that it has: the name is taken, by itself."""
    buckets = [it for it in part.changes if it.type == BUCKET]
    gone = {_input(it, "name", before=True) for it in buckets if it.op == "delete"}
    names = [_input(it, "name", before=False) for it in buckets if it.op == "create"]
    for name in names:
        if name and name in gone:
            key = f"environments.{part.environment}.bucket"
            yield (
                f"the bucket {code(name)} exists, and a bucket never changes its region: Google refuses to make it "
                f"anew while it is there; to move, give {code(key)} another name, or leave it out, which puts the "
                "region into the name"
            )


def _input(change: ResourceChange, key: str, *, before: bool) -> str:
    found = next((it.before if before else it.after for it in change.inputs if it.path == (key,)), "")
    return found if isinstance(found, str) else ""


def _of_change(change: ResourceChange, *, is_new: bool) -> Iterator[str]:
    called, goes = _called(change), _GOES.get(change.op)
    if goes and change.loses_data and not change.refused:
        because = f" (because of {', '.join(map(code, change.because))})" if change.because else ""
        yield f"{called} {goes}{because}: **its data goes with it**"
    for widening in change.widened:
        if widening.why in _BROAD or not is_new:
            yield f"{called} {_opened(widening)}"


def _together(said: str, changes: Sequence[ResourceChange]) -> Iterator[str]:
    """One line for all of them, which names what holds data first."""
    if changes:
        first = min(changes, key=lambda change: change.type not in STATEFUL_TYPES)
        others = len(changes) - 1
        more = f" (and {others:,} more resource{'s' * (others != 1)})" if others else ""
        yield f"{_called(first)}{more} {said}"


def _called(change: ResourceChange) -> str:
    return f"{code(change.kind)} {code(change.name)}"


def _opened(widening: Widening) -> str:
    return _OPENED[widening.why].format(
        what=code(widening.what), who=code(widening.who) if widening.who else "somebody"
    )
