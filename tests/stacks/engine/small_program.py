"""A small program with a bucket, a service agent and a grant to the agent."""

from dataclasses import dataclass, field

import pulumi
import pulumi_gcp as gcp
from pulumi import ResourceOptions

PROJECT, NUMBER = "acme-dev", 123456789012
MEMBER = f"serviceAccount:service-{NUMBER}@cloud-tpu.iam.gserviceaccount.com"


@dataclass(slots=True)
class SmallProgram:
    """The program; a test changes its fields between two runs."""

    region: str = "us-central1"
    protect: bool = False
    tmp_days: int = 14
    retried: list[str] = field(default_factory=list)
    """Errors that the error hook received."""

    def __call__(self) -> None:
        """Declare the resources."""
        provider = gcp.Provider(
            "gcp", project=PROJECT, region=self.region, batching={"enable_batching": False}
        )
        options = ResourceOptions(providers=[provider], protect=self.protect)
        _Environment(self, options)

    async def retry(self, args: pulumi.ErrorHookArgs) -> bool:
        """Retry while IAM does not see the service agent."""
        self.retried.append(args.errors[0])
        return "does not exist" in args.errors[0]


class _Environment(pulumi.ComponentResource):
    def __init__(self, program: SmallProgram, options: ResourceOptions) -> None:
        super().__init__("tpucfg:index:Environment", "dev", {}, options)
        bucket = gcp.storage.Bucket(
            f"data-{program.region}",
            name=f"acme-dev-{program.region}",
            project=PROJECT,
            location=program.region.upper(),
            uniform_bucket_level_access=True,
            soft_delete_policy={"retention_duration_seconds": 0},
            lifecycle_rules=[
                {
                    "action": {"type": "Delete"},
                    "condition": {"age": program.tmp_days, "matches_prefixes": ["tmp/"]},
                }
            ],
            labels={"team": "vision"},
            opts=ResourceOptions(parent=self),
        )
        agent = gcp.projects.ServiceIdentity(
            "agent",
            project=PROJECT,
            service="tpu.googleapis.com",
            opts=ResourceOptions(parent=self),
        )
        hook = pulumi.ErrorHook("retry", program.retry)
        gcp.projects.IAMMember(
            "grant",
            project=PROJECT,
            role="roles/ml.serviceAgent",
            member=MEMBER,
            opts=ResourceOptions(
                parent=self, depends_on=[agent], hooks=pulumi.ResourceHookBinding(on_error=[hook])
            ),
        )
        self.register_outputs({"url": bucket.url})
        pulumi.export("url", bucket.url)
