"""Access that others rely on, on the real engine: shared grants, encrypted objects, names there and back.

Each test runs behind the stand-in of the gcp plugin.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from real_program import RealProgram
from specs import NUMBER, PROJECT
from standin.cloud import Cloud
from standin.engine import NewStack, Stack
from standin.projects import World

from tpucfg.stack import access, bucket
from tpucfg.stack.settings import StackSettings

AGENT = f"serviceAccount:service-{NUMBER}@cloud-tpu.iam.gserviceaccount.com"
NODES = f"serviceAccount:nodes@{PROJECT}.iam.gserviceaccount.com"
USER = "roles/storage.objectUser"
PULL = "roles/artifactregistry.reader"
ENCRYPT = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
REPOSITORY = "repositories/train"
KEYS = {
    name: f"projects/{PROJECT}/locations/us-central1/keyRings/r/cryptoKeys/{name}" for name in "ab"
}
GKE: Mapping[str, Any] = {
    "target": "gke",
    "sizes": ["v5litepod-4"],
    "training": {"tuned_on": "v5litepod-4", "batch_size": 8, "train_steps": 9},
    "targets": {"gke": {"node_service_account": NODES.removeprefix("serviceAccount:")}},
}


@pytest.fixture
def cloud() -> Cloud:
    """Return a cloud with one project, which has an account of a cluster's nodes."""
    cloud = Cloud({PROJECT: NUMBER})
    cloud.create_account(PROJECT, "nodes", {})
    return cloud


@pytest.fixture
def program(tmp_path: Path) -> RealProgram:
    """Return the stack program with a minimal spec."""
    return RealProgram(tmp_path)


@pytest.fixture
def stack(new_stack: NewStack, program: RealProgram) -> Stack:
    """Return the stack `dev` of the program."""
    return new_stack(program, config={"spec": str(program.spec)})


def with_config(new_stack: NewStack, program: RealProgram, **config: object) -> Stack:
    """Return the stack `dev` of the program with further config."""
    return new_stack(program, config={"spec": str(program.spec), **config})


@pytest.mark.telling
def test_a_member_is_taken_off_although_the_batch_is_wrong(
    standin_world: World, new_stack: NewStack, program: RealProgram
) -> None:
    """A batch that does not divide stops no update: it is printed as a warning.

    An access that cannot be revoked because of a figure is caught here.
    """
    program.environment = {"bucket": "acme-data"}
    with_config(new_stack, program, bucketMembers=["user:someone@example.com"]).up()
    program.top = {"training": {"tuned_on": "v2-8", "batch_size": 7, "train_steps": 9}}

    with_config(new_stack, program, bucketMembers=[]).up()

    assert "user:someone@example.com" not in standin_world.cloud.members("b/acme-data", USER)


@pytest.mark.telling
def test_a_destroyed_stack_leaves_the_grants_of_others(
    standin_world: World, new_stack: NewStack, program: RealProgram
) -> None:
    """Nodes and the TPU agent keep their access; the output has the commands that take it away.

    A destroy of dev that ends the image pulls of prod is caught here.
    """
    place = {"project": PROJECT, "region": "us-central1"}
    program.top = {**GKE, "environments": {"dev": place, "prod": place}}
    dev, prod = (
        new_stack(program, name=name, config={"spec": str(program.spec)})
        for name in ("dev", "prod")
    )
    dev.up()
    prod.up()
    left = dev.outputs()["leftBehind"]

    dev.destroy()

    assert standin_world.cloud.members(REPOSITORY, PULL) == {NODES}
    command = f"gcloud artifacts repositories remove-iam-policy-binding train --location=us --project={PROJECT}"
    assert left == [f"{command} --member={NODES} --role={PULL}"]


def test_a_released_member_is_revoked(
    standin_world: World, new_stack: NewStack, program: RealProgram
) -> None:
    """With its member in `release`, a grant goes with the stack, after an update that notes it."""
    program.top = {**GKE}
    with_config(new_stack, program).up()
    stack = with_config(new_stack, program, release=[NODES])
    stack.up()
    assert stack.outputs()["leftBehind"] == []
    assert standin_world.cloud.members(REPOSITORY, PULL) == {NODES}

    stack.destroy()

    assert not standin_world.cloud.members(REPOSITORY, PULL)


@pytest.mark.telling
def test_objects_stay_readable_with_another_key(
    standin_world: World, stack: Stack, program: RealProgram
) -> None:
    """A key there and back, and none: the storage agent keeps the grant on each key that objects may need.

    A change of the key that makes checkpoints unreadable is caught here.
    """
    for key in ("a", "b", "a", ""):
        program.environment = {"bucket": "acme-data", **({"kms_key": KEYS[key]} if key else {})}
        outcome = stack.up()
        grants = [step for step in outcome.order if "storage-agent-on-key" in step[1]]
        assert [op for op, _ in grants] == sorted(op for op, _ in grants)  # create, then delete

    assert all(standin_world.cloud.members(key, ENCRYPT) for key in KEYS.values())


def test_a_bucket_there_and_back_needs_one_import(
    standin_world: World, stack: Stack, program: RealProgram
) -> None:
    """New buckets come before old ones go; the printed import takes back the one that was left behind."""
    for name in ("acme-one", "acme-two"):
        program.environment = {"bucket": name}
        stack.up()
        standin_world.cloud.buckets[name].objects.add("data/1")
    program.environment = {"bucket": "acme-one"}

    failed = stack.up(fails=True)

    command = next(
        line for line in "\n".join(failed.errors).splitlines() if "pulumi import" in line
    )
    assert "gcp:storage/bucket:Bucket data-acme-one acme-one" in command
    assert set(standin_world.cloud.buckets) == {"acme-one", "acme-two"}


@pytest.mark.telling
def test_a_state_of_earlier_names_needs_no_call(
    standin_world: World, stack: Stack, program: RealProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resources that had other names in the state are taken for what they are.

    An upgrade that replaces a bucket is caught here.
    """

    def former(settings: StackSettings) -> str:
        return f"data-{settings.region}"

    program.environment = {"bucket": "acme-data", "kms_key": KEYS["a"]}
    with monkeypatch.context() as patch:
        for module in (access, bucket):
            patch.setattr(module, "logical_name", lambda _: "data-us-central1")
        stack.up()
    assert "data-us-central1" in stack.resources()
    standin_world.cloud.calls.clear()

    outcome = stack.up()

    assert not standin_world.cloud.calls
    assert {op for op, _ in outcome.order} <= {"same", "update"}
    assert "data-acme-data" in stack.resources()
