"""Names in the source of the stack program by which it can behave differently under review than in an update."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tpucfg.changes.statements import LocatedStatement, Risk, Statement
from tpucfg.infra.program_source import Use
from tpucfg.text_format import listed

_MAX_USES: Final = 4
_TEXTS: Final[Mapping[str, str]] = {
    "shadow": "a file of the stack program takes the place of an installed module in an update, but not here: {}",
    "watched": "the stack program asks whether it is under review: {}. It can behave differently in an update",
    "machine": (
        "the stack program depends on the machine that it runs on: {}. Its resources can be others in an update"
    ),
    "code": "the stack program runs code that this review does not read: {}",
    "module": "the stack program imports modules that can do more than declare resources: {}",
    "output": (
        "the stack program decides by values that only an update knows: {}. Its resources can be others in an update"
    ),
    "network": "the stack program uses the network, which it does not have under review: {}",
}
"""By the kind of a name, in the order of the comment."""


def source_statements(before: Sequence[Use], after: Sequence[Use]) -> Iterator[LocatedStatement]:
    """Yield the names that head uses and base does not, or not as often in the same file."""
    known = Counter((use.file, use.name) for use in before)
    new = []
    for use in after:
        if known[use.file, use.name] > 0:
            known[use.file, use.name] -= 1
        else:
            new.append(use)
    for kind, text in _TEXTS.items():
        uses = [use for use in new if use.kind == kind]
        if uses:
            # One placeholder for each name, so that each is code of its own.
            places = listed(["{}"] * len(uses), _MAX_USES)
            values = tuple(f"{use.name} ({use.file}:{use.line})" for use in uses[:_MAX_USES])
            yield LocatedStatement("", Statement(text.format(places), values, _risk(kind)))


def _risk(kind: str) -> Risk:
    # Other code can run in an update without any trace in the resources that are shown.
    return Risk.DESTRUCTIVE if kind == "shadow" else Risk.UNKNOWN
