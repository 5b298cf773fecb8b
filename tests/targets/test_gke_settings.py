"""GKE: capacity, slices, mounts, restarts and secrets."""

import json
import re
from math import prod
from typing import Any

import pytest

from jobs import CATALOG, compiled, job, labels, leaves, parts
from spec_factory import compiled as spec_compiled
from spec_factory import spec
from tpucfg import schemas
from tpucfg.changes.config_diff import config_difference, redact_difference
from tpucfg.changes.facts import Scope
from tpucfg.paths import first_match
from tpucfg.plan import Job
from tpucfg.render.config import job_hash, render_config
from tpucfg.render.pipeline import config_findings, render_configs
from tpucfg.targets import gke
from tpucfg.targets.extra import merged_request_body
from tpucfg.targets.objects import combined, combined_data, companions_of, documents_of, json_value
from tpucfg.yamldoc.reader import read_text

EAST = {"region": "us-east5", "kube_context": "gke_my-project_us-east5_train"}
SLICE = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
    "cloud.google.com/gke-tpu-topology": "4x4",
}
SECRETS = {"HF_TOKEN": "hf/3", "WANDB_API_KEY": "projects/shared/secrets/wandb/versions/7"}


def v6e(size: str = "v6e-16", **changes: Any) -> Job:
    """Return a job in us-east5."""
    return job("gke", size, environment=EAST, **changes)


@pytest.mark.parametrize(
    ("capacity", "labels"),
    [
        ("on-demand", {}),
        ("spot", {"cloud.google.com/gke-spot": "true"}),
        (
            "flex-start",
            {
                "cloud.google.com/gke-flex-start": "true",
                "cloud.google.com/gke-max-run-duration-seconds": "7200",
            },
        ),
        (
            {"reservation": "mine"},
            {
                "cloud.google.com/reservation-name": "mine",
                "cloud.google.com/reservation-affinity": "specific",
            },
        ),
        (
            {"reservation": "projects/shared/reservations/mine"},
            {
                "cloud.google.com/reservation-name": "mine",
                "cloud.google.com/reservation-project": "shared",
                "cloud.google.com/reservation-affinity": "specific",
            },
        ),
    ],
)
def test_a_capacity_selects_its_nodes(capacity: Any, labels: dict[str, str]) -> None:
    """Each capacity is labels of nodes, beside those of the slice, and tolerates the taints of its nodes."""
    body = gke.request_body(v6e(capacity=capacity, trainer={"max_run_duration": "2h"}))
    _, pod = parts(body)
    assert pod["nodeSelector"] == SLICE | labels
    taints = [toleration["key"] for toleration in pod["tolerations"]]
    own = [key for key in labels if key.endswith(("gke-spot", "reservation-name"))]
    assert taints == [
        "google.com/tpu",
        *own,
        *(["cloud.google.com/gke-provisioning"] if capacity == "spot" else []),
    ]


def test_a_compute_class_selects_nodes_without_a_capacity() -> None:
    """A compute class is one more label, and the class itself orders the capacities."""
    _, pod = parts(gke.request_body(v6e(options={"compute_class": "tpu-v6e"})))
    assert pod["nodeSelector"] == SLICE | {"cloud.google.com/compute-class": "tpu-v6e"}


@pytest.mark.parametrize(
    ("sizes", "slices", "hosts"),
    [("v6e-16", 1, 4), ("v6e-16x2", 2, 4), ("v6e-256x3", 3, 64), ("v5p-32x12", 12, 4)],
)
def test_each_slice_is_a_job_on_a_node_pool_of_its_own(sizes: str, slices: int, hosts: int) -> None:
    """Replicas are slices, pods of a replica are hosts of one slice, and no two replicas share a node pool."""
    body = gke.request_body(v6e(sizes))
    (replicated,) = body["spec"]["replicatedJobs"]
    job_spec, pod = parts(body)
    assert (replicated["replicas"], job_spec["parallelism"], job_spec["completions"]) == (
        slices,
        hosts,
        hosts,
    )
    assert body["metadata"]["annotations"] == {
        "alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"
    }
    assert list(gke.rules(body, CATALOG)) == []
    assert "env" not in pod["containers"][0], (
        "GKE sets the variables by which slices find each other"
    )


