"""The output formats of findings: one module each, all with a function `report`."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Final, Protocol, cast

from tpucfg.findings.finding import Finding
from tpucfg.text_format import listed

__all__ = ["FORMATS", "ReportFormat", "format_counts", "format_named"]

FORMATS: Final = ("text", "json", "sarif", "github")
"""The values of `--format`, which are also the names of the modules."""


class ReportFormat(Protocol):
    """The interface of a module in `findings/formats/`."""

    def report(self, findings: Sequence[Finding], sources: Mapping[str, str], *, colour: bool = False) -> str:
        """Return the findings as text, empty or with a final line break; `sources` maps file names to texts."""


def format_named(name: str) -> ReportFormat:
    """Return the module of a format, one of FORMATS, without importing the others."""
    return cast("ReportFormat", import_module(f"tpucfg.findings.formats.{name}"))


def format_counts(findings: Iterable[Finding]) -> str:
    """Return a summary such as `2 errors and 1 warning`, or `no findings`."""
    levels = [finding.level for finding in findings]
    counts = [(levels.count(level), level) for level in ("error", "warning", "note")]
    parts = [f"{count} {level}{'s' if count > 1 else ''}" for count, level in counts if count]
    return listed(parts, last=" and ") or "no findings"
