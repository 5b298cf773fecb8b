"""The table of fields."""

import time

import pytest

from tpucfg.changes.statements import Risk
from tpucfg.paths import pattern_steps
from tpucfg.review.changes.jobs.job_fields import OTHER, RULES, field_rule


def test_every_rule_decides_for_some_path() -> None:
    """No rule is hidden behind an earlier one, and each danger has its consequence."""
    for rule in RULES:
        steps = [step.replace("*", "x") for step in pattern_steps(rule.pattern) if step != "**"]
        assert field_rule(tuple(steps)) is rule, rule.pattern
        assert bool(rule.risk) == bool(rule.consequence)


@pytest.mark.parametrize(
    ("path", "subject", "risk"),
    [
        (("a", "containers", 1, "securityContext", "privileged"), "field", Risk.ACCESS),
        (("args", "--train_steps"), "argument", Risk.NONE),
        (("args", "", 0), "argument", Risk.NONE),
        (("startup-script", "--env.LD_PRELOAD"), "variable", Risk.CAUTION),
        (("metadata", "labels", "a.b/c"), "label", Risk.NONE),
        (("a", "hostNetworks"), "field", Risk.NONE),
        ((), "field", Risk.NONE),
    ],
)
def test_fields_are_found_at_any_depth(path: tuple[str | int, ...], subject: str, risk: Risk) -> None:
    """A pattern matches whole steps only."""
    rule = field_rule(path)
    assert (rule.subject, rule.risk) == (subject, risk)


def test_fifty_thousand_paths_take_seconds() -> None:
    """The largest config that a spec can have is classified in time."""
    start = time.process_time()
    assert all(field_rule(("spec", *range(12), f"x{number}")) is OTHER for number in range(50_000))
    assert time.process_time() - start < 10
