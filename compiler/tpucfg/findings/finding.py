"""A finding is a value: it is collected, sorted and printed, never raised."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Self

from tpucfg.findings.rules import RULES
from tpucfg.text_format import printable

Level = Literal["error", "warning", "note"]

SEVERITY_ORDER: Final[Mapping[str, int]] = {"error": 0, "warning": 1, "note": 2}
"""The gravest level first."""


MAX_FINDINGS: Final = 100
"""Mistakes of one file that are listed by one stage: nobody reads more, and working them out takes time."""
ALLOWED: Final = "allowed by the spec: "
"""How the last detail of a finding begins that `allow` made a note of; the reason follows."""


class Location(NamedTuple):
    """A stretch of a file. Lines and columns count from 1, in characters; the end is exclusive."""

    file: str
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Finding(NamedTuple):
    """One mistake, with what its reader needs to fix it."""

    id: str
    """The rule's id, `TPU021`; the page about it is docs/findings/TPU021.md."""
    level: Level
    """An error stops; a warning and a note do not."""
    message: str
    """One sentence with the value that was found and the numbers of the rule."""
    location: Location
    """The key or value at fault."""
    help: str = ""
    """The exact edit or command that ends it."""
    details: tuple[str, ...] = ()
    """Facts beside it: what would be allowed, whose list says so."""
    related: tuple[tuple[Location, str], ...] = ()
    """The other places of a disagreement, each with what stands there."""

    @classmethod
    def of(
        cls,
        id: str,
        message: str,
        location: Location,
        *,
        help: str = "",
        details: Iterable[str] = (),
        related: Iterable[tuple[Location, str]] = (),
        level: Level | None = None,
    ) -> Self:
        """A finding whose level is its rule's, unless the case at hand has another.

        Names and values in its words are somebody else's: what a terminal would act on, or not show, is escaped.
        """
        beside = tuple((where, printable(said)) for where, said in related)
        said = tuple(map(printable, details))
        return cls(id, level or RULES[id].level, printable(message), location, printable(help), said, beside)

    def allowed(self, reason: str) -> Self:
        """The same finding as a note that carries the spec's reason for allowing it."""
        return self._replace(level="note", help="", details=(*self.details, printable(f"{ALLOWED}{reason}")))


def collect(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in the order of their places, the graver first, each of them once."""
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda it: (it.location, SEVERITY_ORDER[it.level], it)))


def errors(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those of level error."""
    return tuple(finding for finding in findings if finding.level == "error")
