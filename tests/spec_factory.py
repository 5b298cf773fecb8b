"""Specs for tests, made from one small valid one."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.plan import Plan, Selection, plan
from tpucfg.render.pipeline import CompiledSpec, Config, compile_project, render_configs
from tpucfg.spec.parse import project_from_document
from tpucfg.spec.project import Project
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_text

ROOT: Final = Path(__file__).parent.parent
CATALOG: Final = Catalog()
WITHOUT: Final = object()
"""In the place of a value: the key is left out."""

SPEC: Final[dict[str, Any]] = {
    "version": 1,
    "name": "mnist",
    "target": "vertex-ai",
    "sizes": ["v2-8", "v2-32"],
    "environments": {"dev": {"project": "my-project-dev", "region": "us-central1"}},
    "trainer": {"image": "us-docker.pkg.dev/my-project/train/mnist:1.0"},
    "training": {"tuned_on": "v2-8", "batch_size": 1024, "train_steps": 4000},
}


def spec(**changes: Any) -> dict[str, Any]:
    """The small spec with other values, by path: `training__batch_size=2048`; a mapping is replaced, not merged."""
    made = deepcopy(SPEC)
    for path, value in changes.items():
        *above, last = path.split("__")
        inner = made
        for key in above:
            inner = inner.setdefault(key, {})
        if value is WITHOUT:
            inner.pop(last, None)
        else:
            inner[last] = value
    return made


def document(data: Any) -> Document:
    """The data as the document that its text would be; a text is read as it stands."""
    return read_text(data if isinstance(data, str) else json.dumps(data, indent=1), "tpucfg.yaml")


def loaded(data: Any) -> tuple[Project | None, tuple[Finding, ...]]:
    """The project, and what is said about it."""
    return project_from_document(document(data))


def project(data: Any) -> Project:
    """The project of a spec without mistakes."""
    made, found = loaded(data)
    assert made is not None, found
    return made


def planned(data: Any, **selection: Any) -> Plan:
    """The plan of a spec without mistakes in its structure."""
    return plan(project(data), CATALOG, Selection(**selection))


def compiled(data: Any, **selection: Any) -> CompiledSpec:
    """What it compiles to."""
    return compile_project(project(data), CATALOG, Selection(**selection))


def configs(data: Any, **selection: Any) -> list[Config]:
    """The configs of a spec without mistakes."""
    return list(render_configs(compiled(data, **selection)))


def ids(findings: tuple[Finding, ...]) -> list[str]:
    """The ids, in the order of the findings."""
    return [finding.id for finding in findings]


def the(id_: str, findings: tuple[Finding, ...]) -> Finding:
    """The one finding with that id."""
    (found,) = [finding for finding in findings if finding.id == id_]
    return found


def unsaid(finding: Finding, *words: str) -> list[str]:
    """Those of the words that neither the finding's sentence nor its help nor its details hold."""
    said = "\n".join([finding.message, finding.help, *finding.details])
    return [word for word in words if word not in said]