def test_mounts_are_ephemeral_volumes() -> None:
    """A mount is a volume of the CSI driver: a folder of a bucket is the only one shown, and /dev/shm stays."""
    job_ = v6e(trainer={"mounts": {"/data": "${bucket}/data/${size}/", "/ckpt": "gs://other"}})
    job_spec, pod = parts(gke.request_body(job_))
    assert job_spec["template"]["metadata"] == {
        "labels": labels("v6e-16"),
        "annotations": {
            "gke-gcsfuse/volumes": "true",
            "gke-gcsfuse/cpu-limit": "0",
            "gke-gcsfuse/memory-limit": "0",
            "gke-gcsfuse/ephemeral-storage-limit": "0",
        },
    }
    assert [(volume["name"], volume.get("csi")) for volume in pod["volumes"]] == [
        ("shm", None),
        (
            "mount-ckpt",
            {
                "driver": "gcsfuse.csi.storage.gke.io",
                "volumeAttributes": {"bucketName": "other", "mountOptions": "implicit-dirs"},
            },
        ),
        (
            "mount-data",
            {
                "driver": "gcsfuse.csi.storage.gke.io",
                "volumeAttributes": {
                    "bucketName": "my-bucket",
                    "mountOptions": "implicit-dirs,only-dir=data/v6e-16",
                },
            },
        ),
    ]
    assert pod["containers"][0]["volumeMounts"] == [
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - the pod's, not this machine's
        {"name": "mount-ckpt", "mountPath": "/ckpt"},
        {"name": "mount-data", "mountPath": "/data"},
    ]


def test_pods_on_the_network_of_their_hosts() -> None:
    """The pods resolve the cluster's names, and mounts keep the account of the pod; by default nothing is written."""
    options = {"host_network": True}
    body = gke.request_body(v6e(options=options, trainer={"mounts": {"/data": "gs://other"}}))
    _, pod = parts(body)
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert pod["volumes"][1]["csi"]["volumeAttributes"]["hostNetworkPodKSA"] == "true"
    notes = gke.submission(v6e(options=options)).notes
    assert any("acts as the account of the nodes" in note for note in notes)
    default = v6e(trainer={"mounts": {"/data": "gs://other"}})
    off = v6e(trainer={"mounts": {"/data": "gs://other"}}, options={"host_network": False})
    assert not {"hostNetwork", "dnsPolicy"} & {*parts(gke.request_body(default))[1]}
    assert gke.request_body(off) == gke.request_body(default)
    assert not any(
        "acts as the account of the nodes" in note for note in gke.submission(default).notes
    )


@pytest.mark.parametrize(
    ("options", "account"),
    [({}, "of the stack"), ({"service_account": "trainer"}, "of the service_account trainer")],
)
def test_a_program_on_the_network_of_its_host_has_the_account_of_the_nodes(
    options: dict[str, str], account: str
) -> None:
    """One warning for all sizes that share the setting names the account that the program does not get."""
    used, unused = (
        compiled(
            "gke", "v6e-16", "v6e-32", environment=EAST, options={**options, "host_network": value}
        ).findings
        for value in (True, False)
    )
    (finding,) = [each for each in used if each.id == "TPU122"]
    assert account in finding.message
    assert not [each for each in unused if each.id == "TPU122"]


def test_volumes_have_names_of_their_own() -> None:
    """A further mount renames no other, and paths that look alike get different names, all of them DNS labels."""
    paths = ["/a/b", "/a-b-3", "/a.b", "/A_b", "/_", "/" + "x" * 199, "/data"]
    few, many = (
        [
            volume["name"]
            for volume in parts(
                gke.request_body(v6e(trainer={"mounts": dict.fromkeys(each, "gs://abc")}))
            )[1]["volumes"]
        ]
        for each in (["/data"], paths)
    )
    assert set(few) < set(many)
    assert len({*many}) == len(paths) + 1
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in many)


@pytest.mark.parametrize(
    ("trainer", "policy", "deadline"),
    [
        ({}, None, None),
        ({"restarts": 0}, {"maxRestarts": 0}, None),
        ({"max_run_duration": "1d"}, None, 86_400),
        ({"restarts": 0, "max_run_duration": "90s"}, {"maxRestarts": 0}, 90),
    ],
)
def test_a_job_without_restarts_has_no_rules(
    trainer: Any, policy: Any, deadline: int | None
) -> None:
    """Without restarts, nothing starts the job again: unset has no policy at all, and 0 has one without rules."""
    body = gke.request_body(v6e(trainer=trainer))
    job_spec, _ = parts(body)
    assert body["spec"].get("failurePolicy") == policy
    assert job_spec.get("activeDeadlineSeconds") == deadline
    assert "podFailurePolicy" not in job_spec


def test_restarts_tell_disruptions_and_deadlines_apart() -> None:
    """A lost node restarts the set without counting, the deadline ends it, and any other failure counts."""
    body = gke.request_body(v6e(trainer={"restarts": 3, "max_run_duration": "12h"}))
    job_spec, pod = parts(body)
    disruption, deadline = body["spec"]["failurePolicy"]["rules"]
    assert body["spec"]["failurePolicy"]["maxRestarts"] == 3
    assert disruption == {
        "name": "disruption",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": ["condition DisruptionTarget"],
    }
    assert deadline == {
        "name": "deadline",
        "action": "FailJobSet",
        "onJobFailureReasons": ["DeadlineExceeded"],
    }
    assert job_spec["podFailurePolicy"] == {
        "rules": [
            {
                "action": "FailJob",
                "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
            }
        ]
    }
    assert (job_spec["activeDeadlineSeconds"], job_spec["backoffLimit"]) == (43_200, 0)
    assert pod["restartPolicy"] == "Never"
    assert body["metadata"]["labels"] == labels("v6e-16")


