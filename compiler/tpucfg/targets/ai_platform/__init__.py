"""AI Platform Training, which Google has shut down: the config is a Job of the API ml.v1.

It has three published variants: the tier BASIC_TPU, and the tier CUSTOM with a legacy or a Compute Engine machine as
the master of one TPU worker. Each runs a Python package or containers, as the service's own account.

`request` makes the request body and the commands, `findings` the findings about a spec, `rules` those about a config.
"""

from tpucfg.targets.ai_platform.findings import spec_findings
from tpucfg.targets.ai_platform.request import ORIGINS, RESERVED, request_body, submission
from tpucfg.targets.ai_platform.rules import NAME, rules

__all__ = ["NAME", "ORIGINS", "RESERVED", "request_body", "rules", "spec_findings", "submission"]
