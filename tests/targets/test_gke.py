"""Jobs on GKE: the JobSet, the origins of its fields, and the kubectl commands."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import CATALOG, IMAGE, job, labels, leaves, parts, project
from tpucfg import schemas
from tpucfg.paths import first_match
from tpucfg.targets import gke, target_named
from tpucfg.targets.commands import Command, Manifests, Submission, SubmissionError
from tpucfg.targets.gke.request import escape_dollars
from tpucfg.targets.objects import combined

CONTEXT = "gke_my-project_us-east5_train"
EAST = {"region": "us-east5", "kube_context": CONTEXT}
RESERVED = {"reservation": "projects/shared/reservations/r"}
TRAINER: dict[str, Any] = {
    "secrets": {"HF_TOKEN": "hf/3", "WANDB_API_KEY": "projects/shared/secrets/wandb/versions/7"},
    "mounts": {"/ckpt": "${bucket}", "/data": "gs://public/c4/en"},
    "restarts": 3,
    "max_run_duration": "12h",
}
"""A trainer with every setting of its surroundings."""
SUPPORTED = [slice_ for slice_ in CATALOG.all() if "gke" in slice_.targets]


def test_a_single_host_is_one_pod() -> None:
    """v6e-1 is one pod with one chip, which requires no exclusive node pool."""
    assert gke.request_body(job("gke", "v6e-1", environment=EAST)) == {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "mnist-dev-v6e-1", "namespace": "default", "labels": labels("v6e-1")},
        "spec": {
            "ttlSecondsAfterFinished": 43200,
            "replicatedJobs": [
                {
                    "name": "slice",
                    "replicas": 1,
                    "template": {
                        "spec": {
                            "parallelism": 1,
                            "completions": 1,
                            "completionMode": "Indexed",
                            "backoffLimit": 0,
                            "template": {
                                "metadata": {"labels": labels("v6e-1")},
                                "spec": {
                                    "serviceAccountName": "tpu-mnist-dev",
                                    "restartPolicy": "Never",
                                    "nodeSelector": {
                                        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
                                        "cloud.google.com/gke-tpu-topology": "1x1",
                                    },
                                    "tolerations": [
                                        {
                                            "key": "google.com/tpu",
                                            "operator": "Exists",
                                            "effect": "NoSchedule",
                                        }
                                    ],
                                    "containers": [
                                        {
                                            "name": "trainer",
                                            "image": IMAGE,
                                            "args": ["--batch_size=8", "--train_steps=1000"],
                                            "resources": {
                                                "requests": {"google.com/tpu": 1},
                                                "limits": {"google.com/tpu": 1},
                                            },
                                            "volumeMounts": [
                                                {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108
                                            ],
                                        }
                                    ],
                                    "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
                                },
                            },
                        }
                    },
                }
            ],
        },
    }


def test_every_option_is_a_field() -> None:
    """Queue, priority, labels, namespace, account, pull secrets, variables and run id are in Kubernetes' fields."""
    body = gke.request_body(
        job(
            "gke",
            "v6e-16",
            run="a1",
            environment=EAST | {"labels": {"team": "vision", "note": ""}},
            options={
                "queue": "tpu",
                "priority": "high",
                "namespace": "training",
                "service_account": "trainer",
                "image_pull_secrets": ["registry", "mirror"],
            },
            trainer={
                "env": {"A": "1"},
                "xla_flags": {"v6e": ["--x=true", "--y=1"], "v5p": ["--z=1"]},
            },
        )
    )
    job_spec, pod = parts(body)
    own = {**labels("v6e-16", "a1"), "team": "vision", "note": ""}
    assert job_spec["template"]["metadata"] == {"labels": own}, (
        "GKE's cost allocation reads the labels of pods"
    )
    assert body["metadata"] == {
        "name": "mnist-dev-v6e-16-a1",
        "namespace": "training",
        "labels": {**own, "kueue.x-k8s.io/queue-name": "tpu"},
        "annotations": {
            "alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"
        },
    }
    assert (job_spec["parallelism"], job_spec["completions"]) == (4, 4)
    assert pod["serviceAccountName"] == "trainer"
    assert pod["priorityClassName"] == "high"
    assert pod["imagePullSecrets"] == [{"name": "registry"}, {"name": "mirror"}]
    assert pod["containers"][0]["env"] == [
        {"name": "A", "value": "1"},
        {"name": "LIBTPU_INIT_ARGS", "value": "--x=true --y=1"},
    ]


