"""The longest time that a job may use its slice, and the most that it can cost."""

from fractions import Fraction
from typing import Any

import pytest

from jobs import job
from spec_factory import compiled, spec
from tpucfg.results.cost import RunLimit, cost_limit_text, run_limit
from tpucfg.spec.project import Number, Prices
from tpucfg.targets import RequestBody, target_named

PRICES: Prices = {
    "v6e": {"on-demand": Number(Fraction(27, 10), "2.7"), "spot": Number(Fraction(7, 5), "1.4")}
}
SIZES = {
    "vertex-ai": "v6e-16",
    "cloud-tpu": "v6e-16",
    "gke": "v6e-16",
    "ai-platform": "v2-8",
    "compute-engine": "v6e-16",
}
FREE_RESTARTS = "a restart after a disruption is not counted"
NO_DURATION = "set trainer.max_run_duration"


def limit_of(target: str, size: str = "", **trainer: Any) -> RunLimit:
    """Return the limit of the config of a job."""
    job_, body = job_and_body(target, size, trainer)
    return run_limit(job_, body)


def cost_of(target: str, size: str = "", prices: Prices = PRICES, **trainer: Any) -> str:
    """Return the text about the most that a job can cost; `capacity` is that of the spec."""
    job_, body = job_and_body(target, size, trainer)
    return cost_limit_text(job_, body, prices)


def job_and_body(target: str, size: str, trainer: dict[str, Any]) -> tuple[Any, RequestBody]:
    """Return a job and its config."""
    capacity = {"capacity": trainer.pop("capacity")} if "capacity" in trainer else {}
    runtime = {"runtime": "2.2"} if target == "ai-platform" else {}
    job_ = job(
        target,
        size or SIZES[target],
        trainer={**runtime, **trainer},
        environment={"region": "us-east5"},
        **capacity,
    )
    return job_, target_named(target).request_body(job_)


@pytest.mark.parametrize("target", SIZES)
def test_a_run_duration_bounds_every_target(target: str) -> None:
    """Each config has the limit; without a duration there is none, whatever the service does by default."""
    assert limit_of(target, max_run_duration="90m").hours == Fraction(3, 2)
    assert limit_of(target) == RunLimit(None, unbounded=NO_DURATION)
    assert limit_of(target).hours is None


@pytest.mark.parametrize("target", ["vertex-ai", "cloud-tpu", "compute-engine", "gke"])
def test_no_restart_changes_nothing(target: str) -> None:
    """Zero restarts are one attempt."""
    assert limit_of(target, max_run_duration="1h", restarts=0).hours == 1


def test_restarts_of_cloud_tpu_are_within_the_deadline() -> None:
    """The deadline of the slice is absolute: a restart of the program does not extend it."""
    assert limit_of("cloud-tpu", max_run_duration="1h", restarts=3).hours == 1


def test_restarts_on_gke_have_a_deadline_each() -> None:
    """Each of the counted attempts has the deadline, and those after a disruption have no bound."""
    limit = limit_of("gke", max_run_duration="1h", restarts=3)
    assert limit.attempts == 4
    assert limit.counted_hours == 4
    assert limit.hours is None


def test_kueue_limits_all_restarts_together() -> None:
    """With a queue, a label bounds the run, with those restarts that are not counted."""
    job_ = job(
        "gke", "v6e-16", trainer={"max_run_duration": "1h", "restarts": 3}, options={"queue": "q"}
    )
    assert run_limit(job_, target_named("gke").request_body(job_)).hours == 1


def test_a_jobset_whose_restarts_all_count_is_bounded() -> None:
    """A policy without an action that restarts for free, as in a config written by hand, counts every restart."""
    job_, body = job_and_body("gke", "", {"max_run_duration": "1h"})
    counted = {**body, "spec": {**body["spec"], "failurePolicy": {"maxRestarts": 2}}}
    assert run_limit(job_, counted).hours == 3


@pytest.mark.parametrize(
    ("target", "changes", "text"),
    [
        ("gke", {}, f"not bounded: {NO_DURATION}"),
        ("gke", {"restarts": 3}, f"not bounded: {NO_DURATION}"),
        ("gke", {"max_run_duration": "12h"}, "at most $518.40: 12h × 16 chips × $2.7"),
        ("vertex-ai", {"max_run_duration": "2d"}, "at most $2,073.60: 2d × 16 chips × $2.7"),
        (
            "cloud-tpu",
            {"max_run_duration": "90m", "capacity": "spot"},
            "at most $33.60: 90m × 16 chips × $1.4",
        ),
        (
            "compute-engine",
            {"max_run_duration": "90m", "restarts": 2},
            "at most $64.80: 90m × 16 chips × $2.7",
        ),
        (
            "gke",
            {"max_run_duration": "12h", "restarts": 1},
            f"not bounded: {FREE_RESTARTS}; without any, at most $1,036.80: 12h × 2 attempts × 16 chips × $2.7",
        ),
        (
            "gke",
            {"max_run_duration": "12h", "capacity": {"reservation": "r"}},
            "at most 192 chip hours: 12h × 16 chips (no price for v6e reservation)",
        ),
    ],
)
def test_the_cost_has_its_factors(target: str, changes: dict[str, Any], text: str) -> None:
    """The price is that of the capacity; without one, the chip hours are bounded."""
    assert cost_of(target, **changes) == text


@pytest.mark.parametrize(
    ("size", "chips", "dollars"), [("v6e-16x2", 32, "1,036.80"), ("v6e-16x4", 64, "2,073.60")]
)
def test_every_slice_is_paid(size: str, chips: int, dollars: str) -> None:
    """Several slices have the chips of all of them."""
    for target in ("gke", "cloud-tpu"):
        assert (
            cost_of(target, size, max_run_duration="12h")
            == f"at most ${dollars}: 12h × {chips} chips × $2.7"
        )


def test_extra_cannot_set_a_limit() -> None:
    """The deadline is decided by the spec, so that what `submit` prints cannot be contradicted."""
    extra = {"vertex-ai": {"extra": {"scheduling": {"timeout": "60s"}}}}
    refused = compiled(spec(targets=extra))
    assert "TPU067" in [finding.id for finding in refused.findings]
    assert all(run_limit(job_, body).hours is None for job_, body in refused.request_bodies)
