"""Grants on the bucket and the accounts of an environment. Additive only, so that other members are never touched."""

from collections.abc import Mapping, Sequence
from typing import Final

import pulumi_gcp as gcp
from pulumi import Input, Resource, ResourceOptions

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.infra.grants import BUCKET_GRANT, IMAGE_GRANT, IMAGE_READER, OBJECT_USER
from tpucfg.plan.identities import Identity
from tpucfg.stack.bucket import BUCKET_READER, former_logical_name, logical_name
from tpucfg.stack.identity import ServiceAgent
from tpucfg.stack.resource_options import ResourceOptionsFactory
from tpucfg.stack.settings import StackSettings

OBJECT_VIEWER: Final = "roles/storage.objectViewer"
ML_AGENT: Final = "roles/ml.serviceAgent"
"""AI Platform's guide grants it to the TPU account on the whole project; docs/bootstrap.md lists its permissions."""
WORKLOAD_IDENTITY: Final = "roles/iam.workloadIdentityUser"
"""https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity."""


def grant_access(
    settings: StackSettings,
    options: ResourceOptionsFactory,
    bucket: Input[str],
    agent: ServiceAgent,
    account: Resource | None,
) -> None:
    """Declare the grants on buckets, repositories and accounts, and on ai-platform that on the project."""
    account_created: Sequence[Resource] = [account] if account else []
    agent_member = f"serviceAccount:{agent.email}"
    own, former = logical_name(settings.bucket), former_logical_name(settings)
    if TARGET_FACTS[settings.target].agent_uses_bucket:
        inputs = {"bucket": settings.bucket, "role": OBJECT_USER, "member": agent_member}
        former_name = f"tpu-agent-on-{former}"
        # A bucket that the stack deletes takes its grants along.
        opts = (
            options.create_shared(BUCKET_GRANT, inputs, [agent.identity], former_name=former_name)
            if settings.keep_data or not settings.creates_bucket
            else options.create([agent.identity], former_name=former_name)
        )
        _grant(f"tpu-agent-on-{own}", bucket, OBJECT_USER, agent_member, opts)
    for email, label in account_labels(settings).items():
        _grant_objects(
            label, own, bucket, OBJECT_USER, email, options, account_created, former=former
        )
        for url in settings.reads:
            name = url.removeprefix("gs://")
            # Not protected: removing access has to be possible in one step, even in a protected environment.
            _grant_objects(
                label, name, name, OBJECT_VIEWER, email, options, account_created, protect=False
            )
    for member in settings.config.bucket_members:
        unprotected = options.create(protect=False, former_name=f"{member}-on-{former}")
        _grant(f"{member}-on-{own}", bucket, OBJECT_USER, member, unprotected)
    _grant_images(settings, options, account_created)
    if TARGET_FACTS[settings.target].has_tenant_project:
        gcp.projects.IAMMember(
            "tpu-agent-ml",
            project=settings.project,
            role=ML_AGENT,
            member=agent_member,
            opts=options.create([agent.identity]),
        )
    for identity in settings.identities:
        if identity.kubernetes:
            _grant_workload_identity(identity, settings, options, account_created)


def account_labels(settings: StackSettings) -> Mapping[str, str]:
    """Return the start of the logical names of each account's grants, by the account's e-mail.

    The environment's first account has a name of its own, so that the spec can exchange it; those that single sizes add
    are distinguished by project and id.
    """
    first, *others = settings.accounts
    return {first: "workload", **{email: f"workload-{_account_name(email)}" for email in others}}


def _account_name(email: str) -> str:
    """Return `<project>/<id>`: reports of the review would redact an e-mail that is part of a longer word."""
    id_, _, host = email.partition("@")
    return f"{host.removesuffix('.iam.gserviceaccount.com')}/{id_}"


def kubernetes_member(identity: Identity, settings: StackSettings) -> str:
    """Return the member that IAM knows the pods' Kubernetes service account by."""
    namespace, _, name = (identity.kubernetes or "").partition("/")
    return f"serviceAccount:{settings.cluster_project}.svc.id.goog[{namespace}/{name}]"


def _grant(
    name: str, bucket: Input[str], role: str, member: Input[str], options: ResourceOptions
) -> gcp.storage.BucketIAMMember:
    return gcp.storage.BucketIAMMember(name, bucket=bucket, role=role, member=member, opts=options)


def _grant_objects(
    label: str,
    name: str,
    bucket: Input[str],
    role: str,
    email: str,
    options: ResourceOptionsFactory,
    depends_on: Sequence[Resource],
    protect: bool | None = None,
    former: str = "",
) -> None:
    """Grant an account the objects of a bucket and, after that, the bucket's properties."""
    member = f"serviceAccount:{email}"

    def grant(start: str, role: str, created: Sequence[Resource]) -> Resource:
        former_name = f"{start}{former}" if former else None
        granted = options.create(created, protect=protect, former_name=former_name)
        return _grant(f"{start}{name}", bucket, role, member, granted)

    # One after the other, so that a missing account is waited for and explained once.
    objects = grant(f"{label}-on-", role, depends_on)
    grant(f"{label}-on-properties-of-", BUCKET_READER, [*depends_on, objects])


def _grant_images(
    settings: StackSettings, options: ResourceOptionsFactory, depends_on: Sequence[Resource]
) -> None:
    """Let those who pull the jobs' images read the repositories."""
    for email, repository in settings.image_pulls:
        path = f"{repository.project}/{repository.location}/{repository.name}"
        inputs = {
            "project": repository.project,
            "location": repository.location,
            "repository": repository.name,
            "role": IMAGE_READER,
            "member": f"serviceAccount:{email}",
        }
        # The nodes of a cluster pull for every environment and spec that uses it.
        opts = (
            options.create_shared(IMAGE_GRANT, inputs, depends_on, protect=False)
            if TARGET_FACTS[settings.target].image_puller == "nodes"
            else options.create(depends_on, protect=False)
        )
        gcp.artifactregistry.RepositoryIamMember(
            f"{_account_name(email)}-on-images-{path}",
            project=repository.project,
            location=repository.location,
            repository=repository.name,
            role=IMAGE_READER,
            member=f"serviceAccount:{email}",
            opts=opts,
        )


def _grant_workload_identity(
    identity: Identity,
    settings: StackSettings,
    options: ResourceOptionsFactory,
    depends_on: Sequence[Resource],
) -> None:
    """Allow the pods' Kubernetes service account to act as the jobs' account."""
    is_first = identity == settings.identities[0]
    gcp.serviceaccount.IAMMember(
        "workload-identity" if is_first else f"workload-identity-{identity.kubernetes}",
        service_account_id=f"projects/{settings.project}/serviceAccounts/{identity.email}",
        role=WORKLOAD_IDENTITY,
        member=kubernetes_member(identity, settings),
        opts=options.create(depends_on),
    )
