"""The cost of each rung, and of the run whose cost grows most, before and after a change."""

from typing import Any

from spec_changes import costs
from spec_changes import statements as impact_statements
from spec_factory import WITHOUT, spec
from tpucfg.changes.costs import COST_TITLES, CostChanges, cost_growth
from tpucfg.changes.figures import figure_values, rung_cell
from tpucfg.review.effects import cost_phrase

PRICED: dict[str, Any] = {"prices": {"v2": 2, "v3": 3}}
UNLIMITED = "nothing limits the whole time of a run (set trainer.max_run_duration)"
RECORDED = {"v2-8": 1000}


def amounts(changes: CostChanges) -> dict[str, tuple[float, float]]:
    """Return each figure before and after, rounded to a thousandth, of the rung where it grows most."""
    rounded: dict[str, tuple[float, float]] = {}
    for key in COST_TITLES:
        known = [row for row in changes.rows if row.after and cost_growth(row, key) is not None]
        for row in sorted(known, key=lambda row: cost_growth(row, key) or 0):
            old, new = (
                round(float(figure_values(figures).get(key, 0)), 3)
                for figures in (row.before, row.after)
            )
            rounded[key] = (old, new)
    return rounded


def unknown(changes: CostChanges, key: str) -> int:
    """Return for how many rungs of the head a figure is not known in one of the revisions."""
    return sum(cost_growth(row, key) is None for row in changes.rows if row.after)


def statements(changes: CostChanges) -> list[str]:
    """Return the statements as plain text."""
    return [located.plain for located in changes.statements]


def test_growth_is_that_of_one_run() -> None:
    """Twice the examples cost twice as much on each of two rungs; runs that are not made together are not added up."""
    changes = costs(spec(**PRICED), spec(**PRICED, training__train_steps=8000), RECORDED)

    hours = 4_096_000 / 1000 / 3600
    assert amounts(changes)["usd"] == (round(8 * hours, 3), round(16 * hours, 3))
    assert amounts(changes)["usd_per_hour"] == (32, 32)
    assert cost_phrase(changes) == "+9.10 USD/run on v2-8 in dev (+100%)"
    assert [(row.size, row.baseline, row.environments) for row in changes.rows] == [
        ("v2-8", "v2-8", ("dev",)),
        ("v2-32", "v2-32", ("dev",)),
    ]


def test_money_that_is_known_of_all_configs_comes_first() -> None:
    """The run of a new rung without a record can be the dearest, so the headline has what its hour costs."""
    other = {"project": "p-prod", "region": "us-central1"}
    base = spec(**PRICED, sizes=["v2-8"], training__train_steps=1000, environments__prod=other)
    head = spec(
        **PRICED, sizes=["v2-8", "v2-32"], training__train_steps=8000, environments__prod=other
    )
    changes = costs(base, head, RECORDED)
    assert unknown(changes, "usd") == 2
    assert cost_phrase(changes) == "+32.00 USD/hour on v2-32, new in dev"


def test_reserved_rungs_hide_no_money_of_the_others() -> None:
    """A rung without a cost of its runs is no rung whose cost is not known."""
    reserved = {
        **PRICED,
        "target": "cloud-tpu",
        "overrides": {"v2-32": {"capacity": {"reservation": "r"}}},
    }
    changes = costs(spec(**reserved), spec(**reserved, training__train_steps=8000), RECORDED)
    assert cost_phrase(changes) == "+9.10 USD/run on v2-8 in dev (+100%)"


def test_a_run_costs_no_more_than_the_most_that_it_can() -> None:
    """By the records it takes longer, but its limit ends it."""
    limited = spec(**PRICED, trainer__max_run_duration="1h")
    changes = costs(limited, spec(**PRICED, trainer__max_run_duration="2h"), RECORDED)
    assert amounts(changes)["usd"] == (8, 9.102)
    assert amounts(changes)["max_usd"] == (32, 64)


def test_a_probe_is_shown_beside_a_run() -> None:
    """More steps of a probe cost more, and the run what it did; a section that is added or removed has no growth."""
    probes = [spec(**PRICED, probe={"steps": steps}) for steps in (100, 200)]
    changes = costs(probes[0], probes[1], RECORDED)
    hours = 100 * 1024 / 1000 / 3600
    assert amounts(changes)["probe_usd"] == (round(4 * 8 * hours, 3), round(8 * 8 * hours, 3))
    for base, head in ((spec(**PRICED), probes[0]), (probes[0], spec(**PRICED))):
        assert "probe_usd" not in amounts(costs(base, head, RECORDED))


