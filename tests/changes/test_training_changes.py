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
    assert scaling_table(before, after)["v2-8"] == {"learning rate": "0.1 → –", "warmup_steps": "200 → –"}
    assert statements(after, before)[0] == "setting learning_rate added (0.1)"


def test_steps_replaced_by_epochs_are_reported() -> None:
    """The table keeps the steps that were removed."""
    before = spec()
    after = spec(**{**SPEC, "training": {"tuned_on": "v2-8", "batch_size": 1024, "epochs": 10}})

    row = scaling_table(before, after)["v2-8"]
    assert (row["steps"], row["epochs"]) == ("4,000 → –", "– → 10")


@pytest.mark.parametrize(
    ("share", "text"), [(25, "2.5%"), (2, "0.2%"), (400, "40%"), (1000, "100%"), (Fraction(1, 30), "less than 0.01%")]
)
def test_share_is_never_rounded_to_zero(share: int | Fraction, text: str) -> None:
    """A share above zero is never shown as zero."""
    assert format_percent(Fraction(share) / 1000) == text


@pytest.mark.parametrize(
    ("changed", "statement"),
    [
        ({"training__batch_size": 2048}, "global batch size is 2× the previous value"),
        ({"training__batch_size": 2048}, "learning rate is unchanged"),
        (
            {"training__batch_size": 2048, "training__train_steps": 2000},
            "the run sees the same number of examples",
        ),
        ({"training__train_steps": 8000}, "the run sees 2× as many examples"),
        ({"training__learning_rate": 0.2}, "learning rate is 2× the previous value"),
    ],
)
def test_factor_is_reported_once_for_all_rungs(changed: dict[str, Any], statement: str) -> None:
    """Each factor is one statement about every config, though the figures differ from rung to rung."""
    before = spec(**STEPS, **RATE)

    assert f"every config: {statement}" in statements(before, spec(**{**STEPS, **RATE, **changed}))


def test_rounded_steps_do_not_change_the_factor() -> None:
    """A rung whose steps were rounded up shares the statement of the others; the table has its own figures."""
    before = spec(sizes=["v2-8", "v2-32", "v2-128"], **STEPS)
    after = spec(sizes=["v2-8", "v2-32", "v2-128"], training__train_steps=1000, **STEPS)

    assert statements(before, after)[0] == "every config: the run sees 0.25× as many examples"
    assert scaling_table(before, after)["v2-128"]["examples"] == "4,096,000 → 1,032,192 (0.252×)"


def test_first_spec_has_figures_and_names_its_jobs() -> None:
    """Without a previous spec nothing is compared: what jobs run is named, and each rung has its figures."""
    text = (
        "dev: new environment: us-docker.pkg.dev/my-project/train/mnist:1.0 with the bucket "
        "my-project-dev-mnist-dev-us-central1, vertex-ai in my-project-dev (us-central1), on-demand, v2-8, v2-32"
    )
    assert statements(None, spec()) == [text]
    assert scaling_table(None, spec())["v2-32, new in dev"]["global batch"] == "4,096"
