"""Cloud TPU VMs: the config is a queued resource, whose hosts start the trainer's container when they boot.

`request` makes the request body, `startup` the script of a host, `rules` the findings, `submission` the commands.
"""

from tpucfg.targets.cloud_tpu.request import NAME, ORIGINS, RESERVED, request_body
from tpucfg.targets.cloud_tpu.rules import rules, spec_findings
from tpucfg.targets.cloud_tpu.startup import startup_script
from tpucfg.targets.cloud_tpu.submission import submission
from tpucfg.targets.hosts.startup import CONTAINER

__all__ = [
    "CONTAINER",
    "NAME",
    "ORIGINS",
    "RESERVED",
    "request_body",
    "rules",
    "spec_findings",
    "startup_script",
    "submission",
]
