"""The infrastructure of one environment of the spec; the stack has the environment's name."""

import pulumi

from environment import Environment
from interrupt import hide_interrupt_traceback
from settings import read_settings

hide_interrupt_traceback()

settings = read_settings()
environment = Environment(settings)

pulumi.export("bucket", environment.bucket)
pulumi.export("bucketUrl", environment.bucket_url)
pulumi.export("region", settings.region)
pulumi.export("project", settings.project)
pulumi.export("tpuAgent", environment.tpu_agent)
pulumi.export("workloadServiceAccount", settings.account)
if len(settings.accounts) > 1:
    pulumi.export("workloadServiceAccounts", list(settings.accounts))
