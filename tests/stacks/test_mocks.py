"""The stack program under Pulumi's mocks, for this repository's stack files and for minimal specs."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from mocked import ROOT, V5E, V6E, declared, declared_by_minimal_spec, grants, only, project_at

from tpucfg.catalog import Catalog
from tpucfg.infra.resource_rules import expected_outputs, resource_findings
from tpucfg.infra.stack_files import effective_config, pulumi_project
from tpucfg.infra.stack_program import ProgramError, run_under_mocks
from tpucfg.plan import plan
from tpucfg.spec.project import RESERVED_LABELS

STACKS = sorted(
    path.suffixes[0].removeprefix(".") for path in (ROOT / "stacks").glob("Pulumi.*.yaml")
)


def test_every_environment_has_a_stack_file() -> None:
    """The stacks of this repository are the environments of its spec."""
    assert sorted(project_at(ROOT / "tpucfg.yaml").environments) == STACKS


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize("stack", STACKS)
def test_stacks_of_this_repository_break_no_rule(stack: str, preview: bool) -> None:
    """The resources of each environment of this repository, with its stack file, break no rule."""
    project = project_at(ROOT / "tpucfg.yaml")
    own = pulumi_project(ROOT)
    assert own

    environment = run_under_mocks(
        own.program,
        environment=project.environments[stack],
        project=own.name,
        config=effective_config(own, stack),
        preview=preview,
    )

    assert [resource.kind for resource in environment.resources].count("storage.Bucket") == 1
    assert not resource_findings(environment, project)
    for name, (value, _) in expected_outputs(project, project.environments[stack]).items():
        assert environment.outputs[name] == value


@pytest.mark.parametrize("stack", STACKS)
def test_preview_knows_every_member(stack: str) -> None:
    """In a preview, before any resource exists, no grant has an unknown member."""
    for _, _, member in grants(declared(ROOT / "tpucfg.yaml", stack, preview=True)):
        assert isinstance(member, str)
        assert member.startswith("serviceAccount:")


@pytest.mark.parametrize("stack", STACKS)
def test_names_match_the_configs(stack: str) -> None:
    """Bucket and account of a stack equal those that the compiler writes into the environment's configs."""
    project = project_at(ROOT / "tpucfg.yaml")
    jobs = [job for job in plan(project, Catalog()).jobs if job.environment.name == stack]

    outputs = declared(ROOT / "tpucfg.yaml", stack).outputs

    assert {job.bucket for job in jobs} == {outputs["bucket"]}
    assert {job.account for job in jobs} == {outputs["workloadServiceAccount"]}


def test_bucket_is_regional_private_and_labelled(tmp_path: Path) -> None:
    """The bucket is in the TPUs' region, private, retained by default, and has the spec's labels."""
    bucket = only(
        declared_by_minimal_spec(tmp_path, {"labels": {"team": "vision"}}), "storage.Bucket"
    )

    assert bucket.name == f"data-{bucket.inputs['name']}"
    assert bucket.inputs["location"] == "US-CENTRAL1"
    assert bucket.inputs["uniformBucketLevelAccess"] is True
    assert bucket.inputs["publicAccessPrevention"] == "enforced"
    assert bucket.inputs["labels"] == {
        "tpucfg-project": "mnist",
        "tpucfg-environment": "dev",
        "team": "vision",
    }
    assert set(bucket.inputs["labels"]) == {*RESERVED_LABELS[:2], "team"}
    assert bucket.retain
    assert not bucket.inputs["forceDestroy"]


def test_lifecycle_never_deletes_without_a_prefix(tmp_path: Path) -> None:
    """Every rule that deletes by age applies only below tmp/, where there are no data and no checkpoints."""
    rules = only(declared_by_minimal_spec(tmp_path), "storage.Bucket").inputs["lifecycleRules"]

    deletions = [
        rule for rule in rules if rule["action"]["type"] != "AbortIncompleteMultipartUpload"
    ]
    assert deletions
    assert all(rule["condition"]["matchesPrefixes"] == ["tmp/"] for rule in deletions)


@pytest.mark.parametrize(
    ("environment", "days"),
    [({}, 7), ({"protect": True}, 30), ({"keep_data": False}, 0)],
    ids=["default", "protected", "not kept"],
)
def test_soft_delete_is_always_set(tmp_path: Path, environment: dict[str, Any], days: int) -> None:
    """The retention of deleted objects is always explicit, and never left to Google's default."""
    policy = only(declared_by_minimal_spec(tmp_path, environment), "storage.Bucket").inputs[
        "softDeletePolicy"
    ]

    assert policy == {"retentionDurationSeconds": days * 86_400}


def test_protection_covers_everything_but_extra_members(tmp_path: Path) -> None:
    """In a protected environment, only the grants of bucketMembers can be removed in one step."""
    protected = declared_by_minimal_spec(
        tmp_path, {"protect": True}, config={"bucketMembers": '["group:team@example.com"]'}
    )

    unprotected = [
        resource.inputs["member"] for resource in protected.resources if not resource.protect
    ]
    assert unprotected == ["group:team@example.com"]


