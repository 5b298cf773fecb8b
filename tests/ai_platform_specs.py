"""Specs for ai-platform with changes, and their compiled form."""

import json
from typing import Any

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.plan import Selection
from tpucfg.render.pipeline import CompiledSpec, compile_project
from tpucfg.spec.parse import project_from_document
from tpucfg.yamldoc.reader import read_text

SPEC: dict[str, Any] = {
    "version": 1,
    "name": "mnist",
    "target": "ai-platform",
    "sizes": ["v2-8"],
    "environments": {"dev": {"project": "my-project-dev", "region": "us-central1"}},
    "trainer": {
        "package": "trainer",
        "module": "trainer.task",
        "runtime": "2.2",
        "python": "3.7",
        "args": {"distribution_strategy": "tpu", "model_dir": "${job_dir}"},
    },
    "training": {"tuned_on": "v2-8", "batch_size": 1024, "epochs": 1},
}
CONTAINER: dict[str, Any] = {
    "image": "gcr.io/my-project/master:1.0",
    "worker_image": "gcr.io/my-project/worker:1.0",
    "runtime": "2.2",
}
ARGS = [
    "--distribution_strategy=tpu",
    "--model_dir=gs://my-project-dev-mnist-dev-us-central1/jobs/mnist/v2-8",
    "--batch_size=1024",
    "--epochs=1",
]
PACKAGE: dict[str, Any] = {
    "region": "us-central1",
    "runtimeVersion": "2.2",
    "pythonVersion": "3.7",
    "pythonModule": "trainer.task",
    "args": ARGS,
}
OF_MACHINE: dict[str, dict[str, Any]] = {
    "basic": {"scaleTier": "BASIC_TPU"},
    "legacy": {
        "scaleTier": "CUSTOM",
        "masterType": "complex_model_m",
        "workerType": "cloud_tpu",
        "workerCount": 1,
    },
    "compute-engine": {
        "scaleTier": "CUSTOM",
        "masterType": "n1-highcpu-16",
        "workerType": "cloud_tpu",
        "workerCount": 1,
        "workerConfig": {"acceleratorConfig": {"type": "TPU_V2", "count": 8}},
    },
}


def spec(**changes: Any) -> dict[str, Any]:
    """Return SPEC with changed top-level keys: a mapping is merged into the existing one, and None removes its key."""
    return merged(SPEC, changes)


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return `below` updated with `above`, recursively; a value of None in `above` removes the key."""
    updates = {
        key: merged(below[key], value) if isinstance(value, dict) and key in below else value
        for key, value in above.items()
    }
    return {
        key: value
        for key, value in {**below, **updates}.items()
        if value is not None or key not in above
    }


def container(**changes: Any) -> dict[str, Any]:
    """Return SPEC with containers instead of the package."""
    return {**SPEC, "trainer": merged({**CONTAINER, "args": SPEC["trainer"]["args"]}, changes)}


def compiled(data: dict[str, Any], run: str | None = None) -> CompiledSpec:
    """Return the compiled form of a spec, written as JSON, which is YAML."""
    project, findings = project_from_document(read_text(json.dumps(data, indent=1), "tpucfg.yaml"))
    assert project is not None, findings
    return compile_project(project, Catalog(), Selection(run=run))


def located_text(finding: Finding, data: dict[str, Any]) -> str:
    """Return the text at the location of a finding; for a list, its opening bracket."""
    location = finding.location
    line = json.dumps(data, indent=1).splitlines()[location.line - 1]
    return line[
        location.column - 1 : location.end_column - 1
        if location.line == location.end_line
        else None
    ]
