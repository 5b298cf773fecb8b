"""The longest time that a job may run."""

from fractions import Fraction
from typing import Any

import pytest

from ai_platform_specs import SPEC as AI_PLATFORM
from spec_factory import compiled, spec
from tpucfg.results.run_limit import run_limit


@pytest.mark.parametrize(
    ("changes", "hours"),
    [
        ({}, None),
        ({"trainer__max_run_duration": "90m"}, Fraction(3, 2)),
        ({"targets": {"vertex-ai": {"extra": {"scheduling": {"timeout": "0.5s"}}}}}, Fraction(1, 7200)),
        ({"targets": {"ai-platform": {"extra": {"trainingInput": {"scheduling": {"maxRunningTime": "60s"}}}}}}, None),
    ],
)
def test_limit_is_that_of_the_config(changes: dict[str, Any], hours: Fraction | None) -> None:
    """A setting or `extra` sets it, in the config of the job's own target; otherwise there is none."""
    for job, body in compiled(spec(**changes)).request_bodies:
        assert run_limit(job, body) == hours


def test_ai_platform_has_a_limit_too() -> None:
    """`maxRunningTime` is its field."""
    extra = {"trainingInput": {"scheduling": {"maxRunningTime": "7200s"}}}
    ((job, body),) = compiled({**AI_PLATFORM, "targets": {"ai-platform": {"extra": extra}}}).request_bodies
    assert run_limit(job, body) == 2
