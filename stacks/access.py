"""Grants on the bucket and the accounts of an environment. Additive only, so that other members are never touched."""

from collections.abc import Mapping, Sequence
from typing import Final

import pulumi_gcp as gcp
from pulumi import Input, Output, Resource

from bucket import logical_name
from identity import ServiceAgent
from resource_options import ResourceOptionsFactory
from settings import Settings
from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.plan.identities import Identity

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
    """Declare the grants on the bucket, on ai-platform that on the project, and on gke those of the pods."""
    account_created: Sequence[Resource] = [account] if account else []
    agent_member = Output.concat("serviceAccount:", agent.email)
    _grant_on_bucket("tpu-agent", agent_member, bucket, settings, options, [agent.identity])
    for email, label in account_labels(settings).items():
        _grant_on_bucket(label, f"serviceAccount:{email}", bucket, settings, options, account_created)
    for member in settings.config.bucket_members:
        # Not protected: removing a member's access has to be possible in one step, even in a protected environment.
        _grant_on_bucket(member, member, bucket, settings, options, [], protect=False)
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


def account_labels(settings: Settings) -> Mapping[str, str]:
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


def kubernetes_member(identity: Identity, settings: Settings) -> str:
    """Return the member that IAM knows the pods' Kubernetes service account by."""
    namespace, _, name = (identity.kubernetes or "").partition("/")
    return f"serviceAccount:{settings.project}.svc.id.goog[{namespace}/{name}]"


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
    identity: Identity, settings: Settings, options: ResourceOptionsFactory, depends_on: Sequence[Resource]
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
