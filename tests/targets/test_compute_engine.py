"""Compute Engine: the objects of a slice, the rules about them, their documents, and the commands of a job."""

import json
import shlex
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs import CATALOG, compiled, gcloud_refusal, job, labels, leaves, project
from spec_factory import document
from tpucfg import schemas
from tpucfg.cli import app
from tpucfg.paths import first_match
from tpucfg.render.pipeline import config_findings, render_configs
from tpucfg.targets import RequestBody, compute_engine, target_named
from tpucfg.targets.commands import Creations
from tpucfg.targets.compute_engine.request import HOST_IMAGES
from tpucfg.targets.objects import combined_data
from tpucfg.yamldoc.reader import read_text

EAST = {"region": "us-east5"}
IMAGES = "projects/ubuntu-os-accelerator-images/global/images/family"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
PATH = "projects/my-project/regions/us-east5"
RESERVED = {"reservation": "mine"}
BOUNDED = {"max_run_duration": "12h"}


def body_of(size: str, **changes: Any) -> RequestBody:
    """Return the request body of a job in us-east5, without the start-up script and the digests of its content."""
    environment = EAST | changes.pop("environment", {})
    body = deepcopy(
        compute_engine.request_body(job("compute-engine", size, environment=environment, **changes))
    )
    for value in body.values():
        value.pop("description", None)
        host = value.get("properties", value)
        if "metadata" in host:
            (item,) = host["metadata"]["items"]
            assert item["key"] == "startup-script"
            assert item.pop("value").startswith("#!/bin/bash\n")
    return body


def host_of(body: RequestBody) -> dict[str, Any]:
    """Return the fields of a host."""
    host: dict[str, Any] = (
        body["instance"] if "instance" in body else body["instanceTemplate"]["properties"]
    )
    return host


def test_a_slice_of_several_hosts_is_a_group() -> None:
    """v6e-16 is a policy with its topology, a template of 4-chip machines, and a group of four in the mode BULK."""
    assert body_of("v6e-16", trainer=BOUNDED) == {
        "resourcePolicy": {
            "kind": "compute#resourcePolicy",
            "name": "mnist-dev-v6e-16",
            "workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "4x4"},
        },
        "instanceTemplate": {
            "kind": "compute#instanceTemplate",
            "name": "mnist-dev-v6e-16",
            "properties": {
                "machineType": "ct6e-standard-4t",
                "disks": [
                    {
                        "boot": True,
                        "autoDelete": True,
                        "initializeParams": {
                            "sourceImage": f"{IMAGES}/ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e",
                            "diskSizeGb": "200",
                            "diskType": "hyperdisk-balanced",
                            "labels": labels("v6e-16"),
                        },
                    }
                ],
                "networkInterfaces": [
                    {
                        "network": "global/networks/default",
                        "nicType": "GVNIC",
                        "accessConfigs": [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}],
                    }
                ],
                "serviceAccounts": [
                    {"email": "tpu-mnist-dev@my-project.iam.gserviceaccount.com", "scopes": [SCOPE]}
                ],
                "scheduling": {
                    "provisioningModel": "STANDARD",
                    "onHostMaintenance": "TERMINATE",
                    "instanceTerminationAction": "DELETE",
                    "maxRunDuration": {"seconds": "43200"},
                },
                "labels": labels("v6e-16"),
                "metadata": {"items": [{"key": "startup-script"}]},
            },
        },
        "instanceGroupManager": {
            "kind": "compute#instanceGroupManager",
            "name": "mnist-dev-v6e-16",
            "baseInstanceName": "mnist-dev-v6e-16",
            "targetSize": 4,
            "versions": [{"instanceTemplate": f"{PATH}/instanceTemplates/mnist-dev-v6e-16"}],
            "targetSizePolicy": {"mode": "BULK"},
            "resourcePolicies": {"workloadPolicy": f"{PATH}/resourcePolicies/mnist-dev-v6e-16"},
            "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
        },
    }


def test_one_host_is_an_instance() -> None:
    """v5p-8 is one instance, which names its zone in the paths of types, and takes another type of disk."""
    body = body_of("v5p-8")
    assert list(body) == ["instance"]
    instance = body["instance"]
    assert instance["machineType"] == "zones/us-east5-a/machineTypes/ct5p-hightpu-4t"
    assert (
        instance["disks"][0]["initializeParams"]["diskType"]
        == "zones/us-east5-a/diskTypes/pd-balanced"
    )
    assert instance["scheduling"] == {
        "provisioningModel": "STANDARD",
        "onHostMaintenance": "TERMINATE",
    }


