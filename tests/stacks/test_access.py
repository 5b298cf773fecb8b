"""Grants by what a program needs, under Pulumi's mocks: buckets, images, the node's account, the cluster's pool."""

from pathlib import Path
from typing import Any

import pytest
from mocked import V5E, V6E, declared_by_minimal_spec, grants, only

from tpucfg.infra.resources import EnvironmentResources
from tpucfg.plan.identities import ImageRepository, repository_of

OWN = "serviceAccount:tpu-mnist-dev@acme-dev.iam.gserviceaccount.com"
NODES = "nodes@acme-clusters.iam.gserviceaccount.com"
NODE = f"serviceAccount:{NODES}"
USE, READ = "roles/storage.objectUser", "roles/storage.objectViewer"
PROPERTIES, PULL = "roles/storage.legacyBucketReader", "roles/artifactregistry.reader"
CLUSTER = "projects/acme-clusters/locations/us-central1/clusters/train"


def on_gke(
    tmp_path: Path, environment: dict[str, Any] | None = None, **options: Any
) -> EnvironmentResources:
    """Return the resources of an environment on gke, with options of the target."""
    return declared_by_minimal_spec(
        tmp_path, {"target": "gke", **(environment or {})}, {**V5E, "targets": {"gke": options}}
    )


def of_buckets(environment: EnvironmentResources) -> set[tuple[str, str, str]]:
    """Return the bucket, the role and the member of each grant on a bucket."""
    members = [
        item.inputs for item in environment.resources if item.kind == "storage.BucketIAMMember"
    ]
    return {(inputs["bucket"], inputs["role"], inputs["member"]) for inputs in members}


@pytest.mark.parametrize(
    ("target", "top", "used"),
    [
        ("vertex-ai", {}, True),
        ("cloud-tpu", {}, True),
        ("gke", V5E, False),
        ("compute-engine", V6E, False),
    ],
)
def test_the_service_agent_has_the_bucket_where_a_job_needs_it(
    tmp_path: Path, target: str, top: dict[str, Any], used: bool
) -> None:
    """On gke and compute-engine only the program's own account reads and writes."""
    environment = declared_by_minimal_spec(tmp_path, {"target": target}, top)

    assert any("@cloud-tpu.iam" in member for _, _, member in of_buckets(environment)) == used
    assert only(environment, "projects.ServiceIdentity")


@pytest.mark.parametrize(
    ("target", "top", "member"),
    [
        ("vertex-ai", {}, None),
        ("gke", V5E, None),
        ("gke", {**V5E, "targets": {"gke": {"node_service_account": NODES}}}, NODE),
        ("cloud-tpu", {}, OWN),
        (
            "compute-engine",
            {**V6E, "targets": {"compute-engine": {"service_account": NODES}}},
            f"serviceAccount:{NODES}",
        ),
    ],
)
def test_who_pulls_the_image_reads_its_repository(
    tmp_path: Path, target: str, top: dict[str, Any], member: str | None
) -> None:
    """The puller is granted the one repository; images: {grant: false} leaves it to others."""
    image = {"trainer": {"image": "us-docker.pkg.dev/acme-images/train/mnist@sha256:" + "0" * 64}}

    environment = declared_by_minimal_spec(tmp_path, {"target": target}, {**top, **image})
    without = declared_by_minimal_spec(
        tmp_path, {"target": target, "images": {"grant": False}}, {**top, **image}
    )

    assert {grant[1:] for grant in grants(environment) - grants(without)} == (
        {(PULL, member)} if member else set()
    )
    for grant in environment.resources:
        if grant.kind == "artifactregistry.RepositoryIamMember":
            assert (grant.inputs["project"], grant.inputs["location"]) == ("acme-images", "us")
            assert grant.inputs["repository"] == "train"


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("us-docker.pkg.dev/acme/train/chat:1.0", ImageRepository("acme", "us", "train")),
        (
            "europe-west4-docker.pkg.dev/acme/train/a/b@sha256:1",
            ImageRepository("acme", "europe-west4", "train"),
        ),
        ("us-docker.pkg.dev/cloud-tpu-images/jax-ai-image/tpu:latest", None),
        ("us-docker.pkg.dev/acme/train", None),
        ("gcr.io/acme/chat:1.0", None),
        ("python:3.12", None),
        (None, None),
    ],
)
def test_only_repositories_of_artifact_registry_are_granted(
    image: str | None, repository: ImageRepository | None
) -> None:
    """Other registries have other ways of access, and everyone may pull Google's own images."""
    assert repository_of(image) == repository


