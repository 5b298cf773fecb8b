"""Changes to `allow`, `gate` and `prices`."""

import pytest

from spec_changes import impact, statements
from spec_factory import spec
from tpucfg.changes.facts import Risk


def test_allowed_error_is_reported_as_an_error() -> None:
    """An allowed error is reported even if no finding of it exists yet: it stops nothing from now on."""
    assert statements(spec(), spec(allow={"TPU021": "by hand"})) == [
        "TPU021, an error, is now allowed (by hand)"
    ]


@pytest.mark.parametrize(
    ("before", "after", "risk"), [(True, False, Risk.CAUTION), (False, True, Risk.NONE)]
)
def test_a_gate_that_no_longer_asks_for_a_fit_is_a_caution(
    before: bool, after: bool, risk: Risk
) -> None:
    """A rung could then be started whose step was shown not to fit."""
    before_and_after = (
        {"gate": {"min_scaling_efficiency": 0.8, "fit": fit}} for fit in (before, after)
    )
    (located,) = impact(*(spec(**gate) for gate in before_and_after)).statements
    assert located.statement.risk is risk


@pytest.mark.parametrize(
    ("spot", "risk"),
    [(0.6, Risk.NONE), (0.4, Risk.CAUTION), (None, Risk.CAUTION)],
    ids=["higher", "lower", "removed"],
)
def test_a_lower_price_of_one_capacity_is_a_caution(spot: float | None, risk: Risk) -> None:
    """With a lower price, or without one, jobs of that capacity look cheaper than they are."""
    after = {"on-demand": 1.5} | ({} if spot is None else {"spot": spot})
    (located,) = impact(
        spec(prices={"v2": {"on-demand": 1.5, "spot": 0.5}}), spec(prices={"v2": after})
    ).statements
    assert located.statement.risk is risk