def test_a_queue_bounds_all_attempts_together() -> None:
    """Kueue stops a workload after the time of all its attempts, so a queued job is bounded as a whole."""
    body = gke.request_body(
        v6e(trainer={"restarts": 3, "max_run_duration": "12h"}, options={"queue": "tpu"})
    )
    assert body["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] == "43200"


def test_secrets_are_copied_by_reference() -> None:
    """The class has the versions in Secret Manager, the sync the keys, and the pod refers to both by the job's name."""
    job_ = v6e(
        trainer={"secrets": SECRETS, "env": {"A": "1"}}, options={"namespace": "training"}, run="a1"
    )
    provider_class, sync = gke.companions(job_)
    metadata = {
        "name": "mnist-dev-v6e-16-a1",
        "namespace": "training",
        "labels": labels("v6e-16", "a1"),
    }
    assert provider_class == {
        "apiVersion": "secrets-store.csi.x-k8s.io/v1",
        "kind": "SecretProviderClass",
        "metadata": metadata,
        "spec": {
            "provider": "gke",
            "parameters": {
                "secrets": '- resourceName: "projects/my-project/secrets/hf/versions/3"\n'
                '  path: "HF_TOKEN"\n'
                '- resourceName: "projects/shared/secrets/wandb/versions/7"\n'
                '  path: "WANDB_API_KEY"\n'
            },
        },
    }
    assert (sync["apiVersion"], sync["kind"], sync["metadata"]) == (
        "secret-sync.gke.io/v1",
        "SecretSync",
        metadata,
    )
    assert sync["spec"] == {
        "serviceAccountName": "tpu-mnist-dev",
        "secretProviderClassName": "mnist-dev-v6e-16-a1",
        "secretObject": {
            "type": "Opaque",
            "data": [
                {"sourcePath": name, "targetKey": name} for name in ("HF_TOKEN", "WANDB_API_KEY")
            ],
        },
    }
    _, pod = parts(gke.request_body(job_))
    assert pod["containers"][0]["env"] == [
        {"name": "A", "value": "1"},
        *(
            {
                "name": name,
                "valueFrom": {"secretKeyRef": {"name": "mnist-dev-v6e-16-a1", "key": name}},
            }
            for name in ("HF_TOKEN", "WANDB_API_KEY")
        ),
    ]


def test_the_list_of_secrets_is_the_drivers_yaml() -> None:
    """The text that the driver parses has each secret's version and path, as YAML of its own."""
    provider_class, _ = gke.companions(v6e(trainer={"secrets": SECRETS}))
    listed = read_text(provider_class["spec"]["parameters"]["secrets"], "secrets").data
    assert listed == [
        {"resourceName": "projects/my-project/secrets/hf/versions/3", "path": "HF_TOKEN"},
        {"resourceName": "projects/shared/secrets/wandb/versions/7", "path": "WANDB_API_KEY"},
    ]


def test_every_object_of_a_config_is_in_both_formats() -> None:
    """The YAML file has a document for each object, the JSON file a List of all, and both are read as the same data."""
    (config,) = render_configs(
        compiled("gke", "v6e-16", environment=EAST, trainer={"secrets": SECRETS})
    )
    objects = [*config.companions, config.request_body]
    assert [each["kind"] for each in objects] == ["SecretProviderClass", "SecretSync", "JobSet"]
    as_yaml = read_text(config.text, "config.yaml", several=True)
    as_json = read_text(
        json.dumps(json_value(config.request_body, config.companions)), "config.json", several=True
    )
    for document in (as_yaml, as_json):
        assert [part.data for part in documents_of(document)] == objects
        assert config_findings(document, "gke", CATALOG) == ()
    assert combined_data(as_yaml) == combined_data(as_json)
    assert as_json.data["kind"] == "List"


def test_a_config_without_secrets_is_one_object() -> None:
    """Without secrets, YAML and JSON have the JobSet alone."""
    (config,) = render_configs(compiled("gke", "v6e-16", environment=EAST))
    assert config.companions == ()
    assert json_value(config.request_body, config.companions) == config.request_body
    assert "---" not in config.text


def test_the_hash_covers_the_companions() -> None:
    """Another version of a secret changes the hash, although the JobSet is equal."""
    jobs = [v6e(trainer={"secrets": {"HF_TOKEN": f"hf/{version}"}}) for version in (3, 4)]
    bodies = [merged_request_body(each).body for each in jobs]
    assert bodies[0] == bodies[1]
    assert job_hash(jobs[0], bodies[0]) != job_hash(jobs[1], bodies[1])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("provider: gke", "provider: gcp", 'spec.provider is "gcp"; it takes gke'),
        (
            "secretProviderClassName:",
            "secretProviderClass:",
            "spec has no field secretProviderClass",
        ),
        (
            "kind: SecretSync",
            "kind: Service",
            'an object of the kind "Service" is not checked as part of a config',
        ),
        ("replicatedJobs:", "replicatedJob:", "spec has no field replicatedJob"),
        ("apiVersion: secret-sync.gke.io/v1", "apiVersion: secret-sync.gke.io/v2", "apiVersion"),
    ],
)
def test_a_mistake_in_any_document_of_a_config_is_located(
    old: str, new: str, expected: str
) -> None:
    """Each document of a file is checked, and a finding has the line in the file."""
    (config,) = render_configs(
        compiled("gke", "v6e-16", environment=EAST, trainer={"secrets": SECRETS})
    )
    text = config.text.replace(old, new)
    findings = config_findings(read_text(text, "config.yaml", several=True), "gke", CATALOG)
    assert any(expected in finding.message for finding in findings), findings
    lines = {text[: text.index(new)].count("\n") + 1}
    assert lines & {finding.location.line for finding in findings}


