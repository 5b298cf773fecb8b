"""The stack program under Pulumi's mocks, for the three real stack files, also as a preview."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest
import specs

from tpucfg.catalog import Catalog
from tpucfg.infra import stack_files
from tpucfg.infra.mock_runner import ProgramError, run_program
from tpucfg.infra.resource_rules import resource_findings
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.infra.stack_outputs import expected_outputs
from tpucfg.plan import plan
from tpucfg.spec.parse import load_project
from tpucfg.spec.project import Project
from tpucfg.spec.semantic_rules import RESERVED_LABELS

ROOT = Path(__file__).resolve().parents[2]
STACKS = sorted(path.suffixes[0].removeprefix(".") for path in (ROOT / "stacks").glob("Pulumi.*.yaml"))
V5E = {"sizes": ["v5litepod-4"], "training": {"tuned_on": "v5litepod-4", "batch_size": 8, "train_steps": 9}}


def project_at(path: Path) -> Project:
    """The project in a spec that has to hold."""
    project, found = load_project(path)
    assert project, found
    return project


def made(
    path: Path, stack: str = "dev", *, preview: bool = False, config: Mapping[str, str] | None = None
) -> EnvironmentResources:
    """What the program declares for one environment of a spec."""
    keys = {f"tpucfg:{key}": value for key, value in {"spec": str(path), **(config or {})}.items()}
    environment = project_at(path).environments[stack]
    return run_program(ROOT / "stacks", environment=environment, project="tpucfg", config=keys, preview=preview)


def of_small(
    folder: Path,
    environment: dict[str, Any] | None = None,
    top: dict[str, Any] | None = None,
    config: Mapping[str, str] | None = None,
) -> EnvironmentResources:
    """The same for the smallest spec."""
    return made(specs.write(folder, specs.spec(environment, **(top or {}))), config=config)


def grants(made: EnvironmentResources) -> set[tuple[str, str, str]]:
    """Short type, role and member of each grant."""
    found = [resource for resource in made.resources if "member" in resource.inputs]
    return {(resource.kind, resource.inputs["role"], resource.inputs["member"]) for resource in found}


def one(made: EnvironmentResources, kind: str) -> Resource:
    """The only resource of a type."""
    [found] = [resource for resource in made.resources if resource.kind == kind]
    return found


def test_every_environment_has_a_stack_file() -> None:
    """The stacks of this repository are the environments of its spec."""
    assert sorted(project_at(ROOT / "tpucfg.yaml").environments) == STACKS


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize("stack", STACKS)
def test_real_stack_keeps_every_rule(stack: str, preview: bool) -> None:
    """With its own stack file, each environment of this repository has resources, and they break no rule."""
    project = project_at(ROOT / "tpucfg.yaml")
    pulumi_project = stack_files.pulumi_project(ROOT)
    assert pulumi_project

    one = run_program(
        pulumi_project.program,
        environment=project.environments[stack],
        project=pulumi_project.name,
        config=stack_files.effective_config(pulumi_project, stack),
        preview=preview,
    )

    assert [resource.kind for resource in one.resources].count("storage.Bucket") == 1
    assert not resource_findings(one, project)
    for name, (value, _) in expected_outputs(project, project.environments[stack]).items():
        assert one.outputs[name] == value


@pytest.mark.parametrize("stack", STACKS)
def test_preview_knows_every_member(stack: str) -> None:
    """In a preview, before anything exists, no grant has an unknown member."""
    for _, _, member in grants(made(ROOT / "tpucfg.yaml", stack, preview=True)):
        assert isinstance(member, str)
        assert member.startswith("serviceAccount:")


@pytest.mark.parametrize("stack", STACKS)
def test_names_are_those_in_the_configs(stack: str) -> None:
    """Bucket and account of a stack are those that the compiler writes into the environment's configs."""
    project = project_at(ROOT / "tpucfg.yaml")
    jobs = [job for job in plan(project, Catalog()).jobs if job.environment.name == stack]

    outputs = made(ROOT / "tpucfg.yaml", stack).outputs

    assert {job.bucket for job in jobs} == {outputs["bucket"]}
    assert {job.account for job in jobs} == {outputs["workloadServiceAccount"]}


def test_bucket_is_regional_closed_and_labelled(tmp_path: Path) -> None:
    """The bucket is in the TPUs' region, open to nobody, kept when unwanted, and carries the spec's labels."""
    bucket = one(of_small(tmp_path, {"labels": {"team": "vision"}}), "storage.Bucket")

    assert bucket.name == "data-us-central1"
    assert bucket.inputs["location"] == "US-CENTRAL1"
    assert bucket.inputs["uniformBucketLevelAccess"] is True
    assert bucket.inputs["publicAccessPrevention"] == "enforced"
    assert bucket.inputs["labels"] == {"tpucfg-project": "mnist", "tpucfg-environment": "dev", "team": "vision"}
    assert set(bucket.inputs["labels"]) == {*RESERVED_LABELS, "team"}
    assert bucket.retain
    assert not bucket.inputs["forceDestroy"]


def test_lifecycle_never_deletes_without_a_prefix(tmp_path: Path) -> None:
    """Every deletion by age is below tmp/, where neither data nor checkpoints are."""
    rules = one(of_small(tmp_path), "storage.Bucket").inputs["lifecycleRules"]

    deletions = [rule for rule in rules if rule["action"]["type"] != "AbortIncompleteMultipartUpload"]
    assert deletions
    assert all(rule["condition"]["matchesPrefixes"] == ["tmp/"] for rule in deletions)


