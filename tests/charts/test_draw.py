"""Where things stand in a picture, and that it is the same each time."""

import re
import subprocess
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest

from chart_helpers import any_measured, any_plan, drawn, parsed, told
from process import COMMAND, ENVIRONMENT
from spec_factory import ROOT, planned, spec
from tpucfg.charts import MeasuredThroughput

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = ROOT / "docs" / "images" / "ladder.svg"


def printed(*arguments: str, seed: str = "0") -> bytes:
    """What the command prints about the example."""
    environment = ENVIRONMENT | {"PYTHONHASHSEED": seed}
    return subprocess.run(
        [*COMMAND, "ladder", *arguments], cwd=ROOT, env=environment, check=True, capture_output=True
    ).stdout


def lines(image: str, kind: str) -> list[tuple[float, float]]:
    """The points of a column's line."""
    (group,) = [it for it in parsed(image).iter(f"{SVG}g") if it.get("class") == kind]
    (line,) = [it for it in group.iter(f"{SVG}polyline") if it.get("class") == "path"]
    return [(float(x), float(y)) for x, y in (point.split(",") for point in line.attrib["points"].split())]


def slopes(points: list[tuple[float, float]]) -> list[float]:
    """Pixels to the right for each pixel upwards, from point to point."""
    return [(right - left) / (below - above) for (left, below), (right, above) in pairwise(points)]


def test_what_follows_the_cores_is_a_straight_line() -> None:
    """The rungs stand by their cores and the columns share a scale: twice the cores are as far as twice the batch."""
    image = drawn(
        planned(spec(sizes=["v2-8", "v2-32", "v2-512"], training__learning_rate=1, training__learning_rate_rule="sqrt"))
    )

    batch, steps, rate = (slopes(lines(image, kind)) for kind in ("batch", "steps", "rate"))

    assert batch[0] > 0
    assert batch[1] == pytest.approx(batch[0], rel=0.01)
    assert steps == pytest.approx([-it for it in batch], rel=0.01)
    assert rate == pytest.approx([it / 2 for it in batch], rel=0.01)


def test_what_stays_is_upright() -> None:
    """A figure that no rung changes is an upright line in the middle of its plot."""
    (low, high) = lines(drawn(planned(spec(training__learning_rate=0.1))), "rate")

    assert low[0] == high[0]
    assert low[1] > high[1], "the smallest rung is at the foot"


def test_rungs_that_would_crowd_stand_equally_far_apart() -> None:
    """Sizes that hardly differ keep their distance, and the picture says that it is not by their cores."""
    sizes = ["tpu7x-8", "tpu7x-4096", "tpu7x-4224"]
    image = drawn(planned(spec(sizes=sizes, training__tuned_on="tpu7x-8")))
    points = lines(image, "batch")

    assert points[0][1] - points[1][1] == points[1][1] - points[2][1]
    assert "The rungs stand equally far apart, whatever their cores." in image


@pytest.mark.parametrize("seed", range(20))
def test_grid_lines_stand_inside_their_plots(seed: int) -> None:
    """No line of the grid leaves its plot, and one goes through the first rung's mark."""
    plan = any_plan(seed)
    for group in parsed(drawn(plan, any_measured(plan, seed))).iter(f"{SVG}g"):
        grid = [it.attrib for it in group.findall(f"{SVG}line") if it.get("class") == "grid"]
        upright = [float(it["x1"]) for it in grid if it["x1"] == it["x2"]]
        width = max((float(it["x2"]) for it in grid if it["x1"] != it["x2"]), default=0)
        marks = [float(it.attrib["cx"]) for it in group.findall(f"{SVG}circle")]
        assert all(-0.1 <= x <= width + 0.6 for x in (*upright, *marks))
        assert not upright or not marks or min(abs(x - marks[0]) for x in upright) <= 0.2


@pytest.mark.parametrize("format_", ["svg", "html"])
def test_the_same_spec_gives_the_same_bytes(format_: str) -> None:
    """Whatever the order of Python's sets."""
    assert printed("--format", format_, seed="1") == printed("--format", format_, seed="2")


def test_the_picture_in_the_documents_is_that_of_the_example() -> None:
    """`make readme` draws it anew."""
    assert PICTURE.read_bytes() == printed("--env", "prod", "--format", "svg")


def test_speeds_beyond_all_bounds() -> None:
    """The fastest and the slowest that a record can hold have their places in one picture."""
    plan = planned(spec(sizes=["v2-8", "v2-32", "v2-128"]))
    speeds = {"v2-8": Fraction("5e-324"), "v2-32": Fraction("1.7e308"), "v2-128": Fraction(1)}
    image = drawn(plan, {"dev": MeasuredThroughput(speeds)})

    assert {"4.94e-324", "5e-324"} & set(re.findall(r">([^<]+)</text>", image))
    assert len(re.findall('class="grid"', image)) < 100


def test_names_within_a_page_are_used_once() -> None:
    """Each id is one element's, and each reference to one finds it."""
    plan = planned((ROOT / "tpucfg.yaml").read_text(encoding="utf-8"))
    html = told(plan, any_measured(plan, 1))
    ids = Counter(re.findall(r'\bid="([^"]*)"', html))
    named = {name for names in re.findall(r'aria-labelledby="([^"]*)"', html) for name in names.split()}

    assert set(ids.values()) == {1}
    assert named <= set(ids)


def test_a_picture_is_a_document_with_words() -> None:
    """The file is XML with a title, a description that holds every figure, and no reference to anything outside."""
    image = drawn(planned(spec()))
    root = parsed(image)

    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "mnist climbs from v2-8 to v2-32"
    assert root.findtext(f"{SVG}desc") == (
        "4× the cores, the same 4,096,000 examples on every rung. Tuned on v2-8. dev: vertex-ai in us-central1. "
        "v2-8, 8 cores: batch_size 1,024, train_steps 4,000. v2-32, 32 cores: batch_size 4,096, train_steps 1,000."
    )
    assert not re.search(r"url\(|href|@import|http(?!://www\.w3\.org/2000/svg)", image)