def test_another_machine_makes_a_group() -> None:
    """v6e-8 is one 8-chip machine, and with the 4-chip machine a group of two."""
    assert host_of(body_of("v6e-8"))["machineType"].endswith("/ct6e-standard-8t")
    body = body_of("v6e-8", overrides={"v6e-8": {"machine": "ct6e-standard-4t"}})
    assert body["resourcePolicy"]["workloadPolicy"]["acceleratorTopology"] == "2x4"
    assert body["instanceGroupManager"]["targetSize"] == 2


def test_tpu7x_has_an_image_of_its_own() -> None:
    """TPU7x boots Ubuntu 24.04, and a rung may have another topology."""
    environment = {"region": "us-central1"}
    body = body_of("tpu7x-128", environment=environment)
    image = host_of(body)["disks"][0]["initializeParams"]["sourceImage"]
    assert image == f"{IMAGES}/ubuntu-accel-2404-amd64-tpu-tpu7x"
    assert body["instanceGroupManager"]["targetSize"] == 16


@pytest.mark.parametrize(
    ("capacity", "scheduling", "wait"),
    [
        ("spot", {"provisioningModel": "SPOT", "automaticRestart": False}, None),
        (
            "flex-start",
            {"provisioningModel": "FLEX_START", "automaticRestart": False},
            {"seconds": "7200"},
        ),
        ({"reservation": "mine"}, {"provisioningModel": "RESERVATION_BOUND"}, None),
    ],
)
def test_each_capacity_has_its_fields(capacity: Any, scheduling: dict[str, Any], wait: Any) -> None:
    """Spot and flex-start are never restarted, flex-start waits up to two hours, and a reservation is named."""
    instance = body_of("v6e-4", capacity=capacity, trainer=BOUNDED)["instance"]
    ends = {"instanceTerminationAction": "DELETE", "maxRunDuration": {"seconds": "43200"}}
    assert instance["scheduling"] == {"onHostMaintenance": "TERMINATE", **scheduling, **ends}
    kinds = {"FLEX_START": "NO_RESERVATION", "RESERVATION_BOUND": "SPECIFIC_RESERVATION"}
    kind = instance.get("reservationAffinity", {}).get("consumeReservationType")
    assert kind == kinds.get(scheduling["provisioningModel"])
    assert instance.get("params", {}).get("requestValidForDuration") == wait


def test_the_end_of_a_reservation_deletes_its_instances() -> None:
    """An instance of a reservation is not left stopped, also without a duration; an on-demand one has no end."""
    for capacity, action in ((RESERVED, "DELETE"), ("spot", "DELETE"), ("on-demand", None)):
        scheduling = host_of(body_of("v6e-16", capacity=capacity))["scheduling"]
        assert scheduling.get("instanceTerminationAction") == action


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mine", "mine"),
        ("projects/my-project/reservations/mine", "mine"),
        ("projects/acme-shared/reservations/mine", "projects/acme-shared/reservations/mine"),
    ],
)
def test_a_shared_reservation_has_its_project(name: str, value: str) -> None:
    """A reservation of another project is named with that project."""
    affinity = host_of(body_of("v6e-16", capacity={"reservation": name}))["reservationAffinity"]
    key = "compute.googleapis.com/reservation-name"
    assert affinity == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": key,
        "values": [value],
    }


@pytest.mark.parametrize("changes", [{}, {"trainer": BOUNDED}, {"capacity": "spot"}])
def test_no_group_repairs_its_hosts(changes: dict[str, Any]) -> None:
    """A host that were created again would have an empty disk, and run the program a second time."""
    policy = body_of("v6e-16", **changes)["instanceGroupManager"]["instanceLifecyclePolicy"]
    assert policy == {"defaultActionOnFailure": "DO_NOTHING"}


def test_every_option_is_a_field() -> None:
    """Account, network, addresses, disk and labels are in the fields of the API; names become paths."""
    options = {
        "service_account": "trainer@my-project.iam.gserviceaccount.com",
        "network": "tpus",
        "subnetwork": "tpus-east",
        "external_ips": False,
        "disk_gb": 500,
    }
    host = host_of(body_of("v6e-16", options=options, environment={"labels": {"team": "vision"}}))
    assert host["networkInterfaces"] == [
        {
            "network": "global/networks/tpus",
            "subnetwork": "regions/us-east5/subnetworks/tpus-east",
            "nicType": "GVNIC",
        }
    ]
    assert host["serviceAccounts"][0]["email"] == options["service_account"]
    assert host["disks"][0]["initializeParams"]["diskSizeGb"] == "500"
    assert host["labels"] == {**labels("v6e-16"), "team": "vision"}
    assert "tags" not in host
    shared = {"subnetwork": "projects/acme-net/regions/us-east5/subnetworks/s"}
    (interface,) = host_of(body_of("v6e-16", options=shared))["networkInterfaces"]
    assert (interface["subnetwork"], "network" in interface) == (shared["subnetwork"], False)


