"""What the real engine does with a small program: the ground that the tests of the stack stand on.

Each runs behind the stand-in of the gcp plugin, and behind the plugin itself where that is installed.
"""

import pytest
from small_program import MEMBER, PROJECT, SmallProgram
from standin import errors
from standin.engine import NewStack
from standin.projects import World

ROLE = "roles/ml.serviceAgent"


@pytest.fixture
def program() -> SmallProgram:
    """The program before any change."""
    return SmallProgram()


def test_first_preview_shows_the_whole_grant(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """Before anything exists, a preview names the member that will be granted, and changes nothing."""
    previewed = new_stack(program).preview()

    assert previewed.step("grant").new["member"] == MEMBER
    assert previewed.changes["data-us-central1"] == "create"
    assert not world.cloud.calls


def test_up_makes_each_thing_and_then_rests(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """After `up` neither a preview, nor a refresh, nor a second `up` finds anything to do."""
    stack = new_stack(program)
    made = stack.up()

    assert made.outputs == {"url": "gs://acme-dev-us-central1"}
    assert world.cloud.buckets["acme-dev-us-central1"].body["location"] == "US-CENTRAL1"
    assert world.cloud.members(f"projects/{PROJECT}", ROLE) == {MEMBER}

    world.cloud.calls.clear()
    assert not stack.preview(expect_no_changes=True).changes
    assert not stack.refresh(expect_no_changes=True).changes
    assert not stack.up(expect_no_changes=True).changes
    assert not world.cloud.calls


def test_update_names_the_field(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """A change in place is an update of that bucket, and its old and new inputs differ in that value."""
    stack = new_stack(program)
    stack.up()
    program.tmp_days = 30

    updated = stack.up()

    assert updated.changes == {"data-us-central1": "update"}
    step = updated.step("data-us-central1")
    assert step.old["lifecycleRules"][0]["condition"]["age"] == 14
    assert step.new["lifecycleRules"][0]["condition"]["age"] == 30
    assert world.cloud.operations.count("bucket.update") == 1


def test_region_move_makes_the_new_bucket_first(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """With the region in the logical name, a move creates the new bucket before it deletes the old one."""
    stack = new_stack(program)
    stack.up()
    program.region = "europe-west4"

    moved = stack.up()

    own = [step for step in moved.order if step[1].startswith("data-")]
    assert own == [("create", "data-europe-west4"), ("delete", "data-us-central1")]
    assert set(world.cloud.buckets) == {"acme-dev-europe-west4"}


def test_retained_bucket_keeps_its_objects(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """With `retain_on_delete` a move leaves the old bucket behind, with its objects and out of the state."""
    program.retain = True
    stack = new_stack(program)
    stack.up()
    world.cloud.buckets["acme-dev-us-central1"].objects.add("checkpoints/1")
    program.region = "europe-west4"

    stack.up()

    assert world.cloud.buckets["acme-dev-us-central1"].objects == {"checkpoints/1"}
    assert "data-us-central1" not in stack.resources()


def test_protection_stops_a_move_and_a_destroy_at_preview(
    world: World, new_stack: NewStack, program: SmallProgram
) -> None:
    """With `protect` on the component, preview refuses both, and nothing at Google was asked for."""
    program.protect = True
    stack = new_stack(program)
    stack.up()
    world.cloud.calls.clear()

    refused = stack.destroy(preview_only=True, fails=True)
    program.region = "europe-west4"
    moved = stack.preview(fails=True)

    for outcome in (refused, moved):
        assert any("cannot be deleted" in message and "data-us-central1" in message for message in outcome.errors)
    assert not world.cloud.calls


def test_hook_retries_a_fresh_agent(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """An agent that IAM does not see yet costs tries, told to the error hook, and not the update."""
    world.cloud.invisible_for = 2

    new_stack(program).up()

    assert len(program.retried) == 2
    assert all("Error 400" in message for message in program.retried)
    assert world.cloud.members(f"projects/{PROJECT}", ROLE) == {MEMBER}


def test_grant_survives_an_identity_without_email(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """An agent whose name Google does not tell is granted all the same, and the next preview is quiet."""
    world.cloud.agents_answer_without_email = True
    stack = new_stack(program)

    stack.up()

    assert world.cloud.members(f"projects/{PROJECT}", ROLE) == {MEMBER}
    assert not stack.preview(expect_no_changes=True).changes


def test_taken_name_fails_in_googles_words(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """A bucket name that somebody else has fails the update, and the message names it as such."""
    world.cloud.taken.add("acme-dev-us-central1")

    failed = new_stack(program).up(fails=True)

    assert any("The requested bucket name is not available" in message for message in failed.errors)


def test_refresh_finds_what_is_gone_and_up_brings_it_back(
    world: World, new_stack: NewStack, program: SmallProgram
) -> None:
    """A grant that somebody took away is missed by refresh and given again by `up`."""
    stack = new_stack(program)
    stack.up()
    world.cloud.grants[f"projects/{PROJECT}"].clear()

    stack.refresh()
    again = stack.up()

    assert again.changes == {"grant": "create"}
    assert world.cloud.members(f"projects/{PROJECT}", ROLE) == {MEMBER}


def test_fault_on_destroy_leaves_the_bucket_in_the_state(
    world: World, new_stack: NewStack, program: SmallProgram
) -> None:
    """A bucket with objects is not destroyed: the engine says so and still knows it."""
    stack = new_stack(program)
    stack.up()
    world.cloud.buckets["acme-dev-us-central1"].objects.add("data/1")

    failed = stack.destroy(fails=True)

    assert any("not empty" in message or "force_destroy" in message for message in failed.errors)
    assert "data-us-central1" in stack.resources()


def test_missing_permission_is_told(world: World, new_stack: NewStack, program: SmallProgram) -> None:
    """A caller without the permission reads which permission it was."""
    world.cloud.fail("bucket.create", errors.forbidden("storage.buckets.create"), times=100)

    failed = new_stack(program).up(fails=True)

    assert any("storage.buckets.create" in message for message in failed.errors)
