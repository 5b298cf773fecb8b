"""A bucket that exists, on the real engine: read, checked and granted on, never imported or deleted."""

from pathlib import Path

import pytest
from real_program import RealProgram
from specs import PROJECT
from standin.engine import NewStack, Stack
from standin.projects import World

BODY = {
    "location": "US-CENTRAL1",
    "uniformBucketLevelAccess": True,
    "publicAccessPrevention": "enforced",
}


@pytest.fixture(name="stack")
def _stack(new_stack: NewStack, tmp_path: Path) -> Stack:
    program = RealProgram(
        tmp_path, environment={"bucket": {"name": "team-bucket", "create": False}}
    )
    return new_stack(program, config={"spec": str(program.spec)})


@pytest.mark.telling
def test_it_is_granted_and_left_as_it_is(standin_world: World, stack: Stack) -> None:
    """`up` grants on the bucket, a second one does nothing; `destroy` leaves it, its objects and the agent's grant.

    A destroy that deletes the bucket of another team is caught here.
    """
    standin_world.cloud.create_bucket(PROJECT, "team-bucket", BODY).objects.add("a")
    standin_world.cloud.calls.clear()

    stack.up()
    assert not [
        operation for operation in standin_world.cloud.operations if operation.startswith("bucket.")
    ]
    assert standin_world.cloud.grants["b/team-bucket"]
    standin_world.cloud.calls.clear()
    stack.up()
    assert not standin_world.cloud.calls

    stack.destroy()
    assert standin_world.cloud.bucket("team-bucket").objects == {"a"}
    # Another stack can use the bucket.
    [(_, member, _)] = standin_world.cloud.grants["b/team-bucket"]
    assert member.endswith("@cloud-tpu.iam.gserviceaccount.com")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "the bucket team-bucket cannot be read"),
        (
            {"location": "EU"},
            "the bucket team-bucket is in eu, and the TPUs of dev are in us-central1",
        ),
        ({"uniformBucketLevelAccess": False}, "gs://team-bucket --uniform-bucket-level-access"),
    ],
    ids=["missing", "elsewhere", "open"],
)
def test_an_unfit_bucket_stops_before_anything_is_made(
    standin_world: World, stack: Stack, change: dict[str, object] | None, message: str
) -> None:
    """The message names the bucket and the edit, and nothing was created."""
    if change is not None:
        standin_world.cloud.create_bucket(PROJECT, "team-bucket", {**BODY, **change})
    standin_world.cloud.calls.clear()

    assert message in stack.up(fails=True).text
    assert not standin_world.cloud.changes
