"""Words and numbers in charts."""

import json
from fractions import Fraction
from typing import Any

import pytest

from chart_helpers import narratives
from spec_factory import WITHOUT, planned, spec
from tpucfg.charts import MeasuredThroughput
from tpucfg.charts.narrative import Chart, Narrative, change_text, count_text, rate_text


def narrative_of(**changes: Any) -> Narrative:
    """Return the only narrative of the small spec with these changes."""
    (narrative,) = narratives(planned(spec(**changes)))
    return narrative


def scaling_charts(*speeds: int | None) -> list[Chart]:
    """Return the scaling charts of as many rungs of v2, with these examples per second."""
    sizes = ["v2-8", "v2-32", "v2-128", "v2-256"][: len(speeds)]
    measured = {size: Fraction(speed) for size, speed in zip(sizes, speeds, strict=True) if speed}
    (narrative,) = narratives(planned(spec(sizes=sizes)), {"dev": MeasuredThroughput(measured)})
    return list(narrative.charts[1:])


def labels(chart: Chart) -> dict[str, list[str]]:
    """Return the labels of a chart, by column."""
    return {column.title: [cell.text for cell in column.cells] for column in chart.columns}


def test_the_words_of_a_ladder_of_three_rungs_are_exact() -> None:
    """The headline has the first and last size, the lead what stays, each column how its figure changes."""
    narrative = narrative_of(
        sizes=["v2-8", "v2-32", "v2-128"],
        training__learning_rate=0.1,
        training__learning_rate_rule="linear",
    )

    assert narrative.headline == "mnist scales from v2-8 to v2-128"
    assert narrative.lead == (
        "16× the cores, the same 4,096,000 examples on every rung. Tuned on v2-8.",
        "dev: vertex-ai in us-central1.",
    )
    (chart,) = narrative.charts
    assert labels(chart) == {
        "batch_size": ["1,024", "4,096", "16,384"],
        "train_steps": ["4,000", "1,000", "250"],
        "learning_rate": ["0.1", "0.4", "1.6"],
    }
    assert [column.change for column in chart.columns] == [
        "grows 16×",
        "falls to 1/16",
        "grows 16×",
    ]
    assert chart.description.startswith(
        "v2-8, 8 cores: batch_size 1,024, train_steps 4,000, learning_rate 0.1. v2-32, 32 cores: batch_size 4,096,"
    )


def test_accumulation_has_a_column_and_tokens_a_sentence() -> None:
    """If the batch stays, the chart has the micro-batches of every rung, and the lead the tokens of the run."""
    narrative = narrative_of(
        sizes=["v2-8", "v2-32"],
        training={
            "tuned_on": "v2-32",
            "batch_size": 64,
            "batch_rule": "keep",
            "sequence_length": 1000,
            "train_tokens": 64_000_000,
        },
    )
    assert (
        narrative.lead[0]
        == "4× the cores, the same 64,000,000 tokens on every rung. Tuned on v2-32."
    )
    (chart,) = narrative.charts
    assert labels(chart) == {
        "batch_size": ["64", "64"],
        "grad_accum": ["4", "1"],
        "train_steps": ["1,000", "1,000"],
    }
    assert [column.change for column in chart.columns] == ["stays", "falls to 1/4", "stays"]


def test_epochs_replace_steps() -> None:
    """A run in epochs has a column of epochs, which stay; a missing learning rate has no column."""
    narrative = narrative_of(
        training__train_steps=WITHOUT, training__epochs=1, training__learning_rate=WITHOUT
    )

    assert narrative.lead[0] == "4× the cores, 1 epoch on every rung. Tuned on v2-8."
    assert [(column.title, column.change) for column in narrative.charts[0].columns] == [
        ("batch_size", "grows 4×"),
        ("epochs", "stays"),
    ]


def test_a_single_rung_changes_nothing() -> None:
    """With one rung there is neither a range of sizes nor a change."""
    narrative = narrative_of(sizes=["v2-32"])

    assert narrative.headline == "mnist on v2-32"
    assert narrative.lead[0] == "4,096,000 examples. Tuned on v2-8."
    assert {column.change for column in narrative.charts[0].columns} == {""}


