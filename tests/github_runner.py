"""Run the jobs of a workflow step by step, as GitHub's runner does.

Commands run in the same shell with the same options, files and variables:
https://docs.github.com/actions/reference/workflow-syntax-for-github-actions.
Actions of the repository are read and run; other actions are replaced by those in `_ACTIONS`. Expressions are looked up
in a table, so that an expression unknown to the tests fails.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

SHELLS: Final = {None: ("bash", "-e"), "bash": ("bash", "--noprofile", "--norc", "-eo", "pipefail")}
"""By the step's `shell`: https://docs.github.com/actions/reference/workflow-syntax-for-github-actions#defaultsrunshell."""
_EXPRESSION: Final = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_OUTPUT: Final = re.compile(r"(?:steps|needs)\.[a-z]+\.outputs\.[a-z-]+")
"""An output, which is empty if the step did not run; a condition tests that it is not empty."""
_HASH_FILES: Final = re.compile(r"hashFiles\('([^']+)'\) ([!=]=) ''")
"""A condition on the existence of a file in the workspace."""


@dataclass
class Job:
    """The result of a job."""

    result: str = "success"
    """`success`, `failure` or `skipped`."""
    output: str = ""
    """The output of its steps."""
    summary: str = ""
    ran: list[str] = field(default_factory=list)
    """The steps that ran: name, action or command."""


