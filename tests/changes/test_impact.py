"""Warnings that a change adds, resolves or allows, and changed settings of jobs."""

from typing import Any

from spec_changes import impact, scaling_table, statements
from spec_factory import spec


def test_warnings_are_new_ended_or_allowed() -> None:
    """A warning with other numbers is listed and has not ended; neither has an allowed one, which is listed too."""
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


def test_a_job_that_is_never_deleted_is_a_change() -> None:
    """Without `ttl` a job that has ended stays for 12 hours, and with null for ever."""
    gke: dict[str, Any] = {"target": "gke", "sizes": ["v6e-8"], "training__tuned_on": "v6e-8"}
    gke["environments"] = {
        "dev": {"project": "my-project-dev", "region": "us-central1", "kube_context": "c"}
    }
    assert statements(spec(**gke), spec(**gke, targets={"gke": {"ttl": None}})) == [
        "dev: v6e-8: setting ttl changed from 12h to unlimited"
    ]


def test_a_default_that_the_spec_writes_is_no_change() -> None:
    """A default of the schema equals the same value in the spec."""
    defaults = {
        "ttl": "12h",
        "containers_per_host": 1,
        "host_network": False,
        "namespace": "default",
    }
    gke: dict[str, Any] = {"target": "gke", "sizes": ["v6e-8"], "training__tuned_on": "v6e-8"}
    gke["environments"] = {
        "dev": {"project": "my-project-dev", "region": "us-central1", "kube_context": "c"}
    }
    assert statements(spec(**gke), spec(**gke, targets={"gke": defaults})) == []


def test_a_reason_is_shown_beside_the_name_of_a_credential() -> None:
    """A reason for allowing a finding is prose; a token in it is still hidden."""
    token = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3g"

    def allowing(reason: str) -> dict[str, Any]:
        allow = {"TPU017": {"path": "trainer.env.HF_TOKEN", "reason": reason}}
        return spec(trainer__env={"HF_TOKEN": "dummy"}, allow=allow)

    (statement,) = statements(allowing("a public dummy"), allowing(f"not {token}"))
    assert "changed from a public dummy to not [secret]" in statement


def test_other_machine_has_other_hosts() -> None:
    """An override of the machine leaves the training unchanged, and the table shows the hosts."""
    gke: dict[str, Any] = {"target": "gke", "sizes": ["v6e-8"], "training__tuned_on": "v6e-8"}
    location = {"dev": {"project": "my-project-dev", "region": "us-central1", "kube_context": "c"}}
    before = spec(**gke, environments=location)
    after = spec(**gke, environments=location, overrides={"v6e-8": {"machine": "ct6e-standard-8t"}})

    assert scaling_table(before, after)["v6e-8 in dev"] == {"hosts": "2 → 1 (0.5×)"}
    assert any("machine type changed from" in statement for statement in statements(before, after))
