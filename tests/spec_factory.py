"""Make specs for tests from one small valid spec, and load, plan and compile them."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.plan import Plan, Selection, plan
from tpucfg.render.config import Config
from tpucfg.render.pipeline import CompiledSpec, compile_project, render_configs
from tpucfg.spec.parse import project_from_document
from tpucfg.spec.project import Project
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_text

ROOT: Final = Path(__file__).parent.parent
CATALOG: Final = Catalog()
WITHOUT: Final = object()
"""A value for spec() that leaves its key out."""

SPEC: Final[dict[str, Any]] = {
    "version": 1,
    "name": "mnist",
    "target": "vertex-ai",
    "sizes": ["v2-8", "v2-32"],
    "environments": {"dev": {"project": "my-project-dev", "region": "us-central1"}},
    "trainer": {"image": "us-docker.pkg.dev/my-project/train/mnist:1.0"},
    "training": {
        "tuned_on": "v2-8",
        "batch_size": 1024,
        "train_steps": 4000,
        "learning_rate": 0.1,
        "learning_rate_rule": "linear",
    },
}


def spec(**changes: Any) -> dict[str, Any]:
    """Return SPEC with other values by path, `training__batch_size=2048`; a mapping is replaced, not merged."""
    data = deepcopy(SPEC)
    for path, value in changes.items():
        *parents, last = path.split("__")
        inner = data
        for key in parents:
            inner = inner.setdefault(key, {})
        if value is WITHOUT:
            inner.pop(last, None)
        else:
            inner[last] = value
    return data


def document(data: Any) -> Document:
    """Return the document of data, written as JSON, or of a text."""
    return read_text(data if isinstance(data, str) else json.dumps(data, indent=1), "tpucfg.yaml")


def loaded(data: Any) -> tuple[Project | None, tuple[Finding, ...]]:
    """Return the project of a spec, or None, and the findings."""
    return project_from_document(document(data))


def project(data: Any) -> Project:
    """Return the project of a valid spec."""
    loaded_project, findings = loaded(data)
    assert loaded_project is not None, findings
    return loaded_project


def planned(data: Any, **selection: Any) -> Plan:
    """Return the plan of a valid spec."""
    return plan(project(data), CATALOG, Selection(**selection))


def compiled(data: Any, **selection: Any) -> CompiledSpec:
    """Return the compiled form of a valid spec."""
    return compile_project(project(data), CATALOG, Selection(**selection))


def configs(data: Any, **selection: Any) -> list[Config]:
    """Return the configs of a valid spec."""
    return list(render_configs(compiled(data, **selection)))


def ids(findings: tuple[Finding, ...]) -> list[str]:
    """Return the ids of the findings, in order."""
    return [finding.id for finding in findings]


def finding_with_id(id_: str, findings: tuple[Finding, ...]) -> Finding:
    """Return the only finding with an id."""
    (match,) = [finding for finding in findings if finding.id == id_]
    return match


def missing_words(finding: Finding, *words: str) -> list[str]:
    """Return the words that are neither in the finding's message nor in its help or details."""
    text = "\n".join([finding.message, finding.help, *finding.details])
    return [word for word in words if word not in text]
