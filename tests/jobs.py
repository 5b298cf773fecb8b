"""Jobs of one size for tests of targets, by the way that a spec takes."""

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


def project(target: str, *sizes: str, **more: Any) -> Project:
    """A project `mnist` with one environment `dev`; `environment`, `options` and `trainer` add to theirs."""
    environment = {
        "project": "my-project",
        "region": "us-central1",
        "bucket": "my-bucket",
        **more.pop("environment", {}),
    }
    tuned_on = CATALOG.find(sizes[0])
    spec = {
        "version": 1,
        "name": "mnist",
        "target": target,
        "sizes": list(sizes),
        "environments": {"dev": environment},
        "trainer": {"image": IMAGE, **more.pop("trainer", {})},
        "training": {"tuned_on": sizes[0], "batch_size": 8 * (tuned_on.cores if tuned_on else 1), "train_steps": 1000},
        "targets": {target: more.pop("options", {})},
        **more,
    }
    made, found = project_from_document(read_text(json.dumps(spec, indent=1), "tpucfg.yaml"))
    assert made is not None, found
    return made


def job(target: str, size: str, *, run: str | None = None, **more: Any) -> Job:
    """The one job of such a project."""
    (made,) = plan(project(target, size, **more), CATALOG, Selection(run=run)).jobs
    return made


def compiled(target: str, *sizes: str, run: str | None = None, **more: Any) -> CompiledSpec:
    """The whole project with its findings."""
    return compile_project(project(target, *sizes, **more), CATALOG, Selection(run=run))


def leaves(message: RequestBody | list[Any], path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value that has no parts."""
    items = message.items() if isinstance(message, dict) else enumerate(message)
    for key, value in items:
        if isinstance(value, dict | list) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def parts(jobset: RequestBody) -> tuple[dict[str, Any], dict[str, Any]]:
    """The one job of a JobSet, and its pod."""
    (replicated,) = jobset["spec"]["replicatedJobs"]
    work = replicated["template"]["spec"]
    return work, work["template"]["spec"]


def program(folder: Path, name: str, script: str) -> None:
    """A program for the PATH: a bash script."""
    file = folder / name
    file.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    file.chmod(0o755)


def gcloud_refusal(argv: Sequence[str], folder: Path) -> str | None:
    """What gcloud's own parser has against a command line; it runs nothing. Skips the test where gcloud is missing."""
    if shutil.which("gcloud") is None:
        pytest.skip("gcloud is missing")
    lint = ["gcloud", "meta", "lint-gcloud-commands", f"--command-string={shlex.join(argv)}"]
    settings = os.environ | {"CLOUDSDK_CONFIG": str(folder), "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1"}
    (answer,) = json.loads(subprocess.run(lint, env=settings, check=True, capture_output=True).stdout)
    said: str | None = answer["error_message"]
    return said
