"""The fit of each rung as table cells and as data for JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpucfg.fit.fit_file import NAME
from tpucfg.fit.roofline import Bound, lower_bound
from tpucfg.fit.rung_fit import RungFit
from tpucfg.fit.wording import bound_text, memory_text
from tpucfg.number_format import UNKNOWN, to_json_number
from tpucfg.plan import Rung


def fit_cells(rungs: Sequence[Rung], fits: Mapping[str, RungFit]) -> dict[str, dict[str, str]]:
    """Return the columns of memory and, if one is known, of the least step time, by size."""
    bounds = {rung.size: _bound(rung, fits.get(rung.size)) for rung in rungs}
    has_bounds = any(bounds.values())
    cells = {}
    for rung in rungs:
        bound = bounds[rung.size]
        column = {"bound": bound_text(bound) if bound else UNKNOWN} if has_bounds else {}
        cells[rung.size] = {"HBM": hbm_cell(fits.get(rung.size)), **column}
    return cells


def hbm_cell(fit: RungFit | None) -> str:
    """Return the memory of a rung: `11.2 of 15.75 GiB`, `does not fit`, `outdated` or a dash."""
    if fit is None or fit.result is None:
        return UNKNOWN
    return memory_text(fit.result.memory) if fit.verdict == "fits" else fit.verdict


def fit_data(rung: Rung, fit: RungFit | None) -> dict[str, Any]:
    """Return the fit of a rung as data, with the keys of `tpucfg fit`; an unknown value is None."""
    if fit is None:
        return {"fit": None}
    result, bound = fit.current, _bound(rung, fit)
    memory = result.memory if result else None
    return {
        "fit": {
            "verdict": fit.verdict,
            "hbm": {**memory._asdict(), "headroom": memory.headroom} if memory else None,
            "least_step_seconds": to_json_number(bound.seconds) if bound else None,
            "limited_by": bound.limit if bound else None,
            "changes": list(fit.changes),
            "as_committed": None if result is None else not fit.is_trusted,
        }
    }


def fit_note(rungs: Sequence[Rung], fits: Mapping[str, RungFit]) -> Iterator[str]:
    """Yield the note about the columns; none if no rung was ever compiled."""
    if any(fit.result for fit in fits.values()):
        bound = (
            "; bound is the least time of a step" if any(_bound(rung, fits.get(rung.size)) for rung in rungs) else ""
        )
        yield f"HBM is the memory of a device that the training step needs, as committed in results/{NAME}{bound}"


def _bound(rung: Rung, fit: RungFit | None) -> Bound | None:
    """Return the least time of a rung's step; None for a step that is not known to run."""
    return lower_bound(fit.current, rung.slice) if fit and fit.current and fit.current.fits else None
