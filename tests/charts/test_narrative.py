"""What the pictures say in words and numbers."""

import json
from fractions import Fraction
from typing import Any

import pytest

from chart_helpers import stories
from spec_factory import WITHOUT, planned, spec
from tpucfg.charts import MeasuredThroughput
from tpucfg.charts.chart import Chart, Narrative
from tpucfg.charts.numbers import change_text, count_text, rate_text, rounded


def told(**changes: Any) -> Narrative:
    """The one story of the small spec with these changes."""
    (story,) = stories(planned(spec(**changes)))
    return story


def scaling(*speeds: int | None) -> list[Chart]:
    """The charts of scaling of as many rungs of v2, with these examples per second."""
    sizes = ["v2-8", "v2-32", "v2-128", "v2-256"][: len(speeds)]
    measured = {size: Fraction(speed) for size, speed in zip(sizes, speeds, strict=True) if speed}
    (story,) = stories(planned(spec(sizes=sizes)), {"dev": MeasuredThroughput(measured)})
    return list(story.charts[1:])


def columns(chart: Chart) -> dict[str, list[str]]:
    """The texts of a chart, by column."""
    return {column.title: [cell.text for cell in column.cells] for column in chart.columns}


def test_a_ladder_up() -> None:
    """The headline says from where to where, the lead what stays, and each column how its figure changes."""
    story = told(sizes=["v2-8", "v2-32", "v2-128"], training__learning_rate=0.1, training__learning_rate_rule="linear")

    assert story.headline == "mnist climbs from v2-8 to v2-128"
    assert story.lead == (
        "16× the cores, the same 4,096,000 examples on every rung. Tuned on v2-8.",
        "dev: vertex-ai in us-central1.",
    )
    (chart,) = story.charts
    assert columns(chart) == {
        "batch_size": ["1,024", "4,096", "16,384"],
        "train_steps": ["4,000", "1,000", "250"],
        "learning_rate": ["0.1", "0.4", "1.6"],
    }
    assert [column.change for column in chart.columns] == ["grows 16×", "falls to 1/16", "grows 16×"]
    assert chart.description.startswith(
        "v2-8, 8 cores: batch_size 1,024, train_steps 4,000, learning_rate 0.1. v2-32, 32 cores: batch_size 4,096,"
    )


def test_a_run_in_epochs_without_a_learning_rate() -> None:
    """Epochs take the steps' place and stay; a figure that the spec does not have has no column."""
    story = told(training__train_steps=WITHOUT, training__epochs=1)

    assert story.lead[0] == "4× the cores, 1 epoch on every rung. Tuned on v2-8."
    assert [(column.title, column.change) for column in story.charts[0].columns] == [
        ("batch_size", "grows 4×"),
        ("epochs", "stays"),
    ]


def test_one_rung() -> None:
    """Nothing climbs, so nothing is said to change."""
    story = told(sizes=["v2-32"])

    assert (story.headline, story.heading) == ("mnist on v2-32", "dev: on v2-32")
    assert story.lead[0] == "4,096,000 examples. Tuned on v2-8."
    assert {column.change for column in story.charts[0].columns} == {""}


def test_steps_that_do_not_divide() -> None:
    """Where rounding up adds examples, the lead says from how many to how many."""
    story = told(sizes=["v2-8", "v2-128"], training__train_steps=1001)

    assert story.lead[0] == "16× the cores, 1,025,024 to 1,032,192 examples on every rung. Tuned on v2-8."


def test_a_figure_that_the_spec_sets_is_a_ring() -> None:
    """An override shows by its form, and the form is explained."""
    story = told(overrides={"v2-32": {"batch_size": 2048}})

    assert [cell.ring for cell in story.charts[0].columns[0].cells] == [False, True]
    assert story.charts[0].notes == ("A ring: the spec sets this figure for this rung.",)


