"""Rules about layers look at every job: a layer has an effect if it changes one of them."""

from copy import deepcopy
from typing import Any

import pytest

from spec_factory import compiled, document, ids, spec
from tpucfg.spec.parse import parse_project

ENVIRONMENTS = {name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("dev", "prod")}


def with_layers(dev: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a spec with two environments, of which one has layers."""
    environments: dict[str, Any] = deepcopy(ENVIRONMENTS)
    environments["dev"] |= dev or {}
    return spec(target="cloud-tpu", environments=environments, **changes)


@pytest.mark.parametrize(
    "data",
    [
        # The size's layer changes nothing in dev, and something in prod.
        with_layers({"trainer": {"env": {"A": "1"}}}, overrides={"v2-32": {"trainer": {"env": {"A": "1"}}}}),
        # It removes what only dev sets.
        with_layers({"trainer": {"env": {"A": "1"}}}, overrides={"v2-32": {"trainer": {"env": {"A": None}}}}),
        # A number is passed on as it is written.
        with_layers({"trainer": {"args": {"rate": 0.001}}}, trainer__args={"rate": "1e-3"}),
        # In args, null is a bare flag.
        with_layers({"trainer": {"args": {"bare": None}}}),
        # Two layers that agree have no dispute.
        with_layers({"capacity": "spot"}, overrides={"v2-32": {"capacity": "spot"}}, allow={"TPU058": "a test"}),
        # What is explicit is no repetition.
        with_layers({"capacity": "on-demand"}),
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
    assert not {"TPU005", "TPU014", "TPU015", "TPU016"} & {*ids(compiled(data).findings)}


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (with_layers({"trainer": {}}), "environments.dev.trainer"),
        (with_layers({"trainer": {"env": {"A": "1"}}}, trainer__env={"A": "1"}), "environments.dev.trainer"),
        (
            with_layers({"trainer": {"env": {"A": "1"}, "restarts": 2}}, trainer__env={"A": "1"}),
            "environments.dev.trainer.env",
        ),
        (with_layers({"targets": {"cloud-tpu": {"network": None}}}), "environments.dev.targets"),
        (with_layers({"capacity": "spot"}, capacity="spot"), "environments.dev.capacity"),
    ],
)
def test_the_largest_part_without_effect_is_one_finding(data: Any, path: str) -> None:
    """The help deletes the whole part, so that nothing empty is left."""
    (finding,) = [finding for finding in compiled(data).findings if finding.id == "TPU016"]
    assert finding.help == f"delete {path}"


def test_capacities_of_two_layers_are_reported_for_each_environment() -> None:
    """Each environment with a capacity of its own disputes that of the size."""
    data = with_layers({"capacity": "spot"}, overrides={"v2-32": {"capacity": "on-demand"}})
    data["environments"]["prod"]["capacity"] = "spot"
    disputes = [finding.help for finding in compiled(data).findings if finding.id == "TPU014"]
    assert disputes == [
        f"set environments.{name}.overrides.v2-32.capacity to on-demand, or to spot" for name in ("dev", "prod")
    ]


def test_a_broken_size_hides_no_mistake_of_another() -> None:
    """The sizes without an error are still checked."""
    trainers = {"v2-8": {"trainer": {"restarts": "many"}}, "v2-32": {"trainer": {"env": {"A": "${nope}"}}}}
    assert ids(parse_project(document(spec(overrides=trainers))).findings) == ["TPU006", "TPU009"]