def test_no_object_of_a_file_is_lost_in_a_comparison() -> None:
    """Several objects of one kind, and documents that are no mappings, are all in the compared data."""
    first, second = (
        "kind: SecretSync\nmetadata: {name: a}\n",
        "kind: SecretSync\nmetadata: {name: b}\n",
    )
    texts = [
        f"{first}---\n{second}---\nkind: JobSet\n",
        f"{first}---\n- 1\n---\nkind: JobSet\n",
        f"{first}---\n- 1\n",
    ]
    data = [combined_data(read_text(text, "config.yaml", several=True)) for text in texts]
    for each, values in zip(data, (("a", "b"), ("a", "1"), ("a", "1")), strict=True):
        assert all(f"'{value}'" in repr(each) or f"[{value}]" in repr(each) for value in values)


def test_a_difference_names_the_version_of_a_secret() -> None:
    """The reference to a secret is no secret: a comparison shows the version before and after."""
    before, after = (
        combined(gke.request_body(each), gke.companions(each))
        for each in (v6e(trainer={"secrets": {"HF_TOKEN": f"hf/{version}"}}) for version in (3, 4))
    )
    key = Scope("dev", "v6e-16")
    difference = redact_difference(config_difference({key: before}, {key: after}))
    ((change,),) = [group.changes for group in difference.groups]
    assert change.path == (
        "companions",
        "SecretProviderClass",
        "spec",
        "parameters",
        "secrets",
        "HF_TOKEN",
    )
    assert (change.before, change.after) == (
        "projects/my-project/secrets/hf/versions/3",
        "projects/my-project/secrets/hf/versions/4",
    )


def test_the_schemas_of_the_companions_are_closed() -> None:
    """The objects fit their schemas, and a field that is not in them is refused."""
    for companion in companions_of(v6e(trainer={"secrets": SECRETS})):
        schema = gke.COMPANION_SCHEMAS[companion["kind"]]
        assert schemas.is_valid(schema, companion)
        assert not schemas.is_valid(schema, companion | {"data": {"HF_TOKEN": "value"}})


def test_a_lost_companion_is_found() -> None:
    """A text that lacks one of the job's objects differs from the job."""
    from tpucfg.render.config import round_trip_finding

    job_ = v6e(trainer={"secrets": SECRETS})
    config = render_config(job_, merged_request_body(job_).body)
    assert round_trip_finding(config) is None
    _, _, rest = config.text.partition("---\n")
    assert round_trip_finding(config._replace(text=rest)) is not None
    assert (
        round_trip_finding(config._replace(text=config.text.replace("versions/7", "versions/8")))
        is not None
    )


def test_delete_removes_every_object() -> None:
    """The JobSet, the sync and the class are deleted by a command each; GKE deletes the secret itself."""
    submission = gke.submission(v6e(trainer={"secrets": SECRETS}))
    assert [command.argv[3:] for command in submission.deletes] == [
        ("delete", "jobset/mnist-dev-v6e-16"),
        ("delete", "secretsyncs.secret-sync.gke.io/mnist-dev-v6e-16"),
        ("delete", "secretproviderclasses.secrets-store.csi.x-k8s.io/mnist-dev-v6e-16"),
    ]


