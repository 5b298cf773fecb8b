"""A namespace of a cluster, and the folder of a spec whose jobs run there: `submit` with the real kubectl."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from running_cluster import TOKEN, Cluster, write_kubeconfig

from process import COMMAND, ENVIRONMENT
from spec_factory import spec

SIZE: Final = "v5litepod-8"
JOB: Final = f"jobset.jobset.x-k8s.io/mnist-dev-{SIZE}"
ACCOUNT: Final = "serviceaccount/tpu-mnist-dev"
CONTEXT: Final = "gke_my-project-dev_us-central1_train"
SECRETS: Final = {"trainer__secrets": {"HF_TOKEN": "hf/1"}}


class Team:
    """A namespace of the cluster, and the folder of a spec whose jobs run there."""

    def __init__(self, cluster: Cluster, folder: Path, namespace: str) -> None:
        self.cluster, self.folder, self.namespace = cluster, folder, namespace
        write_kubeconfig(folder / "kubeconfig", cluster.server, TOKEN, [CONTEXT])

    def run(self, *words: str, **changes: Any) -> "subprocess.CompletedProcess[str]":
        """Run a command of tpucfg for a spec of one job."""
        environment = {
            "project": "my-project-dev",
            "region": "us-central1",
            "cluster": "projects/my-project-dev/locations/us-central1/clusters/train",
        }
        targets = {"gke": {"namespace": self.namespace, **changes.pop("gke", {})}}
        data = spec(
            target="gke",
            sizes=[SIZE],
            environments={"dev": environment},
            training={"tuned_on": SIZE, "batch_size": 1024, "train_steps": 4000},
            targets=targets,
            **changes,
        )
        (self.folder / "tpucfg.yaml").write_text(json.dumps(data))
        return self._run([*COMMAND, *words])

    def paste(self, text: str) -> "subprocess.CompletedProcess[str]":
        """Run a printed command as a user pastes it."""
        return self._run(
            ["bash", "-euo", "pipefail", "-c", text.replace("tpucfg ", f"{' '.join(COMMAND)} ")]
        )

    def _run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        path = f"{self.cluster.programs}:{os.environ['PATH']}"
        environment = {**ENVIRONMENT, "PATH": path, "KUBECONFIG": str(self.folder / "kubeconfig")}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def running_pods(self) -> list[str]:
        """Wait until pods run, and return their names and their starts."""
        pods, job = ("pods", f"--namespace={self.namespace}"), f"job/mnist-dev-{SIZE}-slice-0"
        self.cluster.kubectl("wait", "--for=create", job, pods[1], "--timeout=120s")
        self.cluster.kubectl(
            "wait", "--for=jsonpath={.status.ready}=2", job, pods[1], "--timeout=120s"
        )
        shown = self.cluster.kubectl(
            "get", *pods, "--output=jsonpath={.items[*]['metadata.name','status.startTime']}"
        )
        return shown.stdout.split()

    def left(self) -> list[str]:
        """Return the objects of jobs in the namespace, without those of every namespace."""
        kinds = ["jobsets.jobset.x-k8s.io", "serviceaccounts"]
        names = [name for kind in kinds for name in self.cluster.names(kind, self.namespace)]
        return [name for name in names if name != "serviceaccount/default"]


@contextmanager
def new_team(cluster: Cluster, folder: Path) -> Iterator[Team]:
    """Create a namespace, and delete it."""
    namespace = (
        f"team-{uuid4().hex[:12]}"  # deletions take a while, and folders of tests have equal names
    )
    cluster.kubectl("create", "namespace", namespace)
    (folder / "spec").mkdir()
    yield Team(cluster, folder / "spec", namespace)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def deletions(started: "subprocess.CompletedProcess[str]") -> list[str]:
    """Return the commands that delete what a submission created."""
    lines = (line.partition("delete it with: ") for line in started.stderr.splitlines())
    return [command for before, _, command in lines if command and not before]


def extra(**fields: Any) -> dict[str, Any]:
    """Return the settings of gke that add fields to the pods."""
    pod = {"spec": {"template": {"spec": fields}}}
    return {"extra": {"spec": {"replicatedJobs": [{"name": "slice", "template": pod}]}}}