def test_growth_below_a_tenth_is_not_in_the_headline() -> None:
    """9.9% more is in the comment, and 10% more in its headline too."""
    one_rung = {**PRICED, "sizes": ["v2-8"]}
    base = spec(**one_rung, training__train_steps=1000)
    assert cost_phrase(costs(base, spec(**one_rung, training__train_steps=1099), RECORDED)) == ""
    grown = costs(base, spec(**one_rung, training__train_steps=1100), RECORDED)
    assert cost_phrase(grown) == "+0.23 USD/run on v2-8 in dev (+10%)"


def test_replaced_rung_is_compared_with_the_new_one() -> None:
    """Four times the chips cost four times as much an hour, and the same for the run."""
    changes = costs(spec(**PRICED, sizes=["v2-8"]), spec(**PRICED, sizes=["v2-32"]), RECORDED)

    (row,) = changes.rows
    assert (row.size, row.baseline) == ("v2-32", "v2-8")
    old, new = figure_values(row.before), figure_values(row.after)
    assert [old["usd_per_hour"], new["usd_per_hour"]] == [8, 32]
    assert old["hours"] == 4 * new["hours"]
    assert cost_phrase(changes) == "+24.00 USD/hour on v2-8 → v2-32, new in dev (+300%)"


def test_lower_price_hides_no_growth() -> None:
    """Both revisions are at the prices of the head; without these, at those of the base."""
    small, large = spec(sizes=["v2-8"], prices={"v2": 4}), spec(sizes=["v2-32"], prices={"v2": 1})
    assert cost_phrase(costs(small, large)) == "+12.00 USD/hour on v2-8 → v2-32, new in dev (+300%)"
    unpriced = spec(sizes=["v2-32"])
    assert (
        cost_phrase(costs(small, unpriced)) == "+48.00 USD/hour on v2-8 → v2-32, new in dev (+300%)"
    )
    assert "at the prices of the head" in costs(small, large).notes[0]
    assert "prices" not in costs(small, small).notes[0]


def test_forged_record_hides_no_growth() -> None:
    """A change is judged by the records of the base."""
    longer = spec(**PRICED, training__train_steps=8000)
    changes = costs(spec(**PRICED), longer, RECORDED, {"v2-8": 1e6, "v2-32": 5000})

    assert cost_phrase(changes) == "+9.10 USD/run on v2-8 in dev (+100%)"


def test_cost_after_a_removed_record_is_known() -> None:
    """The cost is still that of the base's record."""
    changes = costs(spec(**PRICED), spec(**PRICED, training__train_steps=8000), RECORDED, {})

    assert "usd" in amounts(changes)


def test_first_records_are_those_of_the_head() -> None:
    """If the base has none for a generation, the cost is known by those of the head."""
    changes = costs(spec(**PRICED), spec(**PRICED, training__train_steps=8000), {}, RECORDED)

    assert cost_phrase(changes) == "+9.10 USD/run on v2-8 in dev (+100%)"


def test_chips_and_hours_are_compared_without_prices() -> None:
    """Hours where a record exists, and chips otherwise."""
    assert (
        cost_phrase(costs(spec(sizes=["v2-8"]), spec(sizes=["v2-32"])))
        == "+12 chips on v2-8 → v2-32, new in dev (+300%)"
    )
    longer = costs(spec(), spec(training__train_steps=8000), RECORDED)
    assert cost_phrase(longer) == "+1.14 hours on v2-8 in dev (+100%)"


def test_generation_without_a_price_is_counted_in_chips() -> None:
    """A rung without a price is not in the sum of dollars, so its chips are compared as well."""
    prices: dict[str, Any] = {"prices": {"v2": 2}, "environments__dev__region": "europe-west4"}
    changes = costs(
        spec(**prices, sizes=["v2-8", "v3-32"]), spec(**prices, sizes=["v2-8", "v3-128"])
    )

    assert unknown(changes, "usd_per_hour") == 1
    assert cost_phrase(changes) == "+48 chips on v3-32 → v3-128, new in dev (+300%)"