def test_measured_against_linear() -> None:
    """Linear scaling starts from the first rung that was measured; what was not measured says so."""
    (chart,) = scaling(None, 1000, 3600, None)

    assert chart.title == "dev: measured against linear scaling"
    assert columns(chart) == {
        "examples per second": ["–", "1,000", "3,600", "–"],
        "share of linear": ["–", "100%", "90%", "–"],
    }
    assert chart.columns[0].expected == tuple(map(Fraction, (250, 1000, 4000, 8000)))
    assert chart.notes == ("–: not measured yet.",)


def test_what_was_measured_with_another_config_says_so() -> None:
    """The figure stays in the chart, and a note names its rung."""
    measured = MeasuredThroughput({"v2-8": Fraction(1000), "v2-32": Fraction(3600)}, ("v2-32", "v2-128"))
    (story,) = stories(planned(spec(sizes=["v2-8", "v2-32"])), {"dev": measured})
    assert story.charts[1].notes == ("v2-32: measured with another config than the spec makes now.",)


def test_one_measurement_has_nothing_to_be_compared_with() -> None:
    """The speed is shown with what linear scaling would make of it, and no share; no measurement makes no chart."""
    (chart,) = scaling(1000, None)
    assert list(columns(chart)) == ["examples per second"]
    assert scaling(None, None) == []


def test_each_environment_has_its_own_measurements() -> None:
    """Environments that climb alike share a story, and in it each that was measured has its chart."""
    own = {"project": "my-project-b", "region": "us-central1"}
    plan = planned(
        spec(environments={"a": {**own, "project": "my-project-a"}, "b": own, "c": own | {"bucket": "my-c"}})
    )

    (story,) = stories(
        plan, {"a": MeasuredThroughput({"v2-8": Fraction(1)}), "c": MeasuredThroughput({"v2-8": Fraction(2)})}
    )

    assert [chart.title.partition(":")[0] for chart in story.charts[1:]] == ["a", "c"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1), "1"),
        (Fraction(12345), "12,345"),
        (Fraction(2, 3), "0.667"),
        (Fraction(314, 100), "3.14"),
        (Fraction(99999, 100), "1,000"),
        (Fraction(1, 10**7), "1e-7"),
        (Fraction(123456 * 10**15), "1.23e20"),
        (Fraction(10) ** 700, "1e700"),
        (Fraction(1, 10**700), "1e-700"),
    ],
)
def test_three_digits(value: Fraction, text: str) -> None:
    """A number that has to be short keeps three digits, or all of those before its point."""
    assert rounded(value) == text


@pytest.mark.parametrize(("text", "shown"), [("0x1F", "0x1F"), ("0x0000000F", "15"), ("+.50", "+.50")])
def test_a_number_in_any_of_its_spellings(text: str, shown: str) -> None:
    """What a spec may write is drawn where it belongs, and written as the trainer gets it."""
    written = json.dumps(spec(training__learning_rate=1, training__tuned_on="v2-8")).replace(
        'rate": 1', f'rate": {text}'
    )
    (story,) = stories(planned(written))

    assert [cell.text for cell in story.charts[0].columns[-1].cells] == [shown, shown]


def test_long_numbers_are_rounded() -> None:
    """What a chart has no room for is rounded there."""
    assert [count_text(10**9 - 1), count_text(10**15)] == ["999,999,999", "1e15"]
    assert [rate_text("0.000125"), rate_text("0.00000125"), rate_text("1e-3")] == ["0.000125", "1.25e-6", "1e-3"]


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (4, 4, "stays"),
        (4, 64, "grows 16×"),
        (64, 4, "falls to 1/16"),
        (3, 10, "grows about 3.33×"),
        (10, 3, "falls to about 1/3.33"),
    ],
)
def test_how_a_figure_changes(first: int, last: int, text: str) -> None:
    """Exactly where it comes out even, and about where it does not."""
    assert change_text(Fraction(first), Fraction(last)) == text