DISK = "projects/my-project/zones/us-east5-a/disks/data"


def test_settings_of_cloud_tpu_are_fields_too() -> None:
    """Tags and disks have the form that they have on Cloud TPU; a template names a disk by its name alone."""
    options = {"tags": ["train", "internal"], "data_disks": [{"source": DISK}]}
    for size, source in (("v6e-16", "data"), ("v6e-4", DISK)):
        host = host_of(body_of(size, options=options))
        assert host["tags"] == {"items": ["train", "internal"]}
        assert host["disks"][0]["boot"] is True
        assert host["disks"][1:] == [{"source": source, "mode": "READ_ONLY", "autoDelete": False}]
    written = {"data_disks": [{"source": DISK, "read_only": False}]}
    assert host_of(body_of("v6e-4", options=written))["disks"][1]["mode"] == "READ_WRITE"


@pytest.mark.parametrize(
    ("size", "disk", "words"),
    [
        ("v6e-16", {"source": DISK}, None),
        ("v6e-4", {"source": DISK}, None),
        ("v6e-4", {"source": DISK, "read_only": False}, None),
        (
            "v6e-16",
            {"source": DISK, "read_only": False},
            "4 hosts cannot attach one disk for writing",
        ),
        (
            "v6e-16",
            {"source": DISK.replace("east5-a", "east5-b")},
            "the disk is in us-east5-b of my-project",
        ),
        (
            "v6e-16",
            {"source": DISK.replace("my-project", "other-project")},
            "the disk is in us-east5-a of other",
        ),
        (
            "v6e-4",
            {"source": DISK.replace("east5-a", "east5-b")},
            "the disk is in us-east5-b, and the slice in",
        ),
    ],
)
def test_a_disk_is_attached_in_its_zone(size: str, disk: dict[str, Any], words: str | None) -> None:
    """Each disk that a host cannot attach is one error, at its line of the spec."""
    result = compiled(
        "compute-engine", size, environment=EAST, options={"data_disks": [disk]}, capacity=RESERVED
    )
    findings = [finding for finding in result.findings if finding.id == "TPU074"]
    assert [words in finding.message for finding in findings if words] == [True] * bool(words), (
        findings
    )
    assert len(findings) == bool(words)
    assert result.project
    lines = result.project.document.text.splitlines()
    assert all("source" in "".join(lines[each.location.line - 1 :][:3]) for each in findings)


@pytest.mark.parametrize("size", ["v6e-4", "v6e-16"])
@pytest.mark.parametrize(("zone", "is_offered"), [("us-east5-b", True), ("us-east1-d", False)])
def test_the_help_for_a_disk_names_only_zones_of_the_region(
    size: str, zone: str, is_offered: bool
) -> None:
    """A slice can move to the zone of a disk only within its region, as TPU022 refuses any other zone."""
    disk = {"source": DISK.replace("us-east5-a", zone)}
    result = compiled(
        "compute-engine", size, environment=EAST, options={"data_disks": [disk]}, capacity=RESERVED
    )
    (finding,) = (finding for finding in result.findings if finding.id == "TPU074")
    assert (zone in finding.help) == is_offered
    assert "name a disk in us-east5-a" in finding.help


@pytest.mark.parametrize("size", ["v2-8", "v3-32", "v4-16", "v5litepod-16", "v6e-16x2"])
def test_other_generations_and_several_slices_are_refused(size: str) -> None:
    """Compute Engine offers v5p, v6e and TPU7x, and a group is one slice."""
    findings = [
        finding for finding in compiled("compute-engine", size).findings if finding.id == "TPU024"
    ]
    assert len(findings) == 1
    assert findings[0].details


EVERYTHING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("v6e-4", {}),
    ("v6e-16", {"capacity": "spot", "environment": EAST}),
    ("v5p-32", {"trainer": BOUNDED, "capacity": "flex-start", "environment": EAST}),
    (
        "tpu7x-128",
        {"capacity": {"reservation": "r"}, "options": {"external_ips": False, "subnetwork": "s"}},
    ),
)


