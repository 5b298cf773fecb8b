"""IAM grants of an environment. Additive only, so that members granted elsewhere are never touched."""

from collections.abc import Sequence
from typing import Final

import pulumi_gcp as gcp
from pulumi import Input, Output, Resource

from bucket import logical_name
from identity import ServiceAgent
from resource_options import ResourceOptionsFactory
from settings import Settings

OBJECT_USER: Final = "roles/storage.objectUser"
"""Reads, lists, writes and deletes objects, but cannot grant access, unlike objectAdmin.

https://cloud.google.com/storage/docs/access-control/iam-roles
"""
ML_AGENT: Final = "roles/ml.serviceAgent"
"""AI Platform's guide grants it to the TPU account on the whole project; docs/bootstrap.md lists its permissions."""
WORKLOAD_IDENTITY: Final = "roles/iam.workloadIdentityUser"
"""https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity."""


def grant_access(
    settings: Settings,
    options: ResourceOptionsFactory,
    bucket: gcp.storage.Bucket,
    agent: ServiceAgent,
    account: Resource | None,
) -> None:
    """Declare every grant of the environment."""
    account_created: Sequence[Resource] = [account] if account else []
    agent_member = Output.concat("serviceAccount:", agent.email)
    _grant_on_bucket("tpu-agent", agent_member, bucket, settings, options, [agent.identity])
    _grant_on_bucket("workload", f"serviceAccount:{settings.account}", bucket, settings, options, account_created)
    for member in settings.config.bucket_members:
        # Not protected: removing a member's access has to be possible in one step, even in a protected environment.
        _grant_on_bucket(member, member, bucket, settings, options, [], protect=False)
    if settings.target == "ai-platform":
        gcp.projects.IAMMember(
            "tpu-agent-ml",
            project=settings.project,
            role=ML_AGENT,
            member=agent_member,
            opts=options.create([agent.identity]),
        )
    if settings.kubernetes_account:
        _grant_workload_identity(settings, options, account_created)


def _grant_on_bucket(
    label: str,
    member: Input[str],
    bucket: gcp.storage.Bucket,
    settings: Settings,
    options: ResourceOptionsFactory,
    depends_on: Sequence[Resource],
    protect: bool | None = None,
) -> None:
    gcp.storage.BucketIAMMember(
        f"{label}-on-{logical_name(settings.region)}",
        bucket=bucket.name,
        role=OBJECT_USER,
        member=member,
        opts=options.create(depends_on, protect=protect),
    )


def _grant_workload_identity(
    settings: Settings, options: ResourceOptionsFactory, depends_on: Sequence[Resource]
) -> None:
    """Allow the pods' Kubernetes service account to act as the jobs' account."""
    namespace, _, name = (settings.kubernetes_account or "").partition("/")
    gcp.serviceaccount.IAMMember(
        "workload-identity",
        service_account_id=f"projects/{settings.project}/serviceAccounts/{settings.account}",
        role=WORKLOAD_IDENTITY,
        member=f"serviceAccount:{settings.project}.svc.id.goog[{namespace}/{name}]",
        opts=options.create(depends_on),
    )
