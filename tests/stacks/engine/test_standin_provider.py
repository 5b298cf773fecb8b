"""The stand-in of the gcp plugin, compared with the observed behaviour of the real one."""

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_gcp as gcp
from pulumi import ResourceOptions
from standin.engine import NewStack
from standin.projects import World

PROJECT = "acme-dev"
MARK = "4dabf18193072939515e22adb298388d"
"""Key that marks a secret in a state: https://www.pulumi.com/docs/iac/concepts/secrets/"""


def bucket_program(**arguments: Any) -> Callable[[], None]:
    """Return a program of one bucket with additional arguments."""

    def program() -> None:
        gcp.storage.Bucket(
            "data", **{"name": "acme", "project": PROJECT, "location": "us-central1", **arguments}
        )

    return program


def test_bucket_with_an_explicit_name_is_deleted_before_replacement(
    standin_world: World, new_stack: NewStack
) -> None:
    """With one logical name and another region, the old bucket is deleted first, although the new name differs."""
    stack = new_stack(bucket_program())
    stack.up()
    stack.change_program(bucket_program(name="acme-west", location="europe-west4"))

    moved = stack.up()

    assert moved.changes == {"data": "replace"}
    assert moved.step("data").changes == {"location": "update-replace", "name": "update-replace"}
    operations = [call.operation for call in standin_world.cloud.changes]
    assert operations == ["bucket.create", "bucket.delete", "bucket.create"]


def test_case_of_the_location_is_no_difference(new_stack: NewStack) -> None:
    """Google stores a location in upper case; lower case in the program is no difference."""
    stack = new_stack(bucket_program(location="us-central1"))
    stack.up()
    stack.change_program(bucket_program(location="US-CENTRAL1"))

    assert not stack.preview(expect_no_changes=True).changes


def test_removed_soft_delete_policy_is_no_difference(new_stack: NewStack) -> None:
    """Removing the soft delete policy is no difference; removing labels is one."""
    kept, dropped = (
        {"soft_delete_policy": {"retention_duration_seconds": 0}},
        {"labels": {"team": "vision"}},
    )
    stack = new_stack(bucket_program(**kept, **dropped))
    stack.up()

    stack.change_program(bucket_program(**dropped))
    assert not stack.preview(expect_no_changes=True).changes
    stack.change_program(bucket_program(**kept))
    assert stack.preview().step("data").changes == {"labels": "delete"}


def test_labels_that_the_provider_adds_are_secret(new_stack: NewStack) -> None:
    """Values that the provider derives from labels are secret in the state; the labels are not."""
    stack = new_stack(bucket_program(labels={"team": "vision"}))
    stack.up()

    outputs = stack.resources()["data"]["outputs"]
    assert outputs["labels"] == {"team": "vision"}
    assert MARK in outputs["effectiveLabels"]


def test_missing_argument_fails_at_preview(new_stack: NewStack) -> None:
    """A grant without a member fails before any change."""

    def program() -> None:
        gcp.storage.Bucket("data", name="acme", project=PROJECT, location="us-central1")
        gcp.projects.IAMMember(
            "grant", project=PROJECT, role="roles/viewer", member=pulumi.Output.from_input(None)
        )

    refused = new_stack(program).preview(fails=True)

    assert any('The argument "member" is required' in message for message in refused.errors)


def test_type_without_a_standin_is_named(new_stack: NewStack) -> None:
    """A resource type without a stand-in fails the test that uses it, by name."""

    def program() -> None:
        gcp.pubsub.Topic("topic", project=PROJECT)

    refused = new_stack(program).preview(fails=True)

    assert any("gcp:pubsub/topic:Topic" in message for message in refused.errors)


def test_project_number_is_known_at_preview(new_stack: NewStack) -> None:
    """The look-up of a project returns its number in a preview too."""

    def program() -> None:
        number = gcp.organizations.get_project_output(project_id=PROJECT).number
        gcp.storage.Bucket(
            "data",
            name=pulumi.Output.concat("acme-", number),
            project=PROJECT,
            location="us-central1",
        )

    previewed = new_stack(program).preview()

    assert previewed.step("data").new["name"] == "acme-123456789012"


def access_program() -> None:
    """Declare an API, an account, its access to a bucket, and the grant to act as it."""
    api = gcp.projects.Service(
        "api", project=PROJECT, service="tpu.googleapis.com", disable_on_destroy=False
    )
    bucket = gcp.storage.Bucket("data", name="acme", project=PROJECT, location="us-central1")
    account = gcp.serviceaccount.Account(
        "account",
        account_id="tpu-mnist-dev",
        project=PROJECT,
        opts=ResourceOptions(depends_on=[api]),
    )
    gcp.storage.BucketIAMMember(
        "access", bucket=bucket.name, role="roles/storage.objectUser", member=account.member
    )
    gcp.serviceaccount.IAMMember(
        "acting",
        service_account_id=account.name,
        role="roles/iam.workloadIdentityUser",
        member=f"serviceAccount:{PROJECT}.svc.id.goog[default/tpu-mnist-dev]",
    )


def test_accounts_and_their_grants_are_created_and_deleted(
    standin_world: World, new_stack: NewStack
) -> None:
    """Account, bucket grant and workload identity are created, show no difference, and are deleted by `destroy`."""
    cloud = standin_world.cloud
    email = f"tpu-mnist-dev@{PROJECT}.iam.gserviceaccount.com"
    stack = new_stack(access_program)

    stack.up()
    assert cloud.members("b/acme", "roles/storage.objectUser") == {f"serviceAccount:{email}"}
    assert cloud.members(f"serviceAccounts/{email}", "roles/iam.workloadIdentityUser")
    assert not stack.up(refresh=True, expect_no_changes=True).changes

    stack.destroy()
    assert not cloud.buckets
    assert not cloud.accounts
    assert cloud.services[PROJECT] == {"tpu.googleapis.com"}
