"""`submit` against API servers of other versions: without JobSet or Kueue, and with older definitions of JobSet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import control_plane
import pytest
import yaml
from running_cluster import Cluster, running_api_server
from teams import Team, extra, new_team

_DEFINITION: Final = "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"
_ACCOUNT: Final = {"gke": {"service_account": "default"}}


@pytest.fixture(scope="module")
def bare(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run an API server without anything beside Kubernetes' own kinds, and without controllers."""
    with running_api_server(cluster.programs, tmp_path_factory.mktemp("bare")) as running:
        yield running


@pytest.fixture
def team(bare: Cluster, tmp_path: Path) -> Iterator[Team]:
    """Return a namespace of its own, with the account that a controller would make."""
    with new_team(bare, tmp_path) as created:
        bare.kubectl("create", "serviceaccount", "default", f"--namespace={created.namespace}")
        yield created


def _install(bare: Cluster, change: Any) -> None:
    """Install a definition of JobSet, changed."""
    definition = yaml.safe_load(
        (control_plane.module_folder(control_plane.JOBSET) / _DEFINITION).read_text()
    )
    change(definition["spec"]["versions"][0])
    bare.define(definition)


def _uninstall(bare: Cluster) -> None:
    bare.kubectl("delete", "crd/jobsets.jobset.x-k8s.io", "--ignore-not-found")


def _rename(version: dict[str, Any]) -> None:
    version["name"] = "v1alpha1"


def _without_restarts(version: dict[str, Any]) -> None:
    """Remove what JobSet got in v0.6: a list of rules."""
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["failurePolicy"]["properties"]["rules"]


def test_a_cluster_without_jobset_is_named(team: Team) -> None:
    """Nothing is created, and the help has where JobSet comes from."""
    refused = team.run("submit", "--execute", **_ACCOUNT)
    assert refused.returncode == 1
    assert "the cluster does not know the kind JobSet" in refused.stderr
    assert "install JobSet: https://jobset.sigs.k8s.io/docs/installation/" in refused.stderr
    assert refused.stderr.splitlines()[-1].endswith("nothing was created")


@pytest.mark.parametrize(
    ("change", "changes", "message"),
    [
        (_rename, {}, "the cluster does not know the kind JobSet"),
        (_without_restarts, {"trainer__restarts": 2}, 'unknown field "spec.failurePolicy.rules"'),
        (
            lambda _: None,
            {"gke": {"service_account": "default", "queue": "tpu"}},
            "without Kueue it starts",
        ),
        (
            lambda _: None,
            {
                "gke": {
                    "service_account": "default",
                    **extra(volumes=[{"name": "a b", "emptyDir": {}}]),
                }
            },
            "the cluster refuses the pods' Job: ",
        ),
    ],
)
def test_another_version_refuses_before_anything_is_created(
    bare: Cluster, team: Team, change: Any, changes: dict[str, Any], message: str
) -> None:
    """A version of another name, one without a field of the job, and a queue without Kueue."""
    _install(bare, change)
    try:
        refused = team.run("submit", "--execute", **{**_ACCOUNT, **changes})
        assert (refused.returncode, team.left()) == (1, [])
        assert message in refused.stderr
        assert "Traceback" not in refused.stderr
    finally:
        _uninstall(bare)
