"""The component that holds what the jobs of one environment need: APIs, bucket, identity and access."""

from typing import Final

import pulumi
import pulumi_gcp as gcp
from pulumi import Output, Resource, ResourceOptions

from access import grant_access
from bucket import make_bucket
from identity import TPU_API, agent_names, make_account, make_agent
from resource_options import Family
from settings import Settings

_EVERYWHERE: Final = ("storage.googleapis.com", "iam.googleapis.com")
APIS: Final = {
    "vertex-ai": (*_EVERYWHERE, TPU_API, "aiplatform.googleapis.com"),
    "cloud-tpu": (*_EVERYWHERE, TPU_API),
    # Pods act as the account by Workload Identity, which asks for its tokens there:
    # https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity.
    "gke": (*_EVERYWHERE, TPU_API, "container.googleapis.com", "iamcredentials.googleapis.com"),
    # Its TPUs are in the service's own project, where nobody else enables anything.
    "ai-platform": (*_EVERYWHERE, "ml.googleapis.com"),
}
"""The APIs that a target needs in the environment's project."""


class Environment(pulumi.ComponentResource):
    """The storage, identity and access that one environment's TPU jobs need.

    Protection is set here and inherited: with it on the bucket alone, a `destroy` would take the grants away first.
    """

    def __init__(self, settings: Settings) -> None:
        provider = gcp.Provider("gcp", project=settings.project)
        super().__init__(
            "tpucfg:index:Environment",
            settings.environment,
            {},
            ResourceOptions(providers=[provider], protect=settings.protect),
        )
        family = Family(self, settings)
        # First of all, as a look-up that fails must leave nothing made.
        names = agent_names(settings, provider)
        apis = [_api(service, settings, family) for service in APIS[settings.target]]
        bucket = make_bucket(settings, family, apis)
        agent = make_agent(names, family, apis)
        account = make_account(settings, family, apis)
        grant_access(settings, family, bucket, agent, account)
        self.bucket: Output[str] = bucket.name
        self.bucket_url: Output[str] = Output.concat("gs://", bucket.name)
        self.tpu_agent: Output[str] = agent.email
        self.register_outputs({"bucketUrl": self.bucket_url, "tpuAgent": self.tpu_agent})


def _api(service: str, settings: Settings, family: Family) -> Resource:
    return gcp.projects.Service(
        service.partition(".")[0],
        project=settings.project,
        service=service,
        # Others in the project may use the API: a stack that goes must not take it from them.
        disable_on_destroy=False,
        opts=family.options(),
    )
