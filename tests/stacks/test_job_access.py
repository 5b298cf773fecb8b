"""Access of the jobs to secrets and to their own slices, and accounts that differ by size, under Pulumi's mocks."""

import json
from pathlib import Path
from typing import Any

import pytest
import specs
from mocked import declared, declared_by_minimal_spec, grants, only, project_at

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.infra.resource_rules import expected_outputs, output_findings, resource_findings
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.infra.stack_program import ProgramError
from tpucfg.yamldoc.reader import read_text

OWN = "serviceAccount:tpu-mnist-dev@acme-dev.iam.gserviceaccount.com"
BIG = "big@acme-dev.iam.gserviceaccount.com"
READ = "roles/secretmanager.secretAccessor"
DELETE = "projects/acme-dev/roles/tpu.mnist.dev"
LADDER: dict[str, Any] = {
    "sizes": ["v5litepod-4", "v5litepod-8"],
    "training": {"tuned_on": "v5litepod-4", "batch_size": 8, "train_steps": 9},
}
IMAGE = "us-docker.pkg.dev/acme-dev/train/mnist:1.0"


def of_trainer(target: str = "cloud-tpu", **trainer: Any) -> dict[str, Any]:
    """Return top-level keys of a spec with two rungs of v5e and more keys of the trainer."""
    return {**LADDER, "target": target, "trainer": {"image": IMAGE, **trainer}}


def readers(environment: EnvironmentResources) -> set[tuple[str, str, str]]:
    """Return the project, the name and the member of each grant on a secret."""
    secrets = [
        resource
        for resource in environment.resources
        if resource.kind == "secretmanager.SecretIamMember"
    ]
    assert {resource.inputs["role"] for resource in secrets} <= {READ}
    return {
        (grant.inputs["project"], grant.inputs["secretId"], grant.inputs["member"])
        for grant in secrets
    }


def deleters(environment: EnvironmentResources) -> list[Resource]:
    """Return the grants on the project."""
    return [resource for resource in environment.resources if resource.kind == "projects.IAMMember"]


def services(environment: EnvironmentResources) -> set[str]:
    """Return the enabled APIs."""
    return {
        item.inputs["service"] for item in environment.resources if item.kind == "projects.Service"
    }


def test_each_secret_is_granted_once_and_alone(tmp_path: Path) -> None:
    """The account reads each named secret, in whatever version and project, and nothing of the project at large."""
    secrets = {
        "A": "wandb/3",
        "B": "wandb/4",
        "C": "projects/acme-shared/secrets/hf/versions/2",
        "D": "projects/acme-dev/secrets/own/versions/latest",
    }

    environment = declared_by_minimal_spec(tmp_path, top=of_trainer(secrets=secrets))

    assert readers(environment) == {
        ("acme-dev", "wandb", OWN),
        ("acme-dev", "own", OWN),
        ("acme-shared", "hf", OWN),
    }
    assert "secretmanager.googleapis.com" in services(environment)
    assert not deleters(environment)


def test_without_secrets_nothing_of_secret_manager_is_declared(tmp_path: Path) -> None:
    """A spec without secrets, or whose only secret is taken away on every size, enables no API of theirs."""
    without = of_trainer(secrets={"A": "wandb/3"})
    without["overrides"] = {size: {"trainer": {"secrets": {"A": None}}} for size in LADDER["sizes"]}

    for top in (of_trainer(), without):
        environment = declared_by_minimal_spec(tmp_path, top=top)
        assert not readers(environment)
        assert "secretmanager.googleapis.com" not in services(environment)


def test_a_secret_is_granted_to_the_account_of_its_size(tmp_path: Path) -> None:
    """An account that one size has reads the secrets of that size and no others."""
    top = of_trainer(secrets={"A": "wandb/3"})
    top["overrides"] = {
        "v5litepod-8": {
            "trainer": {"secrets": {"A": None, "B": "hf/1"}},
            "targets": {"cloud-tpu": {"service_account": BIG}},
        }
    }

    assert readers(declared_by_minimal_spec(tmp_path, top=top)) == {
        ("acme-dev", "wandb", OWN),
        ("acme-dev", "hf", f"serviceAccount:{BIG}"),
    }


def test_pods_and_their_account_read_the_secrets_on_gke(tmp_path: Path) -> None:
    """Secret Manager's controllers read as the Kubernetes account, or as the account that it is annotated with."""
    top = of_trainer("gke", secrets={"A": "wandb/3"})
    top["overrides"] = {
        "v5litepod-8": {"targets": {"gke": {"service_account": "big", "namespace": "train"}}}
    }

    environment = declared_by_minimal_spec(tmp_path, top=top)

    small, big = (
        f"serviceAccount:acme-dev.svc.id.goog[{name}]"
        for name in ("default/tpu-mnist-dev", "train/big")
    )
    assert readers(environment) == {("acme-dev", "wandb", member) for member in (OWN, small, big)}
    pods = {
        (role, member)
        for kind, role, member in grants(environment)
        if kind == "serviceaccount.IAMMember"
    }
    assert pods == {("roles/iam.workloadIdentityUser", member) for member in (small, big)}