@pytest.mark.parametrize(("size", "changes"), EVERYTHING, ids=[size for size, _ in EVERYTHING])
def test_every_config_fits_schema_rules_and_origins(size: str, changes: dict[str, Any]) -> None:
    """Each object fits its closed schema, no rule refuses it, and each field has an origin."""
    body = compute_engine.request_body(job("compute-engine", size, **deepcopy(changes)))
    assert schemas.is_valid("compute-engine", body)
    assert list(compute_engine.rules(body, CATALOG)) == []
    for path in leaves(body):
        assert first_match(compute_engine.ORIGINS.items(), path), path
    for key, value in body.items():
        assert not schemas.is_valid("compute-engine", {key: value | {"nonsense": 1}})


def test_each_generation_has_an_image_and_machines() -> None:
    """A generation that the catalog gives to this target can be rendered, and its machines pass the rules."""
    offered = {
        slice_.generation for slice_ in CATALOG.all() if compute_engine.NAME in slice_.targets
    }
    assert offered == {*HOST_IMAGES}
    for slice_ in CATALOG.all():
        if slice_.generation in offered and slice_.machine:
            body = hand_written(instanceTemplate__properties__machineType=slice_.machine.name)
            paths = [problem.path[-1] for problem in compute_engine.rules(body, CATALOG)]
            assert "machineType" not in paths, slice_.size


# The file


def text_of(size: str, **changes: Any) -> str:
    """Return the rendered file of a job."""
    (config,) = render_configs(compiled("compute-engine", size, environment=EAST, **changes))
    return config.text


def test_each_object_is_a_document() -> None:
    """The file has the objects in the order in which they are created, each a message of the API."""
    result = compiled("compute-engine", "v6e-16", environment=EAST)
    ((_, body),) = result.request_bodies
    documents = list(yaml.safe_load_all(text_of("v6e-16")))
    assert documents == list(body.values())
    assert [each["kind"].removeprefix("compute#") for each in documents] == list(body)


@pytest.mark.parametrize("size", ["v6e-4", "v6e-16"])
def test_the_file_is_read_as_its_request_body(size: str) -> None:
    """Comparisons and checks read the documents of YAML, and the object of JSON, as the compiler's request body."""
    ((_, body),) = compiled("compute-engine", size, environment=EAST).request_bodies
    for text in (text_of(size), json.dumps(body)):
        file = read_text(text, "config.yaml", several=True)
        assert combined_data(file) == body
        assert config_findings(file, "compute-engine", CATALOG) == ()


@pytest.mark.parametrize(
    ("replacement", "id_", "line"),
    [
        (("targetSize:", "targetsize:"), "TPU070", "targetsize: 4"),
        (("mode: BULK", "mode: BULKY"), "TPU073", "mode: BULKY"),
        (("targetSize: 4", "targetSize: 5"), "TPU074", "targetSize: 5"),
        (
            ("compute#instanceGroupManager", "compute#instanceGroup"),
            "TPU073",
            'kind: "compute#instanceGroup"',
        ),
        (
            ("compute#resourcePolicy", "compute#instanceTemplate"),
            "TPU074",
            'kind: "compute#instanceTemplate"',
        ),
    ],
)
def test_a_mistake_is_found_at_its_line(replacement: tuple[str, str], id_: str, line: str) -> None:
    """A finding about a file of several documents is at the line of its document."""
    text = text_of("v6e-16").replace(*replacement)
    findings = config_findings(
        read_text(text, "config.yaml", several=True), "compute-engine", CATALOG
    )
    lines = [(each.id, text.splitlines()[each.location.line - 1]) for each in findings]
    assert any(each_id == id_ and line in row for each_id, row in lines), lines


def test_a_document_without_a_kind_is_named() -> None:
    """A document that does not state what it is cannot be checked."""
    text = text_of("v6e-16").replace('kind: "compute#instanceTemplate"\n', "")
    findings = config_findings(
        read_text(text, "config.yaml", several=True), "compute-engine", CATALOG
    )
    assert [
        (each.id, "has no kind" in each.message) for each in findings if each.id == "TPU071"
    ] == [("TPU071", True)]


# Rules of configs that are written by hand


def hand_written(size: str = "v6e-16", **changes: Any) -> RequestBody:
    """Return a request body with changes by path: `instanceTemplate__properties__machineType`."""
    body = body_of(size)
    host_of(body)["metadata"] = {"items": [{"key": "startup-script", "value": "x"}]}
    for path, value in changes.items():
        *steps, last = path.split("__")
        target: Any = body
        for step in steps:
            target = target[int(step) if step.isdecimal() else step]
        if value is None:
            del target[last]
        else:
            target[last] = value
    return body


