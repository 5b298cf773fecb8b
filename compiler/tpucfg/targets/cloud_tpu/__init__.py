"""Cloud TPU VMs: the config is a queued resource, whose hosts start the trainer's container when they boot.

`request` makes the request body, `rules` the findings about a spec and a config, `commands` start and end a job.
"""

from tpucfg.targets.cloud_tpu.request import NAME, ORIGINS, RESERVED, request_body, startup_script
from tpucfg.targets.cloud_tpu.rules import rules, spec_findings
from tpucfg.targets.hosts import CONTAINER
from tpucfg.targets.interface import commands_in

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

submission = commands_in(f"{__name__}.commands")
