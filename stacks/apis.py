"""Google's APIs that the jobs of an environment need."""

from typing import Final

import pulumi_gcp as gcp
from pulumi import Resource

from identity import TPU_API
from resource_options import ResourceOptionsFactory
from settings import Settings

_COMMON_APIS: Final = ("storage.googleapis.com", "iam.googleapis.com")
APIS: Final = {
    "vertex-ai": (*_COMMON_APIS, TPU_API, "aiplatform.googleapis.com"),
    "cloud-tpu": (*_COMMON_APIS, TPU_API),
    # Pods act as the account by Workload Identity, which requests its tokens from iamcredentials:
    # https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity.
    "gke": (*_COMMON_APIS, TPU_API, "container.googleapis.com", "iamcredentials.googleapis.com"),
    # No TPU API: the TPUs are in the service's own project, where only the service can enable APIs.
    "ai-platform": (*_COMMON_APIS, "ml.googleapis.com"),
}
"""APIs that a target needs in the environment's project."""


def enable_api(
    service: str, settings: Settings, options: ResourceOptionsFactory, *, protect: bool | None = None
) -> Resource:
    """Declare that an API is enabled in the environment's project."""
    return gcp.projects.Service(
        service.partition(".")[0],
        project=settings.project,
        service=service,
        # Other workloads in the project may use the API: destroying the stack must not disable it.
        disable_on_destroy=False,
        opts=options.create(protect=protect),
    )
