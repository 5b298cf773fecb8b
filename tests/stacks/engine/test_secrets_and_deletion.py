"""Access to secrets, and the role for deletion, on the real engine.

Each test runs behind the stand-in of the gcp plugin, and behind the real plugin if it is installed.
"""

from typing import Any

import pytest
from real_program import RealProgram
from specs import PROJECT
from standin.engine import NewStack, Stack
from standin.projects import World

ACCOUNT = f"serviceAccount:tpu-mnist-dev@{PROJECT}.iam.gserviceaccount.com"
ROLE = f"projects/{PROJECT}/roles/tpu.mnist.dev"
SECRET = f"projects/{PROJECT}/secrets/wandb"
READ = "roles/secretmanager.secretAccessor"
BOUNDED = {"max_run_duration": "1h"}
READING = {"secrets": {"WANDB_API_KEY": "wandb/3"}}


@pytest.fixture
def program(tmp_path: Any) -> RealProgram:
    """Return the stack program with a minimal spec on cloud-tpu."""
    return RealProgram(tmp_path, {"target": "cloud-tpu"})


@pytest.fixture
def stack(new_stack: NewStack, program: RealProgram) -> Stack:
    """Return the stack `dev` of the program."""
    return new_stack(program, config={"spec": str(program.spec)})


def set_trainer(program: RealProgram, **keys: Any) -> None:
    """Give the trainer more keys."""
    program.top["trainer"] = {"image": "us-docker.pkg.dev/acme-dev/train/mnist:1.0", **keys}


def test_secret_is_granted_and_revoked(world: World, stack: Stack, program: RealProgram) -> None:
    """A named secret is readable after `up`, and no longer once it left the spec, even in a protected environment."""
    cloud = world.cloud
    cloud.secrets.add(SECRET)
    program.environment["protect"] = True
    set_trainer(program, **READING)

    stack.up()

    assert cloud.members(SECRET, READ) == {ACCOUNT}
    assert "secretmanager.googleapis.com" in cloud.services[PROJECT]
    cloud.calls.clear()
    assert not stack.refresh(expect_no_changes=True).changes
    assert not stack.up(expect_no_changes=True).changes
    assert not cloud.calls

    set_trainer(program)
    stack.up()
    assert cloud.members(SECRET, READ) == set()
    assert "secretmanager.googleapis.com" in cloud.services[PROJECT]


def test_missing_secret_is_explained(world: World, stack: Stack, program: RealProgram) -> None:
    """A secret that does not exist fails with the command that creates it."""
    set_trainer(program, **READING)

    failed = stack.up(fails=True)

    [explanation] = [message for message in failed.errors if "help:" in message]
    assert f"the project {PROJECT} has no secret wandb" in explanation
    assert f"gcloud secrets create wandb --project={PROJECT}" in explanation
    assert not world.cloud.grants.get(SECRET)


@pytest.mark.telling
def test_role_is_granted_after_it_was_created(
    world: World, stack: Stack, program: RealProgram
) -> None:
    """The role is created before its grant, and a preview shows the name that the role will have.

    A grant that does not wait for its role is caught here.
    """
    set_trainer(program, **BOUNDED)

    assert stack.preview().step("workload-deletes-slices").new["role"] == ROLE
    created = [name for op, name in stack.up().order if op == "create"]

    assert created.index("slice-deletion") < created.index("workload-deletes-slices")
    assert world.cloud.members(f"projects/{PROJECT}", ROLE) == {ACCOUNT}
    world.cloud.calls.clear()
    assert not stack.up(expect_no_changes=True).changes
    assert not world.cloud.calls


def test_condition_names_the_instances_of_one_host(
    standin_world: World, stack: Stack, program: RealProgram
) -> None:
    """Another bounded size of one host replaces the grant by one under the wider condition, and the role stays."""
    cloud = standin_world.cloud
    program.environment["target"] = "compute-engine"
    program.top = {
        "sizes": ["v6e-4"],
        "training": {"tuned_on": "v6e-4", "batch_size": 64, "train_steps": 9},
    }
    set_trainer(program, **BOUNDED)
    stack.up()
    [before] = cloud.conditions(f"projects/{PROJECT}", ROLE)
    cloud.calls.clear()
    assert not stack.up(expect_no_changes=True).changes
    program.top["sizes"] = ["v6e-4", "v6e-8"]

    stack.up()

    assert before.endswith('.startsWith("mnist-dev-v6e-4")')
    assert cloud.conditions(f"projects/{PROJECT}", ROLE) == {
        f'{before} || resource.name.extract("/instances/{{name}}").startsWith("mnist-dev-v6e-8")'
    }
    assert cloud.operations == ["iam.grant", "iam.revoke"]


def test_deleted_role_is_undeleted(
    standin_world: World, stack: Stack, program: RealProgram
) -> None:
    """A role that left the spec and is needed again within seven days is restored, not created again."""
    cloud = standin_world.cloud
    set_trainer(program, **BOUNDED)
    stack.up()
    set_trainer(program)
    stack.up()
    assert cloud.roles[ROLE].state == "deleted"
    assert not cloud.members(f"projects/{PROJECT}", ROLE)
    cloud.calls.clear()

    set_trainer(program, **BOUNDED)
    stack.up()

    assert cloud.roles[ROLE].state == "active"
    # The account's description lists what it may do.
    assert cloud.operations == ["account.update", "iam.grant", "role.undelete", "role.update"]
    assert cloud.members(f"projects/{PROJECT}", ROLE) == {ACCOUNT}


def test_reserved_role_is_replaced_by_an_existing_one(
    world: World, new_stack: NewStack, stack: Stack, program: RealProgram
) -> None:
    """While the id is reserved, the error names the config that grants another role, which then works."""
    cloud = world.cloud
    set_trainer(program, **BOUNDED)
    stack.up()
    set_trainer(program)
    stack.up()
    cloud.roles[ROLE].state = "reserved"
    set_trainer(program, **BOUNDED)

    failed = stack.up(fails=True)

    [explanation] = [message for message in failed.errors if "help:" in message]
    other = f"projects/{PROJECT}/roles/tpuSliceDeleter"
    assert f"pulumi config set deletionRole {other} --stack dev" in explanation
    new_stack(program, config={"spec": str(program.spec), "deletionRole": other}).up()
    assert cloud.members(f"projects/{PROJECT}", other) == {ACCOUNT}


def test_role_of_another_owner_is_not_changed(
    world: World, stack: Stack, program: RealProgram
) -> None:
    """An active role of the same id fails the update, and keeps its permissions."""
    cloud = world.cloud
    cloud.create_role(PROJECT, "tpu.mnist.dev", {"includedPermissions": ["storage.buckets.list"]})
    set_trainer(program, **BOUNDED)

    failed = stack.up(fails=True)

    [explanation] = [message for message in failed.errors if "help:" in message]
    assert f"the custom role {ROLE} exists but is not part of this stack" in explanation
    assert cloud.roles[ROLE].body == {"includedPermissions": ["storage.buckets.list"]}
    assert not cloud.members(f"projects/{PROJECT}", ROLE)
