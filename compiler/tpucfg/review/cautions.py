"""Risks that a reviewer must not miss: lost data, lifted protection, wider access, unknown effects."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tpucfg.changes.facts import Risk
from tpucfg.changes.resources import ResourceChange
from tpucfg.changes.statements import LocatedStatement, format_environments
from tpucfg.markdown import code, prose
from tpucfg.paths import grouped
from tpucfg.redaction import redact
from tpucfg.review.folds import count_fitting, cut_middle
from tpucfg.review.review import EnvironmentReview, RepositoryReview, Review
from tpucfg.text_format import format_count, format_value, listed

_MAX_BLOCK_BYTES: Final = 36_000
"""Limit for all cautions: the other blocks fit into a comment beside them."""
_MAX_LINE_LENGTH: Final = 1_200
"""The limit for a caution, into which a grant fits whose values have each the limit of a value."""
_MAX_NAME_LENGTH: Final = 100
_FINDING: Final = ": error[TPU"
"""A finding among the lines that a program printed."""
_MAX_SHARED: Final = 3
"""Specs that the line of a caution names; of more, it gives the number and the first ones."""
_REMOVALS: Final = {"replace": "is replaced", "delete": "is deleted"}
_REFUSED: Final = (
    "which Pulumi refuses while it is protected: lift the protection first, in a separate update"
)
_ONLY_DECLARED: Final = (
    "changes according to the stack programs, but not in the preview: either it is deployed already, or the preview is "
    "of something else"
)
_MAX_DRIFT: Final = 16
"""Resources that the line about drift names."""
_DRIFT: Final = (
    "in the cloud from what the last update left; `pulumi preview --refresh --diff` shows how"
)
_UNVERIFIED: Final = (
    "the preview could not be compared with the stack programs, so it alone is shown"
)


class Caution(NamedTuple):
    """A risk, as a line of Markdown."""

    risk: Risk
    text: str
    is_drift: bool = False
    """True for a difference in the cloud, which the change does not make."""


class Block(NamedTuple):
    """The cautions of a comment."""

    lines: tuple[Caution, ...]
    """The highest risk first, each within the limit of a line."""
    omitted: tuple[Caution, ...] = ()
    """Those that the comment has no room for."""

    @property
    def omission(self) -> str:
        """A line about what is omitted, by risk: `… and 3 more: 2 destructive, 1 access`."""
        counts = Counter(caution.risk for caution in self.omitted)
        risks = [f"{counts[risk]:,} {risk.name.lower()}" for risk in sorted(counts, reverse=True)]
        more = f"… and {len(self.omitted):,} more: {', '.join(risks)}; the verdict is therefore unknown"
        return more if self.omitted else ""


class Verdict(NamedTuple):
    """The answers that `--fail-on` takes."""

    is_change: bool
    is_caution: bool
    """True if the change has any risk; drift alone is none."""
    is_destructive: bool
    is_known: bool
    """False if an effect is not known, or if the comment has no room for a caution."""


def give_verdict(reviewed: RepositoryReview) -> Verdict:
    """Return the verdict on all specs."""
    block = bound_cautions(repository_cautions(reviewed))
    is_known = reviewed.is_known and not block.omitted
    is_caution = any(not caution.is_drift for caution in (*block.lines, *block.omitted))
    return Verdict(reviewed.is_change, is_caution, reviewed.is_destructive, is_known)


def bound_cautions(cautions: Sequence[Caution]) -> Block:
    """Return the cautions that fit, the first of each risk before the second of any."""
    ordered = sorted(dict.fromkeys(cautions), key=lambda caution: -caution.risk)
    firsts = {caution.risk: caution for caution in reversed(ordered)}.values()
    turns = [
        *sorted(firsts, key=lambda caution: -caution.risk),
        *(item for item in ordered if item not in firsts),
    ]
    lines = [cut_middle(caution.text, _MAX_LINE_LENGTH) for caution in turns]
    count = count_fitting(lines, _MAX_BLOCK_BYTES)
    shown = [
        caution._replace(text=line) for caution, line in zip(turns, lines[:count], strict=False)
    ]
    return Block(tuple(sorted(shown, key=lambda caution: -caution.risk)), tuple(turns[count:]))


def repository_cautions(reviewed: RepositoryReview) -> list[Caution]:
    """Return the cautions of all specs, the highest risk first; specs with the same caution share a line."""
    if only := reviewed.only:
        return spec_cautions(only)
    specs = grouped(
        (caution, review.path) for review in reviewed.reviews for caution in spec_cautions(review)
    )
    own = [caution for located in reviewed.statements for caution in _statement_cautions(located)]
    failed = [
        Caution(
            Risk.UNKNOWN,
            f"{code(failure.path)}: not reviewed: {prose(failure.reason)}; {prose(failure.help)}",
        )
        for failure in reviewed.failures
    ]
    shared = [
        caution._replace(text=f"{_specs(paths)}: {caution.text}")
        for caution, paths in specs.items()
    ]
    return sorted([*own, *failed, *shared], key=lambda caution: -caution.risk)


def _specs(paths: Sequence[str]) -> str:
    names = listed([code(path) for path in sorted(paths)], _MAX_SHARED)
    return names if len(paths) <= _MAX_SHARED else f"{len(paths):,} specs ({names})"


def spec_cautions(review: Review) -> list[Caution]:
    """Return the risks of one spec, the highest first; environments with the same risk share a line."""
    shared = grouped(
        (caution, environment.environment)
        for environment in review.environments
        for caution in _environment_cautions(environment)
    )
    scoped = [
        caution._replace(text=f"**{prose(format_environments(names))}**: {caution.text}")
        for caution, names in shared.items()
    ]
    stated = [
        caution for located in review.impact.statements for caution in _statement_cautions(located)
    ]
    return sorted([*stated, *scoped], key=lambda caution: -caution.risk)


def _statement_cautions(located: LocatedStatement) -> Iterator[Caution]:
    """Yield a statement that has a risk. Each has a line of its own, so that none can push another one out."""
    if located.statement.risk:
        scope = f"**{prose(located.scope)}**: " if located.scope else ""
        yield Caution(located.statement.risk, f"{scope}{located.statement.markdown}")


def _environment_cautions(environment: EnvironmentReview) -> Iterator[Caution]:
    """Yield the risks in one environment."""
    changes = environment.changes
    lifted = [change for change in changes if change.protection == "lifted"]
    yield from _shared_caution(Risk.DESTRUCTIVE, lifted, "is no longer protected")
    for op, removal in _REMOVALS.items():
        refused = [change for change in changes if change.op == op and change.refused]
        yield from _shared_caution(Risk.CAUTION, refused, f"{removal}, {_REFUSED}")
    for change in changes:
        yield from _change_cautions(change)
    yield from _shared_caution(
        Risk.UNKNOWN, [change for change in changes if change.only_declared], _ONLY_DECLARED
    )
    if drift := environment.preview.drift:
        names = listed([code(name) for name in drift], _MAX_DRIFT)
        verb = "differs" if len(drift) == 1 else "differ"
        yield Caution(Risk.CAUTION, f"drift: {names} {verb} {_DRIFT}", is_drift=True)
    for finding in environment.findings:
        message = _without_environment(environment.environment, finding.message)
        yield Caution(Risk.CAUTION, f"{code(finding.id)} {prose(redact(message))}")
    for violation in environment.preview.violations:
        resource = f" ({code(violation.name)})" if violation.name else ""
        text = f"the {prose(violation.level)} policy {code(violation.policy)}{resource}: {prose(violation.message)}"
        yield Caution(Risk.CAUTION, text)
    if environment.problem:
        findings = [line for line in environment.problem.output if _FINDING in line]
        lines = (environment.problem.reason, *findings[:1])
        text = "; ".join(prose(redact(line)) for line in lines)
        yield Caution(Risk.UNKNOWN, f"changes to resources are unknown: {text}")
    if environment.unverified:
        yield Caution(Risk.UNKNOWN, f"{_UNVERIFIED}: {prose(redact(environment.unverified))}")


def _shared_caution(risk: Risk, changes: Sequence[ResourceChange], text: str) -> Iterator[Caution]:
    """Yield one line for all changes; it names one resource, preferably one that contains data."""
    if changes:
        first = min(changes, key=lambda change: not change.holds_data)
        others = len(changes) - 1
        more = f" (and {format_count(others, 'more resource')})" if others else ""
        yield Caution(risk, f"{_label(first)}{more} {text}")


def _change_cautions(change: ResourceChange) -> Iterator[Caution]:
    removal = _REMOVALS.get(change.op)
    # A refused removal is reported with its remedy.
    if removal and change.loses_data and not change.refused:
        because = f" (because of {', '.join(map(code, change.because))})" if change.because else ""
        yield Caution(
            Risk.DESTRUCTIVE, f"{_label(change)} {removal}{because}: **its data is lost**"
        )
    for statement in change.statements:
        if statement.risk:
            yield Caution(statement.risk, f"{_label(change)} {statement.markdown}")


def _without_environment(environment: str, message: str) -> str:
    """Return a finding's message without the environment's name, which already starts the line."""
    return re.sub(rf" of {re.escape(environment)}(?![A-Za-z0-9-])", "", message, count=1)


def _label(change: ResourceChange) -> str:
    return f"{code(change.kind)} {code(format_value(change.name, quoted=False, max_length=_MAX_NAME_LENGTH))}"
