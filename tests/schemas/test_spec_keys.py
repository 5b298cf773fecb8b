"""The help for an unknown key of a spec is an edit that works: applied, it leaves no error."""

from copy import deepcopy
from typing import Any

import pytest

from autofix import apply_help
from spec_factory import CATALOG, document, finding_with_id, spec
from tpucfg.findings import Finding, errors
from tpucfg.render.pipeline import compile_project
from tpucfg.spec.parse import parse_project
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_text

GKE: dict[str, Any] = {
    "target": "gke",
    "sizes": ["v5litepod-16", "v5litepod-64"],
    "environments": {"dev": {"project": "my-project-dev", "region": "us-west4"}},
    "training": {"tuned_on": "v5litepod-16", "batch_size": 1024, "train_steps": 4000},
}
SIZE = "v5litepod-16"
TRAINER = "under trainer"
DEV = "under environments.dev"


def findings_of(text: Document) -> tuple[Finding, ...]:
    """Return all findings about a spec."""
    project, findings = parse_project(text)
    if project is None or project.broken:
        return findings
    return compile_project(project, CATALOG, earlier_findings=findings).findings


CASES: list[tuple[str, Any, str]] = [
    # Former keys of targets.
    ("targets__gke", {"spot": True}, "replace it by capacity: spot at the top of the file"),
    ("targets__gke", {"spot": False}, "delete spot"),
    ("targets__gke", {"reservation": "chat"}, "replace it by capacity: {reservation: chat} at the top of the file"),
    ("targets__vertex-ai", {"timeout": "86400s"}, f'replace it by max_run_duration: "86400s" {TRAINER}'),
    ("targets__vertex-ai", {"strategy": "SPOT"}, "replace it by capacity: spot at the top of the file"),
    ("targets__vertex-ai", {"strategy": "STANDARD"}, "replace it by capacity: on-demand at the top of the file"),
    ("environments__dev__targets", {"gke": {"spot": True}}, f"replace it by capacity: spot {DEV}"),
    ("overrides", {SIZE: {"targets": {"gke": {"spot": True}}}}, f"replace it by capacity: spot under overrides.{SIZE}"),
    # Words of capacity in other places.
    ("spot", True, "replace it by capacity: spot at the top of the file"),
    ("environments__dev__preemptible", True, f"replace it by capacity: spot {DEV}"),
    ("overrides", {SIZE: {"spot": True}}, f"replace it by capacity: spot under overrides.{SIZE}"),
    ("capacity", {"spot": True}, "set capacity to spot"),
    ("trainer__capacity", "spot", "capacity belongs at the top of the file: move it there, or delete it"),
    ("environments__dev__trainer", {"capacity": "spot"}, f"capacity belongs {DEV}: move it there, or delete it"),
    # Settings of the program, outside of the trainer of their layer.
    ("env", {"A": "1"}, f"env belongs {TRAINER}: move it there, or delete it"),
    ("environments__dev__env", {"A": "1"}, f"env belongs {DEV}.trainer: move it there, or delete it"),
    ("environments__dev__args", {"a": 1}, f"args belongs {DEV}.trainer: move it there, or delete it"),
    (
        "overrides",
        {SIZE: {"env": {"A": "1"}}},
        f"env belongs under overrides.{SIZE}.trainer: move it there, or delete it",
    ),
    (
        "overrides",
        {SIZE: {"restarts": 3}},
        f"restarts belongs under overrides.{SIZE}.trainer: move it there, or delete it",
    ),
    (
        "environments__dev__overrides",
        {SIZE: {"args": {"a": 1}}},
        f"args belongs {DEV}.overrides.{SIZE}.trainer: move it there, or delete it",
    ),
    ("targets__gke", {"env": {"A": "1"}}, f"env belongs {TRAINER}: move it there, or delete it"),
    ("trainer__timeout", 3600, f'replace it by max_run_duration: "3600s" {TRAINER}'),
    # Settings of a target.
    ("queue", "q", "queue belongs under targets.gke: move it there, or delete it"),
    ("environments__dev__gke", {"queue": "q"}, f"gke belongs {DEV}.targets: move it there, or delete it"),
    (
        "overrides",
        {SIZE: {"queue": "q"}},
        f"queue belongs under overrides.{SIZE}.targets.gke: move it there, or delete it",
    ),
    ("targets__gke", {"network": "n"}, "delete network"),
    # Figures, and what exists already.
    ("environments__dev__batch_size", 8, "delete environments.dev.batch_size: training.batch_size is already set"),
    ("environments__dev__training", {}, "delete environments.dev.training: training is already set"),
    ("image", "x", "delete image: trainer.image is already set"),
    (
        "environments__dev__overrides",
        {SIZE: {"grad_accum": 2}},
        f"grad_accum belongs under overrides.{SIZE}: move it there, or delete it",
    ),
    # Names of other tools.
    (
        "training__tokens",
        10**9,
        "delete tokens: training.train_steps is already set, and excludes train_tokens, which has this meaning",
    ),
    (
        "training__micro_batch",
        4,
        "delete micro_batch: the micro-batch follows from batch_size, grad_accum and model_parallel",
    ),
    ("training__gradient_accumulation_steps", 2, "did you mean grad_accum?"),
    ("training__global_batch_size", 8, "delete global_batch_size: training.batch_size is already set"),
    ("trainer__max_retries", 3, "did you mean restarts?"),
]


