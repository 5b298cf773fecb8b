"""The stand-in of the gcp plugin, compared with the observed behaviour of the real one."""

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_gcp as gcp
from standin.engine import NewStack
from standin.projects import World

PROJECT = "acme-dev"


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
