"""Rules about layers look at every job: a removal has an effect if it changes one of them."""

from copy import deepcopy
from typing import Any

import pytest

from spec_factory import compiled, document, ids, spec
from tpucfg.spec.parse import parse_project

ENVIRONMENTS = {
    name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("dev", "prod")
}


def with_layers(dev: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a spec with two environments, of which one has layers."""
    environments: dict[str, Any] = deepcopy(ENVIRONMENTS)
    environments["dev"] |= dev or {}
    return spec(target="cloud-tpu", environments=environments, **changes)


@pytest.mark.parametrize(
    "data",
    [
        # It removes what only dev sets.
        with_layers(
            {"trainer": {"env": {"A": "1"}}}, overrides={"v2-32": {"trainer": {"env": {"A": None}}}}
        ),
        # In args, null is a bare flag.
        with_layers({"trainer": {"args": {"bare": None}}}),
        # Two layers that agree have no dispute.
        with_layers(
            {"capacity": "spot"},
            overrides={"v2-32": {"capacity": "spot"}},
            allow={"TPU058": "a test"},
        ),
        # The size of the environment decides.
        with_layers(
            {"capacity": "spot", "overrides": {"v2-32": {"capacity": "on-demand"}}},
            overrides={"v2-32": {"capacity": "on-demand"}},
            allow={"TPU058": "a test"},
        ),
    ],
)
def test_a_layer_with_an_effect_in_one_job_is_no_finding(data: Any) -> None:
    """No rule about layers reports these."""
    assert not {"TPU005", "TPU014", "TPU015"} & {*ids(compiled(data).findings)}


def test_a_removal_of_nothing_names_what_it_may_mean() -> None:
    """An entry that no layer before sets is an error in env, secrets and args, with the nearest name."""
    data = with_layers({"trainer": {"env": {"LOGS": None}}}, trainer__env={"LOG": "1"})
    (finding,) = [finding for finding in compiled(data).findings if finding.id == "TPU015"]
    assert finding.help == "did you mean LOG?"
    data = with_layers({"trainer": {"args": {"x": {"remove": True}}}})
    (finding,) = [finding for finding in compiled(data).findings if finding.id == "TPU015"]
    assert finding.help == "delete environments.dev.trainer"


def test_capacities_of_two_layers_are_reported_for_each_environment() -> None:
    """Each environment with a capacity of its own disputes that of the size."""
    data = with_layers({"capacity": "spot"}, overrides={"v2-32": {"capacity": "on-demand"}})
    data["environments"]["prod"]["capacity"] = "spot"
    disputes = [finding.help for finding in compiled(data).findings if finding.id == "TPU014"]
    assert disputes == [
        f"set environments.{name}.overrides.v2-32.capacity to on-demand, or to spot"
        for name in ("dev", "prod")
    ]


def test_a_broken_size_hides_no_mistake_of_another() -> None:
    """The sizes without an error are still checked."""
    trainers = {
        "v2-8": {"trainer": {"restarts": "many"}},
        "v2-32": {"trainer": {"env": {"A": "${nope}"}}},
    }
    assert ids(parse_project(document(spec(overrides=trainers))).findings) == ["TPU006", "TPU009"]