def test_other_buckets_are_read_and_nothing_more(tmp_path: Path) -> None:
    """Each bucket of `reads` has two grants to the jobs' account, which can be revoked at once."""
    reads = {"reads": {"gs://acme-datasets": "us-central1"}}

    environment = declared_by_minimal_spec(tmp_path, {"protect": True, **reads})

    others = {grant for grant in of_buckets(environment) if grant[0] == "acme-datasets"}
    assert others == {("acme-datasets", role, OWN) for role in (READ, PROPERTIES)}
    assert {
        item.protect
        for item in environment.resources
        if item.inputs.get("bucket") == "acme-datasets"
    } == {False}


def test_a_program_on_the_network_of_its_host_has_the_grants_of_the_node(tmp_path: Path) -> None:
    """With host_network, the node's account uses the bucket; without it, it only pulls the image."""
    shared = on_gke(tmp_path, node_service_account=NODES, host_network=True)
    own = on_gke(tmp_path, node_service_account=NODES)

    assert {role for _, role, member in of_buckets(shared) if member == NODE} == {USE, PROPERTIES}
    assert {role for _, role, member in of_buckets(shared) if member == OWN} == {USE, PROPERTIES}
    assert {role for _, role, member in grants(own) if member == NODE} == {PULL}


def test_pods_are_members_of_the_pool_of_their_cluster(tmp_path: Path) -> None:
    """The pool is that of the cluster's project, by its name or by gcloud's context."""
    member = "serviceAccount:acme-clusters.svc.id.goog[default/tpu-mnist-dev]"
    for key in ({"cluster": CLUSTER}, {"kube_context": "gke_acme-clusters_us-central1_train"}):
        assert ("serviceaccount.IAMMember", "roles/iam.workloadIdentityUser", member) in grants(
            on_gke(tmp_path, key)
        )


def test_an_existing_bucket_is_only_granted(tmp_path: Path) -> None:
    """The stack declares no bucket, and grants what jobs need on the one that exists."""
    environment = declared_by_minimal_spec(
        tmp_path, {"bucket": {"name": "team-bucket", "create": False}}
    )

    assert not [item for item in environment.resources if item.kind == "storage.Bucket"]
    assert {bucket for bucket, _, _ in of_buckets(environment)} == {"team-bucket"}
    assert environment.outputs["bucketUrl"] == "gs://team-bucket"
    assert not environment.unseen


def test_a_key_encrypts_the_bucket_and_cloud_storage_may_use_it(tmp_path: Path) -> None:
    """The agent of Cloud Storage is granted the key, and the bucket names it."""
    key = "projects/acme-dev/locations/us-central1/keyRings/train/cryptoKeys/checkpoints"

    environment = declared_by_minimal_spec(tmp_path, {"kms_key": key, "soft_delete_days": 14})

    bucket = only(environment, "storage.Bucket").inputs
    assert bucket["encryption"] == {"defaultKmsKeyName": key}
    assert bucket["softDeletePolicy"] == {"retentionDurationSeconds": 14 * 86_400}
    grant = only(environment, "kms.CryptoKeyIAMMember").inputs
    assert (grant["cryptoKeyId"], grant["role"]) == (
        key,
        "roles/cloudkms.cryptoKeyEncrypterDecrypter",
    )
    assert grant["member"].endswith("@gs-project-accounts.iam.gserviceaccount.com")
