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
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from mocked import declared_by_minimal_spec

import trainers
from bucket_server import ROLES, Buckets, buckets
from official.maxtext_python import maxtext_python

USER, VIEWER, READER = (
    f"roles/storage.{name}" for name in ("objectUser", "objectViewer", "legacyBucketReader")
)
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


class Result(NamedTuple):
    """The exit status of a manager, its messages, and its report: the value at the start, and the steps it has kept."""

    status: int
    messages: str
    report: tuple[float | None, list[int]] | None


class Program(NamedTuple):
    """A manager of checkpoints, the storage that it reaches, and the roles that the stack grants its account."""

    manager: str
    server: Buckets
    granted: Mapping[str, frozenset[str]]
    process: "subprocess.Popen[str]"

    def run(self, path: str, source: str = "", without: tuple[str, str] = ("", "")) -> Result:
        """Run the manager in a folder of the environment's bucket, with the granted roles but one."""
        self.server.refused.clear()
        self.server.roles = defaultdict(
            frozenset,
            {
                bucket: frozenset(role for role in roles if (bucket, role) != without)
                for bucket, roles in self.granted.items()
            },
        )
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{json.dumps([f'gs://{OWN}/runs/{path}', source])}\n")
        self.process.stdin.flush()
        return Result(*json.loads(self.process.stdout.readline()))

    def report(self, path: str, source: str = "") -> tuple[float | None, list[int]]:
        """Run the manager with all granted roles, which must suffice, and return its report."""
        result = self.run(path, source)
        assert result.report, result.messages[-2000:]
        assert not self.server.refused
        return result.report


@contextmanager
def started(
    manager: str, folder: Path, variables: Mapping[str, str]
) -> Iterator["subprocess.Popen[str]"]:
    """Start the script that runs a manager for each line on its stdin: importing its packages takes most of a run."""
    python = maxtext_python() if manager == "maxtext" else sys.executable
    script = Path(__file__).with_name("save_checkpoints.py")
    # gcsfs asks for a bucket's layout by gRPC, which no variable directs to the stand-in, and does without it.
    quiet = {"JAX_PLATFORMS": "cpu", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
    process = subprocess.Popen(
        [python, script, manager],
        cwd=folder,
        env={**os.environ, **quiet, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        yield process
        process.communicate()


def granted_roles(folder: Path) -> dict[str, frozenset[str]]:
    """Return the roles that the stack grants the jobs' account, by bucket."""
    environment = declared_by_minimal_spec(folder, {"reads": {f"gs://{SOURCE}": "us-central1"}})
    roles: dict[str, set[str]] = defaultdict(set)
    for resource in environment.resources:
        if (
            resource.kind == "storage.BucketIAMMember"
            and "tpu-mnist-dev@" in resource.inputs["member"]
        ):
            roles[resource.inputs["bucket"]].add(resource.inputs["role"])
    return {bucket: frozenset(names) for bucket, names in roles.items()}


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Program]:
    """Make the project of the starter trainer, and run the storage."""
    project = trainers.new(tmp_path / "project", "jax").folder
    with buckets() as server, started(request.param, project, server.environment) as process:
        yield Program(request.param, server, granted_roles(tmp_path), process)


@pytest.mark.official
@pytest.mark.parametrize("program", STOPS, indirect=True)
def test_the_granted_roles_suffice_and_each_lack_is_refused(program: Program) -> None:
    """A run restarts after its last checkpoint, another starts from a bucket of `reads`; a lack stops at its call."""
    assert program.report("first")[0] is None
    start, kept = program.report("first")
    assert (start, kept[-2:]) == (3.0, [5, 6])
    objects = program.server.objects
    objects |= {url.replace(f"//{OWN}/", f"//{SOURCE}/"): data for url, data in objects.items()}
    # MaxText takes the path of a checkpoint, the others that of a run.
    source = f"gs://{SOURCE}/runs/first{'/6' if program.manager == 'maxtext' else ''}"
    assert program.report("second", source)[0] == 6.0
    for without, permission in STOPS[program.manager].items():
        result = program.run(
            f"without-{without[1].rpartition('.')[2]}-on-{without[0]}", source, without
        )
        assert (result.status == 0) == (permission is None), (without, result.messages[-2000:])
        assert permission is None or (without[0], permission) in program.server.refused, without


def test_each_granted_role_is_needed(tmp_path: Path) -> None:
    """The stack grants exactly the roles without which one of the managers stops."""
    granted = {
        (bucket, role) for bucket, roles in granted_roles(tmp_path).items() for role in roles
    }
    assert granted == {
        taken for stops in STOPS.values() for taken, permission in stops.items() if permission
    }
    assert {role for _, role in granted} == ROLES.keys()
