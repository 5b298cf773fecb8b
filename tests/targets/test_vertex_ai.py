"""Escaping of values for Vertex AI, the notes of its commands, and configs with an accelerator of another machine."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import job
from spec_factory import CATALOG, document
from tpucfg.render.pipeline import config_findings
from tpucfg.targets import vertex_ai
from tpucfg.targets.vertex_ai.request import escape_references


def expanded_by_the_service(text: str) -> str:
    """Expand a variable's value as Vertex AI does: `$(NAME)` is replaced, and `$$(NAME)` becomes `$(NAME)`.

    https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar
    """

    def expand(match: re.Match[str]) -> str:
        dollars = len(match[1])
        return "$" * (dollars // 2) + (f"({match[2]})" if dollars % 2 == 0 else "<a variable>")

    return re.sub(r"(\$+)\(([^$()]*)\)", expand, text)


@given(st.lists(st.sampled_from(["$", "$$", "$(A)", "$$(B)", ")", "A", " "])).map("".join))
def test_values_are_never_references(text: str) -> None:
    """With any number of dollar signs before a parenthesis, the program gets the value of the spec."""
    assert expanded_by_the_service(escape_references(text)) == text


def test_variables_are_escaped_and_arguments_are_not() -> None:
    """By Google's documentation, references are expanded only in variables, and a single dollar is no reference."""
    trainer = {"args": {"title": "costs $5 $(X)"}, "env": {"A": "$(B)", "C": "$5 $$(D)"}}
    program = vertex_ai.request_body(job("vertex-ai", "v2-8", trainer=trainer))["workerPoolSpecs"][
        0
    ]["containerSpec"]

    assert program["args"][0] == "--title=costs $5 $(X)"
    assert program["env"] == [{"name": "A", "value": "$$(B)"}, {"name": "C", "value": "$5 $$$$(D)"}]


@pytest.mark.parametrize(
    ("image", "images", "printed"),
    [
        ("us-docker.pkg.dev/acme-images/train/mnist:1.0", {}, True),
        ("us-docker.pkg.dev/acme-images/train/mnist:1.0", {"images": {"grant": False}}, False),
        ("us-docker.pkg.dev/my-project/train/mnist:1.0", {}, False),
        ("docker.io/acme/mnist:1.0", {}, False),
    ],
)
def test_the_grant_on_a_repository_of_another_project_is_printed(
    image: str, images: dict[str, Any], printed: bool
) -> None:
    """The service's own agent pulls the image, so that no grant of the stack lets it."""
    notes = vertex_ai.submission(
        job("vertex-ai", "v2-8", trainer={"image": image}, environment=images)
    ).notes
    grants = [
        note
        for note in notes
        if "add-iam-policy-binding train --project=acme-images --location=us " in note
    ]
    assert bool(grants) == printed
    assert all("service-$(gcloud projects describe my-project " in note for note in grants)


POOL = "workerPoolSpecs[0].machineSpec"
TYPE, COUNT, MACHINE, TOPOLOGY = (
    f"{POOL}.{key}" for key in ("acceleratorType", "acceleratorCount", "machineType", "tpuTopology")
)


@pytest.mark.parametrize(
    ("machine", "accelerator", "expected"),
    [
        (
            "cloud-tpu",
            "TPU_V5_LITEPOD",
            {
                "TPU074": f"set {MACHINE} to ct5lp-hightpu-4t and {TOPOLOGY} to 4x4, "
                "and delete acceleratorType and acceleratorCount"
            },
        ),
        (
            "cloud-tpu",
            "TPU_V6E",
            {
                "TPU073": f"set {MACHINE} to ct6e-standard-4t and {TOPOLOGY} to 4x4, "
                "and delete acceleratorType and acceleratorCount"
            },
        ),
        ("cloud-tpu", "TPU_V4", {"TPU073": f"set {TYPE} to TPU_V2 or TPU_V3"}),
        ("cloud-tpu", "NVIDIA_TESLA_T4", {"TPU074": f"set {TYPE} to TPU_V2 or TPU_V3"}),
        ("cloud-tpu", "TPU-V3", {"TPU073": "did you mean TPU_V3?"}),
    ],
)
def test_an_accelerator_of_another_machine(
    machine: str, accelerator: str, expected: dict[str, str]
) -> None:
    """The finding is about the accelerator; for a generation of other fields, the help is its machine and topology."""
    config = config_with(machineType=machine, acceleratorType=accelerator, acceleratorCount=16)
    findings = config_findings(document(config), "vertex-ai", CATALOG)
    assert {finding.id: finding.help for finding in findings} == expected
    assert all(finding.message.startswith(TYPE) for finding in findings)


def test_a_machine_with_a_topology_takes_no_accelerator() -> None:
    """An accelerator of another generation is deleted as any other; the machine has TPUs."""
    config = config_with(
        machineType="ct6e-standard-4t",
        tpuTopology="4x4",
        acceleratorType="TPU_V3",
        acceleratorCount=8,
    )
    findings = config_findings(document(config), "vertex-ai", CATALOG)
    assert {finding.help for finding in findings} == {f"delete {TYPE}", f"delete {COUNT}"}


def config_with(**machine: Any) -> dict[str, Any]:
    """Return a config with a machine."""
    return {
        "workerPoolSpecs": [
            {"machineSpec": machine, "replicaCount": 1, "containerSpec": {"imageUri": "image"}}
        ],
        "serviceAccount": "trainer@my-project.iam.gserviceaccount.com",
    }