def test_a_compute_class_excludes_a_capacity() -> None:
    """A capacity beside a compute class is one error, whatever layer has it."""
    findings = compiled(
        "gke",
        "v6e-16",
        "v6e-32",
        environment=EAST | {"capacity": "spot"},
        options={"compute_class": "tpu-v6e"},
    ).findings
    (error,) = [finding for finding in findings if finding.level == "error"]
    assert error.id == "TPU054"
    assert error.message.startswith(
        "targets.gke.compute_class and environments.dev.capacity exclude each other"
    )
    assert error.help == "delete environments.dev.capacity, or the compute class"


def tpu7x(size: str, **changes: Any) -> Job:
    """Return a job on TPU7x."""
    return job("gke", size, environment={"region": "us-central1"}, **changes)


def test_a_machine_that_only_its_name_provides_is_selected_by_name() -> None:
    """tpu7x-ultranet-4t has the labels of another machine, so a pod names it; without an override, none does."""
    size = "tpu7x-32"
    body = gke.request_body(tpu7x(size, overrides={size: {"machine": "tpu7x-ultranet-4t"}}))
    job_spec, pod = parts(body)
    assert pod["nodeSelector"]["node.kubernetes.io/instance-type"] == "tpu7x-ultranet-4t"
    assert job_spec["parallelism"] == 4
    assert list(gke.rules(body, CATALOG)) == []
    _, plain = parts(gke.request_body(tpu7x(size)))
    assert "node.kubernetes.io/instance-type" not in plain["nodeSelector"]


def test_a_rung_may_have_another_topology() -> None:
    """An override chooses among the topologies of a number of chips; hosts, and all figures, stay equal."""
    size = "tpu7x-1024"
    default, other = (
        tpu7x(size, **({"overrides": {size: {"topology": shape}}} if shape else {}))
        for shape in ("", "4x4x32")
    )
    assert (default.slice.topology, other.slice.topology) == ("8x8x8", "4x4x32")
    assert default.slice._replace(topology="4x4x32") == other.slice
    body = gke.request_body(other)
    _, pod = parts(body)
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "4x4x32"
    assert list(gke.rules(body, CATALOG)) == []


def test_several_slices_may_have_another_topology() -> None:
    """The topology of an override is that of each slice."""
    size = "tpu7x-512x2"
    body = gke.request_body(tpu7x(size, overrides={size: {"topology": "4x4x16"}}))
    job_spec, pod = parts(body)
    assert (job_spec["parallelism"], body["spec"]["replicatedJobs"][0]["replicas"]) == (64, 2)
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "4x4x16"
    assert list(gke.rules(body, CATALOG)) == []


def test_a_topology_of_other_chips_is_an_error() -> None:
    """The error has every topology that the chips can form."""
    size = "tpu7x-1024"
    findings = compiled(
        "gke", size, environment={"region": "us-central1"}, overrides={size: {"topology": "4x4x4"}}
    ).findings
    (error,) = [finding for finding in findings if finding.level == "error"]
    assert error.id == "TPU026"
    assert error.message.endswith(
        "cannot have the topology 4x4x4: its chips form 8x8x8, 4x8x16 or 4x4x32"
    )
    assert error.help == "set overrides.tpu7x-1024.topology to 8x8x8, 4x8x16 or 4x4x32"


def test_every_topology_has_the_chips_of_its_size() -> None:
    """The product of each topology's sides is the number of chips, and the default is the first one."""
    for slice_ in CATALOG.all():
        assert slice_.topologies[:1] == ((slice_.topology,) if slice_.topology else ())
        for topology in slice_.topologies:
            assert prod(map(int, topology.split("x"))) == slice_.chips
    shapes = sum(len(slice_.topologies) for slice_ in CATALOG.all() if slice_.generation == "tpu7x")
    assert shapes == 321


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({}, ["p has one topology, and tpu7x-64 needs 2x4x4, tpu7x-128 needs 4x4x4"]),
        ({"tpu7x-128": "p-4x4x4"}, []),
        ({"tpu7x-128": None}, []),
    ],
)
def test_sizes_of_several_topologies_need_several_policies(
    policies: dict[str, Any], expected: list[str]
) -> None:
    """One policy for two topologies is an error, which a policy or a null of the size's override removes."""
    overrides = {
        size: {"targets": {"gke": {"placement_policy": policy}}}
        for size, policy in policies.items()
    }
    changes: dict[str, Any] = {"overrides": overrides} if overrides else {}
    changes["environment"] = {"region": "us-central1"}
    findings = compiled(
        "gke", "tpu7x-64", "tpu7x-128", options={"placement_policy": "p"}, **changes
    ).findings
    assert [finding.message for finding in findings if finding.id == "TPU007"] == expected