@pytest.mark.parametrize(
    ("environment", "days"),
    [({}, 7), ({"protect": True}, 30), ({"keep_data": False}, 0)],
    ids=["default", "protected", "unkept"],
)
def test_soft_delete_is_decided(tmp_path: Path, environment: dict[str, Any], days: int) -> None:
    """How long a deleted object can be restored is always said: Google's default would be a difference to nobody."""
    policy = one(of_small(tmp_path, environment), "storage.Bucket").inputs["softDeletePolicy"]

    assert policy == {"retentionDurationSeconds": days * 86_400}


def test_protection_covers_everything_but_extra_members(tmp_path: Path) -> None:
    """In a protected environment only the grants of bucketMembers can be taken away in one step."""
    protected = of_small(tmp_path, {"protect": True}, config={"bucketMembers": '["group:team@example.com"]'})

    loose = [resource.inputs["member"] for resource in protected.resources if not resource.protect]
    assert loose == ["group:team@example.com"]


@pytest.mark.parametrize(
    ("target", "top", "apis"),
    [
        ("vertex-ai", {}, {"storage", "iam", "tpu", "aiplatform"}),
        ("cloud-tpu", {}, {"storage", "iam", "tpu"}),
        ("gke", V5E, {"storage", "iam", "tpu", "container", "iamcredentials"}),
        ("ai-platform", {"trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}}, {"storage", "iam", "ml"}),
    ],
)
def test_target_decides_the_apis(tmp_path: Path, target: str, top: dict[str, Any], apis: set[str]) -> None:
    """Each target has the APIs that it needs and no other's, and none is disabled with the stack."""
    made = of_small(tmp_path, {"target": target}, top)

    found = [resource for resource in made.resources if resource.kind == "projects.Service"]
    assert {resource.inputs["service"] for resource in found} == {f"{api}.googleapis.com" for api in apis}
    assert all(resource.inputs["disableOnDestroy"] is False for resource in found)


@pytest.mark.parametrize("target", ["vertex-ai", "cloud-tpu"])
def test_agent_and_account_may_use_the_bucket_and_nothing_else(tmp_path: Path, target: str) -> None:
    """There are two grants, both of objects on this bucket; no role on the project."""
    assert grants(of_small(tmp_path, {"target": target}, config={"projectNumber": "42"})) == {
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
    }


def test_pods_act_by_workload_identity(tmp_path: Path) -> None:
    """On gke the Kubernetes account of the config's namespace and name may act as the jobs' account."""
    options = {"targets": {"gke": {"namespace": "train", "service_account": "trainer"}}}

    found = grants(of_small(tmp_path, {"target": "gke"}, {**V5E, **options}))

    member = "serviceAccount:acme-dev.svc.id.goog[train/trainer]"
    assert ("serviceaccount.IAMMember", "roles/iam.workloadIdentityUser", member) in found


def test_ai_platform_takes_its_names_from_config(tmp_path: Path) -> None:
    """The identity is generated in the service's project, and its TPU account has roles/ml.serviceAgent on ours."""
    top = {"trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}}
    email = "service-7@cloud-tpu.iam.gserviceaccount.com"

    config = {"serviceAccountProject": "7", "tpuServiceAccount": email}
    made = of_small(tmp_path, {"target": "ai-platform"}, top, config)

    assert one(made, "projects.ServiceIdentity").inputs["project"] == "7"
    assert ("projects.IAMMember", "roles/ml.serviceAgent", f"serviceAccount:{email}") in grants(made)
    assert made.outputs["tpuAgent"] == email


def test_ai_platform_is_not_called_under_mocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that config the mocks show placeholders, and nobody is called, wherever the service is said to be."""
    monkeypatch.setenv("GOOGLE_ML_ENGINE_CUSTOM_ENDPOINT", "http://127.0.0.1:1/v1/")
    top = {"trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}}

    made = of_small(tmp_path, {"target": "ai-platform"}, top)

    assert "acme-dev" in one(made, "projects.ServiceIdentity").inputs["project"]


def test_same_spec_is_the_same_every_time(tmp_path: Path) -> None:
    """Two runs give the same resources in the same order."""
    assert of_small(tmp_path) == of_small(tmp_path)


@pytest.mark.parametrize(
    ("environment", "config", "said"),
    [
        ({"region": "us-west4"}, {}, "error[TPU021]: v2-8 is not offered in us-west4"),
        ({}, {"spec": "gone.yaml"}, "pulumi config set spec PATH --stack dev"),
        ({}, {"projectNumbr": "1"}, "tpucfg:projectNumbr, which the program does not read"),
        (
            {},
            {"bucketMembers": '["serviceAccount:tpu-mnist-dev@acme-dev.iam.gserviceaccount.com"]'},
            "bucketMembers names the account of dev itself",
        ),
    ],
)
def test_refusal_is_readable(tmp_path: Path, environment: dict[str, Any], config: dict[str, str], said: str) -> None:
    """A spec or config that does not hold ends the program with a message for people."""
    with pytest.raises(ProgramError) as refused:
        of_small(tmp_path, environment, config=config)

    assert said in str(refused.value)


def test_long_name_is_refused_where_the_account_is_made(tmp_path: Path) -> None:
    """An account id that Google would refuse stops the stack, on the targets too whose configs do not name it."""
    top = {"name": "a" * 28, "trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}}

    with pytest.raises(ProgramError, match="TPU030"):
        of_small(tmp_path, {"target": "ai-platform"}, top)


def test_mocks_leave_nothing_behind(tmp_path: Path) -> None:
    """Running the program under mocks leaves no config and no root resource to whoever uses Pulumi next."""
    of_small(tmp_path)

    assert pulumi.runtime.get_config("tpucfg:spec") is None
    assert pulumi.runtime.get_root_resource() is None