@dataclass
class Runner:
    """A folder for each job instead of a machine, and one for artifacts."""

    folder: Path
    origin: Path
    """The repository."""
    context: Mapping[str, str]
    """The value of each expression; for a condition, `true` or empty."""
    environment: Mapping[str, str]
    """The variables of every step, such as GITHUB_API_URL."""
    replacements: Mapping[str, str] = field(default_factory=dict)
    """Commands that replace those of a step, by its name; an empty one replaces none."""
    failing: str = ""
    """The name of an external action that fails."""
    jobs: dict[str, Job] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    """By expression, the outputs of steps and jobs."""

    def run(self, workflow: Path) -> dict[str, Job]:
        """Run every job in the order of their needs, each in a new workspace."""
        document = yaml.safe_load(workflow.read_text())
        variables = document.get("env", {})
        self.environment = {**variables, **self.environment}
        self.context = {
            **self.context,
            **{f"env.{name}": value for name, value in variables.items()},
        }
        for name, job in document["jobs"].items():
            needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            assert set(needs) <= self.jobs.keys(), "a job follows those it needs"
            ready = all(self.jobs[need].result == "success" for need in needs)
            self.jobs[name] = Job()
            if not self._condition_is_met(job.get("if"), ready):
                self.jobs[name].result = "skipped"
                continue
            workspace = self.folder / name
            workspace.mkdir(parents=True)
            self.outputs = {
                key: value for key, value in self.outputs.items() if key.startswith("needs.")
            }
            self._run_steps(self.jobs[name], job["steps"], workspace, {})
            for key, value in job.get("outputs", {}).items():
                self.outputs[f"needs.{name}.outputs.{key}"] = self._text(value, {})
            summary = self.folder / f"{name}-summary"
            self.jobs[name].summary = summary.read_text() if summary.exists() else ""
        return self.jobs

    def _run_steps(
        self, job: Job, steps: list[dict[str, Any]], workspace: Path, inputs: Mapping[str, str]
    ) -> bool:
        """Run the steps; return True if all succeeded."""
        succeeded = True
        for step in steps:
            if self._condition_is_met(step.get("if"), succeeded, workspace):
                job.ran.append(step.get("name") or step.get("uses") or step["run"])
                succeeded = self._run_step(job, step, workspace, inputs) and succeeded
        return succeeded

    def _run_step(
        self, job: Job, step: dict[str, Any], workspace: Path, inputs: Mapping[str, str]
    ) -> bool:
        values = {**inputs, "runner.temp": str(self._temp_folder(workspace))}
        arguments = {key: self._text(value, values) for key, value in step.get("with", {}).items()}
        uses = step.get("uses")
        if uses is None:
            has_passed = self._command(job, step, workspace, inputs)
        elif uses.startswith("./"):
            has_passed = self._action(job, workspace / uses, arguments, workspace)
        else:
            name = uses.partition("@")[0]
            has_passed = name != self.failing and _ACTIONS[name](self, workspace, arguments)
            if (
                has_passed
                and "id" in step
                and (self.folder / "artifacts" / arguments["name"]).exists()
            ):
                self.outputs[f"steps.{step['id']}.outputs.artifact-id"] = (
                    f"id of {arguments['name']}"
                )
        if not has_passed and step.get("continue-on-error"):
            return True
        if not has_passed:
            job.result = "failure"
        return has_passed

    def _command(
        self, job: Job, step: dict[str, Any], workspace: Path, inputs: Mapping[str, str]
    ) -> bool:
        text = self.replacements.get(step.get("name", "")) or step["run"]
        assert not _EXPRESSION.search(text), (
            "untrusted text reaches a script only through the environment"
        )
        script = self.folder / "script.sh"
        script.write_text(text)
        files = {
            f"GITHUB_{name}": str(self.folder / f"{name}-{len(job.ran)}")
            for name in ("OUTPUT", "ENV", "PATH")
        }
        own = {key: self._text(value, inputs) for key, value in step.get("env", {}).items()}
        environment = {
            **self.environment,
            **files,
            "GITHUB_STEP_SUMMARY": str(self.folder / f"{workspace.name}-summary"),
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_JOB": workspace.name,
            "RUNNER_TEMP": str(self._temp_folder(workspace)),
            **({"GITHUB_ACTION_PATH": inputs["path of the action"]} if inputs else {}),
            **own,
        }
        completed = subprocess.run(
            [*SHELLS[step.get("shell")], str(script)],
            cwd=workspace / self._text(step.get("working-directory", "."), inputs),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        job.output += completed.stdout
        written = Path(files["GITHUB_OUTPUT"])
        for line in written.read_text().splitlines() if "id" in step and written.exists() else ():
            key, _, value = line.partition("=")
            self.outputs[f"steps.{step['id']}.outputs.{key}"] = value
        return completed.returncode == 0

    def _temp_folder(self, workspace: Path) -> Path:
        """Return a folder that is empty when a job starts."""
        folder = self.folder / f"{workspace.name}-temp"
        folder.mkdir(exist_ok=True)
        return folder

    def _action(
        self, job: Job, folder: Path, arguments: Mapping[str, str], workspace: Path
    ) -> bool:
        action = yaml.safe_load((folder / "action.yml").read_text())
        assert action["runs"]["using"] == "composite"
        assert arguments.keys() <= action["inputs"].keys()
        defaults = {
            key: self._text(value.get("default", ""), {}) for key, value in action["inputs"].items()
        }
        inputs = {f"inputs.{key}": value for key, value in {**defaults, **arguments}.items()}
        inputs["path of the action"] = str(folder)
        assert all("shell" in step for step in action["runs"]["steps"]), (
            "each step of an action names its shell"
        )
        return self._run_steps(job, action["runs"]["steps"], workspace, inputs)

    def _text(self, value: object, inputs: Mapping[str, str]) -> str:
        values = {**self.context, **self.outputs, **inputs}
        return _EXPRESSION.sub(
            lambda match: values.get(match[1], "") if _OUTPUT.match(match[1]) else values[match[1]],
            str(value).lower() if isinstance(value, bool) else str(value),
        )

    def _condition_is_met(
        self, condition: object, succeeded: bool, workspace: Path | None = None
    ) -> bool:
        """Return True if a step or job runs; without a condition it runs if everything before it succeeded."""
        if condition is None:
            return succeeded
        text = _EXPRESSION.sub(r"\1", " ".join(str(condition).split()))
        if workspace and (hashed := _HASH_FILES.fullmatch(text)):
            return succeeded and (workspace / hashed[1]).is_file() == (hashed[2] == "!=")
        if output := _OUTPUT.match(text):
            return succeeded and bool(self.outputs.get(output[0]))
        return text == "!cancelled()" or (succeeded and self.context[text] == "true")

    def checkout(self, workspace: Path, arguments: Mapping[str, str]) -> bool:
        """Check out the given revision, or the pull request merged into its base, in an empty folder."""
        assert arguments["persist-credentials"] == "false"
        depth = arguments.get("fetch-depth", "1")
        folder = workspace / arguments.get("path", ".")
        folder.mkdir(exist_ok=True)
        assert not any(folder.iterdir())
        git = ["git", "-C", str(folder)]
        commands = [
            ["init", "--quiet"],
            ["remote", "add", "origin", self.origin.as_uri()],
            *(
                [["sparse-checkout", "set", "--", arguments["sparse-checkout"]]]
                if "sparse-checkout" in arguments
                else []
            ),
            [
                "fetch",
                "--quiet",
                *([] if depth == "0" else [f"--depth={depth}"]),
                "origin",
                arguments.get("ref", "refs/pull/7/merge"),
            ],
            ["checkout", "--quiet", "--detach", "FETCH_HEAD"],
            # https://github.com/actions/checkout: "Set fetch-depth: 0 to fetch all history for all branches and tags."
            *([["fetch", "--quiet", "origin"]] if depth == "0" else []),
        ]
        return all(
            subprocess.run([*git, *command], check=False).returncode == 0 for command in commands
        )

    def upload(self, workspace: Path, arguments: Mapping[str, str]) -> bool:
        """Store a file or folder for later jobs, under a name that is new in the run."""
        source, artifact = (
            workspace / arguments["path"],
            self.folder / "artifacts" / arguments["name"],
        )
        if artifact.exists():
            return False
        if source.is_dir():
            shutil.copytree(source, artifact)
        elif source.is_file():
            artifact.mkdir(parents=True)
            shutil.copy(source, artifact)
        return source.exists() or arguments.get("if-no-files-found") == "ignore"

    def download(self, workspace: Path, arguments: Mapping[str, str]) -> bool:
        """Copy a stored file or folder to the workspace."""
        name = arguments.get("name") or arguments["artifact-ids"].removeprefix("id of ")
        artifact = self.folder / "artifacts" / name
        if artifact.is_dir():
            shutil.copytree(artifact, workspace / arguments.get("path", "."), dirs_exist_ok=True)
        return artifact.is_dir()

    def is_installed(self, _workspace: Path, _given: Mapping[str, str]) -> bool:
        """Do nothing: the tool that the action installs is on the PATH of the tests, or is not needed."""
        return True


def machine_environment(**more: str) -> dict[str, str]:
    """Return the environment variables of a runner, and the given ones."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return {**kept, "CI": "true", "GITHUB_ACTIONS": "true", **more}


_ACTIONS: Final[Mapping[str, Callable[[Runner, Path, Mapping[str, str]], bool]]] = {
    "actions/checkout": Runner.checkout,
    "actions/setup-python": Runner.is_installed,
    "actions/upload-artifact": Runner.upload,
    "actions/download-artifact": Runner.download,
    "google-github-actions/auth": Runner.is_installed,
    "pulumi/actions": Runner.is_installed,
}
