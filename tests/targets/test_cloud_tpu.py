"""Jobs on Cloud TPU: the queued resource, its rules, and the commands."""

import shlex
import subprocess
from copy import deepcopy
from pathlib import Path

import pytest

from jobs import CATALOG, gcloud_refusal, job, labels, leaves
from start_command import start_command
from tpucfg import schemas
from tpucfg.paths import first_match
from tpucfg.targets import RequestBody, cloud_tpu, target_named

EUROPE = {"region": "europe-west4"}
US_WEST = {"region": "us-west4"}
BOUNDED = {"max_run_duration": "12h", "restarts": 2}
OPTIONS = {
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "runtime_version": "v2-alpha-tpuv5-lite",
    "network": "tpus",
    "subnetwork": "tpus-us-west4",
    "external_ips": False,
    "tags": ["train", "internal"],
    "data_disks": [
        {"source": "projects/my-project/zones/us-west4-a/disks/corpus"},
        {"source": "projects/my-project/zones/us-west4-a/disks/scratch", "read_only": False},
    ],
}


def without_script(body: RequestBody) -> tuple[RequestBody, str]:
    """Return the request body without its script, and the script."""
    rest = deepcopy(body)
    script = rest["tpu"]["nodeSpec"][0]["node"].pop("metadata")["startup-script"]
    return rest, script


def test_a_multi_host_slice_is_one_node() -> None:
    """v3-32 in europe-west4 is one node in the zone that offers it, run by the environment's own account."""
    body, script = without_script(
        cloud_tpu.request_body(job("cloud-tpu", "v3-32", environment=EUROPE))
    )
    assert script.startswith("#!/bin/bash\n")
    assert body == {
        "tpu": {
            "nodeSpec": [
                {
                    "parent": "projects/my-project/locations/europe-west4-a",
                    "nodeId": "mnist-dev-v3-32",
                    "node": {
                        "acceleratorType": "v3-32",
                        "runtimeVersion": "tpu-ubuntu2204-base",
                        "networkConfig": {"enableExternalIps": True},
                        "serviceAccount": {
                            "email": "tpu-mnist-dev@my-project.iam.gserviceaccount.com",
                            "scope": ["https://www.googleapis.com/auth/cloud-platform"],
                        },
                        "labels": labels("v3-32"),
                    },
                }
            ]
        }
    }


def test_every_option_is_a_field() -> None:
    """Account, runtime, network, tags, disks, labels and a reservation of the zone are in the fields of the API."""
    environment = {
        "region": "us-west4",
        "labels": {"team": "vision"},
        "capacity": {"reservation": "mine"},
    }
    planned_job = job(
        "cloud-tpu", "v5litepod-8", environment=environment, options=OPTIONS, run="a1"
    )
    body, _ = without_script(cloud_tpu.request_body(planned_job))
    zone = "projects/my-project/locations/us-west4-a"
    assert body == {
        "tpu": {
            "nodeSpec": [
                {
                    "parent": zone,
                    "nodeId": "mnist-dev-v5litepod-8-a1",
                    "node": {
                        "acceleratorType": "v5litepod-8",
                        "runtimeVersion": "v2-alpha-tpuv5-lite",
                        "networkConfig": {
                            "network": "tpus",
                            "subnetwork": "tpus-us-west4",
                            "enableExternalIps": False,
                        },
                        "serviceAccount": {
                            "email": "trainer@my-project.iam.gserviceaccount.com",
                            "scope": ["https://www.googleapis.com/auth/cloud-platform"],
                        },
                        "schedulingConfig": {"reserved": True},
                        "dataDisks": [
                            {
                                "sourceDisk": "projects/my-project/zones/us-west4-a/disks/corpus",
                                "mode": "READ_ONLY",
                            },
                            {
                                "sourceDisk": "projects/my-project/zones/us-west4-a/disks/scratch",
                                "mode": "READ_WRITE",
                            },
                        ],
                        "labels": {**labels("v5litepod-8", "a1"), "team": "vision"},
                        "tags": ["train", "internal"],
                    },
                }
            ]
        },
        "reservationName": f"{zone}/reservations/mine",
    }


