"""Charts in a real browser: they request nothing, nothing overflows, and labels do not touch."""

import pytest

from browsing import Browse
from chart_helpers import html_of, narratives, random_measured, random_plan, svg_of
from spec_factory import ROOT, planned
from tpucfg.charts import ChartSection, render_html, render_svg
from tpucfg.findings import Finding
from tpucfg.findings.finding import Location

EXAMPLE = (ROOT / "tpucfg.yaml").read_text(encoding="utf-8")
SEEDS = range(12)
HOSTILE = "\"'&amp;<script>document.title='taken'</script></title></style>]]>--><img src=https://example.com/x>\x00\x1b[31m\ud800"
ESCAPED = HOSTILE.replace("\x00", "\\u0000").replace("\x1b", "\\u001b").replace("\ud800", "\\ud800")
WIDTHS = (400, 700, 1280)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_example_page_fits_every_width_and_scheme(browse: Browse, width: int, scheme: str) -> None:
    """The page requests only itself, logs nothing to the console, and fits a phone as well as a screen."""
    plan = planned(EXAMPLE)
    opened = browse("ladder.html", html_of(plan, random_measured(plan, 1)), width=width, scheme=scheme)

    assert opened.requests == [opened.page.url]
    assert opened.messages == []
    assert opened.overflow() == 0
    assert opened.overlaps() == []
    background = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(253, 252, 249)", "dark": "rgb(21, 24, 29)"}[scheme]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_label_touches_another(browse: Browse, seed: int) -> None:
    """Labels keep their distance on any ladder: one rung or twelve, long names, any magnitude, measured or not."""
    plan = random_plan(seed)
    measured = random_measured(plan, seed) if seed % 3 else {}

    for width in WIDTHS:
        opened = browse("ladder.html", html_of(plan, measured), width=width)
        assert opened.overlaps() == [], f"{width} px"
        assert opened.overflow() == 0, f"{width} px"
    assert browse("ladder.svg", svg_of(plan, measured)).overlaps() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_svg_opens_as_a_document(browse: Browse, scheme: str) -> None:
    """The standalone SVG requests nothing, and follows the reader's colour scheme."""
    opened = browse("ladder.svg", svg_of(planned(EXAMPLE, environments=("prod",))), scheme=scheme)

    assert (opened.requests, opened.messages) == ([opened.page.url], [])
    paper = opened.page.evaluate("getComputedStyle(document.querySelector('.paper')).fill")
    assert paper == {"light": "rgb(253, 252, 249)", "dark": "rgb(21, 24, 29)"}[scheme]


@pytest.mark.parametrize("width", [400, 1280])
def test_charts_are_accessible(browse: Browse, width: int) -> None:
    """Each visible chart is an image with a name and a description, and its figures are in a table too."""
    plan = planned(EXAMPLE, environments=("prod",))
    opened = browse("ladder.html", html_of(plan, random_measured(plan, 1)), width=width)

    charts = opened.page.get_by_role("img")
    assert [chart.locator("title").inner_html() for chart in charts.all()] == [
        chart.title for chart in narratives(plan, random_measured(plan, 1))[0].charts
    ]
    assert (
        opened.page.get_by_role("img", name="What changes with the cores v3-8, 8 cores: batch_size 1,024").count() == 1
    )
    table = opened.page.get_by_role("table")
    assert table.get_by_role("columnheader").all_inner_texts()[:3] == ["size", "chips", "cores"]
    assert table.get_by_role("rowheader").all_inner_texts() == ["v3-8", "v3-32", "v3-128"]
    assert opened.page.get_by_role("heading").all_inner_texts()[:2] == ["mnist", "prod: from v3-8 to v3-128"]


def test_a_wide_table_scrolls_inside_its_box(browse: Browse) -> None:
    """On a phone, the table's box can be focused and scrolled, and the sizes stay visible."""
    opened = browse("ladder.html", html_of(planned(EXAMPLE, environments=("prod",))), width=400)
    box = opened.page.get_by_role("region", name="all figures")

    box.focus()
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    before = box.get_by_role("rowheader").first.bounding_box()
    box.evaluate("box => { box.scrollLeft = 200 }")
    assert box.get_by_role("rowheader").first.bounding_box() == before


def test_a_printed_page_is_light_and_wide(browse: Browse) -> None:
    """Print uses the light colours and the wide charts, in the dark scheme too."""
    plan = random_plan(1)
    opened = browse("ladder.html", html_of(plan), width=400, scheme="dark")
    opened.page.emulate_media(media="print", color_scheme="dark")

    assert opened.page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 31, 36)"
    assert opened.page.locator("svg.wide").first.is_visible()
    assert not opened.page.locator("svg.narrow").first.is_visible()
    assert opened.page.pdf().startswith(b"%PDF")


def test_the_printed_table_fits_the_sheet(browse: Browse) -> None:
    """The table, which cannot be scrolled on paper, fits an A4 sheet without its margins."""
    opened = browse("ladder.html", html_of(planned(EXAMPLE)), width=716)
    opened.page.emulate_media(media="print")

    table = opened.page.get_by_role("table").first.bounding_box()
    assert table is not None
    assert table["x"] + table["width"] <= 716


def test_hostile_names_are_shown_as_text(browse: Browse) -> None:
    """Page and SVG show any text escaped; they neither execute it nor request what it names."""
    plan = planned(EXAMPLE, environments=("prod",))
    (original,) = narratives(plan)
    chart = original.charts[0]
    narrative = original._replace(
        headline=HOSTILE,
        heading=HOSTILE,
        lead=(HOSTILE, HOSTILE),
        charts=(
            chart._replace(
                title=HOSTILE,
                notes=(HOSTILE,),
                rows=tuple(row._replace(size=HOSTILE) for row in chart.rows),
                columns=tuple(column._replace(title=HOSTILE, change=HOSTILE) for column in chart.columns),
            ),
        ),
    )
    findings = [Finding.of("TPU041", HOSTILE, Location("tpucfg.yaml"), help=HOSTILE)]
    svg = render_svg([narrative], findings)

    opened = browse("hostile.html", render_html(HOSTILE, [ChartSection(narrative, [HOSTILE], [[HOSTILE]])], findings))
    assert (opened.requests, opened.messages) == ([opened.page.url], [])
    assert opened.page.title() == f"{ESCAPED}: the ladder"
    assert opened.page.locator("h1").inner_text() == ESCAPED
    assert opened.page.locator("td, tbody th").inner_text() == ESCAPED
    assert opened.page.locator("script, img, h1 *").count() == 0
    file = browse("hostile.svg", svg)
    assert (file.requests, file.messages) == ([file.page.url], [])
    headline = "".join(file.page.locator("text.headline").all_text_contents())
    assert headline.replace(" ", "") == ESCAPED.replace(" ", "")
    assert file.page.locator("script, img").count() == 0
