"""Config templates: they contain the fields of their target, and write every field that `extra` adds."""

import re
from typing import Any, Final

import pytest

from jobs import CATALOG, compiled, job
from spec_factory import ROOT
from tpucfg.paths import pattern_steps
from tpucfg.render.config import render_config, round_trip_finding
from tpucfg.targets import TARGETS, target_named
from tpucfg.targets.extra import merged_request_body
from tpucfg.yamldoc.writer import FieldWriter

SIZES: Final = {
    "vertex-ai": "v2-32",
    "cloud-tpu": "v2-32",
    "gke": "v6e-16",
    "ai-platform": "v2-8",
    "compute-engine": "v6e-16",
}


def test_the_template_indents_only_the_first_field() -> None:
    """The template writes the indentation or dash before the first field, and the writer those of the others."""
    writer = FieldWriter({"a": 1, "b": {"c": [2]}, "d": "x"}, indent=2)

    assert [writer.field("a"), writer.field("b"), writer.others()] == [
        "a: 1\n",
        "  b:\n    c:\n    - 2\n",
        "  d: x\n",
    ]


def test_fields_keep_the_order_of_the_mapping() -> None:
    """A field that is not the next one is written later, and no field is written twice."""
    writer = FieldWriter({"b": 1, "a": 2})

    assert [writer.field("a"), writer.field("missing"), writer.field("b"), writer.others(), writer.others()] == [
        "", "", "b: 1\n", "a: 2\n", "",
    ]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_a_template_names_the_fields_that_its_target_writes(target: str) -> None:
    """Each field with an origin is named in the template, so the template shows the structure of its file."""
    template = (ROOT / "templates" / target / "config.yaml.j2").read_text()
    words = set(re.findall(r"[\w-]+", template))
    field_names = {
        step for pattern in target_named(target).ORIGINS for step in pattern_steps(pattern)
    }

    assert {step for step in field_names if step.isalpha()} <= words


@pytest.mark.parametrize(
    ("target", "extra"),
    [
        (
            "vertex-ai",
            {
                "scheduling": {"disableRetries": True},
                "baseOutputDirectory": {"a": 1},
                "experiment": "e",
            },
        ),
        (
            "vertex-ai",
            {"workerPoolSpecs": [{"containerSpec": {}, "machineSpec": {}, "replicaCount": 1}]},
        ),
        (
            "cloud-tpu",
            {"tpu": {"a": 1, "nodeSpec": [{"node": {}, "parent": "p"}]}, "queueingPolicy": {}},
        ),
        (
            "compute-engine",
            {
                "instanceGroupManager": {
                    "listManagedInstancesResults": "PAGINATED",
                    "description": "d",
                }
            },
        ),
        (
            "gke",
            {
                "spec": {
                    "suspend": True,
                    "replicatedJobs": [{"groupName": "g", "name": "n", "template": {}}],
                }
            },
        ),
        (
            "ai-platform",
            {"labels": {"a": "b"}, "trainingInput": {"masterConfig": {"imageUri": "i"}, "a": [1]}},
        ),
    ],
)
def test_fields_of_extra_are_written_in_order(target: str, extra: dict[str, Any]) -> None:
    """The text equals the request body, also with fields in `extra` that no template names."""
    job_ = job(target, SIZES[target], options={"extra": extra})

    assert round_trip_finding(render_config(job_, merged_request_body(job_).body)) is None


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_size_is_written_completely(target: str) -> None:
    """For every size and target, the text has all fields of the request body."""
    for slice_ in CATALOG.all():
        if target in slice_.targets:
            for job_, body in compiled(target, slice_.size).request_bodies:
                assert round_trip_finding(render_config(job_, body)) is None
