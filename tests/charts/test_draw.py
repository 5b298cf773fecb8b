"""Positions in a chart, and equal output for equal input."""

import re
import subprocess
from fractions import Fraction
from itertools import pairwise

import pytest

from chart_helpers import parsed, random_measured, random_plan, svg_of
from process import COMMAND, ENVIRONMENT
from spec_factory import ROOT, planned, spec
from tpucfg.charts import MeasuredThroughput

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLE_SVG = ROOT / "docs" / "images" / "ladder.svg"


def ladder_output(*arguments: str, seed: str = "0") -> bytes:
    """Return the output of `tpucfg ladder` for the example."""
    environment = ENVIRONMENT | {"PYTHONHASHSEED": seed}
    return subprocess.run(
        [*COMMAND, "ladder", *arguments], cwd=ROOT, env=environment, check=True, capture_output=True
    ).stdout


def line_points(svg: str, kind: str) -> list[tuple[float, float]]:
    """Return the points of a column's line."""
    (group,) = [group for group in parsed(svg).iter(f"{SVG}g") if group.get("class") == kind]
    (line,) = [line for line in group.iter(f"{SVG}polyline") if line.get("class") == "path"]
    return [
        (float(x), float(y))
        for x, y in (point.split(",") for point in line.attrib["points"].split())
    ]


def slopes(points: list[tuple[float, float]]) -> list[float]:
    """Return the pixels to the right for each pixel upwards, from point to point."""
    return [(right - left) / (below - above) for (left, below), (right, above) in pairwise(points)]


def test_a_figure_proportional_to_cores_is_a_straight_line() -> None:
    """Rungs are placed by cores and columns share a scale: doubling either has one length."""
    svg = svg_of(
        planned(
            spec(
                sizes=["v2-8", "v2-32", "v2-512"],
                training__learning_rate=1,
                training__learning_rate_rule="sqrt",
            )
        )
    )

    batch, steps, rate = (slopes(line_points(svg, kind)) for kind in ("batch", "steps", "rate"))

    assert batch[0] > 0
    assert batch[1] == pytest.approx(batch[0], rel=0.01)
    assert steps == pytest.approx([-slope for slope in batch], rel=0.01)
    assert rate == pytest.approx([slope / 2 for slope in batch], rel=0.01)


def test_a_constant_figure_is_a_vertical_line() -> None:
    """A figure that is equal on all rungs is a vertical line, with the smallest rung at the bottom."""
    (low, high) = line_points(svg_of(planned(spec(training__learning_rate_rule="keep"))), "rate")

    assert low[0] == high[0]
    assert low[1] > high[1], "the smallest rung is at the bottom"


def test_sizes_that_hardly_differ_are_equally_far_apart() -> None:
    """Rungs that would overlap are spaced equally, and a note states it."""
    sizes = ["tpu7x-8", "tpu7x-4096", "tpu7x-4224"]
    svg = svg_of(planned(spec(sizes=sizes, training__tuned_on="tpu7x-8")))
    points = line_points(svg, "batch")

    assert points[0][1] - points[1][1] == points[1][1] - points[2][1]
    assert "The rungs are equally far apart, whatever their cores." in svg


@pytest.mark.parametrize("seed", range(20))
def test_marks_are_inside_their_plots(seed: int) -> None:
    """No mark leaves the line of its rung."""
    plan = random_plan(seed)
    for group in parsed(svg_of(plan, random_measured(plan, seed))).iter(f"{SVG}g"):
        lines = [line.attrib for line in group.findall(f"{SVG}line") if line.get("class") == "grid"]
        width = max((float(line["x2"]) for line in lines), default=0)
        assert all(
            -0.1 <= float(circle.attrib["cx"]) <= width + 0.6
            for circle in group.findall(f"{SVG}circle")
        )


def test_the_same_spec_gives_the_same_bytes() -> None:
    """The output does not depend on the order of sets."""
    assert ladder_output("--format", "svg", seed="1") == ladder_output("--format", "svg", seed="2")


def test_the_documented_svg_is_that_of_the_example() -> None:
    """The committed SVG equals the command's output; `make readme` regenerates it."""
    assert EXAMPLE_SVG.read_bytes() == ladder_output("--env", "prod", "--format", "svg")


def test_the_documented_fits_are_those_of_the_example() -> None:
    """The chart with the memory of each rung equals that of `examples/chat`; `make readme` regenerates it."""
    chat = ("--spec", "examples/chat/tpucfg.yaml", "--env", "prod")
    assert EXAMPLE_SVG.with_name("fit.svg").read_bytes() == ladder_output(*chat, "--format", "svg")


def test_extreme_speeds_fit_in_one_chart() -> None:
    """The fastest and the slowest speed that a record can have are drawn in one chart."""
    plan = planned(spec(sizes=["v2-8", "v2-32", "v2-128"]))
    speeds = {"v2-8": Fraction("5e-324"), "v2-32": Fraction("1.7e308"), "v2-128": Fraction(1)}
    svg = svg_of(plan, {"dev": MeasuredThroughput(speeds)})

    assert {"4.94e-324", "5e-324"} & set(re.findall(r">([^<]+)</text>", svg))


def test_the_svg_describes_itself() -> None:
    """The file is XML with a title, a description with every figure, and no external reference."""
    svg = svg_of(planned(spec()))
    root = parsed(svg)

    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "mnist scales from v2-8 to v2-32"
    assert root.findtext(f"{SVG}desc") == (
        "4× the cores, the same 4,096,000 examples on every rung. Tuned on v2-8. dev: vertex-ai in us-central1. "
        "v2-8, 8 cores: batch_size 1,024, train_steps 4,000, learning_rate 0.1. "
        "v2-32, 32 cores: batch_size 4,096, train_steps 1,000, learning_rate 0.4."
    )
    assert not re.search(r"url\(|href|@import|http(?!://www\.w3\.org/2000/svg)", svg)
