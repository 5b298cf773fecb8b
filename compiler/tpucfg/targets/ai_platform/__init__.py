"""AI Platform Training, which Google has shut down: the config is a Job of the API ml.v1.

It has three published forms: the tier BASIC_TPU, and the tier CUSTOM with a legacy or a Compute Engine machine as the
master of one TPU worker. Each runs a Python package or containers, as the service's own account.
"""

from tpucfg.targets.ai_platform.request import NAME, ORIGINS, RESERVED, request_body
from tpucfg.targets.ai_platform.rules import rules, spec_findings
from tpucfg.targets.interface import commands_in

__all__ = ["NAME", "ORIGINS", "RESERVED", "request_body", "rules", "spec_findings", "submission"]

submission = commands_in(f"{__name__}.commands")