@pytest.mark.parametrize(
    ("target", "top", "apis"),
    [
        ("vertex-ai", {}, {"storage", "iam", "tpu", "aiplatform"}),
        ("cloud-tpu", {}, {"storage", "iam", "tpu"}),
        ("compute-engine", V6E, {"storage", "iam", "tpu", "compute", "logging"}),
        ("gke", V5E, {"storage", "iam", "tpu", "container", "iamcredentials"}),
        (
            "ai-platform",
            {"trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}},
            {"storage", "iam", "ml"},
        ),
    ],
)
def test_target_determines_the_apis(
    tmp_path: Path, target: str, top: dict[str, Any], apis: set[str]
) -> None:
    """Each target has exactly the APIs that it needs, and none is disabled when the stack is destroyed."""
    environment = declared_by_minimal_spec(tmp_path, {"target": target}, top)

    services = [
        resource for resource in environment.resources if resource.kind == "projects.Service"
    ]
    assert {resource.inputs["service"] for resource in services} == {
        f"{api}.googleapis.com" for api in apis
    }
    assert all(resource.inputs["disableOnDestroy"] is False for resource in services)


@pytest.mark.parametrize("target", ["vertex-ai", "cloud-tpu"])
def test_service_agent_and_account_have_access_to_the_bucket_only(
    tmp_path: Path, target: str
) -> None:
    """Both use the objects of this bucket, the account reads its properties, and neither has a role on the project."""
    unpullable = {"trainer": {"image": "ghcr.io/acme/mnist:1.0"}}
    assert grants(
        declared_by_minimal_spec(tmp_path, {"target": target}, unpullable, {"projectNumber": "42"})
    ) == {
        (
            "storage.BucketIAMMember",
            "roles/storage.objectUser",
            "serviceAccount:service-42@cloud-tpu.iam.gserviceaccount.com",
        ),
        (
            "storage.BucketIAMMember",
            "roles/storage.objectUser",
            "serviceAccount:tpu-mnist-dev@acme-dev.iam.gserviceaccount.com",
        ),
        (
            "storage.BucketIAMMember",
            "roles/storage.legacyBucketReader",
            "serviceAccount:tpu-mnist-dev@acme-dev.iam.gserviceaccount.com",
        ),
    }


def test_pods_act_as_the_account_by_workload_identity(tmp_path: Path) -> None:
    """On gke, the Kubernetes service account of the config's namespace may act as the jobs' account."""
    options = {"targets": {"gke": {"namespace": "train", "service_account": "trainer"}}}

    members = grants(declared_by_minimal_spec(tmp_path, {"target": "gke"}, {**V5E, **options}))

    member = "serviceAccount:acme-dev.svc.id.goog[train/trainer]"
    assert ("serviceaccount.IAMMember", "roles/iam.workloadIdentityUser", member) in members


def test_ai_platform_reads_its_names_from_stack_config(tmp_path: Path) -> None:
    """The identity is generated in the tenant project, and its TPU account has roles/ml.serviceAgent on the spec's."""
    top = {"trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}}
    email = "service-7@cloud-tpu.iam.gserviceaccount.com"

    config = {"serviceAccountProject": "7", "tpuServiceAccount": email}
    environment = declared_by_minimal_spec(tmp_path, {"target": "ai-platform"}, top, config)

    assert only(environment, "projects.ServiceIdentity").inputs["project"] == "7"
    assert ("projects.IAMMember", "roles/ml.serviceAgent", f"serviceAccount:{email}") in grants(
        environment
    )
    assert environment.outputs["tpuAgent"] == email


def test_ai_platform_is_not_called_under_mocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under mocks, the names are placeholders and no request is sent, even if an endpoint is configured."""
    monkeypatch.setenv("GOOGLE_ML_ENGINE_CUSTOM_ENDPOINT", "http://127.0.0.1:1/v1/")
    top = {"trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}}

    environment = declared_by_minimal_spec(tmp_path, {"target": "ai-platform"}, top)

    assert "acme-dev" in only(environment, "projects.ServiceIdentity").inputs["project"]


def test_two_runs_declare_equal_resources(tmp_path: Path) -> None:
    """Two runs declare equal resources in equal order."""
    assert declared_by_minimal_spec(tmp_path) == declared_by_minimal_spec(tmp_path)


@pytest.mark.parametrize(
    ("environment", "config", "message"),
    [
        ({"region": "us-west4"}, {}, "error[TPU021]: v2-8 is not offered in us-west4"),
        ({}, {"spec": "gone.yaml"}, "pulumi config set spec PATH --stack dev"),
        ({}, {"projectNumbr": "1"}, "tpucfg:projectNumbr, which the program does not read"),
        (
            {},
            {"bucketMembers": '["serviceAccount:tpu-mnist-dev@acme-dev.iam.gserviceaccount.com"]'},
            "bucketMembers contains the account of dev itself",
        ),
    ],
)
def test_invalid_spec_or_config_ends_the_program(
    tmp_path: Path, environment: dict[str, Any], config: dict[str, str], message: str
) -> None:
    """An invalid spec or config ends the program with a readable message."""
    with pytest.raises(ProgramError) as raised:
        declared_by_minimal_spec(tmp_path, environment, config=config)

    assert message in str(raised.value)


def test_too_long_name_ends_the_program_that_creates_the_account(tmp_path: Path) -> None:
    """An account id longer than Google allows ends the program, also on targets whose configs do not contain it."""
    top = {"name": "a" * 28, "trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}}

    with pytest.raises(ProgramError, match="TPU030"):
        declared_by_minimal_spec(tmp_path, {"target": "ai-platform"}, top)


def test_mocks_leave_nothing_behind(tmp_path: Path) -> None:
    """After a run under mocks, Pulumi has no config and no root resource in this process."""
    declared_by_minimal_spec(tmp_path)

    assert pulumi.runtime.get_config("tpucfg:spec") is None
    assert pulumi.runtime.get_root_resource() is None
