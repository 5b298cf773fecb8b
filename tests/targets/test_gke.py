import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import CATALOG, IMAGE, job, leaves, parts, project
from tpucfg import schemas
from tpucfg.targets import SubmissionError, gke, target_named
from tpucfg.targets.interface import origin_of

CONTEXT = "gke_my-project_us-east5_train"
EAST = {"region": "us-east5", "kube_context": CONTEXT}


def test_a_single_host() -> None:
    """v6e-1 is one pod with one chip, which asks for no node pool of its own."""
    assert gke.request_body(job("gke", "v6e-1", environment=EAST)) == {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "mnist-dev-v6e-1", "namespace": "default"},
        "spec": {
            "failurePolicy": {"maxRestarts": 0},
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
                                "spec": {
                                    "serviceAccountName": "tpu-mnist-dev",
                                    "restartPolicy": "Never",
                                    "nodeSelector": {
                                        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
                                        "cloud.google.com/gke-tpu-topology": "1x1",
                                    },
                                    "tolerations": [
                                        {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}
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
                                            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108
                                        }
                                    ],
                                    "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
                                }
                            },
                        }
                    },
                }
            ],
        },
    }


def test_every_option() -> None:
    """Queue, labels, namespace, account, reservation, variables and a run go where Kubernetes has them."""
    body = gke.request_body(
        job(
            "gke",
            "v6e-16",
            run="a1",
            environment=EAST | {"labels": {"team": "vision", "note": ""}},
            options={"queue": "tpu", "namespace": "training", "service_account": "trainer", "reservation": "mine"},
            trainer={"env": {"A": "1"}},
        )
    )
    work, pod = parts(body)
    assert body["metadata"] == {
        "name": "mnist-dev-v6e-16-a1",
        "namespace": "training",
        "labels": {"team": "vision", "note": "", "kueue.x-k8s.io/queue-name": "tpu"},
        "annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"},
    }
    assert (work["parallelism"], work["completions"]) == (4, 4)
    assert pod["serviceAccountName"] == "trainer"
    assert pod["nodeSelector"]["cloud.google.com/reservation-name"] == "mine"
    assert pod["containers"][0]["env"] == [{"name": "A", "value": "1"}]


@pytest.mark.parametrize(
    ("size", "region", "label", "topology", "hosts", "chips"),
    [
        ("v3-8", "us-central1", "tpu-v3-device", "2x2", 1, 4),
        ("v3-32", "europe-west4", "tpu-v3-slice", "4x4", 4, 4),
        ("v4-32", "us-central2", "tpu-v4-podslice", "2x2x4", 4, 4),
        ("v5litepod-8", "us-west4", "tpu-v5-lite-podslice", "2x4", 1, 8),
        ("v5litepod-16", "us-west4", "tpu-v5-lite-podslice", "4x4", 4, 4),
        ("v5p-32", "us-east5", "tpu-v5p-slice", "2x2x4", 4, 4),
        ("v6e-256", "us-east5", "tpu-v6e-slice", "16x16", 64, 4),
        ("tpu7x-8", "us-central1", "tpu7x", "2x2x1", 1, 4),
        ("tpu7x-32", "us-central1", "tpu7x", "2x2x4", 4, 4),
    ],
)
def test_shape_of_a_slice(size: str, region: str, label: str, topology: str, hosts: int, chips: int) -> None:
    """Each generation has its label and topology, one pod a host, and a pod asks for all chips of its host."""
    body = gke.request_body(job("gke", size, environment={"region": region}))
    work, pod = parts(body)
    selector = pod["nodeSelector"]
    assert selector == {
        "cloud.google.com/gke-tpu-accelerator": label,
        "cloud.google.com/gke-tpu-topology": topology,
    }
    assert (work["parallelism"], work["completions"]) == (hosts, hosts)
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
def test_machine_of_a_2x4_slice(size: str, machine: str, hosts: int, chips: int, pinned: str | None) -> None:
    """A 2x4 slice on two small hosts names their machine type, as its pods would fit a large host too."""
    body = gke.request_body(job("gke", size, environment=EAST, overrides={size: {"machine": machine}}))
    work, pod = parts(body)
    assert (work["parallelism"], pod["containers"][0]["resources"]["limits"]) == (hosts, {"google.com/tpu": chips})
    assert pod["nodeSelector"].get("node.kubernetes.io/instance-type") == pinned


def test_no_pod_is_privileged_or_on_the_hosts_network() -> None:
    """No size gets a privileged container, a host's network, or a host's folder."""
    for slice_ in (it for it in CATALOG.all() if "gke" in it.targets):
        _, pod = parts(gke.request_body(job("gke", slice_.size)))
        assert "hostNetwork" not in pod
        assert "securityContext" not in pod["containers"][0]
        assert [volume for volume in pod["volumes"] if "hostPath" in volume] == []