def test_spot_is_an_empty_object() -> None:
    """Spot capacity is requested by an empty object at the top level, as by gcloud."""
    assert cloud_tpu.request_body(job("cloud-tpu", "v2-8", capacity="spot"))["spot"] == {}


def test_a_reservation_of_another_project_is_named_in_full() -> None:
    """A shared reservation keeps its project and gets the job's zone, which the API has in the name."""
    shared = {"reservation": "projects/other-project/reservations/theirs"}
    body = cloud_tpu.request_body(job("cloud-tpu", "v2-8", capacity=shared))
    assert (
        body["reservationName"]
        == "projects/other-project/locations/us-central1-b/reservations/theirs"
    )


@pytest.mark.parametrize("cleared", [None, []])
def test_a_setting_without_a_value_is_no_field(cleared: object) -> None:
    """Options that are null or empty add no field."""
    options = {"tags": cleared, "data_disks": cleared, "external_ips": None, "subnetwork": None}
    body, _ = without_script(cloud_tpu.request_body(job("cloud-tpu", "v2-8", options=options)))
    assert body == without_script(cloud_tpu.request_body(job("cloud-tpu", "v2-8")))[0]


def test_several_slices_are_one_request_for_several_nodes() -> None:
    """A size of two slices asks for two nodes, whose names begin with the job's."""
    body, script = without_script(
        cloud_tpu.request_body(job("cloud-tpu", "v5litepod-16x2", environment=US_WEST))
    )
    (node_spec,) = body["tpu"]["nodeSpec"]
    assert node_spec["multisliceParams"] == {
        "nodeCount": 2,
        "nodeIdPrefix": "mnist-dev-v5litepod-16x2",
    }
    assert "nodeId" not in node_spec
    assert node_spec["node"]["acceleratorType"] == "v5litepod-16"
    assert "mnist-dev-v5litepod-16x2" in script


def test_every_field_has_an_origin() -> None:
    """Every field has an origin, which `tpucfg why` prints."""
    environment = {"region": "us-west4", "labels": {"team": "vision"}}
    for size, capacity in (("v5litepod-8", {"reservation": "mine"}), ("v5litepod-16x2", "spot")):
        planned_job = job(
            "cloud-tpu", size, environment=environment, options=OPTIONS, capacity=capacity
        )
        body = cloud_tpu.request_body(planned_job)
        unknown = [
            path
            for path in leaves(body)
            if first_match(target_named("cloud-tpu").ORIGINS.items(), path) is None
        ]
        assert unknown == []


@pytest.mark.slow
def test_every_size_fits_schema_and_rules() -> None:
    """The request body of every supported size is valid for the API's schema and the target's rules."""
    supported = [slice_ for slice_ in CATALOG.all() if "cloud-tpu" in slice_.targets]
    assert {slice_.generation for slice_ in supported} == {"v2", "v3", "v4", "v5e", "v5p", "v6e"}
    for slice_ in supported:
        zone = slice_.zones[0]
        sizes = (
            [slice_.size]
            if slice_.hosts == 1 or slice_.generation in ("v2", "v3")
            else [slice_.size, f"{slice_.size}x3"]
        )
        for size in sizes:
            for trainer in ({}, BOUNDED):
                planned_job = job(
                    "cloud-tpu", size, environment={"region": zone.region}, trainer=trainer
                )
                body = cloud_tpu.request_body(planned_job)
                assert schemas.is_valid("cloud-tpu", body)
                assert list(cloud_tpu.rules(body, CATALOG)) == []


@pytest.mark.slow  # test_the_script_passes_shellcheck reads the script of some sizes
def test_bash_accepts_the_script_of_every_size() -> None:
    """The script of every size, with and without an end, is valid bash, and so is the watchdog in it."""
    supported = [slice_ for slice_ in CATALOG.all() if "cloud-tpu" in slice_.targets]
    everything = {
        **BOUNDED,
        "secrets": {"WANDB_API_KEY": "wandb/3"},
        "mounts": {"/data": "${bucket}/data"},
    }
    scripts = set()
    for slice_ in supported:
        for trainer in ({}, everything):
            planned_job = job(
                "cloud-tpu",
                slice_.size,
                environment={"region": slice_.zones[0].region},
                trainer=trainer,
            )
            scripts.add(cloud_tpu.startup_script(planned_job))
    watchdogs = {
        script.split("END_OF_WATCHDOG")[1].partition("\n")[2]
        for script in scripts
        if "WATCHDOG" in script
    }
    assert len(watchdogs) == len(supported)
    # Functions keep the texts apart, and let bash parse all of them in one process.
    functions = [
        f"f{number}() {{\n{text}\n}}\n" for number, text in enumerate(sorted(watchdogs | scripts))
    ]
    subprocess.run(["bash", "-n"], input="".join(functions).encode(), check=True)


