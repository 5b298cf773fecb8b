"""The column of a chart that shows which rungs fit, and how much of a device's memory their steps need."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from tpucfg.charts.chart import Cell, Column, Sign
from tpucfg.charts.gauges import KIND
from tpucfg.fit.fit_findings import has_little_headroom
from tpucfg.fit.rung_fit import RungFit
from tpucfg.fit.wording import gib
from tpucfg.number_format import UNKNOWN
from tpucfg.plan import Rung

_MEANINGS: Final[Mapping[Sign, str]] = {
    "fits": "fits",
    "little": "fits with little memory left",
    "exceeds": "does not fit",
    "unknown": "not known",
}


def memory_column(rungs: Sequence[Rung], fits: Mapping[str, RungFit]) -> Column:
    """Return the column of memory; `fits` by size."""
    return Column(KIND, "GiB of HBM", "a device", tuple(_cell(fits.get(rung.size)) for rung in rungs), is_gauge=True)


def _cell(fit: RungFit | None) -> Cell:
    result = fit.current if fit else None
    if fit is None or result is None:
        text = "outdated" if fit and fit.result else UNKNOWN
        return Cell(None, text, sign="unknown", meaning=_MEANINGS["unknown"])
    sign: Sign = "exceeds" if not result.fits else "little" if has_little_headroom(result.memory) else "fits"
    used = Fraction(result.memory.used, max(1, result.memory.available))
    # Short, because the column is as wide as its longest text.
    text = f"{'' if result.memory.exact else '≥ '}{gib(result.memory.used)} of {gib(result.memory.available)}"
    return Cell(used, text, sign=sign, meaning=_MEANINGS[sign])
