"""Grouping of environments with the same ladder."""

from typing import Any

from spec_factory import planned, spec
from tpucfg.plan.selection import group_ladders


def test_environments_with_the_same_ladder_are_one_group() -> None:
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
    assert [[rung.size for rung in group.rungs] for group in groups] == [
        ["v2-8", "v2-32"],
        ["v2-8", "v2-32"],
        ["v2-8"],
    ]


def test_environments_that_are_shown_differently_are_separate_groups() -> None:
    """Environments with different measurements are separate groups."""
    alike = {"project": "my-project-a", "region": "us-central1"}
    jobs = planned(
        spec(
            environments={
                name: {**alike, "bucket": f"my-{name}"} for name in ("dev", "prod", "test")
            }
        )
    ).jobs

    groups = group_ladders(jobs, {"dev": 1, "prod": 2, "test": 1})

    assert [group.environments for group in groups] == [("dev", "test"), ("prod",)]


def test_environments_with_other_capacities_are_separate_groups() -> None:
    """One rung with another capacity is enough, as it has another price."""
    environments: dict[str, dict[str, Any]] = {
        name: {"project": f"my-project-{name}", "region": "us-central1", "capacity": "spot"}
        for name in ("dev", "prod", "test")
    }
    environments["prod"] |= {"overrides": {"v2-32": {"capacity": "on-demand"}}}

    groups = group_ladders(planned(spec(environments=environments)).jobs)

    assert [(group.environments, group.capacities) for group in groups] == [
        (("dev", "test"), ("spot", "spot")),
        (("prod",), ("spot", "on-demand")),
    ]


def test_no_jobs_have_no_groups() -> None:
    """A plan without jobs has no group."""
    assert group_ladders(()) == ()
