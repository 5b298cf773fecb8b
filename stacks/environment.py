"""The component with all resources that the jobs of one environment need: APIs, bucket, identity and access."""

from typing import Final

import pulumi
import pulumi_gcp as gcp
from pulumi import Output, Resource, ResourceOptions

from access import grant_access
from bucket import create_bucket
from identity import TPU_API, agent_names, create_account, create_agent
from resource_options import ResourceOptionsFactory
from secret_access import grant_secrets
from settings import Settings
from slice_deletion import grant_deletion

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
SECRETS_API: Final = "secretmanager.googleapis.com"
"""Read by jobs with secrets; the API has to be enabled in the project of the account that calls it."""


class Environment(pulumi.ComponentResource):
    """Storage, identity and access for one environment's TPU jobs.

    The component sets the protection and its resources inherit it: if only the bucket were protected, a `destroy` would
    delete the grants before it fails.
    """

    def __init__(self, settings: Settings) -> None:
        provider = gcp.Provider("gcp", project=settings.project)
        super().__init__(
            "tpucfg:index:Environment",
            settings.environment,
            {},
            ResourceOptions(providers=[provider], protect=settings.protect),
        )
        options = ResourceOptionsFactory(self, settings)
        # First, so that a failed look-up leaves no resource behind.
        names = agent_names(settings, provider)
        apis = [_enable_api(service, settings, options) for service in required_apis(settings)]
        bucket = create_bucket(settings, options, apis)
        agent = create_agent(names, options, apis)
        account = create_account(settings, options, apis)
        grant_access(settings, options, bucket, agent, account)
        created = [*apis, account] if account else apis
        grant_secrets(settings, options, created)
        grant_deletion(settings, options, created)
        self.bucket: Output[str] = bucket.name
        self.bucket_url: Output[str] = Output.concat("gs://", bucket.name)
        self.tpu_agent: Output[str] = agent.email
        self.register_outputs({"bucketUrl": self.bucket_url, "tpuAgent": self.tpu_agent})


def required_apis(settings: Settings) -> tuple[str, ...]:
    """Return the APIs of the environment's target, and that of Secret Manager if a job reads secrets."""
    reads_secrets = any(identity.secrets for identity in settings.identities)
    return (*APIS[settings.target], SECRETS_API) if reads_secrets else APIS[settings.target]


def _enable_api(service: str, settings: Settings, options: ResourceOptionsFactory) -> Resource:
    return gcp.projects.Service(
        service.partition(".")[0],
        project=settings.project,
        service=service,
        # Other workloads in the project may use the API: destroying the stack must not disable it.
        disable_on_destroy=False,
        opts=options.create(),
    )