HOST = "instanceTemplate__properties"
SCHEDULING = f"{HOST}__scheduling"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({f"{HOST}__machineType": "ct5lp-hightpu-4t"}, "machineType", "v5p, v6e and tpu7x"),
        ({f"{HOST}__machineType": "n2-standard-4"}, "machineType", "has none of them"),
        ({f"{HOST}__machineType": ""}, "machineType", "the default"),
        (
            {
                SCHEDULING: {
                    "provisioningModel": "FLEX_START",
                    "maxRunDuration": {"seconds": "9" * 5000},
                }
            },
            "seconds",
            "30 seconds to 120 days",
        ),
        (
            {f"{SCHEDULING}__provisioningModel": "FLEX_START"},
            "provisioningModel",
            "600 to 604800 seconds",
        ),
        (
            {f"{SCHEDULING}__provisioningModel": "RESERVATION_BOUND"},
            "reservationAffinity",
            "is named by",
        ),
        (
            {f"{HOST}__disks": [{"source": "zones/z/disks/d"}]},
            "source",
            "4 hosts cannot attach one disk",
        ),
        ({"instanceGroupManager__targetSizePolicy": None}, "targetSizePolicy", "in the mode BULK"),
        ({"instanceGroupManager__targetSize": 3}, "targetSize", "4x4 has 16 chips"),
        ({"instanceGroupManager__resourcePolicies": None}, "workloadPolicy", "would form no slice"),
        (
            {
                f"{HOST}__disks__0__initializeParams__sourceImage": f"{IMAGES}/ubuntu-accel-2404-amd64-tpu-tpu7x"
            },
            "sourceImage",
            "is an image for tpu7x, and the machine is of v6e",
        ),
        (
            {
                f"{HOST}__machineType": "tpu7x-standard-4t",
                "resourcePolicy__workloadPolicy__acceleratorTopology": "2x2x4",
                f"{HOST}__disks__0__initializeParams__sourceImage": "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e-v20260101",
            },
            "sourceImage",
            "is an image for v5e, v5p, v6e, and the machine is of tpu7x",
        ),
        (
            {"resourcePolicy__workloadPolicy": {"acceleratorTopology": "4x4"}},
            "type",
            "need the throughput",
        ),
        (
            {"resourcePolicy__workloadPolicy": {"type": "HIGH_THROUGHPUT"}},
            "acceleratorTopology",
            "it is missing",
        ),
        (
            {"resourcePolicy__workloadPolicy__acceleratorTopology": "16"},
            "acceleratorTopology",
            "16 is no topology",
        ),
        (
            {"resourcePolicy__workloadPolicy__acceleratorTopology": "2x8"},
            "acceleratorTopology",
            "2x8 is no topology",
        ),
        (
            {"resourcePolicy__workloadPolicy__acceleratorTopology": "4X4"},
            "acceleratorTopology",
            "4X4 is no topology",
        ),
        (
            {f"{HOST}__machineType": "ct5p-hightpu-4t"},
            "acceleratorTopology",
            "4x4 is no topology of ct5p-hightpu-4t",
        ),
        (
            {f"{HOST}__machineType": "ct6e-standard-8t", "instanceGroupManager__targetSize": 2},
            "acceleratorTopology",
            "4x4 is no topology of ct6e-standard-8t",
        ),
        ({f"{SCHEDULING}__maxRunDuration": {"seconds": "-5"}}, "seconds", "30 seconds to 120 days"),
        (
            {f"{SCHEDULING}__maxRunDuration": {"seconds": "99999999"}},
            "seconds",
            "30 seconds to 120 days",
        ),
        (
            {f"{HOST}__reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}},
            "reservationAffinity",
            "is named by",
        ),
        ({f"{HOST}__disks__0__autoDelete": False}, "autoDelete", "leaves its boot disk behind"),
        ({f"{HOST}__disks__0__autoDelete": None}, "autoDelete", "leaves its boot disk behind"),
        (
            {f"{HOST}__disks__0__initializeParams__diskSizeGb": "10"},
            "initializeParams",
            "no room for Docker",
        ),
        (
            {"resourcePolicy": None, "instanceGroupManager__resourcePolicies": None},
            "workloadPolicy",
            "the 4 hosts would form no slice",
        ),
    ],
)
def test_the_service_refuses_it(changes: dict[str, Any], path: str | int, words: str) -> None:
    """Each rule names the field, and has a fix."""
    problems = list(compute_engine.rules(hand_written(**changes), CATALOG))
    assert [
        problem for problem in problems if problem.path[-1] == path and words in problem.message
    ], problems
    assert all(problem.help for problem in problems)


