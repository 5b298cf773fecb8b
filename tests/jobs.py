"""Make jobs of one size for tests of targets, by compiling a spec."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tpucfg.catalog import Catalog
from tpucfg.plan import Job, Selection, plan
from tpucfg.render.pipeline import CompiledSpec, compile_project
from tpucfg.spec.parse import project_from_document
from tpucfg.spec.project import Project
from tpucfg.targets import RequestBody
from tpucfg.yamldoc.reader import read_text

CATALOG: Final = Catalog()
IMAGE: Final = "us-docker.pkg.dev/my-project/train/mnist:1.0"


def project(target: str, *sizes: str, **changes: Any) -> Project:
    """Return a project `mnist` with an environment `dev`; `environment`, `options`, `trainer` extend the defaults."""
    environment = {
        "project": "my-project",
        "region": "us-central1",
        "bucket": "my-bucket",
        **changes.pop("environment", {}),
    }
    if target == "gke" and not {"kube_context", "cluster"} & {*environment}:
        environment["kube_context"] = f"gke_my-project_{environment['region']}_train"
    environment = {key: value for key, value in environment.items() if value is not None}
    tuned_on = CATALOG.find(sizes[0])
    spec = {
        "version": 1,
        "name": "mnist",
        "target": target,
        "sizes": list(sizes),
        "environments": {"dev": environment},
        "trainer": {"image": IMAGE, **changes.pop("trainer", {})},
        "training": {
            "tuned_on": sizes[0],
            "batch_size": 8 * (tuned_on.cores if tuned_on else 1),
            "train_steps": 1000,
        },
        "targets": {target: changes.pop("options", {})},
        **changes,
    }
    project, findings = project_from_document(read_text(json.dumps(spec, indent=1), "tpucfg.yaml"))
    assert project is not None, findings
    return project


def labels(size: str, run: str = "") -> dict[str, str]:
    """Return the labels that every job of such a project has."""
    own = {
        "project": "mnist",
        "environment": "dev",
        "size": size,
        "run": run or f"mnist-dev-{size}",
    }
    return {f"tpucfg-{key}": value for key, value in own.items()}


def job(target: str, size: str, *, run: str | None = None, **changes: Any) -> Job:
    """Return the only job of such a project."""
    (only_job,) = plan(project(target, size, **changes), CATALOG, Selection(run=run)).jobs
    return only_job


def compiled(
    target: str, *sizes: str, run: str | None = None, probes: bool = False, **changes: Any
) -> CompiledSpec:
    """Return the compiled project with its findings."""
    return compile_project(
        project(target, *sizes, **changes), CATALOG, Selection(run=run, probe=probes)
    )


def leaves(
    body: RequestBody | list[Any], path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every scalar and every empty list or mapping."""
    items = body.items() if isinstance(body, dict) else enumerate(body)
    for key, value in items:
        if isinstance(value, dict | list) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def parts(jobset: RequestBody) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the specs of a JobSet's only job and of its pod."""
    (replicated,) = jobset["spec"]["replicatedJobs"]
    job_spec = replicated["template"]["spec"]
    return job_spec, job_spec["template"]["spec"]


def program(folder: Path, name: str, script: str) -> None:
    """Write a program for the PATH, as a bash script."""
    file = folder / name
    file.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    file.chmod(0o755)


def gcloud_refusal(argv: Sequence[str], folder: Path) -> str | None:
    """Return the error of gcloud's own parser for a command line, which is not run.

    Skips the calling test if gcloud is missing.
    """
    if shutil.which("gcloud") is None:
        pytest.skip("gcloud is missing")
    lint = ["gcloud", "meta", "lint-gcloud-commands", f"--command-string={shlex.join(argv)}"]
    settings = os.environ | {
        "CLOUDSDK_CONFIG": str(folder),
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
    }
    (answer,) = json.loads(
        subprocess.run(lint, env=settings, check=True, capture_output=True).stdout
    )
    error: str | None = answer["error_message"]
    return error
