"""The pictures in a real browser: nothing is asked for, nothing overflows, no label touches another."""

import pytest

from browsing import Browse
from chart_helpers import any_measured, any_plan, drawn, stories, told
from spec_factory import ROOT, planned
from tpucfg.charts import ChartSection, page, picture
from tpucfg.findings import Finding
from tpucfg.findings.finding import Location

EXAMPLE = (ROOT / "tpucfg.yaml").read_text(encoding="utf-8")
LADDERS = range(12)
HOSTILE = "\"'&amp;<script>document.title='taken'</script></title></style>]]>--><img src=https://example.com/x>\x00\x1b[31m\ud800"
SHOWN = HOSTILE.replace("\x00", "\\u0000").replace("\x1b", "\\u001b").replace("\ud800", "\\ud800")
WIDTHS = (400, 700, 1280)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_the_example(browse: Browse, width: int, scheme: str) -> None:
    """The page asks for nothing but itself, says nothing in the console, and fits a telephone as it fits a screen."""
    plan = planned(EXAMPLE)
    seen = browse("ladder.html", told(plan, any_measured(plan, 1)), width=width, scheme=scheme)

    assert seen.asked == [seen.page.url]
    assert seen.said == []
    assert seen.overflow() == 0
    assert seen.overlaps() == []
    background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(253, 252, 249)", "dark": "rgb(21, 24, 29)"}[scheme]


@pytest.mark.parametrize("seed", LADDERS)
def test_no_label_touches_another(browse: Browse, seed: int) -> None:
    """Whatever the ladder: one rung or twelve, long names, figures of any magnitude, measured or not."""
    plan = any_plan(seed)
    measured = any_measured(plan, seed) if seed % 3 else {}

    for width in WIDTHS:
        seen = browse("ladder.html", told(plan, measured), width=width)
        assert seen.overlaps() == [], f"{width} px"
        assert seen.overflow() == 0, f"{width} px"
    assert browse("ladder.svg", drawn(plan, measured)).overlaps() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_by_itself(browse: Browse, scheme: str) -> None:
    """The SVG opens as a document of its own, asks for nothing, and follows the reader's colours."""
    seen = browse("ladder.svg", drawn(planned(EXAMPLE, environments=("prod",))), scheme=scheme)

    assert (seen.asked, seen.said) == ([seen.page.url], [])
    paper = seen.page.evaluate("getComputedStyle(document.querySelector('.paper')).fill")
    assert paper == {"light": "rgb(253, 252, 249)", "dark": "rgb(21, 24, 29)"}[scheme]


@pytest.mark.parametrize("width", [400, 1280])
def test_who_cannot_see_the_charts_is_told(browse: Browse, width: int) -> None:
    """Each chart that is shown is an image with a name and a description; its figures stand in a table as well."""
    plan = planned(EXAMPLE, environments=("prod",))
    seen = browse("ladder.html", told(plan, any_measured(plan, 1)), width=width)

    charts = seen.page.get_by_role("img")
    assert [chart.locator("title").inner_html() for chart in charts.all()] == [
        chart.title for chart in stories(plan, any_measured(plan, 1))[0].charts
    ]
    assert seen.page.get_by_role("img", name="What changes with the cores v3-8, 8 cores: batch_size 1,024").count() == 1
    table = seen.page.get_by_role("table")
    assert table.get_by_role("columnheader").all_inner_texts()[:3] == ["size", "chips", "cores"]
    assert table.get_by_role("rowheader").all_inner_texts() == ["v3-8", "v3-32", "v3-128"]
    assert seen.page.get_by_role("heading").all_inner_texts()[:2] == ["mnist", "prod: from v3-8 to v3-128"]


def test_a_wide_table_scrolls_inside_its_box(browse: Browse) -> None:
    """On a telephone the keyboard reaches the table's box, which scrolls, and the sizes stay in sight."""
    seen = browse("ladder.html", told(planned(EXAMPLE, environments=("prod",))), width=400)
    box = seen.page.get_by_role("region", name="all figures")

    box.focus()
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    before = box.get_by_role("rowheader").first.bounding_box()
    box.evaluate("box => { box.scrollLeft = 200 }")
    assert box.get_by_role("rowheader").first.bounding_box() == before


def test_a_printed_page(browse: Browse) -> None:
    """Paper is white for readers of the dark scheme too, and has the wide charts and the whole table."""
    plan = any_plan(1)
    seen = browse("ladder.html", told(plan), width=400, scheme="dark")
    seen.page.emulate_media(media="print", color_scheme="dark")

    assert seen.page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 31, 36)"
    assert seen.page.locator("svg.wide").first.is_visible()
    assert not seen.page.locator("svg.narrow").first.is_visible()
    assert seen.page.pdf().startswith(b"%PDF")


def test_the_whole_table_is_on_the_paper(browse: Browse) -> None:
    """What cannot be scrolled fits the width of a sheet, A4 without its margins."""
    seen = browse("ladder.html", told(planned(EXAMPLE)), width=716)
    seen.page.emulate_media(media="print")

    table = seen.page.get_by_role("table").first.bounding_box()
    assert table is not None
    assert table["x"] + table["width"] <= 716


def test_hostile_names_are_text(browse: Browse) -> None:
    """Whatever a text holds, the page and the picture show it, and neither runs it nor asks for what it names."""
    plan = planned(EXAMPLE, environments=("prod",))
    (sound,) = stories(plan)
    chart = sound.charts[0]
    story = sound._replace(
        headline=HOSTILE,
        heading=HOSTILE,
        lead=(HOSTILE, HOSTILE),
        charts=(
            chart._replace(
                title=HOSTILE,
                notes=(HOSTILE,),
                rows=tuple(row._replace(size=HOSTILE) for row in chart.rows),
                columns=tuple(it._replace(title=HOSTILE, change=HOSTILE) for it in chart.columns),
            ),
        ),
    )
    findings = [Finding.of("TPU041", HOSTILE, Location("tpucfg.yaml"), help=HOSTILE)]
    image = picture([story], findings)

    seen = browse("hostile.html", page(HOSTILE, [ChartSection(story, [HOSTILE], [[HOSTILE]])], findings))
    assert (seen.asked, seen.said) == ([seen.page.url], [])
    assert seen.page.title() == f"{SHOWN}: the ladder"
    assert seen.page.locator("h1").inner_text() == SHOWN
    assert seen.page.locator("td, tbody th").inner_text() == SHOWN
    assert seen.page.locator("script, img, h1 *").count() == 0
    alone = browse("hostile.svg", image)
    assert (alone.asked, alone.said) == ([alone.page.url], [])
    shown = "".join(alone.page.locator("text.headline").all_text_contents())
    assert shown.replace(" ", "") == SHOWN.replace(" ", "")
    assert alone.page.locator("script, img").count() == 0