@pytest.mark.parametrize(
    "image",
    ["projects/p/global/images/mine-tpu7x", "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e-v1", ""],
)
def test_other_images_are_accepted(image: str) -> None:
    """An image of the machine's generation, and one of your own, are no mistakes."""
    assert (
        list(
            compute_engine.rules(
                hand_written(**{f"{HOST}__disks__0__initializeParams__sourceImage": image}), CATALOG
            )
        )
        == []
    )


@pytest.mark.parametrize(
    "policy", [{"type": "HIGH_THROUGHPUT"}, {"type": "HIGH_THROUGHPUT", "acceleratorTopology": ""}]
)
def test_an_empty_topology_is_a_missing_one(policy: dict[str, str]) -> None:
    """Neither is compared with the machines as well."""
    (problem,) = compute_engine.rules(hand_written(resourcePolicy__workloadPolicy=policy), CATALOG)
    assert problem.help == "add it, such as 4x4"


@pytest.mark.parametrize(
    ("text", "id_", "help_"),
    [
        ('kind: "compute#disk"\nname: d\n', "TPU073", "move it to a file that is not checked"),
        ("kind: instances\nname: d\n", "TPU073", "did you mean compute#instance?"),
        (
            'kind: "compute#instanceGroupManagerResizeRequest"\nname: d\n',
            "TPU073",
            "did you mean compute#instanceGroupManager?",
        ),
        ("kind: [a]\nname: d\n", "TPU073", "move it to a file that is not checked"),
        ("- name: d\n", "TPU072", "write each item as a document"),
        ("hello\n", "TPU072", "begin it with kind: compute#instance"),
        ("name: d\nmachineType: x\n", "TPU071", "add kind: compute#resourcePolicy, "),
        ("instance: {name: d}\n", "TPU071", "add kind: compute#instance"),
        ("{}\n", "TPU071", "add the document of an instance"),
    ],
)
def test_a_document_that_is_no_object_is_one_finding(text: str, id_: str, help_: str) -> None:
    """The missing host is not reported beside a document that may be meant as one, and the help is a valid form."""
    (finding,) = config_findings(
        read_text(text, "config.yaml", several=True), "compute-engine", CATALOG
    )
    assert finding.id == id_
    assert finding.help.startswith(help_)


@pytest.mark.parametrize(
    ("topology", "fix"),
    [
        ("2x4", "set it to 2, or change the topology"),
        ("3x2", "set it to 2x2, 2x4, 4x4"),
        ("0x2", "set it to 2x2, 2x4, 4x4"),
        ("9" * 5000 + "x2", "set it to 2x2, 2x4, 4x4"),
    ],
)
def test_the_help_is_a_number_of_whole_hosts(topology: str, fix: str) -> None:
    """A topology that hosts cannot form has to be changed itself."""
    policy = {"type": "HIGH_THROUGHPUT", "acceleratorTopology": topology}
    problems = compute_engine.rules(hand_written(resourcePolicy__workloadPolicy=policy), CATALOG)
    assert [problem.help.startswith(fix) for problem in problems] == [True]


@pytest.mark.parametrize(
    ("topology", "hosts", "fix"),
    [
        ("4x4x16", 64, None),
        ("4x4x6", 16, "set it to 24, or change the topology"),
        ("0x4x4", 16, "set it to 2x2x1, "),
        ("4x4", 4, "set it to 2x2x1, "),
    ],
)
def test_a_topology_may_be_of_cubes(topology: str, hosts: int, fix: str | None) -> None:
    """v5p connects cubes of 4x4x4 to other topologies than those of the catalog."""
    body = hand_written(
        resourcePolicy__workloadPolicy__acceleratorTopology=topology,
        instanceTemplate__properties__machineType="ct5p-hightpu-4t",
        instanceGroupManager__targetSize=hosts,
    )
    assert [
        problem.help.startswith(fix or "") for problem in compute_engine.rules(body, CATALOG)
    ] == [True] * bool(fix)


