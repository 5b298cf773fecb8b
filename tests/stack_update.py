"""The workflow that updates stacks after a merge, and a run of it."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from github_runner import Job, Runner
from repositories import Repository

WORKFLOW: Final = Path(".github", "workflows", "update.yml")
ENABLED: Final = (
    "vars.TPUCFG_UPDATE != '' && github.ref_name == github.event.repository.default_branch"
)
_INSTALL: Final = f'[ -z "${{FOLDER-}}" ] || ln -s "{sys.prefix}" "$FOLDER/.venv"'
"""Installs the packages that the tests run with."""


def run_update(
    repository: Repository,
    folder: Path,
    machine: Mapping[str, str],
    before: str,
    commit: str = "",
    **more: str,
) -> tuple[dict[str, Job], list[Any]]:
    """Run the workflow for a push to main, and the job of one stack; return the jobs and the stacks that changed.

    Args:
        repository: The repository, with the workflow.
        folder: A new folder for the run.
        machine: The environment variables of the machine.
        before: The commit before the push.
        commit: The pushed commit, if it is not the newest.
        more: Values of further expressions; they replace those of the stack dev in models/lm.
    """
    commit = commit or repository.git("rev-parse", "main")
    context = {
        ENABLED: "true",
        "github.sha": commit,
        "github.event.before": before,
        "matrix.stack.folder": "models/lm",
        "matrix.stack.name": "dev",
        "vars.TPUCFG_IDENTITY_PROVIDER": "provider",
        "vars.TPUCFG_UPDATE_ACCOUNT": "account",
        "vars.PULUMI_BACKEND_URL": "",
        "secrets.PULUMI_CONFIG_PASSPHRASE": "",
        **more,
    }
    path = f"{Path(sys.executable).parent}:{machine['PATH']}"
    environment = {**machine, "PATH": path, "GITHUB_REF_NAME": "main"}
    runner = Runner(folder, repository.folder, context, environment, {"Install": _INSTALL})
    jobs = runner.run(repository.folder / WORKFLOW)
    return jobs, json.loads(runner.outputs["needs.stacks.outputs.changed"])