def test_the_commands_name_the_job_and_its_zone() -> None:
    """The job is posted as JSON with a token, watched and deleted by gcloud, and a note explains its cost."""
    submission = cloud_tpu.submission(job("cloud-tpu", "v3-32", environment=EUROPE, run="a1"))
    location = ("--project=my-project", "--zone=europe-west4-a")
    gcloud = ("gcloud", "compute", "tpus", "queued-resources")
    address = (
        "https://tpu.googleapis.com/v2/projects/my-project/locations/europe-west4-a/queuedResources"
    )
    start = start_command(submission)
    assert (start.reads_config, start.config_format, start.token) == (True, "json", True)
    assert start.argv[-3:] == (
        "--data-binary",
        "@-",
        f"{address}?queuedResourceId=mnist-dev-v3-32-a1",
    )
    assert submission.watch.argv == (*gcloud, "describe", "mnist-dev-v3-32-a1", *location)
    assert submission.deletes[0].argv == (
        *gcloud,
        "delete",
        "mnist-dev-v3-32-a1",
        *location,
        "--force",
    )
    assert "is charged until it is deleted" in submission.notes[0]
    assert "'--command=sudo docker logs --follow trainer'" in submission.notes[-1]


def test_a_note_names_the_end_of_the_slice() -> None:
    """With a maximum duration the slice deletes itself, which a note explains instead of a warning about its cost."""
    bounded = job("cloud-tpu", "v3-32", environment=EUROPE, trainer={"max_run_duration": "12h"})
    note = cloud_tpu.submission(bounded).notes[0]
    assert "deletes itself" in note
    assert "12h" in note
    assert "gs://my-bucket/jobs/mnist/v3-32/.tpucfg/logs/" in cloud_tpu.submission(bounded).notes[1]
    restarted = job("cloud-tpu", "v3-32", environment=EUROPE, trainer={"restarts": 2})
    assert "is charged until it is deleted" in cloud_tpu.submission(restarted).notes[0]


@pytest.mark.official
@pytest.mark.parametrize(
    ("size", "nodes"),
    [("v5litepod-16", []), ("v5litepod-16x2", ["--node=all"])],
)
def test_gcloud_accepts_the_commands(tmp_path: Path, size: str, nodes: list[str]) -> None:
    """The parser of gcloud accepts the commands that watch, delete and print the output, of all nodes."""
    submission = cloud_tpu.submission(job("cloud-tpu", size, environment=US_WEST))
    output = shlex.split(submission.notes[-1].partition("output: ")[2])
    assert [word for word in output if word.startswith("--node")] == nodes
    for argv in (submission.watch.argv, submission.deletes[0].argv, output):
        assert gcloud_refusal(argv, tmp_path) is None
    assert "--misspelt" in str(
        gcloud_refusal((*submission.deletes[0].argv, "--misspelt"), tmp_path)
    )


def test_a_request_waits_as_long_as_the_spec_says() -> None:
    """`max_wait` becomes validUntilDuration; without it the request has no limit, which `submit` prints."""
    limited = job("cloud-tpu", "v2-8", options={"max_wait": "12h"})
    assert cloud_tpu.request_body(limited)["queueingPolicy"] == {"validUntilDuration": "43200s"}
    unlimited = job("cloud-tpu", "v2-8")
    assert "queueingPolicy" not in cloud_tpu.request_body(unlimited)
    notes = [" ".join(cloud_tpu.submission(one).notes) for one in (limited, unlimited)]
    assert ["waits for capacity without limit" in text for text in notes] == [False, True]