def test_an_instance_attaches_disks_of_its_zone() -> None:
    """The zone of an instance is in the path of its machine type."""
    for zone, expected in (("us-east5-a", []), ("us-east5-b", ["us-east5-b"])):
        disk = {"source": f"projects/my-project/zones/{zone}/disks/d"}
        body = hand_written("v6e-4")
        body["instance"]["disks"].append(disk)
        problems = list(compute_engine.rules(body, CATALOG))
        assert [
            problem.message.partition("is in ")[2].partition(",")[0] for problem in problems
        ] == expected


@pytest.mark.parametrize("size", ["v6e-4", "v6e-16"])
def test_a_setting_that_the_service_refuses_is_an_error(size: str) -> None:
    """A value that no schema of a setting excludes is found in the config, at the line of the spec."""
    trainer = {"max_run_duration": "200d"}
    result = compiled("compute-engine", size, environment=EAST, capacity=RESERVED, trainer=trainer)
    (finding,) = [each for each in result.findings if each.id == "TPU074"]
    assert "a duration is 30 seconds to 120 days" in finding.message


@pytest.mark.parametrize("duration", ["20s", "200d"])
def test_the_help_for_a_duration_is_a_range_of_the_setting(duration: str) -> None:
    """Both limits are in the words of the spec, as a duration may be too short or too long."""
    result = compiled(
        "compute-engine", "v6e-4", environment=EAST, trainer={"max_run_duration": duration}
    )
    (finding,) = [each for each in result.findings if each.id == "TPU074"]
    assert finding.help.endswith("in a spec, max_run_duration from 30s to 120d")


def test_a_config_creates_hosts_once() -> None:
    """A config without hosts and one with an instance beside a group are refused."""
    group = hand_written()
    policy = {"resourcePolicy": group["resourcePolicy"]}
    assert [problem.id for problem in compute_engine.rules(policy, CATALOG)] == ["TPU071"]
    both = group | body_of("v6e-4")
    assert "one more host" in " ".join(
        problem.message for problem in compute_engine.rules(both, CATALOG)
    )


# Commands


@pytest.mark.official
def test_gcloud_accepts_the_commands(tmp_path: Path) -> None:
    """The commands that watch, read the log and delete are valid for gcloud's own parser."""
    for size in ("v6e-4", "v6e-16"):
        submission = compute_engine.submission(job("compute-engine", size, environment=EAST))
        assert submission.log
        assert submission.log_since
        assert isinstance(submission.start, Creations)
        deletions = [step.delete for step in submission.start.steps]
        assert deletions[-1].argv == (*submission.deletes[0].argv, "--quiet")
        logs = (submission.log, submission.log_since("2026-01-01T00:00:00Z"))
        for command in (submission.watch, *logs, *deletions):
            assert gcloud_refusal(command.argv, tmp_path) is None, command


@pytest.mark.slow
def test_notes_name_what_a_start_depends_on(tmp_path: Path) -> None:
    """Quota, commands for the case that hosts or the program are missing, and the end of a request for capacity."""
    planned_job = job(
        "compute-engine", "v6e-16", environment=EAST, options={"disk_gb": 300, "external_ips": True}
    )
    notes = compute_engine.submission(planned_job).notes
    assert any("1,200 GB of disk and 4 public IPs" in note for note in notes)
    commands = [shlex.split(note.partition(": ")[2]) for note in notes if ": gcloud " in note]
    assert [words[4 if "managed" in words else 3] for words in commands] == [
        *(
            "list-errors",
            "get-serial-port-output",
            'jsonPayload.container.metadata."tpucfg-job"="mnist-dev-v6e-16"',
        ),
    ]
    for words in commands:
        assert gcloud_refusal(words, tmp_path) is None, words
    waiting = job(
        "compute-engine", "v6e-4", environment=EAST, capacity="flex-start", trainer=BOUNDED
    )
    assert any("after 2 hours" in note for note in compute_engine.submission(waiting).notes)


def test_the_log_of_a_start_begins_with_it() -> None:
    """The hosts of two starts have nothing else that differs and is known before."""
    submission = compute_engine.submission(job("compute-engine", "v6e-16", environment=EAST))
    assert submission.log
    assert submission.log_since
    since = submission.log_since("2026-01-01T00:00:00Z")
    assert since.argv[3] == f'{submission.log.argv[3]} AND timestamp>="2026-01-01T00:00:00Z"'
    assert "--freshness=30d" in submission.log.argv
    assert "--freshness=30d" not in since.argv