def test_rounded_steps_show_a_range_of_examples() -> None:
    """If rounding up the steps adds examples, the lead shows the lowest and highest count."""
    narrative = narrative_of(sizes=["v2-8", "v2-128"], training__train_steps=1001)

    assert (
        narrative.lead[0]
        == "16× the cores, 1,025,024 to 1,032,192 examples on every rung. Tuned on v2-8."
    )


def test_an_override_is_a_ring() -> None:
    """A figure that the spec sets for a rung is a ring, and a note explains it."""
    narrative = narrative_of(overrides={"v2-32": {"batch_size": 2048}})

    assert [cell.is_ring for cell in narrative.charts[0].columns[0].cells] == [False, True]
    assert narrative.charts[0].notes == ("A ring: the spec sets this figure for this rung.",)


def test_measured_throughput_is_compared_with_linear_scaling() -> None:
    """Linear scaling starts from the first measured rung; rungs without a measurement have a note."""
    (chart,) = scaling_charts(None, 1000, 3600, None)

    assert chart.title == "dev: measured against linear scaling"
    assert labels(chart) == {
        "examples per second": ["–", "1,000", "3,600", "–"],
        "share of linear": ["–", "100%", "90%", "–"],
    }
    assert chart.columns[0].expected == tuple(map(Fraction, (250, 1000, 4000, 8000)))
    assert chart.notes == ("–: not measured yet.",)


def test_an_outdated_measurement_has_a_note() -> None:
    """A speed measured with another program stays in the chart, and a note names its rung."""
    measured = MeasuredThroughput(
        {"v2-8": Fraction(1000), "v2-32": Fraction(3600)}, ("v2-32", "v2-128")
    )
    (narrative,) = narratives(planned(spec(sizes=["v2-8", "v2-32"])), {"dev": measured})
    assert narrative.charts[1].notes == ("v2-32: measured with another program.",)


def test_a_single_measurement_has_no_share() -> None:
    """One speed is shown without a share of linear scaling; without any speed there is no chart."""
    (chart,) = scaling_charts(1000, None)
    assert list(labels(chart)) == ["examples per second"]
    assert scaling_charts(None, None) == []


def test_each_environment_has_its_own_measurements() -> None:
    """Environments with equal ladders share a narrative, which has a chart for each measured one."""
    own = {"project": "my-project-b", "region": "us-central1"}
    plan = planned(
        spec(
            environments={
                "a": {**own, "project": "my-project-a"},
                "b": own,
                "c": own | {"bucket": "my-c"},
            }
        )
    )

    (narrative,) = narratives(
        plan,
        {
            "a": MeasuredThroughput({"v2-8": Fraction(1)}),
            "c": MeasuredThroughput({"v2-8": Fraction(2)}),
        },
    )

    assert [chart.title.partition(":")[0] for chart in narrative.charts[1:]] == ["a", "c"]


@pytest.mark.parametrize(
    ("text", "label"), [("0x1F", "0x1F"), ("0x00000000000F", "15"), ("+.50", "+.50")]
)
def test_any_spelling_of_a_number_is_drawn_at_its_value(text: str, label: str) -> None:
    """A number in any spelling of YAML is drawn at its value, and labelled as the trainer gets it."""
    text_of_spec = json.dumps(
        spec(training__learning_rate=1, training__learning_rate_rule="keep")
    ).replace('rate": 1', f'rate": {text}')
    (narrative,) = narratives(planned(text_of_spec))

    assert [cell.text for cell in narrative.charts[0].columns[-1].cells] == [label, label]


def test_long_numbers_are_rounded() -> None:
    """A number that is too long for a column is rounded."""
    assert [count_text(10**9 - 1), count_text(10**15)] == ["999,999,999", "1e15"]
    assert [rate_text("0.000125"), rate_text("0.000000001250"), rate_text("1e-3")] == [
        "0.000125",
        "1.25e-9",
        "1e-3",
    ]


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
def test_the_change_of_a_figure(first: int, last: int, text: str) -> None:
    """A factor is exact if it is a whole number, else marked as approximate."""
    assert change_text(Fraction(first), Fraction(last)) == text