def test_a_placement_policy_selects_its_nodes() -> None:
    """The workload policy of TPU7x node pools is one more label."""
    _, pod = parts(
        gke.request_body(tpu7x("tpu7x-128", options={"placement_policy": "tpu7x-4x4x4"}))
    )
    assert pod["nodeSelector"]["cloud.google.com/placement-policy-name"] == "tpu7x-4x4x4"


@pytest.mark.parametrize(
    ("size", "annotations", "selector"),
    [
        (
            "v6e-16",
            {
                "cloud.google.com/gke-tpu-slice-topology": "4x4",
                "kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gke-tpu-slice-4x4-id",
            },
            {
                "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
                "node.kubernetes.io/instance-type": "ct6e-standard-4t",
            },
        ),
        (
            "v6e-16x3",
            {
                "cloud.google.com/gke-tpu-slice-topology": "4x4",
                "kueue.x-k8s.io/podset-slice-required-topology": "cloud.google.com/gke-tpu-slice-4x4-id",
                "kueue.x-k8s.io/podset-slice-size": "4",
            },
            {
                "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
                "node.kubernetes.io/instance-type": "ct6e-standard-4t",
            },
        ),
        (
            "tpu7x-512",
            {"cloud.google.com/gke-tpu-slice-topology": "4x8x8"},
            {"cloud.google.com/gke-tpu-accelerator": "tpu7x"},
        ),
    ],
)
def test_a_queue_places_slices_by_topology(size: str, annotations: Any, selector: Any) -> None:
    """Pods ask Kueue for a domain, select no topology, and take no node pool for themselves."""
    options = {"queue": "tpu", "topology_aware": True}
    body = gke.request_body(tpu7x(size, options=options))
    job_spec, pod = parts(body)
    assert job_spec["template"]["metadata"]["annotations"] == annotations
    assert pod["nodeSelector"] == selector
    assert "annotations" not in body["metadata"]
    assert schemas.is_valid("gke", body)


def test_the_queue_of_the_namespace_places_slices_too() -> None:
    """Without a queue's name, the pods are the same and no label names one; a warning has the condition."""
    named, unnamed = ({"queue": "tpu", "topology_aware": True}, {"topology_aware": True})
    body = gke.request_body(tpu7x("tpu7x-512", options=unnamed))
    assert parts(body) == parts(gke.request_body(tpu7x("tpu7x-512", options=named)))
    assert not [label for label in body["metadata"]["labels"] if "kueue" in label]
    findings = compiled("gke", "v6e-16", "v6e-32", environment=EAST, options=unnamed).findings
    assert [finding.id for finding in findings].count("TPU134") == 1


@pytest.mark.parametrize(
    ("size", "options", "expected"),
    [
        (
            "v5p-32",
            {"topology_aware": True, "queue": "q"},
            "TPU024 no queue places v5p-32 by topology",
        ),
        (
            "v6e-1",
            {"topology_aware": True, "queue": "q"},
            "TPU024 no queue places v6e-1 by topology",
        ),
        (
            "tpu7x-32",
            {"topology_aware": True, "queue": "q"},
            "TPU024 no queue places tpu7x-32 by topology",
        ),
        ("v5p-32", {"topology_aware": False, "queue": "q"}, None),
    ],
)
def test_sizes_that_no_queue_can_place_are_errors(
    size: str, options: Any, expected: str | None
) -> None:
    """A topology-aware queue needs a size that is a part of something larger."""
    findings = compiled("gke", size, environment=EAST, options=options).findings
    errors = [f"{finding.id} {finding.message}" for finding in findings if finding.level == "error"]
    errors = [error for error in errors if not error.startswith("TPU021")]
    assert len(errors) == (1 if expected else 0)
    assert all(error.startswith(str(expected)) for error in errors)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        # The schema of the spec refuses commas, blanks and a missing bucket for every target.
        ("/data", "gs://bucket/a:b"),
        ("/data", "gs://bucket/../other"),
        ("/data", "gs://bucket//a"),
        ("/data", "gs://Bucket"),
        ("/dev/shm", "${bucket}"),  # noqa: S108 - the pod's, not this machine's
    ],
)
def test_a_mount_cannot_change_other_options(path: str, source: str) -> None:
    """A folder that is none, or a mount point that is taken, is one error at the mount."""
    findings = compiled(
        "gke", "v6e-16", "v6e-32", environment=EAST, trainer={"mounts": {path: source}}
    ).findings
    errors = [finding for finding in findings if finding.level == "error"]
    assert len(errors) == 1
    assert f"cannot be mounted at {path}" in errors[0].message or "mounts" in errors[0].message


