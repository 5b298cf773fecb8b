import shlex
from copy import deepcopy
from pathlib import Path

from jobs import CATALOG, gcloud_refusal, job, leaves
from tpucfg import schemas
from tpucfg.targets import RequestBody, cloud_tpu, target_named
from tpucfg.targets.interface import origin_of

EUROPE = {"region": "europe-west4"}
OPTIONS = {
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "runtime_version": "v2-alpha-tpuv5-lite",
    "network": "tpus",
    "reservation": "mine",
}


def without_script(body: RequestBody) -> tuple[RequestBody, str]:
    """Return the request body without its script, and the script."""
    rest = deepcopy(body)
    script = rest["tpu"]["nodeSpec"][0]["node"].pop("metadata")["startup-script"]
    return rest, script


def test_a_multi_host_slice_is_one_node() -> None:
    """v3-32 in europe-west4 is one node in the zone that offers it, run by the environment's own account."""
    body, script = without_script(cloud_tpu.request_body(job("cloud-tpu", "v3-32", environment=EUROPE)))
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
                    },
                }
            ]
        }
    }


def test_every_option_is_a_field() -> None:
    """Account, runtime, network, labels and a reservation of the zone are in the fields of the API."""
    environment = {"region": "us-west4", "labels": {"team": "vision"}}
    planned_job = job("cloud-tpu", "v5litepod-8", environment=environment, options=OPTIONS, run="a1")
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
                        "networkConfig": {"network": "tpus", "enableExternalIps": True},
                        "serviceAccount": {
                            "email": "trainer@my-project.iam.gserviceaccount.com",
                            "scope": ["https://www.googleapis.com/auth/cloud-platform"],
                        },
                        "labels": {"team": "vision"},
                    },
                }
            ]
        },
        "reservationName": f"{zone}/reservations/mine",
    }


def test_spot_is_an_empty_object() -> None:
    """Spot capacity is requested by an empty object at the top level, as by gcloud."""
    assert cloud_tpu.request_body(job("cloud-tpu", "v2-8", options={"spot": True}))["spot"] == {}


def test_a_full_reservation_name_is_unchanged() -> None:
    """The full name of a reservation, such as one of another project, is used unchanged."""
    name = "projects/other/locations/us-central1-b/reservations/theirs"
    assert cloud_tpu.request_body(job("cloud-tpu", "v2-8", options={"reservation": name}))["reservationName"] == name


def test_every_field_has_an_origin() -> None:
    """Every field has an origin, which `tpucfg why` prints."""
    environment = {"region": "us-west4", "labels": {"team": "vision"}}
    for options in (OPTIONS, {"spot": True}):
        body = cloud_tpu.request_body(job("cloud-tpu", "v5litepod-8", environment=environment, options=options))
        unknown = [path for path in leaves(body) if origin_of(target_named("cloud-tpu").ORIGINS, path) is None]
        assert unknown == []


def test_every_size_fits_schema_and_rules() -> None:
    """The request body of every supported size is valid for the API's schema and the target's rules."""
    supported = [slice_ for slice_ in CATALOG.all() if "cloud-tpu" in slice_.targets]
    assert {slice_.generation for slice_ in supported} == {"v2", "v3", "v4", "v5e", "v5p", "v6e"}
    for slice_ in supported:
        zone = slice_.zones[0]
        body = cloud_tpu.request_body(job("cloud-tpu", slice_.size, environment={"region": zone.region}))
        assert schemas.is_valid("cloud-tpu", body)
        assert list(cloud_tpu.rules(body, CATALOG)) == []


def test_the_commands_name_the_job_and_its_zone() -> None:
    """The job is posted as JSON with a token, watched and deleted by gcloud, and a note explains its cost."""
    submission = cloud_tpu.submission(job("cloud-tpu", "v3-32", environment=EUROPE, run="a1"))
    location = ("--project=my-project", "--zone=europe-west4-a")
    gcloud = ("gcloud", "compute", "tpus", "queued-resources")
    address = "https://tpu.googleapis.com/v2/projects/my-project/locations/europe-west4-a/queuedResources"
    assert (submission.start.reads_config, submission.start.config_format, submission.start.token) == (
        True,
        "json",
        True,
    )
    assert submission.start.argv[-3:] == ("--data-binary", "@-", f"{address}?queuedResourceId=mnist-dev-v3-32-a1")
    assert submission.watch.argv == (*gcloud, "describe", "mnist-dev-v3-32-a1", *location)
    assert submission.delete.argv == (*gcloud, "delete", "mnist-dev-v3-32-a1", *location, "--force")
    assert "is charged until it is deleted" in submission.notes[0]
    assert "'--command=sudo docker logs --follow trainer'" in submission.notes[1]


def test_gcloud_accepts_the_commands(tmp_path: Path) -> None:
    """The parser of gcloud accepts the commands that watch, delete and print the output."""
    submission = cloud_tpu.submission(job("cloud-tpu", "v3-32", environment=EUROPE))
    output = shlex.split(submission.notes[1].partition("output: ")[2])
    for argv in (submission.watch.argv, submission.delete.argv, output):
        assert gcloud_refusal(argv, tmp_path) is None
    assert "--misspelt" in str(gcloud_refusal((*submission.delete.argv, "--misspelt"), tmp_path))