@pytest.mark.parametrize(("path", "value", "help_"), CASES, ids=[help_ for _, _, help_ in CASES])
def test_the_edit_works(path: str, value: Any, help_: str) -> None:
    """An unknown key is one finding, whose help is the exact edit; applied, it leaves no error."""
    text = document(spec(**{**deepcopy(GKE), path: value}))
    finding = finding_with_id("TPU004", errors(findings_of(text)))
    assert finding.help == help_
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


def test_tokens_are_a_name_of_train_tokens() -> None:
    """Without steps or epochs, `tokens` is one mistake, and its help names train_tokens."""
    training = {"tuned_on": SIZE, "batch_size": 1024, "tokens": 10**12, "sequence_length": 8192}
    text = document(spec(**{**deepcopy(GKE), "training": training}))
    (finding,) = findings_of(text)
    assert finding.help == "did you mean train_tokens?"
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


def test_a_replacement_does_not_overwrite() -> None:
    """A former key beside the key that replaces it can only be deleted."""
    text = document(spec(**{**deepcopy(GKE), "capacity": "on-demand", "targets": {"gke": {"spot": True}}}))
    assert finding_with_id("TPU004", findings_of(text)).help == "delete spot: capacity is already set"


def test_a_reservation_of_an_api_loses_its_zone() -> None:
    """The spec works out the zone itself, so the replacement has the project and the name."""
    reservation = {"reservation": "projects/my-project/zones/us-west4-a/reservations/tpu"}
    text = document(spec(**{**deepcopy(GKE), "target": "cloud-tpu", "targets": {"cloud-tpu": reservation}}))
    finding = finding_with_id("TPU004", findings_of(text))
    line = "capacity: {reservation: projects/my-project/reservations/tpu}"
    assert finding.help == f"replace it by {line} at the top of the file"
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


def test_a_flexible_start_needs_a_duration_too() -> None:
    """The replacement of FLEX_START is exact; the duration that this capacity needs is a finding of its own."""
    vertex_ai = {"vertex-ai": {"strategy": "FLEX_START"}}
    data = {**deepcopy(GKE), "targets": vertex_ai, "trainer": {"image": "a", "max_run_duration": "12h"}}
    text = document(spec(**data))
    finding = finding_with_id("TPU004", findings_of(text))
    assert finding.help == "replace it by capacity: flex-start at the top of the file"
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()