def test_headline_is_about_one_rung() -> None:
    """A rung without a limit or a price does not change the heading of another one."""

    def limited(limit: str, **changes: Any) -> dict[str, Any]:
        return spec(
            **PRICED, overrides={"v2-8": {"trainer": {"max_run_duration": limit}}}, **changes
        )

    bounded = costs(limited("1h"), limited("2h"))
    assert cost_phrase(bounded) == "+8.00 USD/run at most on v2-8 in dev (+100%)"

    both = {"prices": {"v2": 2}, "environments__dev__region": "europe-west4"}
    unpriced = costs(
        spec(**both, sizes=["v2-8", "v3-128"]), spec(**both, sizes=["v2-32", "v3-128"])
    )
    assert cost_phrase(unpriced) == "+24.00 USD/hour on v2-8 → v2-32, new in dev (+300%)"


def test_rung_replaced_by_one_without_a_price_is_no_saving() -> None:
    """The new rung's cost is not known, so that of the old one is no part of the sum that it is compared with."""
    prices: dict[str, Any] = {"prices": {"v2": 2}, "environments__dev__region": "europe-west4"}
    one = costs(spec(**prices, sizes=["v2-8", "v2-32"]), spec(**prices, sizes=["v2-8", "v3-32"]))
    assert amounts(one)["usd_per_hour"] == (8, 8)
    assert unknown(one, "usd_per_hour") == 1

    every = costs(spec(**prices, sizes=["v2-8", "v2-32"]), spec(**prices, sizes=["v3-8", "v3-32"]))
    assert "usd_per_hour" not in amounts(every)
    assert unknown(every, "usd_per_hour") == 2


def test_cost_that_becomes_unknown_is_shown() -> None:
    """A job that moves to a capacity without a price has no known cost any more, which is no reason to show none."""
    sizes: dict[str, Any] = {
        "target": "cloud-tpu",
        "sizes": ["v2-8"],
        "prices": {"v2": {"spot": 0.5}},
    }
    changes = costs(spec(**sizes, capacity="spot"), spec(**sizes, capacity="on-demand"))
    assert unknown(changes, "usd_per_hour") == 1
    assert rung_cell(changes.rows[0], "usd_per_hour") == "2.00 → –"


def test_removed_rung_beside_unknown_ones_is_no_saving_of_all() -> None:
    """No config of the head has a known cost, though a removed rung had one."""
    prices: dict[str, Any] = {"prices": {"v2": 2}, "environments__dev__region": "europe-west4"}
    changes = costs(
        spec(**prices, sizes=["v2-8", "v3-32"]),
        spec(**prices, sizes=["v3-32"], training__tuned_on="v2-8"),
    )
    assert unknown(changes, "usd_per_hour") == 1


def test_length_in_epochs_has_no_cost() -> None:
    """Examples are not known, so neither are hours; the price of an hour is."""
    epochs = {"training__train_steps": WITHOUT, "training__epochs": 3}
    changes = costs(spec(**PRICED, **epochs), spec(**PRICED, **epochs, sizes=["v2-8"]), RECORDED)
    assert "usd" not in amounts(changes)
    assert amounts(changes)["usd_per_hour"] == (8, 8)


def test_another_capacity_has_another_price() -> None:
    """A job that moves from spot to on-demand costs more, by the prices of both, even if the change removes one."""
    prices = {"v2": {"on-demand": 2, "spot": 0.5}}
    sizes = {"target": "cloud-tpu", "sizes": ["v2-8"]}
    spot = spec(**sizes, prices=prices, capacity="spot")

    assert amounts(costs(spot, spec(**sizes, prices=prices), RECORDED))["usd_per_hour"] == (2, 8)
    without_spot = {"v2": {"on-demand": 2}}
    assert amounts(costs(spot, spec(**sizes, prices=without_spot), RECORDED))["usd_per_hour"] == (
        2,
        8,
    )


def test_length_limit_bounds_the_cost() -> None:
    """A limit that is removed is a caution, and so is one that ends a run early."""
    bounded, shorter = (spec(**PRICED, trainer__max_run_duration=limit) for limit in ("2h", "30m"))

    assert amounts(costs(bounded, shorter, RECORDED))["max_usd"] == (16, 4)
    assert statements(costs(bounded, shorter, RECORDED)) == [
        "dev: v2-8: by the records, a run takes 1.14 h, but it is ended after 0.5 h"
    ]
    removed = costs(bounded, spec(**PRICED), RECORDED)
    assert "max_usd" not in amounts(removed)
    assert f"every config: {UNLIMITED}" in impact_statements(bounded, spec(**PRICED))


