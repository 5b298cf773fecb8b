"""Vertex AI custom training: the config is a bare CustomJobSpec.

`request` makes the request body and the commands, `findings` the findings about a spec, `rules` those about a config.
"""

from tpucfg.targets.vertex_ai.findings import spec_findings
from tpucfg.targets.vertex_ai.request import NAME, ORIGINS, RESERVED, request_body, submission
from tpucfg.targets.vertex_ai.rules import rules

__all__ = ["NAME", "ORIGINS", "RESERVED", "request_body", "rules", "spec_findings", "submission"]
