"""The stack program on the real engine: created resources, kept resources and explanations of errors.

Each test runs behind the stand-in of the gcp plugin, and behind the real plugin if it is installed.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from real_program import RealProgram
from specs import NUMBER, PROJECT
from standin import errors, google_api
from standin.cloud import Call, Cloud
from standin.engine import NewStack, Stack
from standin.projects import World

from tpucfg.stack import retry

AGENT = f"serviceAccount:service-{NUMBER}@cloud-tpu.iam.gserviceaccount.com"
ACCOUNT = f"serviceAccount:tpu-mnist-dev@{PROJECT}.iam.gserviceaccount.com"
BUCKET = f"{PROJECT}-mnist-dev-us-central1"
MOVED = f"{PROJECT}-mnist-dev-europe-west4"
USER = "roles/storage.objectUser"

CreateStack = Callable[..., Stack]


@pytest.fixture
def program(tmp_path: Path) -> RealProgram:
    """Return the stack program with a minimal spec."""
    return RealProgram(tmp_path)


@pytest.fixture
def create(new_stack: NewStack, program: RealProgram) -> CreateStack:
    """Return a function that creates the stack `dev` of the program with some config."""

    def create_stack(**config: object) -> Stack:
        return new_stack(program, config={"spec": str(program.spec), **config})

    return create_stack


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace waiting by recording, and return the recorded seconds."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(retry, "sleep", sleep)
    return waited


def test_first_preview_shows_the_member_of_each_grant(world: World, create: CreateStack) -> None:
    """Before any resource exists, a preview shows the member of each grant, and sends no mutating call."""
    previewed = create().preview()

    assert previewed.step(f"tpu-agent-on-data-{BUCKET}").new["member"] == AGENT
    assert previewed.step(f"workload-on-data-{BUCKET}").new["member"] == ACCOUNT
    assert not world.cloud.calls


def test_up_creates_the_environment(world: World, create: CreateStack) -> None:
    """The bucket is in the TPUs' region, agent and account have access, and the outputs equal the compiler's."""
    stack = create()

    stack.up()

    assert stack.outputs() == {
        "bucket": BUCKET,
        "bucketUrl": f"gs://{BUCKET}",
        "region": "us-central1",
        "project": PROJECT,
        "tpuAgent": AGENT.removeprefix("serviceAccount:"),
        "leftBehind": [
            f"gcloud storage buckets remove-iam-policy-binding gs://{BUCKET} --member={AGENT} --role={USER}"
        ],
        "workloadServiceAccount": ACCOUNT.removeprefix("serviceAccount:"),
    }
    assert world.cloud.buckets[BUCKET].body["location"] == "US-CENTRAL1"
    assert world.cloud.members(f"b/{BUCKET}", USER) == {AGENT, ACCOUNT}
    assert world.cloud.services[PROJECT] == {
        "aiplatform.googleapis.com",
        "iam.googleapis.com",
        "storage.googleapis.com",
        "tpu.googleapis.com",
    }
    assert not world.cloud.grants.get(f"projects/{PROJECT}")


@pytest.mark.telling
def test_second_run_finds_no_difference(world: World, create: CreateStack) -> None:
    """After `up`, neither preview, refresh nor a second `up` finds a difference, and no mutating call is made.

    A second `up` that changes resources for ever is caught here.
    """
    stack = create()
    stack.up()
    world.cloud.calls.clear()

    assert not stack.preview(expect_no_changes=True).changes
    assert not stack.refresh(expect_no_changes=True).changes
    assert not stack.preview(expect_no_changes=True).changes
    assert not stack.up(expect_no_changes=True).changes
    assert not world.cloud.calls


@pytest.mark.telling
def test_move_leaves_the_old_bucket_behind(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """A move creates a new bucket; the old one keeps its objects, leaves the state and loses the stack's grants.

    A move that deletes training data is caught here.
    """
    stack = create()
    stack.up()
    world.cloud.buckets[BUCKET].objects.add("jobs/mnist/v2-8/ckpt-1")
    program.environment = {"region": "europe-west4"}

    moved = stack.up()

    own = [step for step in moved.order if step[1].startswith("data-")]
    assert own == [("create", f"data-{MOVED}"), ("delete", f"data-{BUCKET}")]
    assert world.cloud.buckets[BUCKET].objects == {"jobs/mnist/v2-8/ckpt-1"}
    assert world.cloud.members(f"b/{MOVED}", USER) == {AGENT, ACCOUNT}
    assert f"data-{BUCKET}" not in stack.resources()
    assert "bucket.delete" not in world.cloud.operations


def test_move_deletes_data_that_need_not_be_kept(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """With `keep_data: false`, a move deletes the old bucket with its objects."""
    program.environment = {"keep_data": False}
    stack = create()
    stack.up()
    world.cloud.buckets[BUCKET].objects.add("tmp/1")
    program.environment = {"keep_data": False, "region": "europe-west4"}

    stack.up()

    assert set(world.cloud.buckets) == {MOVED}


def test_renaming_the_bucket_keeps_the_old_one(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """Another bucket name in the same region is a replacement, and the old bucket keeps its objects."""
    stack = create()
    stack.up()
    world.cloud.buckets[BUCKET].objects.add("data/1")
    program.environment = {"bucket": "acme-other"}

    stack.up()

    assert world.cloud.buckets[BUCKET].objects == {"data/1"}
    assert world.cloud.members("b/acme-other", USER) == {AGENT, ACCOUNT}


@pytest.mark.telling
def test_protected_environment_fails_at_preview(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """With `protect`, a move, a new bucket name and a destroy fail at the preview, without a call to Google.

    A protection that does not reach the engine is caught here.
    """
    program.environment = {"protect": True}
    stack = create()
    stack.up()
    world.cloud.calls.clear()

    failures = [stack.destroy(preview_only=True, fails=True), stack.destroy(fails=True)]
    for change in ({"region": "europe-west4"}, {"bucket": "acme-other"}):
        program.environment = {"protect": True, **change}
        failures.append(stack.preview(fails=True))

    assert all(any("protect" in message for message in failed.errors) for failed in failures)
    assert not world.cloud.calls


def test_protection_is_removed_in_a_separate_step(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """An update that only removes the protection has to precede the move; both at once fail."""
    program.environment = {"protect": True}
    stack = create()
    stack.up()

    program.environment = {"region": "europe-west4"}
    stack.preview(fails=True)
    program.environment = {}
    stack.up()
    program.environment = {"region": "europe-west4"}
    stack.up()

    assert MOVED in world.cloud.buckets


def test_member_of_a_protected_environment_can_be_removed(
    world: World, new_stack: NewStack, program: RealProgram
) -> None:
    """A member in stack config loses access in one step, even if the environment is protected."""
    program.environment = {"protect": True}
    stack = new_stack(
        program, config={"spec": str(program.spec), "bucketMembers": ["group:team@example.com"]}
    )
    stack.up()
    assert "group:team@example.com" in world.cloud.members(f"b/{BUCKET}", USER)

    stack = new_stack(program, config={"spec": str(program.spec), "bucketMembers": []})
    stack.up()

    assert world.cloud.members(f"b/{BUCKET}", USER) == {AGENT, ACCOUNT}


@pytest.mark.telling
def test_destroy_leaves_data_and_apis(world: World, create: CreateStack) -> None:
    """A destroy leaves the bucket with the agent's grant, and the enabled APIs; account and other grants go.

    A destroy that deletes training data is caught here.
    """
    stack = create()
    stack.up()

    stack.destroy()

    assert set(world.cloud.buckets) == {BUCKET}
    assert not world.cloud.accounts
    assert world.cloud.members(f"b/{BUCKET}", USER) == {AGENT}
    assert "storage.googleapis.com" in world.cloud.services[PROJECT]


def test_service_agent_without_email_gets_its_grants(world: World, create: CreateStack) -> None:
    """A service identity without an e-mail in the answer gets its grants, and the next preview finds no change."""
    world.cloud.agents_answer_without_email = True
    stack = create()

    stack.up()

    assert AGENT in world.cloud.members(f"b/{BUCKET}", USER)
    assert not stack.preview(expect_no_changes=True).changes


@pytest.mark.telling
def test_grants_of_a_new_agent_are_retried(
    world: World, create: CreateStack, waits: list[float]
) -> None:
    """Grants for members that IAM does not see yet are retried after 5 and 10 seconds.

    An error hook that the engine does not call is caught here.
    """
    world.cloud.invisible_for = 2

    create().up()

    assert sorted(waits) == [5, 5, 10, 10]
    assert world.cloud.members(f"b/{BUCKET}", USER) == {AGENT, ACCOUNT}


def test_calls_to_a_new_api_are_retried(
    standin_world: World, create: CreateStack, waits: list[float]
) -> None:
    """A call to an enabled API that is not usable yet is retried."""
    refusal = errors.api_not_used("Cloud TPU API", "tpu.googleapis.com", NUMBER)
    standin_world.cloud.fail("identity.generate", refusal, times=2)

    create().up()

    assert waits == [5, 10]


def test_retries_end_after_five_minutes(
    standin_world: World, create: CreateStack, waits: list[float]
) -> None:
    """An API that stays disabled fails the update after 300 seconds, and the message has the fix."""
    refusal = errors.api_not_used("Cloud TPU API", "tpu.googleapis.com", NUMBER)
    standin_world.cloud.fail("identity.generate", refusal, times=100)

    failed = create().up(fails=True)

    assert waits == [5, 10, 20, 40, 80, 145]
    assert any(
        f"gcloud services enable tpu.googleapis.com --project {PROJECT}" in message
        for message in failed.errors
    )


def test_taken_bucket_name_is_explained(
    world: World, create: CreateStack, waits: list[float]
) -> None:
    """For a bucket name of another owner, the message has the name, the consequence and the key to change."""
    world.cloud.taken.add(BUCKET)

    failed = create().up(fails=True)

    [explanation] = [message for message in failed.errors if "help:" in message]
    assert f"the bucket name {BUCKET} belongs to another owner" in explanation
    assert "environments.dev.bucket" in explanation
    assert "pulumi up --stack dev" in explanation
    assert not waits


def test_missing_permission_is_explained(world: World, create: CreateStack) -> None:
    """For a missing permission, the message has the permission and the command that grants a role with it."""
    world.cloud.fail("bucket.create", errors.forbidden("storage.buckets.create"), times=100)

    failed = create().up(fails=True)

    [explanation] = [message for message in failed.errors if "help:" in message]
    assert "storage.buckets.create" in explanation
    assert f"gcloud projects add-iam-policy-binding {PROJECT}" in explanation
    assert "--role=roles/storage.admin" in explanation


def test_bucket_left_behind_is_explained(create: CreateStack, program: RealProgram) -> None:
    """Moving back to a region finds its old bucket, and the message explains how to import it."""
    stack = create()
    stack.up()
    program.environment = {"region": "europe-west4"}
    stack.up()
    program.environment = {}

    failed = stack.up(fails=True)

    assert any(
        f"the bucket {BUCKET} exists in your project" in message for message in failed.errors
    )


def test_organization_policy_is_explained(
    world: World, create: CreateStack, waits: list[float]
) -> None:
    """A policy of the organization is not reported as a missing role: the message names the policy."""
    world.cloud.fail("bucket.create", errors.location_refused("US-CENTRAL1"), times=100)

    failed = create().up(fails=True)

    [explanation] = [message for message in failed.errors if "help:" in message]
    assert (
        f"gcloud org-policies describe gcp.resourceLocations --project={PROJECT} --effective"
        in explanation
    )
    assert "environments.dev.region" in explanation
    assert not waits


def test_missing_account_is_explained(
    create: CreateStack, program: RealProgram, waits: list[float]
) -> None:
    """A misspelt account is retried like a new one, and then explained with the command that creates it."""
    program.top = {
        "targets": {"vertex-ai": {"service_account": f"mien@{PROJECT}.iam.gserviceaccount.com"}}
    }

    failed = create().up(fails=True)

    assert sum(waits) == 300
    [explanation] = [message for message in failed.errors if "help:" in message]
    assert f"mien@{PROJECT}.iam.gserviceaccount.com does not exist" in explanation
    assert (
        f"gcloud iam service-accounts create mien --project={PROJECT}; then: pulumi up --stack dev"
        in explanation
    )


@pytest.mark.telling
def test_failed_deletion_is_explained(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """A failed deletion is reported as such, by `up` and by a `destroy` that runs the program.

    An explanation that is lost between hook and engine is caught here.
    """
    stack = create()
    stack.up()
    world.cloud.create_account(PROJECT, "mine", {})
    program.top = {
        "targets": {"vertex-ai": {"service_account": f"mine@{PROJECT}.iam.gserviceaccount.com"}}
    }
    world.cloud.fail("account.delete", errors.forbidden("iam.serviceAccounts.delete"), times=100)

    for failed in (stack.up(fails=True), stack.destroy(fails=True, run_program=True)):
        [explanation] = [message for message in failed.errors if "help:" in message]
        assert "workload still exists" in explanation
        assert "--role=roles/iam.serviceAccountAdmin" in explanation


def test_wrong_region_fails_before_any_change(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """A region without the spec's TPUs ends the preview with the compiler's finding and no traceback."""
    program.environment = {"region": "us-west4"}

    failed = create().preview(fails=True)

    assert "error[TPU021]: v2-8 is not offered in us-west4" in failed.text
    assert "help: set environments.dev.region to" in failed.text
    assert "Traceback" not in failed.text
    assert not world.cloud.calls


def test_error_of_another_environment_is_ignored(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """A stack checks only its own environment."""
    own = {"project": PROJECT, "region": "us-central1"}
    program.top = {
        "environments": {"dev": own, "prod": {"project": "acme-prod", "region": "us-west4"}}
    }

    create().up()

    assert set(world.cloud.buckets) == {BUCKET}


def test_stack_without_an_environment_is_rejected(
    new_stack: NewStack, program: RealProgram
) -> None:
    """For a stack without an environment, the message lists the environments."""
    failed = new_stack(program, name="test", config={"spec": str(program.spec)}).preview(fails=True)

    assert "has no environment test" in failed.text
    assert "pulumi stack select dev" in failed.text
    assert "Traceback" not in failed.text


def test_missing_spec_is_rejected(new_stack: NewStack, program: RealProgram) -> None:
    """For a missing spec, the message has the command that sets another path."""
    failed = new_stack(program, config={"spec": "elsewhere.yaml"}).preview(fails=True)

    assert "elsewhere.yaml cannot be read" in failed.text
    assert "pulumi config set spec PATH --stack dev" in failed.text
    assert "Traceback" not in failed.text


def test_unknown_config_is_rejected(world: World, create: CreateStack) -> None:
    """An unknown key, which Pulumi would ignore, is rejected with the command that deletes it."""
    failed = create(bucketMember=["group:team@example.com"]).preview(fails=True)

    assert "tpucfg:bucketMember, which the program does not read" in failed.text
    assert "pulumi config rm tpucfg:bucketMember --stack dev" in failed.text
    assert not world.cloud.calls


def test_pods_act_as_the_account_by_workload_identity(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """On gke, the config's Kubernetes service account may act as the jobs' account."""
    program.environment = {"target": "gke"}
    program.top = {
        "sizes": ["v5litepod-4"],
        "training": {"tuned_on": "v5litepod-4", "batch_size": 8, "train_steps": 9},
    }

    create().up()

    resource = f"serviceAccounts/tpu-mnist-dev@{PROJECT}.iam.gserviceaccount.com"
    member = f"serviceAccount:{PROJECT}.svc.id.goog[default/tpu-mnist-dev]"
    assert world.cloud.members(resource, "roles/iam.workloadIdentityUser") == {member}
    assert "container.googleapis.com" in world.cloud.services[PROJECT]


def test_account_named_in_the_spec_is_used(
    world: World, create: CreateStack, program: RealProgram
) -> None:
    """If the spec names an account, the stack creates none and grants access to the named one."""
    account = f"trainer@{PROJECT}.iam.gserviceaccount.com"
    world.cloud.create_account(PROJECT, "trainer", {})
    program.top = {"targets": {"vertex-ai": {"service_account": account}}}

    stack = create()

    stack.up()

    assert stack.outputs()["workloadServiceAccount"] == account
    assert world.cloud.members(f"b/{BUCKET}", USER) == {AGENT, f"serviceAccount:{account}"}
    assert set(world.cloud.accounts) == {account}


@pytest.fixture
def ai_platform(program: RealProgram, cloud: Cloud) -> Cloud:
    """Prepare a project with jobs on ai-platform, and the service's tenant project."""
    program.environment = {"target": "ai-platform"}
    program.top = {"trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}}
    cloud.projects["tenant-tp"] = 987654321098
    cloud.services["tenant-tp"] = set()
    return cloud


TENANT = "service-987654321098@cloud-tpu.iam.gserviceaccount.com"


@pytest.mark.parametrize("slash", ["/", ""])
def test_account_of_ai_platform_is_looked_up(
    world: World,
    create: CreateStack,
    ai_platform: Cloud,
    monkeypatch: pytest.MonkeyPatch,
    slash: str,
) -> None:
    """`getConfig` returns project and account; the identity is generated there, and both grants are given.

    The endpoint may end in a slash, as the provider's endpoints have to, or not.
    """
    ai_platform.ml_config = {
        "serviceAccountProject": "987654321098",
        "config": {"tpuServiceAccount": TENANT},
    }
    with google_api.serving(ai_platform) as api:
        for name in ("GOOGLE_ML_ENGINE_CUSTOM_ENDPOINT", "GOOGLE_OAUTH_ACCESS_TOKEN"):
            monkeypatch.setenv(
                name, api.environment[name].rstrip("/") + slash * name.endswith("ENDPOINT")
            )
        stack = create()
        stack.up()
        assert f"GET /v1/projects/{PROJECT}:getConfig" in api.requests

    assert stack.outputs()["tpuAgent"] == TENANT
    assert world.cloud.members(f"projects/{PROJECT}", "roles/ml.serviceAgent") == {
        f"serviceAccount:{TENANT}"
    }
    assert f"serviceAccount:{TENANT}" in world.cloud.members(f"b/{BUCKET}", USER)
    assert Call("identity.generate", "987654321098 tpu.googleapis.com") in world.cloud.calls


def test_unavailable_ai_platform_is_replaced_by_config(
    world: World, create: CreateStack, ai_platform: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the service is unavailable, the message names the two config keys, with which the stack is created."""
    with google_api.serving(ai_platform) as api:
        for name in ("GOOGLE_ML_ENGINE_CUSTOM_ENDPOINT", "GOOGLE_OAUTH_ACCESS_TOKEN"):
            monkeypatch.setenv(name, api.environment[name])
        failed = create().preview(fails=True)

    assert "pulumi config set serviceAccountProject NUMBER --stack dev" in failed.text
    assert "pulumi config set tpuServiceAccount EMAIL --stack dev" in failed.text
    assert "Traceback" not in failed.text
    assert not world.cloud.calls

    create(serviceAccountProject="987654321098", tpuServiceAccount=TENANT).up()

    assert world.cloud.members(f"projects/{PROJECT}", "roles/ml.serviceAgent") == {
        f"serviceAccount:{TENANT}"
    }


def test_failed_project_lookup_is_explained(create: CreateStack, program: RealProgram) -> None:
    """If the project cannot be looked up, the message names the config that replaces the look-up."""
    program.environment = {"project": "acme-gone"}

    failed = create().preview(fails=True)

    assert "acme-gone" in failed.text
    assert "pulumi config set projectNumber NUMBER --stack dev" in failed.text
    assert "Traceback" not in failed.text
