"""What can be said where the spec of a side does not hold."""

from collections.abc import Iterator
from typing import Final

from tpucfg.diff.sides import Made
from tpucfg.diff.wording import where
from tpucfg.findings import errors
from tpucfg.findings.formats.text import report
from tpucfg.review.markdown import code, fence, prose
from tpucfg.review.model import Review
from tpucfg.review.redact import redacted_report

_MOST_FINDINGS: Final = 12
_CHANGED: Final = "what protects the data and who has access may have changed too"


def broken(review: Review) -> Iterator[str]:
    """Blocks of Markdown: what is wrong with a side, what the other holds, and what nobody compared."""
    for made in sorted((review.after, review.before), key=lambda made: not made.is_broken):
        yield from _wrong(made) if made.is_broken else _sound(made)
    if any(part.source == "preview" for part in review.parts):
        yield f"**The specs were not compared**: but for what Pulumi previewed, {_CHANGED}."
    else:
        yield f"**Nothing was compared**: {_CHANGED}."


def _wrong(made: Made) -> Iterator[str]:
    found = errors(made.findings)
    yield f"**In {code(made.side.title)} nothing can be made of the spec:**"
    yield fence(redacted_report(report(found[:_MOST_FINDINGS], {made.side.shown: made.text}).rstrip("\n")))
    if len(found) > _MOST_FINDINGS:
        yield f"… and {len(found) - _MOST_FINDINGS:,} more: {code('tpucfg check')} shows them all."


def _sound(made: Made) -> Iterator[str]:
    if made.made:
        yield f"The spec of {code(made.side.title)} holds: {prose(where([*made.jobs]))}."
