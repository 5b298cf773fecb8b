"""A project in a repository with a pull request, and the workflow that reviews it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from github_comments import Comments
from github_runner import Job, Runner, machine_environment
from repositories import ADDRESS, NEW, Repository
from tpucfg.cli.app import run

WORKFLOW: Final = Path(".github", "workflows", "review.yml")
SERVER: Final = "https://github.com"
_PREVIEW_IF: Final = (
    "vars.TPUCFG_IDENTITY_PROVIDER != '' && github.actor != 'dependabot[bot]' && "
    "github.event.pull_request.head.repo.full_name == github.repository"
)


_INSTALL: Final = """
case $GITHUB_JOB in
  preview) ln -s "{python}" "$GITHUB_WORKSPACE/.venv" ;;
  base|head)
    mkdir "$RUNNER_TEMP/venvs"
    for number in 1 2 3; do ln -s "{python}" "$RUNNER_TEMP/venvs/$number"; done ;;
esac
"""


class Proposal(Repository):
    """A project with one commit on main and pull request 7."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        assert run(["init", str(folder), "--name", "mnist", "--install-from", ADDRESS, *NEW]) == 0
        self.commit()

    def propose(self, *changes: tuple[str, str]) -> None:
        """Push the changes of the spec, one commit each, and merge them into main on trial."""
        self.git("checkout", "--quiet", "-B", "change", "main")
        for change in changes:
            self.edit(change)
            self.commit()
        self.merge_on_trial()

    def merge_on_trial(self) -> None:
        """Merge the change into main without a branch, as GitHub does after each push."""
        self.git("checkout", "--quiet", "--detach", "main")
        self.git("merge", "--quiet", "--no-ff", "change", "--message", "Merge")
        self.git("update-ref", "refs/pull/7/merge", "HEAD")
        self.git("checkout", "--quiet", "main")


def run_workflow(
    proposal: Proposal,
    comments: Comments,
    folder: Path,
    engine: Mapping[str, str] | None = None,
    failing: str = "",
    requirements: str = "",
    tools: Mapping[str, str] = MappingProxyType({}),
    replacements: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Job]:
    """Run the workflow on the pull request.

    With the environment of a Pulumi backend, the job that has credentials runs too; with the path of requirements, the
    job that compiles the training step. Further variables are for every step, and replacements for commands of steps;
    an empty one leaves the command.
    """
    previews = "true" if engine else ""
    context = {
        _PREVIEW_IF: previews,
        "vars.TPUCFG_FIT != ''": "true" if requirements else "",
        "vars.TPUCFG_FIT": requirements,
        "needs.preview.result == 'success' || needs.preview.result == 'failure'": previews,
        "github.event.pull_request.number": str(comments.number),
        "github.event.pull_request.head.sha": proposal.git("rev-parse", "change"),
        "github.event.pull_request.base.sha": proposal.git("rev-parse", "main"),
        "github.token": comments.token,
        "vars.TPUCFG_IDENTITY_PROVIDER": "provider",
        "vars.TPUCFG_PREVIEW_ACCOUNT": "account",
        "vars.PULUMI_BACKEND_URL": (engine or {}).get("PULUMI_BACKEND_URL", ""),
        "secrets.PULUMI_CONFIG_PASSPHRASE": (engine or {}).get("PULUMI_CONFIG_PASSPHRASE", ""),
    }
    names = {
        "API_URL": comments.url,
        "SERVER_URL": SERVER,
        "REPOSITORY": comments.repository,
        "RUN_ID": "42",
    }
    machine = {
        **machine_environment(**{f"GITHUB_{name}": value for name, value in names.items()}),
        **(engine or {}),
    }
    machine["PATH"] = f"{Path(sys.executable).parent}:{machine['PATH']}"
    machine.update(tools)
    # The packages are those that the tests run with.
    install = {"Install": _INSTALL.format(python=sys.prefix)}
    return Runner(
        folder, proposal.folder, context, machine, {**install, **replacements}, failing
    ).run(proposal.folder / WORKFLOW)
