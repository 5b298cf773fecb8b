"""The texts about refused fields of `extra`: several deciding settings, and items by their names."""

from typing import Any

from autofix import apply_help
from spec_factory import CATALOG, document, finding_with_id, spec
from tpucfg.findings import Finding, errors
from tpucfg.render.pipeline import compile_project
from tpucfg.spec.parse import parse_project
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_text


def findings_of(text: Document) -> tuple[Finding, ...]:
    """Return all findings about a spec."""
    project, findings = parse_project(text)
    assert project is not None
    return compile_project(project, CATALOG, earlier_findings=findings).findings


def gke_spec(extra: dict[str, Any]) -> Document:
    """Return a spec for GKE with `extra`."""
    return document(
        spec(
            target="gke",
            sizes=["v5litepod-16"],
            environments={"dev": {"project": "my-project-dev", "region": "us-west4"}},
            training={"tuned_on": "v5litepod-16", "batch_size": 1024, "train_steps": 4000},
            targets={"gke": {"extra": extra}},
        )
    )


def test_a_list_in_one_piece_names_the_settings_that_decide_it() -> None:
    """The settings are listed after the edit, which is a deletion."""
    text = gke_spec({"spec": {"replicatedJobs": []}})
    finding = finding_with_id("TPU066", findings_of(text))
    assert finding.help.startswith("delete it here, and change the settings that decide it: ")
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


def test_an_item_is_named_and_not_counted() -> None:
    """A container before the trainer's in `extra` comes after it in the merged list, so its index would mislead."""
    own = {"name": "trainer", "image": "other"}
    containers = [{"name": "proxy", "image": "a/b:1"}, own]
    pod = {
        "name": "slice",
        "template": {"spec": {"template": {"spec": {"containers": containers}}}},
    }
    finding = finding_with_id("TPU066", findings_of(gke_spec({"spec": {"replicatedJobs": [pod]}})))
    assert "containers.trainer.image is decided by trainer.image" in finding.message
