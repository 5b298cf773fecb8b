"""Warnings that a change adds, resolves or allows, and changed settings of jobs."""

from typing import Any

from spec_changes import impact, scaling_table, statements
from spec_factory import spec


def test_warnings_are_new_ended_or_allowed() -> None:
    """A warning with another text is new and none has ended; an allowed warning has not ended, and is listed."""
    small, large = spec(training__train_steps=300), spec(training__train_steps=200)
    allowed = spec(training__train_steps=300, allow={"TPU042": "a try"})

    assert [finding.id for finding in impact(spec(), small).new_warnings] == ["TPU042"]
    assert [finding.id for finding in impact(small, large).new_warnings] == ["TPU042"]
    assert impact(small, large).ended_warnings == ()
    silenced = impact(small, allowed)
    assert silenced.ended_warnings == ()
    assert [finding.id for finding in silenced.allowed] == ["TPU042"]
    assert statements(small, allowed) == ["TPU042 is now allowed (a try)"]
    assert statements(allowed, small) == ["TPU042 is no longer allowed"]
    assert [finding.id for finding in impact(allowed, small).new_warnings] == ["TPU042"]


def test_other_machine_has_other_hosts() -> None:
    """An override of the machine leaves the training unchanged, and the table shows the hosts."""
    gke: dict[str, Any] = {"target": "gke", "sizes": ["v6e-8"], "training__tuned_on": "v6e-8"}
    location = {"dev": {"project": "my-project-dev", "region": "us-central1", "kube_context": "c"}}
    before = spec(**gke, environments=location)
    after = spec(**gke, environments=location, overrides={"v6e-8": {"machine": "ct6e-standard-8t"}})

    assert scaling_table(before, after)["v6e-8"] == {"hosts": "2 → 1 (0.5×)"}
    assert any("machine type changed from" in statement for statement in statements(before, after))
