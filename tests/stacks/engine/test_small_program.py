"""Behaviour of the real engine with a small program; `test_program.py` has what the stack program shows too.

Each test runs behind the stand-in of the gcp plugin, and behind the real plugin if it is installed.
"""

import pytest
from small_program import MEMBER, PROJECT, SmallProgram
from standin import errors
from standin.engine import NewStack
from standin.projects import World

ROLE = "roles/ml.serviceAgent"


@pytest.fixture
def program() -> SmallProgram:
    """Return the small program before any change."""
    return SmallProgram()


def test_update_names_the_field(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """A change in place is an update of that bucket, and old and new inputs differ in that value."""
    stack = new_stack(program)
    stack.up()
    program.tmp_days = 30

    updated = stack.up()

    assert updated.changes == {"data-us-central1": "update"}
    step = updated.step("data-us-central1")
    assert step.old["lifecycleRules"][0]["condition"]["age"] == 14
    assert step.new["lifecycleRules"][0]["condition"]["age"] == 30
    assert world.cloud.operations.count("bucket.update") == 1


def test_protection_stops_a_move_and_a_destroy_at_preview(
    world: World, new_stack: NewStack, program: SmallProgram
) -> None:
    """With `protect` on the component, the previews of a move and of a destroy fail without a call to Google."""
    program.protect = True
    stack = new_stack(program)
    stack.up()
    world.cloud.calls.clear()

    refused = stack.destroy(preview_only=True, fails=True)
    program.region = "europe-west4"
    moved = stack.preview(fails=True)

    for outcome in (refused, moved):
        assert any(
            "cannot be deleted" in message and "data-us-central1" in message
            for message in outcome.errors
        )
    assert not world.cloud.calls


def test_hook_retries_a_new_service_agent(
    world: World, new_stack: NewStack, program: SmallProgram
) -> None:
    """A service agent that IAM does not see yet causes retries by the error hook, but no failure."""
    world.cloud.invisible_for = 2

    new_stack(program).up()

    assert len(program.retried) == 2
    assert all("Error 400" in message for message in program.retried)
    assert world.cloud.members(f"projects/{PROJECT}", ROLE) == {MEMBER}


def test_taken_name_fails_with_googles_message(
    world: World, new_stack: NewStack, program: SmallProgram
) -> None:
    """A bucket name of another owner fails the update with Google's message."""
    world.cloud.taken.add("acme-dev-us-central1")

    failed = new_stack(program).up(fails=True)

    assert any("The requested bucket name is not available" in message for message in failed.errors)


def test_refresh_and_up_restore_a_removed_grant(
    world: World, new_stack: NewStack, program: SmallProgram
) -> None:
    """A refresh notices a grant that was removed outside the stack, and `up` grants it again."""
    stack = new_stack(program)
    stack.up()
    world.cloud.grants[f"projects/{PROJECT}"].clear()

    stack.refresh()
    again = stack.up()

    assert again.changes == {"grant": "create"}
    assert world.cloud.members(f"projects/{PROJECT}", ROLE) == {MEMBER}


def test_failed_destroy_keeps_the_bucket_in_the_state(
    world: World, new_stack: NewStack, program: SmallProgram
) -> None:
    """A bucket with objects is not destroyed, and stays in the state."""
    stack = new_stack(program)
    stack.up()
    world.cloud.buckets["acme-dev-us-central1"].objects.add("data/1")

    failed = stack.destroy(fails=True)

    assert any("not empty" in message or "force_destroy" in message for message in failed.errors)
    assert "data-us-central1" in stack.resources()


def test_missing_permission_is_reported(
    world: World, new_stack: NewStack, program: SmallProgram
) -> None:
    """A failure for lack of a permission names the permission."""
    world.cloud.fail("bucket.create", errors.forbidden("storage.buckets.create"), times=100)

    failed = new_stack(program).up(fails=True)

    assert any("storage.buckets.create" in message for message in failed.errors)