def test_each_account_has_access_to_the_bucket(tmp_path: Path) -> None:
    """An account per size is granted the bucket, is an output, and is created only if it is the environment's own."""
    top = of_trainer()
    options = {"targets": {"cloud-tpu": {"service_account": BIG}}}
    top["overrides"] = {"v5litepod-8": options}
    path = specs.write(tmp_path, specs.spec(**top))

    environment, project = declared(path), project_at(path)

    bucket = {
        resource.inputs["member"]
        for resource in environment.resources
        if "bucket" in resource.inputs
    }
    assert {OWN, f"serviceAccount:{BIG}"} < bucket
    assert environment.outputs["workloadServiceAccount"] == OWN.removeprefix("serviceAccount:")
    assert environment.outputs["workloadServiceAccounts"] == [
        OWN.removeprefix("serviceAccount:"),
        BIG,
    ]
    expected = expected_outputs(project, project.environments["dev"])
    assert {key: environment.outputs[key] for key in expected} == {
        key: value for key, (value, _) in expected.items()
    }
    assert only(environment, "serviceaccount.Account").inputs["accountId"] == "tpu-mnist-dev"

    top["overrides"]["v5litepod-4"] = options
    alone = declared_by_minimal_spec(tmp_path, top=top)
    assert not [
        resource for resource in alone.resources if resource.kind == "serviceaccount.Account"
    ]
    assert alone.outputs["workloadServiceAccount"] == BIG
    assert "workloadServiceAccounts" not in alone.outputs


def test_outputs_without_an_account_of_a_size_are_a_finding(tmp_path: Path) -> None:
    """Outputs from before a size got an account of its own differ from the spec."""
    top = of_trainer()
    before = declared_by_minimal_spec(tmp_path, top=top).outputs
    top["overrides"] = {"v5litepod-8": {"targets": {"cloud-tpu": {"service_account": BIG}}}}
    project = project_at(specs.write(tmp_path, specs.spec(**top)))
    text = json.dumps({**before, "tpuAgent": "service-1@cloud-tpu.iam.gserviceaccount.com"})

    findings = output_findings(
        read_text(text, "outputs.json"), project, project.environments["dev"]
    )

    assert [finding.message for finding in findings] == [
        "the stack dev has no output workloadServiceAccounts: its last update is incomplete or outdated"
    ]


@pytest.mark.parametrize("preview", [False, True])
def test_jobs_that_delete_their_slice_have_the_narrow_role(tmp_path: Path, preview: bool) -> None:
    """With a longest run on cloud-tpu, a custom role has exactly the permissions for it, and breaks no rule."""
    path = specs.write(tmp_path, specs.spec(**of_trainer(max_run_duration="12h")))

    environment = declared(path, preview=preview)

    role = only(environment, "projects.IAMCustomRole")
    assert role.inputs["roleId"] == "tpu.mnist.dev"
    assert tuple(role.inputs["permissions"]) == TARGET_FACTS["cloud-tpu"].deletion_permissions
    [grant] = deleters(environment)
    assert (grant.inputs["role"], grant.inputs["member"], grant.inputs["project"]) == (
        DELETE,
        OWN,
        "acme-dev",
    )
    assert not resource_findings(environment, project_at(path))


@pytest.mark.parametrize(
    ("target", "duration"),
    [("cloud-tpu", None), ("gke", "12h"), ("vertex-ai", "12h")],
    ids=["unbounded", "gke", "vertex"],
)
def test_other_jobs_may_delete_nothing(tmp_path: Path, target: str, duration: str | None) -> None:
    """If the service ends the job, or nothing does, no role is declared."""
    top = of_trainer(target, **({"max_run_duration": duration} if duration else {}))
    if target == "vertex-ai":
        top |= {
            "sizes": ["v2-8"],
            "training": {"tuned_on": "v2-8", "batch_size": 8, "train_steps": 9},
        }

    environment = declared_by_minimal_spec(tmp_path, top=top)

    assert not deleters(environment)
    assert not [
        resource for resource in environment.resources if resource.kind == "projects.IAMCustomRole"
    ]