@pytest.mark.parametrize(
    ("size", "region", "label", "topology", "hosts", "chips"),
    [
        ("v3-8", "us-central1", "tpu-v3-device", "2x2", 1, 4),
        ("v3-32", "europe-west4", "tpu-v3-slice", "4x4", 4, 4),
        ("v4-32", "us-central2", "tpu-v4-podslice", "2x2x4", 4, 4),
        ("v5litepod-8", "us-west4", "tpu-v5-lite-podslice", "2x4", 2, 4),
        ("v5litepod-16", "us-west4", "tpu-v5-lite-podslice", "4x4", 4, 4),
        ("v5p-32", "us-east5", "tpu-v5p-slice", "2x2x4", 4, 4),
        ("v6e-256", "us-east5", "tpu-v6e-slice", "16x16", 64, 4),
        ("tpu7x-8", "us-central1", "tpu7x", "2x2x1", 1, 4),
        ("tpu7x-32", "us-central1", "tpu7x", "2x2x4", 4, 4),
    ],
)
def test_a_slice_has_one_pod_per_host(
    size: str, region: str, label: str, topology: str, hosts: int, chips: int
) -> None:
    """The node selector has label and topology, and each pod requests all chips of its host."""
    body = gke.request_body(job("gke", size, environment={"region": region}))
    job_spec, pod = parts(body)
    selector = pod["nodeSelector"]
    assert selector == {
        "cloud.google.com/gke-tpu-accelerator": label,
        "cloud.google.com/gke-tpu-topology": topology,
    }
    assert (job_spec["parallelism"], job_spec["completions"]) == (hosts, hosts)
    assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": chips}
    assert ("annotations" in body["metadata"]) == (hosts > 1)


@pytest.mark.parametrize(
    ("size", "machine", "hosts", "chips", "pinned"),
    [
        ("v5litepod-8", "ct5lp-hightpu-8t", 1, 8, None),
        ("v5litepod-8", "ct5lp-hightpu-4t", 2, 4, "ct5lp-hightpu-4t"),
        ("v6e-8", "ct6e-standard-8t", 1, 8, None),
        ("v6e-8", "ct6e-standard-4t", 2, 4, "ct6e-standard-4t"),
    ],
)
def test_a_2x4_slice_on_small_hosts_names_the_machine(
    size: str, machine: str, hosts: int, chips: int, pinned: str | None
) -> None:
    """Two small hosts need their machine type, as their pods would fit on one large host too."""
    body = gke.request_body(
        job("gke", size, environment=EAST, overrides={size: {"machine": machine}})
    )
    job_spec, pod = parts(body)
    assert (job_spec["parallelism"], pod["containers"][0]["resources"]["limits"]) == (
        hosts,
        {"google.com/tpu": chips},
    )
    assert pod["nodeSelector"].get("node.kubernetes.io/instance-type") == pinned


def test_an_unset_capacity_excludes_nothing() -> None:
    """Without a capacity, the pod has no affinity, and only the taint of TPUs is tolerated."""
    _, pod = parts(gke.request_body(job("gke", "v6e-16", environment=EAST)))
    assert "affinity" not in pod
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["google.com/tpu"]


def test_on_demand_excludes_the_nodes_of_the_others() -> None:
    """A written on-demand excludes each label that another capacity selects, and those of pools that GKE creates."""
    job_ = job("gke", "v6e-16", environment=EAST | {"capacity": "on-demand"})
    _, pod = parts(gke.request_body(job_))
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    assert [
        item["key"] for item in term["matchExpressions"] if item["operator"] == "DoesNotExist"
    ] == [
        f"cloud.google.com/{name}"
        for name in ("gke-spot", "gke-flex-start", "gke-queued", "reservation-name")
    ]
    (provisioning,) = [item for item in term["matchExpressions"] if item["operator"] == "NotIn"]
    assert provisioning["values"] == ["spot", "preemptible", "flex-start"]
    nodes = next(
        item for item in manifests(gke.submission(job_)).requirements if item.name == "nodes"
    )
    (selector,) = [word for word in nodes.find.argv if word.startswith("--selector=")]
    assert selector.endswith(
        ",!cloud.google.com/gke-spot,!cloud.google.com/gke-flex-start,!cloud.google.com/gke-queued,"
        "!cloud.google.com/reservation-name,cloud.google.com/gke-provisioning notin (spot,preemptible,flex-start)"
    )


