"""The component with all resources that the jobs of one environment need: APIs, bucket, identity and access."""

import pulumi
import pulumi_gcp as gcp
from pulumi import Output, ResourceOptions

from access import grant_access
from apis import enable_api
from bucket import check_existing_bucket, create_bucket
from identity import agent_names, create_account, create_agent
from log_access import grant_log_writing
from resource_options import ResourceOptionsFactory
from secret_access import grant_secrets
from settings import StackSettings
from slice_deletion import grant_deletion
from tpucfg.catalog.target_facts import TARGET_FACTS


class EnvironmentComponent(pulumi.ComponentResource):
    """Storage, identity and access for one environment's TPU jobs.

    The component sets the protection and its resources inherit it: if only the bucket were protected, a `destroy` would
    delete the grants before it fails.
    """

    def __init__(self, settings: StackSettings) -> None:
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
        if not settings.creates_bucket:
            check_existing_bucket(settings, provider)
        apis = [
            enable_api(service, settings, options) for service in TARGET_FACTS[settings.target].apis
        ]
        own_bucket = (
            create_bucket(settings, options, provider, apis) if settings.creates_bucket else None
        )
        bucket = own_bucket.name if own_bucket else settings.bucket
        agent = create_agent(names, options, apis)
        account = create_account(settings, options, apis)
        grant_access(settings, options, bucket, agent, account)
        created = [account] if account else []
        grant_secrets(settings, options, created)
        grant_deletion(settings, options, [*apis, *created])
        grant_log_writing(settings, options, [*apis, *created])
        self.bucket: Output[str] = Output.from_input(bucket)
        self.bucket_url: Output[str] = Output.concat("gs://", bucket)
        self.tpu_agent: Output[str] = agent.email
        self.register_outputs({"bucketUrl": self.bucket_url, "tpuAgent": self.tpu_agent})
