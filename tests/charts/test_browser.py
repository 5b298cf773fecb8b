"""Charts in a real browser: they request nothing, and labels do not touch."""

import pytest

from browsing import Browse
from chart_helpers import narratives, random_measured, random_plan, svg_of
from spec_factory import ROOT, planned
from tpucfg.charts import render_svg
from tpucfg.findings import Finding
from tpucfg.findings.finding import Location

EXAMPLE = (ROOT / "tpucfg.yaml").read_text(encoding="utf-8")
SEEDS = range(12)
HOSTILE = "\"'&amp;<script>document.title='taken'</script></title></style>]]>--><img src=https://example.com/x>\x00\x1b[31m\ud800"
ESCAPED = HOSTILE.replace("\x00", "\\u0000").replace("\x1b", "\\u001b").replace("\ud800", "\\ud800")


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.telling), *SEEDS[1:]])
def test_no_label_touches_another(browse: Browse, seed: int) -> None:
    """Labels keep their distance on any ladder: one rung or twelve, long names, any magnitude, measured or not.

    The first one catches a wrong width of the texts, which only a browser knows.
    """
    plan = random_plan(seed)
    measured = random_measured(plan, seed) if seed % 3 else {}

    assert browse("ladder.svg", svg_of(plan, measured)).overlaps() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_svg_opens_as_a_document(browse: Browse, scheme: str) -> None:
    """The standalone SVG requests nothing, and follows the reader's colour scheme."""
    opened = browse("ladder.svg", svg_of(planned(EXAMPLE, environments=("prod",))), scheme=scheme)

    assert (opened.requests, opened.messages) == ([opened.page.url], [])
    paper = opened.page.evaluate("getComputedStyle(document.querySelector('.paper')).fill")
    assert paper == {"light": "rgb(253, 252, 249)", "dark": "rgb(21, 24, 29)"}[scheme]


@pytest.mark.telling
def test_hostile_names_are_shown_as_text(browse: Browse) -> None:
    """The SVG shows any text escaped; it neither executes it nor requests what it names.

    Catches a text of a spec that is written into an SVG unescaped, and runs as a script.
    """
    plan = planned(EXAMPLE, environments=("prod",))
    (original,) = narratives(plan)
    chart = original.charts[0]
    narrative = original._replace(
        headline=HOSTILE,
        lead=(HOSTILE, HOSTILE),
        charts=(
            chart._replace(
                title=HOSTILE,
                notes=(HOSTILE,),
                rows=tuple(row._replace(size=HOSTILE) for row in chart.rows),
                columns=tuple(
                    column._replace(title=HOSTILE, change=HOSTILE) for column in chart.columns
                ),
            ),
        ),
    )
    findings = [Finding.of("TPU041", HOSTILE, Location("tpucfg.yaml"), help=HOSTILE)]
    svg = render_svg([narrative], findings)

    file = browse("hostile.svg", svg)
    assert (file.requests, file.messages) == ([file.page.url], [])
    headline = "".join(file.page.locator("text.headline").all_text_contents())
    assert headline.replace(" ", "") == ESCAPED.replace(" ", "")
    assert file.page.locator("script, img").count() == 0
