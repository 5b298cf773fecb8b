"""Google's APIs that the jobs of an environment need."""

import pulumi_gcp as gcp
from pulumi import Resource

from tpucfg.stack.resource_options import ResourceOptionsFactory
from tpucfg.stack.settings import StackSettings


def enable_api(
    service: str,
    settings: StackSettings,
    options: ResourceOptionsFactory,
    *,
    protect: bool | None = None,
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