@pytest.mark.parametrize(
    ("sizes", "permissions"),
    [
        (["v6e-4"], ["compute.instances.delete"]),
        (["v6e-16"], ["compute.instanceGroupManagers.delete"]),
        (["v6e-4", "v6e-16"], ["compute.instances.delete", "compute.instanceGroupManagers.delete"]),
    ],
)
def test_hosts_of_compute_engine_delete_what_they_are_created_by(
    tmp_path: Path, sizes: list[str], permissions: list[str]
) -> None:
    """The role has the permission for groups only with sizes of several hosts, and for instances with one host."""
    training = {"tuned_on": "v6e-4", "batch_size": 64, "train_steps": 9}
    top = of_trainer("compute-engine", max_run_duration="12h") | {
        "sizes": sizes,
        "training": training,
    }
    path = specs.write(tmp_path, specs.spec(**top))

    environment = declared(path)

    assert only(environment, "projects.IAMCustomRole").inputs["permissions"] == permissions
    roles = {
        (grant.inputs["role"], grant.inputs["member"], grant.protect)
        for grant in deleters(environment)
    }
    assert roles == {(DELETE, OWN, False), ("roles/logging.logWriter", OWN, False)}
    conditions = {
        grant.inputs["role"]: "condition" in grant.inputs for grant in deleters(environment)
    }
    assert conditions == {DELETE: "v6e-4" in sizes, "roles/logging.logWriter": False}
    assert not resource_findings(environment, project_at(path))


@pytest.mark.parametrize("role", [None, "organizations/123456789012/roles/tpuSliceDeleter"])
def test_a_condition_leaves_the_instances_of_bounded_sizes(
    tmp_path: Path, role: str | None
) -> None:
    """Of the instances, a job may delete those of the bounded sizes of one host, by whatever role."""
    sizes = ["v6e-1", "v6e-4", "v6e-8", "v6e-16"]
    top = of_trainer("compute-engine", max_run_duration="12h")
    top |= {"sizes": sizes, "training": {"tuned_on": "v6e-4", "batch_size": 64, "train_steps": 9}}
    top["overrides"] = {"v6e-1": {"trainer": {"max_run_duration": None}}}

    environment = declared_by_minimal_spec(
        tmp_path, top=top, config={"deletionRole": role} if role else {}
    )

    [grant] = [grant for grant in deleters(environment) if grant.inputs["role"] == (role or DELETE)]
    assert grant.inputs["condition"]["expression"] == (
        'resource.type != "compute.googleapis.com/Instance"'
        ' || resource.name.extract("/instances/{name}").startsWith("mnist-dev-v6e-4")'
        ' || resource.name.extract("/instances/{name}").startsWith("mnist-dev-v6e-8")'
    )


def test_only_the_accounts_of_bounded_sizes_may_delete(tmp_path: Path) -> None:
    """An account whose sizes have no longest run gets no role on the project."""
    top = of_trainer()
    top["overrides"] = {
        "v5litepod-8": {
            "trainer": {"max_run_duration": "2h"},
            "targets": {"cloud-tpu": {"service_account": BIG}},
        }
    }

    environment = declared_by_minimal_spec(tmp_path, top=top)

    assert [grant.inputs["member"] for grant in deleters(environment)] == [f"serviceAccount:{BIG}"]


def test_an_existing_role_is_granted_instead(tmp_path: Path) -> None:
    """With deletionRole, the stack creates no role, so that its caller needs no right to create one."""
    role = "organizations/123456789012/roles/tpuSliceDeleter"

    environment = declared_by_minimal_spec(
        tmp_path, top=of_trainer(max_run_duration="12h"), config={"deletionRole": role}
    )

    assert [grant.inputs["role"] for grant in deleters(environment)] == [role]
    assert not [
        resource for resource in environment.resources if resource.kind == "projects.IAMCustomRole"
    ]


def test_access_can_be_revoked_in_a_protected_environment(tmp_path: Path) -> None:
    """A secret, an image or a longest run that leaves the spec ends the access in one step, whatever is protected."""
    top = of_trainer(secrets={"A": "wandb/3"}, max_run_duration="12h")

    environment = declared_by_minimal_spec(tmp_path, {"protect": True}, top)

    assert {resource.name for resource in environment.resources if not resource.protect} == {
        "secretmanager",
        "slice-deletion",
        "workload-deletes-slices",
        "workload-on-secret-wandb",
        "acme-dev/tpu-mnist-dev-on-images-acme-dev/us/train",
    }


def test_bucket_members_must_not_contain_an_account_of_a_size(tmp_path: Path) -> None:
    """The accounts of all sizes are refused in bucketMembers, as they have access already."""
    top = of_trainer()
    top["overrides"] = {"v5litepod-8": {"targets": {"cloud-tpu": {"service_account": BIG}}}}

    with pytest.raises(ProgramError, match="bucketMembers contains the account of dev itself"):
        declared_by_minimal_spec(
            tmp_path, top=top, config={"bucketMembers": f'["serviceAccount:{BIG}"]'}
        )
