"""Changes to `allow`, `gate` and `prices`."""

from typing import Any

import pytest

from spec_changes import impact, statements
from spec_factory import spec
from tpucfg.changes.statements import Risk


def test_allowed_error_is_reported_as_an_error() -> None:
    """An allowed error is reported even if no finding of it exists yet: it stops nothing from now on."""
    assert statements(spec(), spec(allow={"TPU021": "by hand"})) == ["TPU021, an error, is now allowed (by hand)"]


@pytest.mark.parametrize(
    ("before", "after", "statement", "headline"),
    [
        (
            {"gate": {"min_scaling_efficiency": 0.8}},
            {},
            "gate removed: rungs no longer need a passing result",
            "gate removed",
        ),
        (
            {"gate": {"min_scaling_efficiency": 0.8}},
            {"gate": {"min_scaling_efficiency": 0.1}},
            "gate.min_scaling_efficiency changed from 0.8 to 0.1: the gate is less strict",
            "gate changed",
        ),
        (
            {"gate": {"min_scaling_efficiency": 0.8}},
            {"gate": {"min_scaling_efficiency": 0.9}},
            "gate.min_scaling_efficiency changed from 0.8 to 0.9: the gate is stricter",
            "gate changed",
        ),
        (
            {},
            {"gate": {"min_scaling_efficiency": 0.8}},
            "gate added: rungs now need a passing result (min_scaling_efficiency 0.8)",
            "gate added",
        ),
        (
            {"gate": {"fit": True}},
            {},
            "gate removed: rungs no longer need a passing result, nor a step that is known to fit",
            "gate removed",
        ),
        (
            {},
            {"gate": {"fit": True}},
            "gate added: rungs now need a step that is known to fit",
            "gate added",
        ),
        (
            {"gate": {"min_scaling_efficiency": 0.8, "fit": True}},
            {"gate": {"min_scaling_efficiency": 0.8}},
            "gate.fit changed from true to false: a rung may run whose step does not fit, or was never compiled",
            "gate changed",
        ),
        (
            {"gate": {"min_scaling_efficiency": 0.8}},
            {"gate": {"min_scaling_efficiency": 0.8, "fit": True}},
            "gate.fit changed from false to true: the gate is stricter, as rungs now need a step that is known to fit",
            "gate changed",
        ),
        (
            {"prices": {"v2-8": 4.5}},
            {"prices": {"v2-8": 5, "v2-32": 24}},
            "prices changed: v2-8 4.5 → 5, v2-32 – → 24",
            "prices changed",
        ),
        (
            {"prices": {"v2": 1.5, "v3": 2}},
            {"prices": {"v2": {"on-demand": 1.5, "spot": 0.5}, "v3": 3}},
            "prices changed: v2 spot 1.5 → 0.5, v2 flex-start 1.5 → –, v2 reservation 1.5 → –, v3 2 → 3",
            "prices changed",
        ),
    ],
)
def test_gate_and_prices_are_reported(
    before: dict[str, Any], after: dict[str, Any], statement: str, headline: str
) -> None:
    """No config contains the gate and the prices, but their changes are statements."""
    (located,) = impact(spec(**before), spec(**after)).statements

    assert located.plain == statement
    assert located.statement.headline == headline


@pytest.mark.parametrize(("before", "after", "risk"), [(True, False, Risk.CAUTION), (False, True, Risk.NONE)])
def test_a_gate_that_no_longer_asks_for_a_fit_is_a_caution(before: bool, after: bool, risk: Risk) -> None:
    """A rung could then be started whose step was shown not to fit."""
    before_and_after = ({"gate": {"min_scaling_efficiency": 0.8, "fit": fit}} for fit in (before, after))
    (located,) = impact(*(spec(**gate) for gate in before_and_after)).statements
    assert located.statement.risk is risk


@pytest.mark.parametrize(
    ("spot", "risk"), [(0.6, Risk.NONE), (0.4, Risk.CAUTION), (None, Risk.CAUTION)], ids=["higher", "lower", "removed"]
)
def test_a_lower_price_of_one_capacity_is_a_caution(spot: float | None, risk: Risk) -> None:
    """With a lower price, or without one, jobs of that capacity look cheaper than they are."""
    after = {"on-demand": 1.5} | ({} if spot is None else {"spot": spot})
    (located,) = impact(spec(prices={"v2": {"on-demand": 1.5, "spot": 0.5}}), spec(prices={"v2": after})).statements
    assert located.statement.risk is risk
