"""Secrets: objects by which GKE copies values from Secret Manager into a Kubernetes secret, and references to it.

The config has no value. A SecretProviderClass lists the secrets, and a SecretSync has GKE create a Kubernetes secret of
its own name from them. A pod that starts earlier waits: a missing key keeps its container from being created.

Sources: https://cloud.google.com/secret-manager/docs/sync-k8-secrets (both objects),
https://github.com/GoogleCloudPlatform/secrets-store-csi-driver-provider-gcp/blob/main/config/config.go (the list).
"""

from typing import Any, Final

from tpucfg.plan.job import Job
from tpucfg.spec.settings import Secret
from tpucfg.targets.common import without_empty
from tpucfg.targets.interface import RequestBody

PROVIDER_CLASS: Final = "SecretProviderClass"
SYNC: Final = "SecretSync"
RESOURCES: Final = {
    SYNC: "secretsyncs.secret-sync.gke.io",
    PROVIDER_CLASS: "secretproviderclasses.secrets-store.csi.x-k8s.io",
}
"""The name by which kubectl knows each kind, in the order in which a job's objects are deleted."""
COMPANION_SCHEMAS: Final = {PROVIDER_CLASS: "secret-provider-class", SYNC: "secret-sync"}
"""The schema of each kind."""


def secret_objects(job: Job, account: str) -> tuple[RequestBody, ...]:
    """Return the objects that provide the job's secrets; none for a job without secrets.

    Args:
        job: The job.
        account: The Kubernetes service account that may read the secrets.
    """
    if not job.secrets:
        return ()
    metadata = without_empty(
        name=job.name, namespace=job.options.get("namespace", "default"), labels=dict(job.environment.labels)
    )
    sources = "".join(_source(secret) for secret in job.secrets)
    provider_class = {
        "apiVersion": "secrets-store.csi.x-k8s.io/v1",
        "kind": PROVIDER_CLASS,
        "metadata": metadata,
        "spec": {"provider": "gke", "parameters": {"secrets": sources}},
    }
    keys = [{"sourcePath": secret.variable, "targetKey": secret.variable} for secret in job.secrets]
    sync = {
        "apiVersion": "secret-sync.gke.io/v1",
        "kind": SYNC,
        "metadata": dict(metadata),
        "spec": {
            "serviceAccountName": account,
            "secretProviderClassName": job.name,
            "secretObject": {"type": "Opaque", "data": keys},
        },
    }
    return (provider_class, sync)


def secret_variables(job: Job) -> list[dict[str, Any]]:
    """Return the environment variables that refer to the Kubernetes secret."""
    return [
        {"name": secret.variable, "valueFrom": {"secretKeyRef": {"name": job.name, "key": secret.variable}}}
        for secret in job.secrets
    ]


def _source(secret: Secret) -> str:
    """Return an entry of the list of secrets, which is YAML in a text; none of its parts needs quotes."""
    resource = f"projects/{secret.project}/secrets/{secret.name}/versions/{secret.version}"
    return f'- resourceName: "{resource}"\n  path: "{secret.variable}"\n'
