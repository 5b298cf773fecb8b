"""The ways to print findings: one module for each, all with the same function `report`."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Final, Protocol, cast

from tpucfg.findings.finding import Finding

__all__ = ["FORMATS", "Format", "format_counts", "format_named"]

FORMATS: Final = ("text", "json", "sarif", "github")
"""By the name that `--format` takes, which is also the module's."""


class Format(Protocol):
    """The interface of a module in `findings/formats/`."""

    def report(self, findings: Sequence[Finding], sources: Mapping[str, str], *, colour: bool = False) -> str:
        """The findings as text: empty, or ended by a line break. `sources` holds the text of each file by its name."""


def format_named(name: str) -> Format:
    """The format of that name, which must be one of FORMATS; the others are not imported."""
    return cast("Format", import_module(f"tpucfg.findings.formats.{name}"))


def format_counts(findings: Iterable[Finding]) -> str:
    """`2 errors and 1 warning`; `no findings` where there is nothing to count."""
    levels = [finding.level for finding in findings]
    counts = [(levels.count(level), level) for level in ("error", "warning", "note")]
    said = [f"{count} {level}{'s' if count > 1 else ''}" for count, level in counts if count]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said) or "no findings"
