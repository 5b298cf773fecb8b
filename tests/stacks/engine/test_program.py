"""The stack program on the real engine: what is made, what is left alone, and what a refusal says.

Each test runs behind the stand-in of the gcp plugin, and behind the plugin itself where that is installed.
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

import retry

AGENT = f"serviceAccount:service-{NUMBER}@cloud-tpu.iam.gserviceaccount.com"
ACCOUNT = f"serviceAccount:tpu-mnist-dev@{PROJECT}.iam.gserviceaccount.com"
BUCKET = f"{PROJECT}-mnist-dev-us-central1"
MOVED = f"{PROJECT}-mnist-dev-europe-west4"
USER = "roles/storage.objectUser"

Make = Callable[..., Stack]


@pytest.fixture
def program(tmp_path: Path) -> RealProgram:
    """The program with the smallest spec."""
    return RealProgram(tmp_path)


@pytest.fixture
def make(new_stack: NewStack, program: RealProgram) -> Make:
    """Makes the stack `dev` of the program, with config."""

    def made(**config: object) -> Stack:
        return new_stack(program, config={"spec": str(program.spec), **config})

    return made


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds for which the program would have waited; it does not."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(retry, "sleep", sleep)
    return waited


def test_first_preview_shows_the_whole_member_of_each_grant(world: World, make: Make) -> None:
    """Before anything exists every grant shows to whom it goes, and nothing was asked of Google."""
    previewed = make().preview()

    assert previewed.step("tpu-agent-on-data-us-central1").new["member"] == AGENT
    assert previewed.step("workload-on-data-us-central1").new["member"] == ACCOUNT
    assert not world.cloud.calls


def test_up_makes_the_environment(world: World, make: Make) -> None:
    """The bucket is where the TPUs are, agent and account may use its objects, and the outputs are the compiler's."""
    made = make().up()

    assert made.outputs == {
        "bucket": BUCKET,
        "bucketUrl": f"gs://{BUCKET}",
        "region": "us-central1",
        "project": PROJECT,
        "tpuAgent": AGENT.removeprefix("serviceAccount:"),
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


def test_nothing_is_left_to_do(world: World, make: Make) -> None:
    """After `up` neither preview, nor refresh, nor a second `up` finds a difference, and no mutating call is made."""
    stack = make()
    stack.up()
    world.cloud.calls.clear()

    assert not stack.preview(expect_no_changes=True).changes
    assert not stack.refresh(expect_no_changes=True).changes
    assert not stack.preview(expect_no_changes=True).changes
    assert not stack.up(expect_no_changes=True).changes
    assert not world.cloud.calls


def test_move_leaves_the_old_bucket_behind(world: World, make: Make, program: RealProgram) -> None:
    """A new region has a new bucket; the old one stays with its objects, out of the state, open to nobody of ours."""
    stack = make()
    stack.up()
    world.cloud.buckets[BUCKET].objects.add("jobs/mnist/v2-8/ckpt-1")
    program.environment = {"region": "europe-west4"}

    moved = stack.up()

    own = [step for step in moved.order if step[1].startswith("data-")]
    assert own == [("create", "data-europe-west4"), ("delete", "data-us-central1")]
    assert world.cloud.buckets[BUCKET].objects == {"jobs/mnist/v2-8/ckpt-1"}
    assert world.cloud.members(f"b/{MOVED}", USER) == {AGENT, ACCOUNT}
    assert "data-us-central1" not in stack.resources()
    assert "bucket.delete" not in world.cloud.operations


def test_data_that_need_not_be_kept_goes(world: World, make: Make, program: RealProgram) -> None:
    """With `keep_data: false` a move deletes the old bucket and what is in it."""
    program.environment = {"keep_data": False}
    stack = make()
    stack.up()
    world.cloud.buckets[BUCKET].objects.add("tmp/1")
    program.environment = {"keep_data": False, "region": "europe-west4"}

    stack.up()

    assert set(world.cloud.buckets) == {MOVED}


def test_renamed_bucket_is_not_lost(world: World, make: Make, program: RealProgram) -> None:
    """Another name in one region is a replacement, and the old bucket stays with its objects all the same."""
    stack = make()
    stack.up()
    world.cloud.buckets[BUCKET].objects.add("data/1")
    program.environment = {"bucket": "acme-other"}

    stack.up()

    assert world.cloud.buckets[BUCKET].objects == {"data/1"}
    assert world.cloud.members("b/acme-other", USER) == {AGENT, ACCOUNT}


def test_protection_stops_everything_at_preview(world: World, make: Make, program: RealProgram) -> None:
    """With `protect` a move, a renaming and a destroy end at the preview, and Google is asked for nothing."""
    program.environment = {"protect": True}
    stack = make()
    stack.up()
    world.cloud.calls.clear()

    refusals = [stack.destroy(preview_only=True, fails=True), stack.destroy(fails=True)]
    for change in ({"region": "europe-west4"}, {"bucket": "acme-other"}):
        program.environment = {"protect": True, **change}
        refusals.append(stack.preview(fails=True))

    assert all(any("protect" in message for message in refused.errors) for refused in refusals)
    assert not world.cloud.calls


def test_protection_is_lifted_in_a_step_of_its_own(world: World, make: Make, program: RealProgram) -> None:
    """First an update that only lifts the protection, then the move; both at once is refused."""
    program.environment = {"protect": True}
    stack = make()
    stack.up()

    program.environment = {"region": "europe-west4"}
    stack.preview(fails=True)
    program.environment = {}
    stack.up()
    program.environment = {"region": "europe-west4"}
    stack.up()

    assert MOVED in world.cloud.buckets


def test_access_of_a_member_can_be_taken_while_protected(
    world: World, new_stack: NewStack, program: RealProgram
) -> None:
    """A member of stack config loses the access in one step, also where everything else is protected."""
    program.environment = {"protect": True}
    stack = new_stack(program, config={"spec": str(program.spec), "bucketMembers": ["group:team@example.com"]})
    stack.up()
    assert "group:team@example.com" in world.cloud.members(f"b/{BUCKET}", USER)

    stack = new_stack(program, config={"spec": str(program.spec), "bucketMembers": []})
    stack.up()

    assert world.cloud.members(f"b/{BUCKET}", USER) == {AGENT, ACCOUNT}


def test_destroy_leaves_data_and_apis(world: World, make: Make) -> None:
    """A destroyed environment leaves its bucket behind and its APIs on, and takes its grants and account along."""
    stack = make()
    stack.up()

    stack.destroy()

    assert set(world.cloud.buckets) == {BUCKET}
    assert not world.cloud.accounts
    assert not world.cloud.members(f"b/{BUCKET}", USER)
    assert "storage.googleapis.com" in world.cloud.services[PROJECT]


def test_agent_without_email_has_its_grants(world: World, make: Make) -> None:
    """An identity that answers without an e-mail is granted all the same, and the next preview is quiet."""
    world.cloud.agents_answer_without_email = True
    stack = make()

    stack.up()

    assert AGENT in world.cloud.members(f"b/{BUCKET}", USER)
    assert not stack.preview(expect_no_changes=True).changes


def test_fresh_agent_is_waited_for(world: World, make: Make, waits: list[float]) -> None:
    """Members that IAM does not see yet are tried again after 5 seconds, then 10."""
    world.cloud.invisible_for = 2

    make().up()

    assert sorted(waits) == [5, 5, 10, 10]
    assert world.cloud.members(f"b/{BUCKET}", USER) == {AGENT, ACCOUNT}


def test_fresh_api_is_waited_for(standin_world: World, make: Make, waits: list[float]) -> None:
    """An API that is enabled and not usable yet is tried again."""
    refusal = errors.api_not_used("Cloud TPU API", "tpu.googleapis.com", NUMBER)
    standin_world.cloud.fail("identity.generate", refusal, times=2)

    make().up()

    assert waits == [5, 10]


def test_waiting_ends_after_five_minutes(standin_world: World, make: Make, waits: list[float]) -> None:
    """An API that stays closed fails the update after 300 seconds, and the message has the command that opens it."""
    refusal = errors.api_not_used("Cloud TPU API", "tpu.googleapis.com", NUMBER)
    standin_world.cloud.fail("identity.generate", refusal, times=100)

    failed = make().up(fails=True)

    assert waits == [5, 10, 20, 40, 80, 145]
    assert any(f"gcloud services enable tpu.googleapis.com --project {PROJECT}" in it for it in failed.errors)


def test_taken_bucket_name_is_explained(world: World, make: Make, waits: list[float]) -> None:
    """A name that somebody else has: the message names it, says that no bucket was made, and where to name another."""
    world.cloud.taken.add(BUCKET)

    failed = make().up(fails=True)

    [said] = [message for message in failed.errors if "help:" in message]
    assert f"the bucket name {BUCKET} belongs to somebody else" in said
    assert "environments.dev.bucket" in said
    assert "pulumi up --stack dev" in said
    assert not waits


def test_missing_permission_is_explained(world: World, make: Make) -> None:
    """A caller without a permission reads which one, and the command that gives the role which holds it."""
    world.cloud.fail("bucket.create", errors.forbidden("storage.buckets.create"), times=100)

    failed = make().up(fails=True)

    [said] = [message for message in failed.errors if "help:" in message]
    assert "storage.buckets.create" in said
    assert f"gcloud projects add-iam-policy-binding {PROJECT}" in said
    assert "--role=roles/storage.admin" in said


def test_bucket_left_behind_is_explained(make: Make, program: RealProgram) -> None:
    """Going back to a region finds its old bucket there: the message says how to take it back."""
    stack = make()
    stack.up()
    program.environment = {"region": "europe-west4"}
    stack.up()
    program.environment = {}

    failed = stack.up(fails=True)

    assert any(f"the bucket {BUCKET} exists in your project" in message for message in failed.errors)


def test_a_policy_of_the_organization_is_explained(world: World, make: Make, waits: list[float]) -> None:
    """What no role ends is not taken for a missing one: the message names the policy and how to see what it allows."""
    world.cloud.fail("bucket.create", errors.location_refused("US-CENTRAL1"), times=100)

    failed = make().up(fails=True)

    [said] = [message for message in failed.errors if "help:" in message]
    assert f"gcloud org-policies describe gcp.resourceLocations --project={PROJECT} --effective" in said
    assert "environments.dev.region" in said
    assert not waits


def test_an_account_that_nobody_made_is_explained(make: Make, program: RealProgram, waits: list[float]) -> None:
    """A name with a mistake is waited for like a fresh account, and then said, with the command that makes it."""
    program.top = {"targets": {"vertex-ai": {"service_account": f"mien@{PROJECT}.iam.gserviceaccount.com"}}}

    failed = make().up(fails=True)

    assert sum(waits) == 300
    [said] = [message for message in failed.errors if "help:" in message]
    assert f"mien@{PROJECT}.iam.gserviceaccount.com does not exist" in said
    assert f"gcloud iam service-accounts create mien --project={PROJECT}; then: pulumi up --stack dev" in said


def test_what_is_not_deleted_is_explained(world: World, make: Make, program: RealProgram) -> None:
    """Who may not delete reads that it is still there, from `up`, and from a `destroy` that runs the program."""
    stack = make()
    stack.up()
    world.cloud.create_account(PROJECT, "mine", {})
    program.top = {"targets": {"vertex-ai": {"service_account": f"mine@{PROJECT}.iam.gserviceaccount.com"}}}
    world.cloud.fail("account.delete", errors.forbidden("iam.serviceAccounts.delete"), times=100)

    for failed in (stack.up(fails=True), stack.destroy(fails=True, run_program=True)):
        [said] = [message for message in failed.errors if "help:" in message]
        assert "workload is still there" in said
        assert "--role=roles/iam.serviceAccountAdmin" in said


def test_wrong_region_stops_before_anything_is_made(world: World, make: Make, program: RealProgram) -> None:
    """A region without the rung ends the preview with the compiler's finding, and no traceback."""
    program.environment = {"region": "us-west4"}

    refused = make().preview(fails=True)

    assert "error[TPU021]: v2-8 is not offered in us-west4" in refused.text
    assert "help: set environments.dev.region to" in refused.text
    assert "Traceback" not in refused.text
    assert not world.cloud.calls


def test_another_environments_mistake_does_not_stop_this_one(world: World, make: Make, program: RealProgram) -> None:
    """A stack checks only its own environment."""
    own = {"project": PROJECT, "region": "us-central1"}
    program.top = {"environments": {"dev": own, "prod": {"project": "acme-prod", "region": "us-west4"}}}

    make().up()

    assert set(world.cloud.buckets) == {BUCKET}


def test_stack_without_an_environment_is_refused(new_stack: NewStack, program: RealProgram) -> None:
    """A stack whose name is no environment's is told which there are."""
    refused = new_stack(program, name="test", config={"spec": str(program.spec)}).preview(fails=True)

    assert "has no environment test" in refused.text
    assert "pulumi stack select dev" in refused.text
    assert "Traceback" not in refused.text


def test_missing_spec_is_refused(new_stack: NewStack, program: RealProgram) -> None:
    """A stack whose spec is not there is told the command that names another."""
    refused = new_stack(program, config={"spec": "elsewhere.yaml"}).preview(fails=True)

    assert "elsewhere.yaml cannot be read" in refused.text
    assert "pulumi config set spec PATH --stack dev" in refused.text
    assert "Traceback" not in refused.text


def test_unknown_config_is_refused(world: World, make: Make) -> None:
    """A key that the program does not read is refused with the command that deletes it: Pulumi would be silent."""
    refused = make(bucketMember=["group:team@example.com"]).preview(fails=True)

    assert "tpucfg:bucketMember, which the program does not read" in refused.text
    assert "pulumi config rm tpucfg:bucketMember --stack dev" in refused.text
    assert not world.cloud.calls


def test_pods_may_act_as_the_account(world: World, make: Make, program: RealProgram) -> None:
    """On gke the Kubernetes service account that the config names acts as the jobs' account."""
    program.environment = {"target": "gke"}
    program.top = {"sizes": ["v5litepod-4"], "training": {"tuned_on": "v5litepod-4", "batch_size": 8, "train_steps": 9}}

    make().up()

    resource = f"serviceAccounts/tpu-mnist-dev@{PROJECT}.iam.gserviceaccount.com"
    member = f"serviceAccount:{PROJECT}.svc.id.goog[default/tpu-mnist-dev]"
    assert world.cloud.members(resource, "roles/iam.workloadIdentityUser") == {member}
    assert "container.googleapis.com" in world.cloud.services[PROJECT]


def test_account_of_ones_own_is_used(world: World, make: Make, program: RealProgram) -> None:
    """Where the spec names an account, none is made, and that one has the access."""
    own = f"trainer@{PROJECT}.iam.gserviceaccount.com"
    world.cloud.create_account(PROJECT, "trainer", {})
    program.top = {"targets": {"vertex-ai": {"service_account": own}}}

    made = make().up()

    assert made.outputs["workloadServiceAccount"] == own
    assert world.cloud.members(f"b/{BUCKET}", USER) == {AGENT, f"serviceAccount:{own}"}
    assert set(world.cloud.accounts) == {own}


@pytest.fixture
def ai_platform(program: RealProgram, cloud: Cloud) -> Cloud:
    """A project whose jobs go to ai-platform, and the service's own project beside it."""
    program.environment = {"target": "ai-platform"}
    program.top = {"trainer": {"image": "gcr.io/a/b:1", "runtime": "2.2"}}
    cloud.projects["tenant-tp"] = 987654321098
    cloud.services["tenant-tp"] = set()
    return cloud


TENANT = "service-987654321098@cloud-tpu.iam.gserviceaccount.com"


@pytest.mark.parametrize("slash", ["/", ""])
def test_ai_platform_is_asked_for_its_account(
    world: World, make: Make, ai_platform: Cloud, monkeypatch: pytest.MonkeyPatch, slash: str
) -> None:
    """The guide's way: getConfig names project and account, the identity is made there, and both grants are given.

    The address that stands in for Google's may end in a slash, as the provider's own have to, or not.
    """
    ai_platform.ml_config = {"serviceAccountProject": "987654321098", "config": {"tpuServiceAccount": TENANT}}
    with google_api.serving(ai_platform) as api:
        for name in ("GOOGLE_ML_ENGINE_CUSTOM_ENDPOINT", "GOOGLE_OAUTH_ACCESS_TOKEN"):
            monkeypatch.setenv(name, api.environment[name].rstrip("/") + slash * name.endswith("ENDPOINT"))
        made = make().up()
        assert f"GET /v1/projects/{PROJECT}:getConfig" in api.requests

    assert made.outputs["tpuAgent"] == TENANT
    assert world.cloud.members(f"projects/{PROJECT}", "roles/ml.serviceAgent") == {f"serviceAccount:{TENANT}"}
    assert f"serviceAccount:{TENANT}" in world.cloud.members(f"b/{BUCKET}", USER)
    assert Call("identity.generate", "987654321098 tpu.googleapis.com") in world.cloud.calls


def test_ai_platform_that_is_gone_names_the_config_instead(
    world: World, make: Make, ai_platform: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service is shut down: the refusal says so and names the two keys, and with them the stack is made."""
    with google_api.serving(ai_platform) as api:
        for name in ("GOOGLE_ML_ENGINE_CUSTOM_ENDPOINT", "GOOGLE_OAUTH_ACCESS_TOKEN"):
            monkeypatch.setenv(name, api.environment[name])
        refused = make().preview(fails=True)

    assert "pulumi config set serviceAccountProject NUMBER --stack dev" in refused.text
    assert "pulumi config set tpuServiceAccount EMAIL --stack dev" in refused.text
    assert "Traceback" not in refused.text
    assert not world.cloud.calls

    make(serviceAccountProject="987654321098", tpuServiceAccount=TENANT).up()

    assert world.cloud.members(f"projects/{PROJECT}", "roles/ml.serviceAgent") == {f"serviceAccount:{TENANT}"}


def test_lookup_that_is_refused_is_explained(make: Make, program: RealProgram) -> None:
    """A project that cannot be read names the config that makes the look-up unnecessary."""
    program.environment = {"project": "acme-gone"}

    refused = make().preview(fails=True)

    assert "acme-gone" in refused.text
    assert "pulumi config set projectNumber NUMBER --stack dev" in refused.text
    assert "Traceback" not in refused.text
