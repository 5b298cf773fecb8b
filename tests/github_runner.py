"""Runs the jobs of a workflow, step by step, as GitHub's runner does.

The steps' commands are run by the same shell with the same options, with the files and variables that they find
there: https://docs.github.com/actions/reference/workflow-syntax-for-github-actions. Actions of the repository itself
are read and run; of others there are those in `_USES`. Expressions are looked up in a table, so that one which no test
knows fails.
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


@dataclass
class Job:
    """What became of a job."""

    result: str = "success"
    """`success`, `failure` or `skipped`."""
    output: str = ""
    """What its steps printed."""
    summary: str = ""
    ran: list[str] = field(default_factory=list)
    """The names of the steps that ran, or what they are."""


@dataclass
class Runner:
    """A machine for each job, made of folders; artifacts go from one to the other."""

    folder: Path
    origin: Path
    """The repository."""
    context: Mapping[str, str]
    """By expression, its value; of a condition, `true` or empty."""
    environment: Mapping[str, str]
    """What every step has: GITHUB_API_URL and others."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """By the name of a step, what is run in its place."""
    failing: str = ""
    """An action of somebody else's that fails."""
    jobs: dict[str, Job] = field(default_factory=dict)

    def run(self, workflow: Path) -> dict[str, Job]:
        """Every job, in the order of their needs, each in a fresh workspace."""
        document = yaml.safe_load(workflow.read_text())
        for name, job in document["jobs"].items():
            needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            assert set(needs) <= self.jobs.keys(), "a job stands after those it needs"
            ready = all(self.jobs[need].result == "success" for need in needs)
            self.jobs[name] = Job()
            if not self._holds(job.get("if"), ready):
                self.jobs[name].result = "skipped"
                continue
            workspace = self.folder / name
            workspace.mkdir(parents=True)
            self._steps(self.jobs[name], job["steps"], workspace, {})
            summary = self.folder / f"{name}-summary"
            self.jobs[name].summary = summary.read_text() if summary.exists() else ""
        return self.jobs

    def _steps(self, job: Job, steps: list[dict[str, Any]], workspace: Path, inputs: Mapping[str, str]) -> bool:
        """Run the steps; whether all went well."""
        well = True
        for step in steps:
            if self._holds(step.get("if"), well):
                job.ran.append(step.get("name") or step.get("uses") or step["run"])
                well = self._step(job, step, workspace, inputs) and well
        return well

    def _step(self, job: Job, step: dict[str, Any], workspace: Path, inputs: Mapping[str, str]) -> bool:
        known = {**inputs, "runner.temp": str(self._temp(workspace))}
        given = {key: self._text(value, known) for key, value in step.get("with", {}).items()}
        uses = step.get("uses")
        if uses is None:
            done = self._command(job, step, workspace, inputs)
        elif uses.startswith("./"):
            done = self._action(job, workspace / uses, given, workspace)
        else:
            name = uses.partition("@")[0]
            done = name != self.failing and _USES[name](self, workspace, given)
        if not done and step.get("continue-on-error"):
            return True
        if not done:
            job.result = "failure"
        return done

    def _command(self, job: Job, step: dict[str, Any], workspace: Path, inputs: Mapping[str, str]) -> bool:
        text = self.instead.get(step.get("name", ""), step["run"])
        assert not _EXPRESSION.search(text), "what others wrote goes into a script by the environment alone"
        script = self.folder / "script.sh"
        script.write_text(text)
        files = {f"GITHUB_{name}": str(self.folder / f"{name}-{len(job.ran)}") for name in ("OUTPUT", "ENV", "PATH")}
        own = {key: self._text(value, inputs) for key, value in step.get("env", {}).items()}
        environment = {
            **self.environment,
            **files,
            "GITHUB_STEP_SUMMARY": str(self.folder / f"{workspace.name}-summary"),
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_JOB": workspace.name,
            "RUNNER_TEMP": str(self._temp(workspace)),
            **({"GITHUB_ACTION_PATH": inputs["path of the action"]} if inputs else {}),
            **own,
        }
        done = subprocess.run(
            [*SHELLS[step.get("shell")], str(script)],
            cwd=workspace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        job.output += done.stdout
        return done.returncode == 0

    def _temp(self, workspace: Path) -> Path:
        """A folder that is empty when a job begins."""
        folder = self.folder / f"{workspace.name}-temp"
        folder.mkdir(exist_ok=True)
        return folder

    def _action(self, job: Job, folder: Path, given: Mapping[str, str], workspace: Path) -> bool:
        action = yaml.safe_load((folder / "action.yml").read_text())
        assert action["runs"]["using"] == "composite"
        assert given.keys() <= action["inputs"].keys()
        defaults = {key: self._text(value.get("default", ""), {}) for key, value in action["inputs"].items()}
        inputs = {f"inputs.{key}": value for key, value in {**defaults, **given}.items()}
        inputs["path of the action"] = str(folder)
        assert all("shell" in step for step in action["runs"]["steps"]), "an action names its shell"
        return self._steps(job, action["runs"]["steps"], workspace, inputs)

    def _text(self, value: object, inputs: Mapping[str, str]) -> str:
        known = {**self.context, **inputs}
        return _EXPRESSION.sub(
            lambda found: known[found[1]], str(value).lower() if isinstance(value, bool) else str(value)
        )

    def _holds(self, condition: object, well: bool) -> bool:
        """A step or a job without a condition that asks for it runs only where all before it went well."""
        if condition is None:
            return well
        text = _EXPRESSION.sub(r"\1", " ".join(str(condition).split()))
        return text == "!cancelled()" or (well and self.context[text] == "true")

    def checkout(self, workspace: Path, given: Mapping[str, str]) -> bool:
        """The pull request merged into its base."""
        assert given["persist-credentials"] == "false"
        depth = given.get("fetch-depth", "1")
        git = ["git", "-C", str(workspace)]
        commands = [
            ["init", "--quiet"],
            *([["sparse-checkout", "set", "--", given["sparse-checkout"]]] if "sparse-checkout" in given else []),
            [
                "fetch",
                "--quiet",
                *([] if depth == "0" else [f"--depth={depth}"]),
                self.origin.as_uri(),
                "refs/pull/7/merge",
            ],
            ["checkout", "--quiet", "--detach", "FETCH_HEAD"],
        ]
        return all(subprocess.run([*git, *command], check=False).returncode == 0 for command in commands)

    def upload(self, workspace: Path, given: Mapping[str, str]) -> bool:
        """Keep a file or a folder for the jobs after this one."""
        source, artifact = workspace / given["path"], self.folder / "artifacts" / given["name"]
        if source.is_dir():
            shutil.copytree(source, artifact)
        elif source.is_file():
            artifact.mkdir(parents=True)
            shutil.copy(source, artifact)
        return source.exists()

    def download(self, workspace: Path, given: Mapping[str, str]) -> bool:
        """Take it."""
        artifact = self.folder / "artifacts" / given["name"]
        if artifact.is_dir():
            shutil.copytree(artifact, workspace / given.get("path", "."), dirs_exist_ok=True)
        return artifact.is_dir()

    def is_there(self, _workspace: Path, _given: Mapping[str, str]) -> bool:
        """What such an action installs is on the PATH of the tests, or is not needed by them."""
        return True


def surroundings(**more: str) -> dict[str, str]:
    """What is left of the environment of the tests on such a machine."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return {**kept, "CI": "true", "GITHUB_ACTIONS": "true", **more}


_USES: Final[Mapping[str, Callable[[Runner, Path, Mapping[str, str]], bool]]] = {
    "actions/checkout": Runner.checkout,
    "actions/setup-python": Runner.is_there,
    "actions/upload-artifact": Runner.upload,
    "actions/download-artifact": Runner.download,
    "google-github-actions/auth": Runner.is_there,
    "pulumi/actions": Runner.is_there,
}