def test_only_some_exit_codes_are_worth_a_restart() -> None:
    """Other exit codes end the set, after the rule by which a disruption restarts it whatever the exit code."""
    restarts = {"times": 3, "exit_codes": ["127-130", 42, 128]}
    body, plain = (
        gke.request_body(v6e(trainer={"restarts": value, "max_run_duration": "12h"}))
        for value in (restarts, 3)
    )
    policy, expected = body["spec"]["failurePolicy"], plain["spec"]["failurePolicy"]
    assert policy["maxRestarts"] == 3
    disruption, codes, deadline = policy["rules"]
    assert [disruption, deadline] == expected["rules"]
    assert codes == {
        "name": "exitCode",
        "action": "FailJobSet",
        "onJobFailureReasons": ["PodFailurePolicy"],
    }
    on_disruption, on_exit = parts(body)[0]["podFailurePolicy"]["rules"]
    assert [on_disruption] == parts(plain)[0]["podFailurePolicy"]["rules"]
    requirement = {
        "containerName": "trainer",
        "operator": "NotIn",
        "values": [42, 127, 128, 129, 130],
    }
    assert on_exit == {"action": "FailJob", "onExitCodes": requirement}
    assert schemas.is_valid("gke", body)
    assert list(gke.rules(body, CATALOG)) == []


