"""Who may do what: additive grants only, so that no grant of anybody else is ever touched."""

from collections.abc import Sequence
from typing import Final

import pulumi_gcp as gcp
from pulumi import Input, Output, Resource

from bucket import logical_name
from identity import Agent
from resource_options import Family
from settings import Settings

OBJECT_USER: Final = "roles/storage.objectUser"
"""Reads, lists, writes and deletes objects, and can hand out no access, unlike objectAdmin.

https://cloud.google.com/storage/docs/access-control/iam-roles
"""
ML_AGENT: Final = "roles/ml.serviceAgent"
"""What AI Platform's guide gives the TPU account on the whole project; docs/bootstrap.md says what it holds."""
WORKLOAD_IDENTITY: Final = "roles/iam.workloadIdentityUser"
"""https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity."""


def grant_access(
    settings: Settings, family: Family, bucket: gcp.storage.Bucket, agent: Agent, account: Resource | None
) -> None:
    """Every grant of the environment."""
    made: Sequence[Resource] = [account] if account else []
    agent_member = Output.concat("serviceAccount:", agent.email)
    _on_bucket("tpu-agent", agent_member, bucket, settings, family, [agent.identity])
    _on_bucket("workload", f"serviceAccount:{settings.account}", bucket, settings, family, made)
    for member in settings.config.bucket_members:
        # Taking somebody's access away must stay one step, in a protected environment too.
        _on_bucket(member, member, bucket, settings, family, [], protect=False)
    if settings.target == "ai-platform":
        gcp.projects.IAMMember(
            "tpu-agent-ml",
            project=settings.project,
            role=ML_AGENT,
            member=agent_member,
            opts=family.options([agent.identity]),
        )
    if settings.kubernetes_account:
        _let_pods_act(settings, family, made)


def _on_bucket(
    who: str,
    member: Input[str],
    bucket: gcp.storage.Bucket,
    settings: Settings,
    family: Family,
    after: Sequence[Resource],
    protect: bool | None = None,
) -> None:
    gcp.storage.BucketIAMMember(
        f"{who}-on-{logical_name(settings.region)}",
        bucket=bucket.name,
        role=OBJECT_USER,
        member=member,
        opts=family.options(after, protect=protect),
    )


def _let_pods_act(settings: Settings, family: Family, after: Sequence[Resource]) -> None:
    """Lets the pods' Kubernetes service account act as the jobs' account."""
    namespace, _, name = (settings.kubernetes_account or "").partition("/")
    gcp.serviceaccount.IAMMember(
        "workload-identity",
        service_account_id=f"projects/{settings.project}/serviceAccounts/{settings.account}",
        role=WORKLOAD_IDENTITY,
        member=f"serviceAccount:{settings.project}.svc.id.goog[{namespace}/{name}]",
        opts=family.options(after),
    )
