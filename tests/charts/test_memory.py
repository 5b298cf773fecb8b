"""The column of memory in the charts of a ladder."""

import json
from pathlib import Path

import pytest

from browsing import Browse
from chart_helpers import parsed
from fit_results import results_text
from spec_factory import planned, project, spec
from tpucfg.charts import build_narrative, render_svg
from tpucfg.charts.narrative import Narrative
from tpucfg.fit.fit_file import parse_fit_file
from tpucfg.fit.rung_fit import ProgramFiles, RungFit, rung_fits
from tpucfg.plan.selection import group_ladders

SVG = "{http://www.w3.org/2000/svg}"
STEP = {"step": "trainer.fit:abstract_step"}
SIZES = ["v2-8", "v2-32", "v2-128", "v2-256", "v2-512"]
DATA = spec(sizes=SIZES, trainer__fit=STEP, training__learning_rate=0.1)
OLDER = spec(sizes=SIZES, trainer__fit=STEP, training__learning_rate=0.2)
USED = {"v2-8": 123.45, "v2-32": 7.4, "v2-128": 3.74}
TEXTS = [
    "≥ 123.45 of 7.48: does not fit",
    "7.4 of 7.48: little left",
    "3.74 of 7.48",
    "outdated",
    "–",
]


def fits_of(folder: Path) -> dict[str, RungFit]:
    """Return fits of all verdicts: one step is refused, one is outdated, and the last was never compiled."""
    results = json.loads(results_text(DATA, USED))
    results["results"] += json.loads(results_text(OLDER, {"v2-256": 3}))["results"]
    file = parse_fit_file(json.dumps(results), folder / "fit.json")
    assert file.findings == ()
    fits = rung_fits(project(DATA), planned(DATA).jobs, file, ProgramFiles(folder))
    return {key.size: fit for key, fit in fits.items()}


def narrative_of(folder: Path) -> Narrative:
    """Return the narrative of the ladder with the column."""
    (group,) = group_ladders(planned(DATA).jobs)
    return build_narrative(project(DATA), group, {}, fits_of(folder))


def test_each_verdict_is_a_text(tmp_path: Path) -> None:
    """The cells have the memory and the verdict of each rung, and a note explains an unknown one."""
    (chart,) = narrative_of(tmp_path).charts
    assert [cell.text for cell in chart.columns[-1].cells] == TEXTS
    assert chart.notes == ("–: not known until tpucfg fit compiles it.",)


def test_the_description_has_the_memory(tmp_path: Path) -> None:
    """The description of the chart, which screen readers read, has the column too."""
    description = parsed(render_svg([narrative_of(tmp_path)], ())).findtext(f"{SVG}desc") or ""
    assert all(f"GiB of HBM {text}." in description for text in TEXTS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_label_touches_another(browse: Browse, tmp_path: Path, scheme: str) -> None:
    """The texts have room beside the plots, in either colour scheme."""
    opened = browse("ladder.svg", render_svg([narrative_of(tmp_path)], ()), scheme=scheme)
    assert (opened.messages, opened.overlaps()) == ([], [])
