"""The roles that the stack grants on buckets, against the programs that need them: real clients, a stand-in storage.

Each manager of checkpoints writes, stops, restarts and reads, with exactly the roles of the stack's resources, and then
with one role less.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from mocked import declared_by_minimal_spec

import trainers
from bucket_server import ROLES, Buckets, buckets
from official.maxtext_python import maxtext_python

USER, VIEWER, READER = (f"roles/storage.{name}" for name in ("objectUser", "objectViewer", "legacyBucketReader"))
OWN: Final = "acme-dev-mnist-dev-us-central1"
SOURCE: Final = "acme-datasets"
"""The environment's bucket, and the one that its jobs read."""

STOPS: Final[Mapping[str, Mapping[tuple[str, str], str | None]]] = {
    "maxtext": {
        (OWN, USER): "storage.objects.create",
        (OWN, READER): "storage.buckets.get",
        (SOURCE, VIEWER): "storage.objects.get",
        (SOURCE, READER): None,
    },
    "orbax": {
        (OWN, USER): "storage.objects.create",
        (OWN, READER): "storage.buckets.get",
        (SOURCE, VIEWER): "storage.objects.get",
        (SOURCE, READER): "storage.buckets.get",
    },
    "starter": {
        (OWN, USER): "storage.objects.create",
        (OWN, READER): None,
        (SOURCE, VIEWER): "storage.objects.get",
        (SOURCE, READER): None,
    },
}
"""The permission at which each manager stops without a role on a bucket; None if it needs none of that role."""


class Program(NamedTuple):
    """A manager of checkpoints, the storage that it reaches, and the roles that the stack grants its account."""

    manager: str
    folder: Path
    server: Buckets
    granted: Mapping[str, frozenset[str]]

    def run(
        self, path: str, source: str = "", without: tuple[str, str] = ("", "")
    ) -> "subprocess.CompletedProcess[str]":
        """Run the manager in a folder of the environment's bucket, with the granted roles but one."""
        self.server.refused.clear()
        self.server.roles = defaultdict(
            frozenset,
            {
                bucket: frozenset(role for role in roles if (bucket, role) != without)
                for bucket, roles in self.granted.items()
            },
        )
        python = maxtext_python() if self.manager == "maxtext" else sys.executable
        script = Path(__file__).with_name("save_checkpoints.py")
        # gcsfs asks for a bucket's layout by gRPC, which no variable directs to the stand-in, and does without it.
        quiet = {"JAX_PLATFORMS": "cpu", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
        return subprocess.run(
            [python, script, self.manager, f"gs://{OWN}/runs/{path}", *([source] if source else [])],
            cwd=self.folder,
            env={**os.environ, **quiet, **self.server.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=trainers.TIMEOUT_SECONDS,
        )

    def report(self, path: str, source: str = "") -> dict[str, Any]:
        """Run the manager with all granted roles, which must suffice, and return what it prints."""
        result = self.run(path, source)
        assert result.returncode == 0, result.stderr[-2000:]
        assert not self.server.refused
        return dict(json.loads(result.stdout.splitlines()[-1]))


def granted_roles(folder: Path) -> dict[str, frozenset[str]]:
    """Return the roles that the stack grants the jobs' account, by bucket."""
    environment = declared_by_minimal_spec(folder, {"reads": {f"gs://{SOURCE}": "us-central1"}})
    roles: dict[str, set[str]] = defaultdict(set)
    for resource in environment.resources:
        if resource.kind == "storage.BucketIAMMember" and "tpu-mnist-dev@" in resource.inputs["member"]:
            roles[resource.inputs["bucket"]].add(resource.inputs["role"])
    return {bucket: frozenset(names) for bucket, names in roles.items()}


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Program]:
    """Make the project of the starter trainer, and run the storage."""
    project = trainers.new(tmp_path / "project", "jax").folder
    with buckets() as server:
        yield Program(request.param, project, server, granted_roles(tmp_path))


@pytest.mark.official
@pytest.mark.parametrize("program", STOPS, indirect=True)
def test_the_granted_roles_suffice_and_each_lack_is_refused(program: Program) -> None:
    """A run restarts after its last checkpoint, another starts from a bucket of `reads`; a lack stops at its call."""
    assert program.report("first")["start"] is None
    again = program.report("first")
    assert (again["start"], again["kept"][-2:]) == (3.0, [5, 6])
    objects = program.server.objects
    objects |= {url.replace(f"//{OWN}/", f"//{SOURCE}/"): data for url, data in objects.items()}
    # MaxText takes the path of a checkpoint, the others that of a run.
    source = f"gs://{SOURCE}/runs/first{'/6' if program.manager == 'maxtext' else ''}"
    assert program.report("second", source)["start"] == 6.0
    for without, permission in STOPS[program.manager].items():
        result = program.run(f"without-{without[1].rpartition('.')[2]}-on-{without[0]}", source, without)
        assert (result.returncode == 0) == (permission is None), (without, result.stderr[-2000:])
        assert permission is None or (without[0], permission) in program.server.refused, without


def test_each_granted_role_is_needed(tmp_path: Path) -> None:
    """The stack grants exactly the roles without which one of the managers stops."""
    granted = {(bucket, role) for bucket, roles in granted_roles(tmp_path).items() for role in roles}
    assert granted == {taken for stops in STOPS.values() for taken, permission in stops.items() if permission}
    assert {role for _, role in granted} == ROLES.keys()