def test_restarts_move_no_deadline() -> None:
    """A run that its deadline ends is not started again, so neither counted nor free restarts make it longer."""
    place = {"dev": {"project": "my-project-dev", "region": "us-east5", "kube_context": "c"}}
    gke: dict[str, Any] = {
        "target": "gke",
        "environments": place,
        "sizes": ["v6e-8"],
        "training__tuned_on": "v6e-8",
    }
    base, longer = (
        spec(
            **gke, trainer__restarts=2, trainer__max_run_duration="2h", training__train_steps=steps
        )
        for steps in (4000, 16_000)
    )
    assert statements(costs(base, longer, {"v6e-8": 1000})) == [
        "dev: v6e-8: by the records, a run takes 4.55 h, but it is ended after 2 h"
    ]


def test_attempts_are_limited_where_no_run_is() -> None:
    """On gke each attempt has a limit; a queue that limits all of them together is worth a sentence of its own."""
    place = {"dev": {"project": "my-project-dev", "region": "us-east5", "kube_context": "c"}}
    gke: dict[str, Any] = {"target": "gke", "environments": place, "training__tuned_on": "v6e-8"}
    gke.update({"trainer__max_run_duration": "2h", "trainer__restarts": 3})
    base, queue = {**gke, "sizes": ["v6e-8"]}, {"targets": {"gke": {"queue": "q"}}}
    without = {**base, "trainer__max_run_duration": WITHOUT}

    assert (
        "dev: v6e-8: nothing limits the whole time of a run (a restart after a disruption is not counted)"
        in impact_statements(spec(**base, **queue), spec(**base))
    )
    assert f"dev: v6e-8: {UNLIMITED}" in impact_statements(spec(**base), spec(**without))
    unlimited = {"v6e-16": {"trainer": {"max_run_duration": None}}}
    larger = spec(**{**gke, "sizes": ["v6e-8", "v6e-16"]}, overrides=unlimited)
    assert f"dev: v6e-16: {UNLIMITED}" in impact_statements(spec(**base), larger)


def test_rungs_of_equal_cost_share_a_row() -> None:
    """Environments with equal records have a common row, the largest growth first."""
    place = {"project": "my-project-dev", "region": "us-central1"}
    both = {"environments": {"dev": place, "prod": {**place, "project": "my-project-prod"}}}
    changes = costs(
        spec(**both, **PRICED), spec(**both, **PRICED, sizes=["v2-8", "v2-32", "v2-128", "v2-256"])
    )

    assert [(row.size, row.environments) for row in changes.rows if row.differs] == [
        ("v2-256", ("dev", "prod")),
        ("v2-128", ("dev", "prod")),
    ]


def test_extreme_numbers_are_computed() -> None:
    """The largest price and the smallest throughput are beyond floats, but not beyond the arithmetic."""
    extreme = spec(prices={"v2": 1e308})
    changes = costs(
        extreme, spec(prices={"v2": 1e308}, training__train_steps=8000), {"v2-8": 5e-324}
    )
    assert cost_phrase(changes).startswith("+9.1e634 USD")


def test_a_price_that_only_the_head_has_is_no_saving() -> None:
    """A job that moves to a capacity without a price in the base has no known cost, whatever the head claims."""
    sizes: dict[str, Any] = {"target": "cloud-tpu", "sizes": ["v2-8"]}
    base = spec(**sizes, prices={"v2": {"on-demand": 2}})
    changes = costs(
        base, spec(**sizes, prices={"v2": {"on-demand": 2, "spot": 0.01}}, capacity="spot")
    )
    assert unknown(changes, "usd_per_hour") == 1
    first = costs(None, spec(**sizes, prices={"v2": 2}))
    assert amounts(first)["usd_per_hour"] == (0, 8)


def test_reserved_machines_are_apart() -> None:
    """A reservation is paid for whether a run uses it or not, so its hours are in no growth of a run's cost."""
    sizes: dict[str, Any] = {"target": "cloud-tpu", "sizes": ["v2-8"], **PRICED}
    changes = costs(spec(**sizes), spec(**sizes, capacity={"reservation": "train"}), RECORDED)
    assert "usd" not in amounts(changes)
    assert rung_cell(changes.rows[0], "reserved") == "– → 8.00"


def test_bounded_runs_are_not_called_unbounded() -> None:
    """A most that is not known because the base had no limit is not known, and not without a bound."""
    changes = costs(spec(**PRICED), spec(**PRICED, trainer__max_run_duration="2h"))
    assert not any("not bounded" in note for note in changes.notes)
