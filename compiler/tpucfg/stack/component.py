"""The component with all resources that the jobs of one environment need, and the program that deploys it."""

import pulumi
import pulumi_gcp as gcp
from pulumi import Output, ResourceOptions

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.stack.access import grant_access
from tpucfg.stack.apis import enable_api
from tpucfg.stack.bucket import check_existing_bucket, create_bucket
from tpucfg.stack.identity import agent_names, create_account, create_agent
from tpucfg.stack.interrupt import hide_interrupt_traceback
from tpucfg.stack.log_access import grant_log_writing
from tpucfg.stack.resource_options import ResourceOptionsFactory
from tpucfg.stack.secret_access import grant_secrets
from tpucfg.stack.settings import StackSettings, read_settings
from tpucfg.stack.slice_deletion import grant_deletion


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
        self.project: str = settings.project
        self.region: str = settings.region
        self.provider: gcp.Provider = provider
        self.bucket: Output[str] = Output.from_input(bucket)
        self.bucket_url: Output[str] = Output.concat("gs://", bucket)
        self.tpu_agent: str = agent.email
        self.left_behind: tuple[str, ...] = tuple(options.left_behind)
        self.register_outputs({"bucketUrl": self.bucket_url, "tpuAgent": self.tpu_agent})


def deploy() -> EnvironmentComponent:
    """Declare the resources of the current stack's environment, and export its outputs.

    Raises:
        pulumi.RunError: The stack file or the spec is invalid, or a look-up failed; the message names the fix.
    """
    hide_interrupt_traceback()
    settings = read_settings()
    environment = EnvironmentComponent(settings)
    pulumi.export("bucket", environment.bucket)
    pulumi.export("bucketUrl", environment.bucket_url)
    pulumi.export("region", settings.region)
    pulumi.export("project", settings.project)
    pulumi.export("tpuAgent", environment.tpu_agent)
    pulumi.export("leftBehind", list(environment.left_behind))
    pulumi.export("workloadServiceAccount", settings.account)
    if len(settings.accounts) > 1:
        pulumi.export("workloadServiceAccounts", list(settings.accounts))
    return environment