def test_every_size_fits_schema_and_rules() -> None:
    """The message of every size and machine fits schema and rules, and every field of it has an origin."""
    taken = [slice_ for slice_ in CATALOG.all() if "gke" in slice_.targets]
    assert {slice_.generation for slice_ in taken} == {"v3", "v4", "v5e", "v5p", "v6e", "tpu7x"}
    for slice_ in taken:
        for machine in slice_.machines:
            override = {slice_.size: {"machine": machine.name}}
            labels = {"labels": {"team": "vision"}}
            options = {"queue": "q", "reservation": "r"}
            body = gke.request_body(job("gke", slice_.size, environment=labels, options=options, overrides=override))
            assert schemas.is_valid("gke", body)
            assert list(gke.rules(body, CATALOG)) == []
            assert [path for path in leaves(body) if origin_of(target_named("gke").ORIGINS, path) is None] == []


def test_keys_with_dots_have_their_own_origins() -> None:
    """The queue's label comes from the target's settings, any other label from the environment."""
    queue = origin_of(target_named("gke").ORIGINS, ("metadata", "labels", "kueue.x-k8s.io/queue-name"))
    team = origin_of(target_named("gke").ORIGINS, ("metadata", "labels", "team"))
    assert queue is not None
    assert team is not None
    assert (queue.detail, team.detail) == ("targets.gke.queue", "environments.<env>.labels")


def kubernetes_reads(text: str) -> str:
    """Expand an argument as Kubernetes does by its documentation of `$(NAME)`.

    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#entrypoint
    """
    read, rest = "", text
    while rest:
        if rest.startswith("$$"):
            read, rest = read + "$", rest[2:]
        elif rest.startswith("$(") and ")" in rest:
            read, rest = read + "<a variable>", rest.partition(")")[2]
        else:
            read, rest = read + rest[0], rest[1:]
    return read


@given(st.text(st.sampled_from("$()Aé ")) | st.text())
def test_arguments_reach_the_container_unchanged(text: str) -> None:
    """Whatever dollars and brackets a value has, Kubernetes reads it as it stands in the spec."""
    assert kubernetes_reads(gke.escape_dollars(text)) == text


def test_arguments_and_variables_are_escaped() -> None:
    """`$(X)` in a flag and in a variable is written `$$(X)`."""
    trainer = {"args": {"title": "costs $5 $(X)"}, "env": {"A": "$(B)"}}
    _, pod = parts(gke.request_body(job("gke", "v6e-1", trainer=trainer)))
    assert pod["containers"][0]["args"][0] == "--title=costs $$5 $$(X)"
    assert pod["containers"][0]["env"] == [{"name": "A", "value": "$$(B)"}]


def test_the_commands() -> None:
    """Every command names the environment's context, and all but the one that has the config name the namespace."""
    submission = gke.submission(job("gke", "v6e-16", environment=EAST, options={"namespace": "training"}))
    kubectl, there = ("kubectl", f"--context={CONTEXT}"), "--namespace=training"
    assert submission.start.argv == (*kubectl, "create", "--filename=-")
    assert (submission.start.reads_config, submission.start.token) == (True, False)
    assert submission.watch.argv == (*kubectl, there, "get", "jobset/mnist-dev-v6e-16", "--watch")
    assert submission.delete.argv == (*kubectl, there, "delete", "jobset/mnist-dev-v6e-16")
    assert submission.notes[0].endswith(
        f"once: kubectl --context={CONTEXT} {there} create serviceaccount tpu-mnist-dev"
    )
    assert "annotate serviceaccount tpu-mnist-dev iam.gke.io/gcp-service-account=tpu-mnist-dev@" in submission.notes[1]
    selector = "--selector=jobset.sigs.k8s.io/jobset-name=mnist-dev-v6e-16"
    assert submission.notes[2].endswith(f"{there} logs {selector} --follow --prefix --max-log-requests=4")


def test_without_a_context_nothing_is_submitted() -> None:
    """Without a kube_context there is no command at all, and the finding stands at the environment."""
    with pytest.raises(SubmissionError) as caught:
        gke.submission(job("gke", "v6e-16", environment={"region": "us-east5"}))
    finding = caught.value.problem.finding_in(project("gke", "v6e-16").document)
    assert finding.id == "TPU005"
    assert finding.message == "dev has no kube_context, and a job is never sent to the current cluster instead"
    assert finding.help.startswith("set environments.dev.kube_context")


def test_kubectl_takes_the_flags(tmp_path: Path) -> None:
    """The parser of kubectl takes the flags of every command; without a cluster it gets no further."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is missing")
    submission = gke.submission(job("gke", "v6e-16", environment=EAST))
    for command in (submission.start, submission.watch, submission.delete):
        none = os.environ | {"KUBECONFIG": str(tmp_path / "none")}
        done = subprocess.run(command.argv, env=none, input="{}", capture_output=True, text=True, check=False)
        assert f'context "{CONTEXT}" does not exist' in done.stderr


def test_a_key_with_dots_can_be_asked_for(tmp_path: Path) -> None:
    """`tpucfg why` finds a label whose name has dots, and the line of the spec that it comes from."""
    project_ = project("gke", "v6e-16", environment=EAST, options={"queue": "tpu"})
    spec = tmp_path / "tpucfg.yaml"
    spec.write_text(project_.document.text, encoding="utf-8")
    asked = [sys.executable, "-m", "tpucfg", "why", "metadata.labels.kueue.x-k8s.io/queue-name", "--spec", str(spec)]
    expected = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    assert expected.endswith("targets.gke.queue\n")
