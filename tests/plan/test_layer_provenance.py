"""Provenance of layered settings: the layer that sets a value, and those that it overrides."""

from typing import Any

import pytest

from spec_factory import planned, spec
from tpucfg.plan.provenance import layer_reasons, setting_reasons

SPEC = spec(
    capacity="spot",
    trainer__env={"A": "1", "B": "1", "C": "1"},
    trainer__args={"data_dir": "${bucket}/data"},
    environments__dev__trainer={"env": {"A": "2"}, "args": {"data_dir": {"remove": True}}},
    environments__dev__overrides={
        "v2-32": {"capacity": "on-demand", "trainer": {"env": {"A": "3", "C": None}}}
    },
)
OWN = "environments.dev.overrides.v2-32"


def texts(setting: tuple[str, ...], size: str = "v2-32", data: Any = SPEC) -> list[str]:
    """Return the texts of the reasons for a setting."""
    plan = planned(data, sizes=(size,))
    return [reason.text for reason in setting_reasons(plan.project, plan.jobs[0], setting)]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (
            ("capacity",),
            [f"{OWN}.capacity: on-demand, set in {OWN}", f"capacity: spot, which {OWN} overrides"],
        ),
        (
            ("trainer", "env", "A"),
            [
                f"{OWN}.trainer.env.A: 3, set in {OWN}",
                f"environments.dev.trainer.env.A: 2, which {OWN} overrides",
                f"trainer.env.A: 1, which {OWN} overrides",
            ],
        ),
        (
            ("trainer", "env", "C"),
            [
                f"{OWN}.trainer.env.C: taken away, set in {OWN}",
                f"trainer.env.C: 1, which {OWN} overrides",
            ],
        ),
        (
            ("trainer", "args", "data_dir"),
            [
                "environments.dev.trainer.args.data_dir: taken away, set in environments.dev",
                "trainer.args.data_dir: ${bucket}/data, which environments.dev overrides",
            ],
        ),
        (("trainer", "env"), [f"{OWN}.trainer.env.A: 3, set in {OWN}", "trainer.env.B: 1"]),
        (("trainer", "restarts"), ["no layer sets trainer.restarts: the target's default applies"]),
    ],
)
def test_the_winner_is_first_and_names_its_layer(
    setting: tuple[str, ...], expected: list[str]
) -> None:
    """The layer that wins is first, then come the layers that it overrides, the nearest first."""
    assert texts(setting) == expected


def test_a_layer_of_another_job_takes_no_part() -> None:
    """The layer of one size is no reason on another size."""
    assert texts(("capacity",), size="v2-8") == ["capacity: spot"]
    assert texts(("capacity",), data=spec()) == ["no layer sets capacity: it is on-demand"]


def test_every_reason_has_the_line_of_its_layer() -> None:
    """Each reason is located at the key of its own layer."""
    plan = planned(SPEC, sizes=("v2-32",))
    reasons = list(setting_reasons(plan.project, plan.jobs[0], ("trainer", "env", "A")))
    lines = plan.project.document.text.split("\n")
    assert [
        lines[reason.location.line - 1].split()[-1] for reason in reasons if reason.location
    ] == [
        '"3",',
        '"2"',
        '"1",',
    ]


def test_a_mapping_names_all_its_layers() -> None:
    """All layers of a merged mapping take part in the field that is made of it."""
    plan = planned(SPEC, sizes=("v2-32",))
    reasons = layer_reasons(plan.project, plan.jobs[0], ("trainer", "env"))
    assert [reason.text for reason in reasons] == [
        f"{OWN}.trainer.env, set in {OWN}",
        "environments.dev.trainer.env, set in environments.dev",
        "trainer.env",
    ]


def test_a_reservation_is_one_value() -> None:
    """A reservation replaces the capacity of an earlier layer, although it is written as a mapping."""
    data = spec(capacity="on-demand", environments__dev__capacity={"reservation": "chat"})
    plan = planned(data, sizes=("v2-32",))
    reasons = layer_reasons(plan.project, plan.jobs[0], ("capacity",))
    assert [reason.text for reason in reasons] == [
        "environments.dev.capacity, set in environments.dev",
        "capacity: on-demand, which environments.dev overrides",
    ]


def test_an_argument_is_located_in_the_layer_that_sets_it() -> None:
    """The short form `args` of a size is a layer of the program's args."""
    data = spec(trainer__args={"data_dir": "a"}, overrides={"v2-32": {"args": {"data_dir": "b"}}})
    expected = [
        "overrides.v2-32.args.data_dir: b, set in overrides.v2-32",
        "trainer.args.data_dir: a, which overrides.v2-32 overrides",
    ]
    assert texts(("trainer", "args", "data_dir"), data=data) == expected
