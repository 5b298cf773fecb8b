"""Which environments are shown as one."""

from spec_factory import planned, spec
from tpucfg.plan.grouping import group_ladders


def test_environments_that_climb_alike_are_one_climb() -> None:
    """Region, target and ladder decide; the order is that of the jobs."""
    alike = {"project": "my-project-a", "region": "us-central1"}
    environments = {
        "dev": alike,
        "elsewhere": {"project": "my-project-c", "region": "europe-west4"},
        "lower": {**alike, "project": "my-project-d", "sizes": ["v2-8"]},
        "test": {**alike, "project": "my-project-b"},
    }

    groups = group_ladders(planned(spec(environments=environments)).jobs)

    assert [group.title for group in groups] == [
        "dev, test: vertex-ai in us-central1",
        "elsewhere: vertex-ai in europe-west4",
        "lower: vertex-ai in us-central1",
    ]
    assert [[rung.size for rung in group.rungs] for group in groups] == [["v2-8", "v2-32"], ["v2-8", "v2-32"], ["v2-8"]]


def test_environments_that_differ_in_what_is_shown_of_them_are_apart() -> None:
    """What was measured in one of them says nothing of the other."""
    alike = {"project": "my-project-a", "region": "us-central1"}
    jobs = planned(
        spec(environments={name: {**alike, "bucket": f"my-{name}"} for name in ("dev", "prod", "test")})
    ).jobs

    groups = group_ladders(jobs, {"dev": 1, "prod": 2, "test": 1})

    assert [group.environments for group in groups] == [("dev", "test"), ("prod",)]


def test_no_jobs_climb_nothing() -> None:
    """A plan without jobs has no climb."""
    assert group_ladders(()) == ()
