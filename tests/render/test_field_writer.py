"""Config templates: they show the fields of their file, and lose none that `extra` adds."""

import re
from typing import Any, Final

import pytest

from jobs import CATALOG, compiled, job
from spec_factory import ROOT
from tpucfg.render.field_writer import FieldWriter
from tpucfg.render.pipeline import build_request_body, render_config, round_trip_finding
from tpucfg.targets import TARGETS, target_named
from tpucfg.targets.interface import pattern_steps

SIZES: Final = {"vertex-ai": "v2-32", "cloud-tpu": "v2-32", "gke": "v6e-16", "ai-platform": "v2-8"}


def test_the_first_field_is_indented_by_the_template_and_the_others_by_the_writer() -> None:
    """A template writes the margin of a mapping's first line, or the dash of a list's entry."""
    writer = FieldWriter({"a": 1, "b": {"c": [2]}, "d": "x"}, indent=2)

    assert [writer.field("a"), writer.field("b"), writer.others()] == ["a: 1\n", "  b:\n    c:\n    - 2\n", "  d: x\n"]


def test_a_field_that_is_not_the_next_one_is_left_to_the_others() -> None:
    """The order of the mapping is kept where it is not that of the template, and no field is written twice."""
    writer = FieldWriter({"b": 1, "a": 2})

    assert [writer.field("a"), writer.field("missing"), writer.field("b"), writer.others(), writer.others()] == [
        "", "", "b: 1\n", "a: 2\n", "",
    ]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_a_template_names_the_fields_that_its_target_writes(target: str) -> None:
    """Each field with an origin is in the template's own words, so the template shows the shape of its file."""
    template = (ROOT / "templates" / target / "config.yaml.j2").read_text()
    words = set(re.findall(r"[\w-]+", template))
    named = {step for pattern in target_named(target).ORIGINS for step in pattern_steps(pattern)}

    assert {step for step in named if step.isalpha()} <= words


@pytest.mark.parametrize(
    ("target", "extra"),
    [
        ("vertex-ai", {"scheduling": {"disableRetries": True}, "baseOutputDirectory": {"a": 1}, "experiment": "e"}),
        (
            "vertex-ai",
            {"workerPoolSpecs": [{"containerSpec": {}, "machineSpec": {}, "replicaCount": 1}]},
        ),
        (
            "cloud-tpu",
            {"tpu": {"a": 1, "nodeSpec": [{"node": {}, "parent": "p"}]}, "queueingPolicy": {}},
        ),
        ("gke", {"spec": {"suspend": True, "replicatedJobs": [{"groupName": "g", "name": "n", "template": {}}]}}),
        ("ai-platform", {"labels": {"a": "b"}, "trainingInput": {"masterConfig": {"imageUri": "i"}, "a": [1]}}),
    ],
)
def test_what_extra_adds_or_replaces_is_written_in_its_order(target: str, extra: dict[str, Any]) -> None:
    """The text is the request body to the letter, also where `extra` has fields that no template names."""
    made = job(target, SIZES[target], options={"extra": extra})

    assert round_trip_finding(render_config(made, build_request_body(made))) is None


@pytest.mark.parametrize("target", TARGETS)
def test_every_size_is_written_to_the_letter(target: str) -> None:
    """No size of the catalog and no target lacks a field of its request body in the text."""
    for slice_ in CATALOG.all():
        if target in slice_.targets:
            for made, body in compiled(target, slice_.size).request_bodies:
                assert round_trip_finding(render_config(made, body)) is None
