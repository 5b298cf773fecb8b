"""Vertex AI custom training: the config is a bare CustomJobSpec.

`request` makes the request body, `rules` the findings about a spec and a config, `commands` start and end a job.
"""

from tpucfg.targets.interface import commands_in
from tpucfg.targets.vertex_ai.request import NAME, ORIGINS, RESERVED, request_body
from tpucfg.targets.vertex_ai.rules import refused_help, rules, spec_findings

__all__ = [
    "NAME",
    "ORIGINS",
    "RESERVED",
    "refused_help",
    "request_body",
    "rules",
    "spec_findings",
    "submission",
]

submission = commands_in(f"{__name__}.commands")
