"""The order of candidates, by intervals: those that overlap are equal."""

from fractions import Fraction
from typing import Any

from fit_results import RESULT
from spec_factory import CATALOG, planned, project, spec
from tpucfg.fit.forecast import StepInterval
from tpucfg.fit.launcher import Outcome
from tpucfg.fit.tune_candidates import Candidate, Choices, plan_candidates, step_key
from tpucfg.fit.tune_search import RankedCandidate, Trial, order_rows, rank

DATA = spec(
    sizes=["v5litepod-16", "v5litepod-64"],
    training__tuned_on="v5litepod-16",
    trainer__fit={"step": "a:b"},
)
DATA |= {
    "target": "gke",
    "environments": {"dev": {"project": "acme-dev", "region": "us-west4", "kube_context": "dev"}},
}
CANDIDATES = plan_candidates(
    project(DATA),
    CATALOG,
    planned(DATA).jobs[0],
    Choices(sizes=("v5litepod-64", "v6e-16", "v6e-32")),
).rows


def trial(candidate: Candidate) -> Trial:
    """Return the trial of a candidate that fits."""
    assert candidate.job is not None
    return Trial(candidate, Outcome(candidate.job, RESULT))


def row(number: int, low: int, high: int, **changes: Any) -> RankedCandidate:
    """Return a row whose run costs so much."""
    interval = StepInterval(Fraction(low), Fraction(low + high, 2), Fraction(high), "runs", 9)
    return RankedCandidate(trial(CANDIDATES[number]), RESULT, interval, None, Fraction(1))._replace(
        **changes
    )


def ranks(*rows: RankedCandidate) -> list[tuple[str, int | None]]:
    """Return the sizes in order with their ranks."""
    return [(each.slice.size, each.rank) for each in order_rows(1024, rows, "USD").rows]


def test_only_intervals_that_do_not_overlap_have_an_order() -> None:
    """A rank is 1 and one for each candidate that is cheaper whatever the error; equal ones share it."""
    a, b, c, d = row(0, 10, 20), row(1, 19, 30), row(2, 21, 25), row(3, 40, 50)
    assert ranks(d, c, b, a) == [
        ("v5litepod-16", 1),
        ("v5litepod-64", 1),
        ("v6e-16", 2),
        ("v6e-32", 4),
    ]


def test_equal_candidates_of_a_generation_are_not_proven() -> None:
    """The note has the number of pairs of published runs that would be needed."""
    ranking = order_rows(1024, [row(0, 10, 20), row(1, 15, 25)], "USD")
    assert {row.rank for row in ranking.rows} == {1}
    assert ranking.notes[1].startswith(
        "order not proven on v5e: 0 pairs of published runs of one program, and 6 are"
    )


def test_a_candidate_without_an_interval_has_no_rank() -> None:
    """It is the last, with its bound."""
    assert ranks(row(1, 1, 2, interval=None, bound=Fraction(1)), row(0, 10, 20)) == [
        ("v5litepod-16", 1),
        ("v5litepod-64", None),
    ]


def test_a_measured_step_is_the_cost() -> None:
    """A record has no error: its cost is one number, and is compared with every forecast."""
    seconds = {step_key(CANDIDATES[0]): Fraction(2), step_key(CANDIDATES[1]): Fraction(1)}
    prices = {"v5litepod-16": Fraction(16), "v5litepod-64": Fraction(64)}
    (ranking,) = rank([trial(each) for each in CANDIDATES[:2]], prices, seconds)
    assert [(each.slice.size, each.rank, each.costs) for each in ranking.rows] == [
        ("v5litepod-16", 1, (Fraction(2 * 4000 * 16, 3600),) * 3),
        ("v5litepod-64", 2, (Fraction(1 * 4000 * 64, 3600),) * 3),
    ]


def test_a_measured_step_scales_the_forecasts_of_its_generation() -> None:
    """The model of both programs has one time, so the step is in the middle; other generations have published runs."""
    seven = Fraction(7)
    seconds = {step_key(CANDIDATES[0]): seven}
    (ranking,) = rank([trial(each) for each in CANDIDATES[:3]], {}, seconds)
    measured, scaled, other = (
        each.interval for each in sorted(ranking.rows, key=lambda row: row.slice.size)
    )
    assert measured
    assert scaled
    assert other
    assert (measured.middle, scaled.middle, scaled.basis) == (
        seven,
        seven,
        "the record of v5litepod-16",
    )
    assert scaled.low < seven < scaled.high
    assert "published runs" in other.basis
    assert ranking.notes[1] == f"step is by {other.basis}; the record of v5litepod-16"


def test_a_record_faster_than_the_tpu_counts_for_nothing() -> None:
    """The candidate keeps its forecast, and a note names the record."""
    (ranking,) = rank([trial(CANDIDATES[0])], {}, {step_key(CANDIDATES[0]): Fraction(1, 10**6)})
    assert "not by the record of v5litepod-16, which is faster than the TPU can be" in ranking.notes
    assert not ranking.rows[0].is_measured


def test_without_a_price_chip_hours_are_compared() -> None:
    """A generation without a price makes all candidates comparable by chip hours alone, which is said."""
    prices = {"v5litepod-16": Fraction(16), "v6e-16": None}
    (ranking,) = rank([trial(CANDIDATES[0]), trial(CANDIDATES[2])], prices, {})
    assert ranking.unit == "chip hours"
    assert ranking.notes[0] == "by chip hours, as the spec has no price of v6e at this capacity"