def test_exit_codes_without_restarts_are_a_policy_that_ends_the_job() -> None:
    """With 0 restarts, the exit codes still decide the reason with which the JobSet fails, as in the jobs of xpk."""
    body = gke.request_body(v6e(trainer={"restarts": {"times": 0, "exit_codes": [42, "127-255"]}}))
    child, _ = parts(body)
    assert body["spec"]["failurePolicy"]["maxRestarts"] == 0
    assert [rule["action"] for rule in body["spec"]["failurePolicy"]["rules"]] == ["FailJobSet"]
    (rule,) = child["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["values"] == [42, *range(127, 256)]


def test_exit_codes_are_not_more_than_kubernetes_takes() -> None:
    """Kubernetes takes up to 255 values, and never 0."""
    body = gke.request_body(v6e(trainer={"restarts": {"times": 1, "exit_codes": ["1-255"]}}))
    on_exit = parts(body)[0]["podFailurePolicy"]["rules"][1]["onExitCodes"]
    assert on_exit["values"] == [*range(1, 256)]


@pytest.mark.parametrize(
    "source", ["${bucket}", "${bucket}/a/${size}", "gs://b.example.com/a-b/c_d.e/", "gs://abc"]
)
def test_a_bucket_and_a_folder_of_it_can_be_mounted(source: str) -> None:
    """Buckets, folders and placeholders are accepted."""
    findings = compiled(
        "gke", "v6e-16", environment=EAST, trainer={"mounts": {"/data": source}}
    ).findings
    assert [finding for finding in findings if finding.level == "error"] == []


def test_a_variable_and_a_secret_of_one_name_are_an_error() -> None:
    """Kubernetes would take one of the two without a word."""
    trainer = {"env": {"MODE": "fast"}, "secrets": {"MODE": "mode/1"}}
    findings = compiled("gke", "v6e-16", environment=EAST, trainer=trainer).findings
    assert any("MODE" in finding.message and finding.level == "error" for finding in findings)


def test_a_duration_beyond_kueues_field_is_an_error() -> None:
    """The number of seconds has to fit into 32 bits, where Kueue bounds the job."""
    trainer = {"max_run_duration": "99999999d"}
    findings = compiled(
        "gke", "v6e-16", environment=EAST, trainer=trainer, options={"queue": "tpu"}
    ).findings
    (error,) = [finding for finding in findings if finding.level == "error"]
    assert "is not a number of seconds from 1 to 2,147,483,647" in error.message


@pytest.mark.parametrize("capacity", ["on-demand", "spot", "flex-start", {"reservation": "mine"}])
@pytest.mark.parametrize("size", ["v6e-1", "v6e-16", "v6e-16x2", "tpu7x-512", "tpu7x-512x3"])
@pytest.mark.parametrize("aware", [True, False])
def test_every_field_has_an_origin(capacity: Any, size: str, aware: bool) -> None:
    """Whatever is set, each written field has an origin, which names a setting of the spec or a rule."""
    options: dict[str, Any] = {
        "queue": "q",
        "priority": "high",
        "image_pull_secrets": ["r"],
        "placement_policy": "p",
    }
    options |= {"topology_aware": aware, "host_network": True}
    restarts = {"times": 2, "exit_codes": [42]} if aware else 2
    trainer = {
        "secrets": SECRETS,
        "mounts": {"/data": "${bucket}"},
        "restarts": restarts,
        "max_run_duration": "2h",
    }
    job_ = tpu7x(size, options=options, capacity=capacity, trainer=trainer)
    whole = combined(gke.request_body(job_), gke.companions(job_))
    assert [path for path in leaves(whole) if first_match(gke.ORIGINS.items(), path) is None] == []
    assert list(gke.rules(gke.request_body(job_), CATALOG)) == []


@pytest.mark.parametrize(
    ("options", "seconds"), [({}, 43200), ({"ttl": "1h"}, 3600), ({"ttl": None}, None)]
)
def test_a_job_that_has_ended_is_deleted(options: dict[str, Any], seconds: int | None) -> None:
    """After 12 hours, or after the time of `ttl`, and never with null."""
    assert gke.request_body(v6e(options=options))["spec"].get("ttlSecondsAfterFinished") == seconds


def test_two_containers_share_the_chips_of_a_host() -> None:
    """On TPU7x each container has the chips of a NUMA node, and the exit codes of both count."""
    job_ = job(
        "gke",
        "tpu7x-16",
        environment={"region": "us-central1"},
        options={"containers_per_host": 2},
        trainer={"restarts": {"times": 1, "exit_codes": [42]}},
    )
    child, pod = parts(gke.request_body(job_))
    assert [container["name"] for container in pod["containers"]] == ["trainer-1", "trainer-2"]
    assert [container["resources"]["limits"] for container in pod["containers"]] == [
        {"google.com/tpu": 2}
    ] * 2
    assert child["parallelism"] == 2
    codes = [
        rule["onExitCodes"] for rule in child["podFailurePolicy"]["rules"] if "onExitCodes" in rule
    ]
    assert [rule["containerName"] for rule in codes] == ["trainer-1", "trainer-2"]


@pytest.mark.parametrize(
    ("sizes", "hint"),
    [
        (["v6e-16", "v6e-64"], "delete targets.gke.containers_per_host"),
        (
            ["v6e-16", "tpu7x-64"],
            "set environments.prod.overrides.v6e-16.targets.gke.containers_per_host to 1",
        ),
    ],
)
def test_containers_that_no_size_divides_are_deleted(sizes: list[str], hint: str) -> None:
    """The setting stays where a size of any environment has hosts that it divides."""
    environments: dict[str, Any] = {
        name: {"project": f"my-project-{name}", **EAST} for name in ("dev", "prod")
    }
    environments["dev"]["sizes"] = [sizes[1]]
    data = spec(
        target="gke",
        sizes=[sizes[0]],
        environments=environments,
        training__tuned_on=sizes[0],
        targets={"gke": {"containers_per_host": 2}},
    )
    findings = spec_compiled(data).findings
    assert {finding.help for finding in findings if finding.id == "TPU024"} == {hint}


@pytest.mark.parametrize("size", ["v6e-8", "v6e-8x2"])
def test_two_small_hosts_are_placed_by_topology(size: str) -> None:
    """The size is judged by the machine that its jobs run on, which on gke has 4 chips."""
    body = gke.request_body(v6e(size, options={"queue": "tpu", "topology_aware": True}))
    child, pod = parts(body)
    assert child["parallelism"] == 2
    assert pod["nodeSelector"]["node.kubernetes.io/instance-type"] == "ct6e-standard-4t"
    assert "cloud.google.com/gke-tpu-topology" not in pod["nodeSelector"]


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("HF_TOKEN", "HF_TOKEN"),
        ("A_B", "key-A-B"),
        ("HF__TOKEN", "key-HF--TOKEN"),
        ("_TOK", "key--TOK"),
        ("T", "T"),
    ],
)
def test_a_key_of_a_secret_fits_the_pattern_of_a_secret_sync(variable: str, key: str) -> None:
    """A variable whose name a SecretSync refuses has a key of another name; the program sees the variable."""
    job_ = v6e(trainer={"secrets": {variable: "hf/1"}})
    provider, sync = gke.companions(job_)
    assert f'path: "{key}"' in provider["spec"]["parameters"]["secrets"]
    assert sync["spec"]["secretObject"]["data"] == [{"sourcePath": key, "targetKey": key}]
    _, pod = parts(gke.request_body(job_))
    (item,) = [item for item in pod["containers"][0]["env"] if item["name"] == variable]
    assert item["valueFrom"]["secretKeyRef"]["key"] == key


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        ("4x4", None),
        ("4x8", "4 pods, and the slice has 8 hosts"),
        ("3x3", "tpu-v6e-slice has no topology 3x3"),
    ],
)
def test_a_topology_in_an_annotation_alone_is_checked(topology: str, message: str | None) -> None:
    """A part of a larger node pool has its topology in an annotation: its pods are one for each host of it."""
    body = gke.request_body(v6e(options={"queue": "tpu", "topology_aware": True}))
    template = body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"]["annotations"]["cloud.google.com/gke-tpu-slice-topology"] = topology
    assert [problem.message.rpartition(": ")[2] for problem in gke.rules(body, CATALOG)] == [
        message
    ][: bool(message)]
