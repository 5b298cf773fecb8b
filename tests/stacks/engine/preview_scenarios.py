"""Scenarios of `pulumi preview --json` for the review, in both of its output formats.

Engine, CLI and program are real; the gcp plugin is a stand-in. Run as a program, the module writes the previews to
`tests/review/previews/`, where the tests of the review read them without an engine.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import specs
from standin import projects
from standin.cloud import Cloud
from standin.projects import ROOT, World

RECORDED: Final = ROOT / "tests" / "review" / "previews"
STREAM: Final = {"PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "true"}
_OF_THE_MACHINE: Final = ("sourcePosition", "stackTrace", "created", "modified")
_TIMES: Final = ("timestamp", "duration", "durationSeconds")


class Scenario(NamedTuple):
    """A deployed environment, and its change in the pull request."""

    before: Mapping[str, Any] | None
    """The deployed environment of the spec; None for an empty stack."""
    after: Mapping[str, Any]
    """The environment of the spec in the pull request."""
    config: Mapping[str, Any] = {}
    """The stack file of the pull request, without the project's namespace."""
    drift: Callable[[Cloud], None] | None = None
    """Changes by hand in the cloud after the deployment, for a preview with `--refresh`."""


def _edit_bucket(cloud: Cloud) -> None:
    """Change properties of the bucket that the program sets, and one that it leaves to Google."""
    [bucket] = cloud.buckets.values()
    [lifecycle_rule, _] = bucket.body["lifecycleRules"]
    lifecycle_rule["condition"]["age"] = 3
    bucket.body["retentionPolicy"] = {"retentionPeriod": 86_400}


def _open_bucket(cloud: Cloud) -> None:
    """Remove a barrier of the bucket, and the grant of the jobs' account."""
    [(name, bucket)] = cloud.buckets.items()
    bucket.body["publicAccessPrevention"] = "inherited"
    cloud.grants[f"b/{name}"] = {
        grant for grant in cloud.grants[f"b/{name}"] if "tpu-" not in grant[1]
    }


def _delete_bucket(cloud: Cloud) -> None:
    """Delete the bucket with its data."""
    [name] = cloud.buckets
    del cloud.buckets[name]
    del cloud.grants[f"b/{name}"]


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "create": Scenario(None, {}),
    "nothing": Scenario({}, {}),
    "update": Scenario({}, {"labels": {"team": "vision"}}),
    "region-move": Scenario({}, {"region": "europe-west4"}),
    "region-move-losing-data": Scenario(
        {"keep_data": False}, {"keep_data": False, "region": "europe-west4"}
    ),
    "renamed-bucket": Scenario({"keep_data": False}, {"keep_data": False, "bucket": "acme-other"}),
    "other-account": Scenario(
        {}, {"targets": {"vertex-ai": {"service_account": "t@acme-dev.iam.gserviceaccount.com"}}}
    ),
    "protection-lifted": Scenario({"protect": True}, {}),
    "protection-added": Scenario({}, {"protect": True}),
    "protected-replacement": Scenario(
        {"protect": True}, {"protect": True, "region": "europe-west4"}
    ),
    "member-added": Scenario(
        {}, {}, {"bucketMembers": ["user:ada@example.com", "group:team@example.com"]}
    ),
    "spec-broken": Scenario({}, {"region": "us-west4"}),
    "config-error": Scenario({}, {}, {"bucketMembers": 7}),
    "refreshed": Scenario({}, {"labels": {"team": "vision"}}, drift=lambda _: None),
    "drift": Scenario({}, {}, drift=_edit_bucket),
    "drift-and-update": Scenario({}, {"labels": {"team": "vision"}}, drift=_open_bucket),
    "drift-deleted": Scenario({}, {}, drift=_delete_bucket),
}


class Project:
    """A project on disk with the stack `dev`."""

    def __init__(self, folder: Path, world: World) -> None:
        self._folder, self._world = folder, world
        self._environment = projects.with_language_host(world.environment, folder.parent / "host")
        folder.mkdir(parents=True)
        shutil.copytree(
            ROOT / "stacks",
            folder / "stacks",
            ignore=shutil.ignore_patterns("*.yaml", "__pycache__"),
        )
        shutil.copy(ROOT / "Pulumi.yaml", folder)
        (folder / ".venv").symlink_to(sys.prefix)

    def write(self, environment: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        """Write the spec and the stack file."""
        specs.write(self._folder, specs.spec(dict(environment)))
        file = self._folder / "stacks" / "Pulumi.dev.yaml"
        file.write_text(
            json.dumps({"config": {f"tpucfg:{key}": value for key, value in config.items()}})
        )

    def pulumi(self, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run `pulumi` in the project."""
        return subprocess.run(
            ["pulumi", "--non-interactive", *arguments, "--stack", "dev"],
            cwd=self._folder,
            env={**os.environ, **self._environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def preview_outputs(scenario: Scenario, folder: Path, world: World) -> tuple[str, str]:
    """Return stdout and stderr of `pulumi preview --json`, in both formats: one document, and a stream of events."""
    project = Project(folder, world)
    project.write(scenario.before or {}, {})
    _check_status(project.pulumi("stack", "init"))
    if scenario.before is not None:
        _check_status(project.pulumi("up", "--yes", "--skip-preview"))
    project.write(scenario.after, scenario.config)
    options = ["--refresh"] if scenario.drift else []
    if scenario.drift:
        scenario.drift(world.cloud)
    document = project.pulumi("preview", "--json", *options).stdout
    stream = project.pulumi("preview", "--json", *options, **STREAM).stdout
    return document, stream


def normalize(text: str, folder: Path) -> str:
    """Return a preview without machine-dependent values: the program's line numbers, folders and times."""
    text = text.replace(str(folder), "/project")
    text = re.sub(r"^warning: using pulumi-language-python from .*\n", "", text, flags=re.MULTILINE)
    start = text.find("{\n")
    if start != -1:
        document, end = json.JSONDecoder().raw_decode(text, start)
        return (
            text[:start]
            + json.dumps(_normalize_value(document), indent=1, ensure_ascii=False)
            + text[end:]
        )
    lines = (
        json.dumps(_normalize_value(json.loads(line)), ensure_ascii=False)
        if line.startswith("{")
        else line
        for line in text.splitlines()
    )
    return "".join(f"{line}\n" for line in lines)


def _normalize_value(value: Any) -> Any:
    if isinstance(value, dict):
        portable = {key: item for key, item in value.items() if key not in _OF_THE_MACHINE}
        return {
            key: 0 if key in _TIMES else _normalize_value(item) for key, item in portable.items()
        }
    return [_normalize_value(item) for item in value] if isinstance(value, list) else value


def _check_status(process: "subprocess.CompletedProcess[str]") -> None:
    assert process.returncode == 0, process.stdout


if __name__ == "__main__":
    engine, reason = projects.find_engine()
    assert engine, reason
    os.environ["PATH"] = os.pathsep.join([str(engine.parent), os.environ["PATH"]])
    for name in sys.argv[1:] or SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            cloud = Cloud({specs.PROJECT: specs.NUMBER})
            with projects.standin_world(cloud, Path(folder) / "pulumi", engine) as world:
                outputs = preview_outputs(SCENARIOS[name], Path(folder) / "project", world)
            for text, suffix in zip(outputs, ("json", "jsonl"), strict=True):
                (RECORDED / f"{name}.{suffix}").write_text(normalize(text, Path(folder)))
