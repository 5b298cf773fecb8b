"""The infrastructure of one environment of the spec: the stack's name is the environment's."""

import pulumi

from environment import Environment
from settings import read_settings

settings = read_settings()
environment = Environment(settings)

pulumi.export("bucket", environment.bucket)
pulumi.export("bucketUrl", environment.bucket_url)
pulumi.export("region", settings.region)
pulumi.export("project", settings.project)
pulumi.export("tpuAgent", environment.tpu_agent)
pulumi.export("workloadServiceAccount", settings.account)