@pytest.mark.parametrize(
    ("capacity", "taints"),
    [
        (
            "spot",
            {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot"},
        ),
        (
            {"reservation": "projects/my-project-tpus/reservations/r"},
            {"cloud.google.com/reservation-name": "r"},
        ),
    ],
)
def test_taints_of_pools_that_gke_creates_are_tolerated(
    capacity: Any, taints: dict[str, str]
) -> None:
    """Spot and a reservation tolerate the taints of their nodes."""
    _, pod = parts(
        gke.request_body(job("gke", "v6e-16", environment=EAST | {"capacity": capacity}))
    )
    assert {item["key"]: item["value"] for item in pod["tolerations"][1:]} == taints


def test_no_pod_is_privileged_or_on_the_hosts_network() -> None:
    """No size has a privileged container, the host's network, or a folder of the host."""
    for slice_ in SUPPORTED:
        _, pod = parts(gke.request_body(job("gke", slice_.size)))
        assert "hostNetwork" not in pod
        assert "securityContext" not in pod["containers"][0]
        assert [volume for volume in pod["volumes"] if "hostPath" in volume] == []


@pytest.mark.slow
def test_every_size_fits_schema_and_rules() -> None:
    """The request body for every size and machine is valid for schema and rules, and each field has an origin."""
    assert {slice_.generation for slice_ in SUPPORTED} == {"v3", "v4", "v5e", "v5p", "v6e", "tpu7x"}
    for slice_ in SUPPORTED:
        for machine in slice_.machines:
            override = {slice_.size: {"machine": machine.name}}
            labels = {"labels": {"team": "vision"}}
            settings: dict[str, Any] = {
                "options": {"queue": "q", "priority": "high"},
                "environment": labels,
                "overrides": override,
            }
            full = job("gke", slice_.size, trainer=TRAINER, capacity=RESERVED, **settings)
            body = gke.request_body(full)
            assert schemas.is_valid("gke", body)
            assert list(gke.rules(body, CATALOG)) == []
            whole = combined(body, gke.companions(full))
            assert [
                path
                for path in leaves(whole)
                if first_match(target_named("gke").ORIGINS.items(), path) is None
            ] == []


def test_keys_with_dots_have_their_own_origins() -> None:
    """The origin of the queue's label is the target's settings; that of any other label is the environment."""
    queue = first_match(
        target_named("gke").ORIGINS.items(), ("metadata", "labels", "kueue.x-k8s.io/queue-name")
    )
    team = first_match(target_named("gke").ORIGINS.items(), ("metadata", "labels", "team"))
    assert queue is not None
    assert team is not None
    assert (queue.detail, team.detail) == ("targets.gke.queue", "environments.<env>.labels")


def expanded_by_kubernetes(text: str) -> str:
    """Expand an argument as Kubernetes documents it for `$(NAME)`.

    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#entrypoint
    """
    expanded, rest = "", text
    while rest:
        if rest.startswith("$$"):
            expanded, rest = expanded + "$", rest[2:]
        elif rest.startswith("$(") and ")" in rest:
            expanded, rest = expanded + "<a variable>", rest.partition(")")[2]
        else:
            expanded, rest = expanded + rest[0], rest[1:]
    return expanded


@pytest.mark.parametrize("size", ["v5litepod-8", "v5litepod-16", "v5litepod-16x2"])
def test_numbers_are_those_of_the_column_that_explains_them(size: str) -> None:
    """`tpucfg why` names a column of the catalog, which has the number of the field, with several slices too."""
    job_ = job("gke", size, environment={"region": "us-west4"})
    body = gke.request_body(job_)
    for path in leaves(body):
        origin, value = first_match(gke.ORIGINS.items(), path), cast("Any", body)
        for step in path:
            value = value[step]
        if origin and origin.kind == "catalog" and isinstance(value, int):
            assert value == getattr(job_.slice, origin.detail), path


@given(st.text(st.sampled_from("$()Aé ")) | st.text())
def test_arguments_reach_the_container_unchanged(text: str) -> None:
    """With any dollar signs and parentheses, the container gets the value of the spec."""
    assert expanded_by_kubernetes(escape_dollars(text)) == text


def test_arguments_and_variables_are_escaped() -> None:
    """`$(X)` in a flag and in a variable is written `$$(X)`."""
    trainer = {"args": {"title": "costs $5 $(X)"}, "env": {"A": "$(B)"}}
    _, pod = parts(gke.request_body(job("gke", "v6e-1", trainer=trainer)))
    assert pod["containers"][0]["args"][0] == "--title=costs $$5 $$(X)"
    assert pod["containers"][0]["env"] == [{"name": "A", "value": "$$(B)"}]


def test_the_commands_name_context_and_namespace() -> None:
    """Every command has the environment's context, and every command without a config has the namespace."""
    submission = gke.submission(
        job("gke", "v6e-16", environment=EAST, options={"namespace": "training"})
    )
    kubectl, namespace = ("kubectl", f"--context={CONTEXT}"), "--namespace=training"
    create = manifests(submission).steps[0].create
    assert create.argv == (*kubectl, "create", "--filename=-")
    assert (create.reads_config, create.token) == (True, False)
    assert submission.watch.argv == (
        *kubectl,
        namespace,
        "get",
        "jobset/mnist-dev-v6e-16",
        "--watch",
    )
    assert [command.argv for command in submission.deletes] == [
        (*kubectl, namespace, "delete", "jobset/mnist-dev-v6e-16")
    ]
    assert submission.notes[0].endswith(
        f": kubectl --context={CONTEXT} {namespace} create serviceaccount tpu-mnist-dev"
    )
    assert (
        "annotate serviceaccount tpu-mnist-dev iam.gke.io/gcp-service-account=tpu-mnist-dev@"
        in submission.notes[1]
    )
    selector = "--selector=jobset.sigs.k8s.io/jobset-name=mnist-dev-v6e-16"
    assert submission.log
    assert submission.log.argv == (
        *kubectl,
        namespace,
        "logs",
        selector,
        "--follow",
        "--prefix",
        "--max-log-requests=4",
    )


def manifests(submission: Submission) -> Manifests:
    """Return the objects that are created."""
    assert isinstance(submission.start, Manifests)
    return submission.start


def test_without_a_context_nothing_is_submitted() -> None:
    """Without a kube_context there are no commands, and the finding is located at the environment."""
    with pytest.raises(SubmissionError) as excinfo:
        gke.submission(
            job("gke", "v6e-16", environment={"region": "us-east5", "kube_context": None})
        )
    finding = excinfo.value.problem.finding_in(project("gke", "v6e-16").document)
    assert finding.id == "TPU005"
    assert (
        finding.message
        == "dev has no cluster, and a job is never sent to the current one of kubectl instead"
    )
    assert finding.help.startswith("set environments.dev.cluster")


def test_kubectl_accepts_the_flags(tmp_path: Path) -> None:
    """The parser of kubectl accepts the flags of every command; without a cluster, the command fails afterwards."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is missing")
    submission = gke.submission(job("gke", "v6e-16", environment=EAST, trainer=TRAINER))
    start = manifests(submission)
    commands = [
        *(
            Command((*step.create.argv, "--dry-run=server", "--output=name"))
            for step in start.steps
        ),
        *(requirement.find for requirement in start.requirements),
        *(submission.watch, *submission.deletes),
        *(
            Command((*command.argv, "--ignore-not-found", "--timeout=60s"))
            for command in submission.deletes
        ),
    ]
    for command in commands:
        environment = os.environ | {"KUBECONFIG": str(tmp_path / "missing")}
        completed = subprocess.run(
            command.argv, env=environment, input="{}", capture_output=True, text=True, check=False
        )
        missing = (
            f'context "{CONTEXT}" does not exist',
            f"context was not found for specified context: {CONTEXT}",
        )
        assert completed.stderr.strip().endswith(missing)


def test_why_finds_a_key_with_dots(tmp_path: Path) -> None:
    """`tpucfg why` finds a label whose name has dots, and prints the setting of the spec that it originates from."""
    project_ = project("gke", "v6e-16", environment=EAST, options={"queue": "tpu"})
    spec = tmp_path / "tpucfg.yaml"
    spec.write_text(project_.document.text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "tpucfg",
        "why",
        "metadata.labels.kueue.x-k8s.io/queue-name",
        "--spec",
        str(spec),
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.endswith("targets.gke.queue\n")


def test_why_names_the_layer_of_each_value(tmp_path: Path) -> None:
    """A variable, and a reservation that replaces on-demand, belong to the layer that sets them."""
    project_ = project(
        "gke",
        "v6e-16",
        environment={**EAST, "capacity": RESERVED, "trainer": {"env": {"LOG": "1"}}},
    )
    spec = tmp_path / "tpucfg.yaml"
    data = json.loads(project_.document.text)
    data |= {
        "capacity": "on-demand",
        "trainer": {**data["trainer"], "env": {"LOG": "0", "SEED": "7"}},
    }
    spec.write_text(json.dumps(data, indent=1), encoding="utf-8")
    command = [sys.executable, "-m", "tpucfg", "why", "spec", "--spec", str(spec)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    def origin(field: str) -> str:
        (line,) = [line for line in lines if f"{field}: " in line]
        return line.partition(f"{field}: ")[2]

    assert origin("reservation-name") == "environments.dev.capacity, set in environments.dev"
    assert origin("env[0].value") == "environments.dev.trainer.env.LOG, set in environments.dev"
    assert origin("env[1].value") == "trainer.env.SEED"
