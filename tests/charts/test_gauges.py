"""The signs and gauges of memory in the charts of a ladder."""

import json
from fractions import Fraction
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from browsing import Browse
from chart_helpers import parsed
from fit_results import results_text
from spec_factory import planned, project, spec
from tpucfg.charts import build_narrative, render_svg
from tpucfg.charts.narrative import Column, Narrative, gauge_note, memory_column
from tpucfg.fit.fit_file import parse_fit_file
from tpucfg.fit.rung_fit import ProgramFiles, RungFit, rung_fits
from tpucfg.plan.selection import group_ladders

SVG = "{http://www.w3.org/2000/svg}"
STEP = {"step": "trainer.fit:abstract_step"}
SIZES = ["v2-8", "v2-32", "v2-128", "v2-256", "v2-512"]
DATA = spec(sizes=SIZES, trainer__fit=STEP, training__learning_rate=0.1)
OLDER = spec(sizes=SIZES, trainer__fit=STEP, training__learning_rate=0.2)
USED = {"v2-8": 123.45, "v2-32": 7.4, "v2-128": 3.74}


def fits_of(folder: Path) -> dict[str, RungFit]:
    """Return fits of all verdicts: one step is refused, one is outdated, and the last was never compiled."""
    results = json.loads(results_text(DATA, USED))
    results["results"] += json.loads(results_text(OLDER, {"v2-256": 3}))["results"]
    file = parse_fit_file(json.dumps(results), folder / "fit.json")
    assert file.findings == ()
    fits = rung_fits(project(DATA), planned(DATA).jobs, file, ProgramFiles(folder))
    return {key.size: fit for key, fit in fits.items()}


def column_of(folder: Path) -> Column:
    """Return the column of these fits."""
    return memory_column([job.rung for job in planned(DATA).jobs], fits_of(folder))


def narrative_of(folder: Path) -> Narrative:
    """Return the narrative of the ladder with the column."""
    (group,) = group_ladders(planned(DATA).jobs)
    return build_narrative(project(DATA), group, {}, fits_of(folder))


def rows_of(svg: str) -> list[Element]:
    """Return the groups of the gauges, from the smallest rung."""
    (column,) = [group for group in parsed(svg).iter(f"{SVG}g") if group.get("class") == "memory"]
    return column.findall(f"{SVG}g")


def test_each_verdict_has_a_sign(tmp_path: Path) -> None:
    """The cells have the sign, the memory and the meaning of each verdict."""
    cells = column_of(tmp_path).cells
    signs = [(cell.sign.name, cell.text, cell.sign.meaning) for cell in cells if cell.sign]
    assert signs == [
        ("exceeds", "≥ 123.45 of 7.48", "does not fit"),
        ("little", "7.4 of 7.48", "fits with little memory left"),
        ("fits", "3.74 of 7.48", "fits"),
        ("unknown", "outdated", "not known"),
        ("unknown", "–", "not known"),
    ]
    assert cells[2].value == pytest.approx(Fraction(1, 2))


def test_signs_differ_by_shape(tmp_path: Path) -> None:
    """No two signs have the same outline and glyph, so none depends on its colour."""
    rows = rows_of(render_svg([narrative_of(tmp_path)], ()))
    shapes = [tuple(path.get("d") for path in row.iter(f"{SVG}path")) for row in rows]
    assert len(set(shapes)) == 4
    assert shapes[3] == shapes[4]


def test_each_gauge_has_a_tooltip(tmp_path: Path) -> None:
    """A gauge is explained in words by its title, and the description of the chart has them too."""
    svg = render_svg([narrative_of(tmp_path)], ())
    titles = [row.findtext(f"{SVG}title") for row in rows_of(svg)]
    assert titles[0] == "≥ 123.45 of 7.48, does not fit"
    description = parsed(svg).findtext(f"{SVG}desc") or ""
    assert all(f"GiB of HBM {title}" in description for title in titles)


def test_a_gauge_ends_at_the_available_memory(tmp_path: Path) -> None:
    """A step that does not fit fills its gauge, and half of the memory half of it; an unknown one is empty."""
    widths = [
        [float(rect.get("width", 0)) for rect in row.iter(f"{SVG}rect")]
        for row in rows_of(render_svg([narrative_of(tmp_path)], ()))
    ]
    assert widths[0][0] == widths[0][1]
    assert widths[2][0] == pytest.approx(widths[2][1] / 2, abs=0.1)
    assert [len(row) for row in widths] == [2, 2, 2, 1, 1]


def test_the_note_explains_the_signs_that_are_there(tmp_path: Path) -> None:
    """A sign without a rung is not explained."""
    column = column_of(tmp_path)
    assert gauge_note(column).count(";") == 3
    assert gauge_note(column._replace(cells=column.cells[2:3])) == "Memory: a check mark: the training step fits."


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_label_touches_another(browse: Browse, tmp_path: Path, scheme: str) -> None:
    """Gauges leave the labels room, in either colour scheme."""
    opened = browse("ladder.svg", render_svg([narrative_of(tmp_path)], ()), scheme=scheme)
    assert (opened.messages, opened.overlaps()) == ([], [])
    fits = opened.page.evaluate("getComputedStyle(document.querySelector('.memory .fits')).fill")
    assert fits == {"light": "rgb(71, 102, 26)", "dark": "rgb(169, 204, 106)"}[scheme]