def test_the_objects_are_created_in_order() -> None:
    """Policy and template precede the group, each in its own collection."""
    submission = compute_engine.submission(job("compute-engine", "v6e-16", environment=EAST))
    assert isinstance(submission.start, Creations)
    api = "https://compute.googleapis.com/compute/v1/projects/my-project"
    assert [(step.document, step.create.argv[-1]) for step in submission.start.steps] == [
        ("resourcePolicy", f"{api}/regions/us-east5/resourcePolicies"),
        ("instanceTemplate", f"{api}/regions/us-east5/instanceTemplates"),
        ("instanceGroupManager", f"{api}/zones/us-east5-a/instanceGroupManagers"),
    ]


def test_a_reused_object_has_equal_content() -> None:
    """The description of policy and template changes with their content and with `extra`, and with nothing else."""

    def contents(**changes: Any) -> list[str]:
        start = compute_engine.submission(
            job("compute-engine", "v6e-16", environment=EAST, **changes)
        ).start
        assert isinstance(start, Creations)
        return [step.content for step in start.steps]

    policy, template, group = contents()
    assert group == ""
    assert contents(trainer={"image": "r.io/i:2"})[0] == policy
    assert contents(trainer={"image": "r.io/i:2"})[1] != template
    extra = {"instanceTemplate": {"properties": {"tags": {"items": ["train"]}}}}
    assert contents(options={"extra": extra})[1] != template
    assert contents(options={"extra": extra})[0] == policy


def test_metadata_is_merged_by_its_key() -> None:
    """`extra` adds an item of metadata, and cannot replace the start-up script."""
    items = [{"key": "enable-oslogin", "value": "TRUE"}]
    extra = {"instanceTemplate": {"properties": {"metadata": {"items": items}}}}
    ((_, body),) = compiled(
        "compute-engine", "v6e-16", environment=EAST, options={"extra": extra}
    ).request_bodies
    assert [item["key"] for item in host_of(body)["metadata"]["items"]] == [
        "startup-script",
        "enable-oslogin",
    ]
    items[0]["key"] = "startup-script"
    findings = compiled(
        "compute-engine", "v6e-16", environment=EAST, options={"extra": extra}
    ).findings
    assert "TPU066" in [finding.id for finding in findings]


def test_findings_about_extra_are_at_its_line() -> None:
    """A field of an object that the API does not have is reported where the spec sets it."""
    extra = {"instanceTemplate": {"properties": {"tags": {"nonsense": 1}}}}
    result = compiled("compute-engine", "v6e-16", environment=EAST, options={"extra": extra})
    (finding,) = [finding for finding in result.findings if finding.id == "TPU070"]
    assert result.project
    path = (
        "targets",
        "compute-engine",
        "extra",
        "instanceTemplate",
        "properties",
        "tags",
        "nonsense",
    )
    assert finding.location == document(result.project.document.text).key_location(path)
    assert target_named("compute-engine") is compute_engine


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("targetSize", "instanceGroupManager.targetSize"),
        ("properties.machineType", "instanceTemplate.properties.machineType"),
    ],
)
def test_why_completes_the_path_of_a_printed_object(
    path: str,
    meant: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A field at the top of a document that `render` prints is named with its object, which `why` then explains."""
    (tmp_path / "tpucfg.yaml").write_text(
        project("compute-engine", "v6e-16", environment=EAST).document.text
    )
    monkeypatch.chdir(tmp_path)
    assert app.run(["why", path]) == 2
    assert f"help: did you mean {meant}?" in capsys.readouterr().err
    assert app.run(["why", meant]) == 0


@pytest.mark.parametrize(
    "path", ["metadata.items.startup-script", "metadata.items[0]", "metadata.items.0"]
)
def test_why_finds_metadata_by_its_key(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script has the name that `extra` and comparisons give it; an unknown name is answered with all names."""
    (tmp_path / "tpucfg.yaml").write_text(project("compute-engine", "v6e-4").document.text)
    monkeypatch.chdir(tmp_path)
    assert app.run(["why", f"instance.{path}"]) == 0
    assert (
        "instance.metadata.items[0].value: a script that runs trainer.image"
        in capsys.readouterr().out
    )
    assert app.run(["why", "instance.metadata.items.script"]) != 0
    assert "startup-script" in capsys.readouterr().err


def test_sizes_that_the_option_target_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--target`, an edit of the spec's target would change nothing."""
    path = tmp_path / "tpucfg.yaml"
    path.write_text(project("cloud-tpu", "v5litepod-16").document.text)
    assert app.run(["check", "--spec", str(path), "--target", "compute-engine"]) == 1
    assert (
        "help: give --target one that supports it (vertex-ai, cloud-tpu, gke), or replace"
        in capsys.readouterr().out
    )
