"""Findings about specs for ai-platform, and their locations."""

import json
from typing import Any

import pytest

from ai_platform_specs import compiled, container, located_text, spec
from tpucfg.findings import errors

REFUSED: list[tuple[str, dict[str, Any], str, str, str]] = [
    (
        "a size of more than 8 cores",
        spec(sizes=["v2-8", "v2-32"]),
        "TPU024",
        '"v2-32"',
        "ai-platform does not support v2-32: AI Platform Training takes ",
    ),
    (
        "v3 on the basic tier",
        spec(
            sizes=["v3-8"],
            training={"tuned_on": "v3-8"},
            targets={"ai-platform": {"machine": "basic"}},
        ),
        "TPU026",
        '"basic"',
        "v3-8 does not run with machine basic, which has TPU v2 only",
    ),
    (
        "v3 on a legacy machine",
        spec(
            sizes=["v3-8"],
            training={"tuned_on": "v3-8"},
            targets={"ai-platform": {"machine": "legacy"}},
        ),
        "TPU026",
        '"legacy"',
        "v3-8 does not run with machine legacy, which has TPU v2 only",
    ),
    (
        "a machine for one rung",
        spec(overrides={"v2-8": {"machine": "n1-highcpu-16"}}),
        "TPU026",
        '"n1-highcpu-16"',
        "v2-8 cannot run on n1-highcpu-16: ai-platform chooses the machine itself",
    ),
    (
        "a region without TPUs",
        spec(environments={"dev": {"region": "us-west1"}}),
        "TPU027",
        '"us-west1"',
        "AI Platform Training has no TPUs in us-west1, only in us-central1 and europe-west4",
    ),
    (
        "a runtime without TPU support",
        spec(trainer={"runtime": "2.3"}),
        "TPU052",
        '"2.3"',
        "runtime 2.3 has no TPU support on AI Platform Training; 1.13, 1.14, 1.15, 2.1, 2.2 have",
    ),
    (
        "no runtime",
        spec(trainer={"runtime": None}),
        "TPU005",
        '"trainer"',
        "trainer needs the key runtime on ai-platform: its TensorFlow and the trainer's must match",
    ),
    (
        "no Python",
        spec(trainer={"python": None}),
        "TPU005",
        '"trainer"',
        "trainer needs the key python on ai-platform: a package runs in the runtime's Python",
    ),
    (
        "containers without a runtime",
        container(runtime=None),
        "TPU005",
        '"trainer"',
        "trainer needs the key runtime on ai-platform: its TensorFlow and the trainer's must match",
    ),
    (
        "containers of another TensorFlow",
        container(runtime="2.9"),
        "TPU052",
        '"2.9"',
        "runtime 2.9 has no TPU support on AI Platform Training; 1.13, 1.14, 1.15, 2.1, 2.2 have",
    ),
    (
        "environment variables",
        spec(trainer={"env": {"TF_CPP_MIN_LOG_LEVEL": "2"}}),
        "TPU059",
        '"env"',
        "ai-platform sets no environment variables for the program",
    ),
    (
        "a package in a container",
        spec(trainer={"image": "gcr.io/my-project/master:1.0"}),
        "TPU054",
        '"package"',
        "trainer.image and trainer.package exclude each other on ai-platform: a container contains its program",
    ),
    (
        "parameter servers by way of extra",
        spec(targets={"ai-platform": {"extra": {"trainingInput": {"parameterServerCount": 1}}}}),
        "TPU068",
        '"parameterServerCount"',
        (
            "trainingInput.parameterServerCount in extra would add machines that the plan does not count, "
            "and that is decided by sizes"
        ),
    ),
]


@pytest.mark.parametrize(
    ("data", "id_", "location", "message"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_a_spec_that_the_service_refuses_is_one_error(
    data: dict[str, Any], id_: str, location: str, message: str
) -> None:
    """A spec that the service refuses has one error, at the value or key at fault, with a help."""
    (finding,) = errors(compiled(data).findings)
    assert (finding.id, located_text(finding, data)) == (id_, location)
    assert finding.message.startswith(message)
    assert finding.help


def test_a_refused_size_names_the_targets_that_support_it() -> None:
    """The help for v3-32 names the targets that support it."""
    (finding,) = errors(
        compiled(spec(sizes=["v3-8", "v3-32"], training={"tuned_on": "v3-8"})).findings
    )
    assert finding.id == "TPU024"
    assert "vertex-ai, cloud-tpu, gke" in finding.help


def test_the_runtimes_finding_says_that_tensorflow_must_match() -> None:
    """The help about the runtime names what it must match."""
    (finding,) = errors(compiled(spec(trainer={"runtime": "2.3"})).findings)
    assert finding.help == "choose the one with the trainer's own TensorFlow: the two must match"


def test_the_end_of_the_service_is_one_warning() -> None:
    """Two environments have one warning together, where the target is chosen, with the target to move to."""
    sizes = {"sizes": ["v2-8"], "region": "us-central1"}
    data = spec(environments={"prod": {"project": "my-project-prod", **sizes}})
    (finding,) = compiled(data).findings
    assert (finding.id, finding.level, located_text(finding, data)) == (
        "TPU060",
        "warning",
        '"ai-platform"',
    )
    assert "2025-01-31" in finding.message
    assert finding.help == "move to vertex-ai, which replaced it: set target to vertex-ai"
    assert finding.details == (
        "announced at https://cloud.google.com/ai-platform/training/docs/deprecations",
    )


def test_the_end_of_the_service_is_reported_at_the_environment_that_chooses_it() -> None:
    """If only an environment has this target, the warning is at its line."""
    own = {"dev": {"target": "ai-platform"}}
    data = spec(target="vertex-ai", environments=own)
    (finding,) = compiled(data).findings
    assert finding.id == "TPU060"
    assert finding.location.line > json.dumps(data, indent=1).splitlines().index(
        ' "environments": {'
    )


def test_an_allowed_region_renders() -> None:
    """A region that the spec allows with a reason is one note, and the config is rendered."""
    data = spec(
        environments={"dev": {"region": "asia-east1"}}, allow={"TPU027": "a TPU was granted there"}
    )
    result = compiled(data)
    assert [(finding.level, finding.id) for finding in result.findings] == [
        ("warning", "TPU060"),
        ("note", "TPU027"),
    ]
    assert result.request_bodies[0][1]["trainingInput"]["region"] == "asia-east1"
