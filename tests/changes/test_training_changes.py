"""Changes to the training, in proportions and in the scaling table."""

from fractions import Fraction
from typing import Any

import pytest

from spec_changes import scaling_table, statements
from spec_factory import SPEC, WITHOUT, spec
from tpucfg.number_format import format_percent

STEPS = {"training__steps": {"warmup_steps": 200}}
RATE = {"training__learning_rate": 0.1, "training__learning_rate_rule": "linear"}


def test_removed_figure_is_reported_with_its_value() -> None:
    """A removed figure is in the table; unchanged run lengths have no statement."""
    before, after = spec(**STEPS, **RATE), spec(training__learning_rate=WITHOUT)

    assert statements(before, after) == ["setting learning_rate removed (was 0.1)"]
    assert scaling_table(before, after)["v2-8 in dev"] == {
        "learning rate": "0.1 → –",
        "warmup_steps": "200 → –",
    }
    assert statements(after, before)[0] == "setting learning_rate added (0.1)"


def test_steps_replaced_by_epochs_are_reported() -> None:
    """The table keeps the steps that were removed."""
    before = spec()
    after = spec(**{**SPEC, "training": {"tuned_on": "v2-8", "batch_size": 1024, "epochs": 10}})

    row = scaling_table(before, after)["v2-8 in dev"]
    assert (row["steps"], row["epochs"]) == ("4,000 → –", "– → 10")


@pytest.mark.parametrize(
    ("share", "text"),
    [(25, "2.5%"), (2, "0.2%"), (400, "40%"), (1000, "100%"), (Fraction(1, 30), "less than 0.01%")],
)
def test_share_is_never_rounded_to_zero(share: int | Fraction, text: str) -> None:
    """A share above zero is never shown as zero."""
    assert format_percent(Fraction(share) / 1000) == text


@pytest.mark.parametrize(
    ("changed", "cells"),
    [
        (
            {"training__batch_size": 2048},
            {"global batch": "1,024 → 2,048 (2×)", "learning rate": "0.1"},
        ),
        (
            {"training__batch_size": 2048, "training__train_steps": 2000},
            {"steps": "4,000 → 2,000 (0.5×)", "examples": "4,096,000 (as before)"},
        ),
        ({"training__train_steps": 8000}, {"examples": "4,096,000 → 8,192,000 (2×)"}),
        ({"training__learning_rate": 0.2}, {"learning rate": "0.1 → 0.2 (2×)"}),
    ],
)
def test_factor_is_in_the_table_of_rungs(changed: dict[str, Any], cells: dict[str, str]) -> None:
    """Figures and their factors have one place; a larger batch is shown with the length of the run and its rate."""
    before, after = spec(**STEPS, **RATE), spec(**{**STEPS, **RATE, **changed})
    assert cells.items() <= scaling_table(before, after)["v2-8 in dev"].items()
    assert statements(before, after) == []


@pytest.mark.parametrize(("rate", "factor"), [(10, "100×"), (0.001, "0.01×"), (1, "")])
def test_rate_of_another_magnitude_is_a_caution(rate: float, factor: str) -> None:
    """A hundred times the learning rate is a mistake more often than not."""
    text = f"every config: learning rate is {factor} the previous value: the run can diverge, or learn nothing"
    sentences = statements(
        spec(**STEPS, **RATE), spec(**STEPS, **{**RATE, "training__learning_rate": rate})
    )
    assert sentences == ([text] if factor else [])


def test_rounded_steps_change_the_factor() -> None:
    """A rung whose steps are rounded up sees more examples than others."""
    before = spec(sizes=["v2-8", "v2-32", "v2-128"], **STEPS)
    after = spec(sizes=["v2-8", "v2-32", "v2-128"], training__train_steps=1000, **STEPS)

    assert (
        scaling_table(before, after)["v2-128 in dev"]["examples"]
        == "4,096,000 → 1,032,192 (0.252×)"
    )


def test_first_spec_has_figures_and_names_its_jobs() -> None:
    """Without a previous spec nothing is compared: what jobs run is named, and each rung has its figures."""
    text = (
        "dev: new environment: us-docker.pkg.dev/my-project/train/mnist:1.0 with the bucket "
        "my-project-dev-mnist-dev-us-central1, vertex-ai in my-project-dev (us-central1), on-demand, v2-8, v2-32"
    )
    assert statements(None, spec()) == [text]
    assert scaling_table(None, spec())["v2-32, new in dev"]["global batch"] == "4,096"
