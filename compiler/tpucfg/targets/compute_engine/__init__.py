"""Compute Engine: the config is a managed instance group of TPU VMs with its template and policy, or one instance.

`request` makes the objects, `rules` the findings about a spec and a config, `commands` create and delete the objects.
"""

from tpucfg.targets.compute_engine.request import (
    DOCUMENTS,
    KIND_PREFIX,
    NAME,
    ORIGINS,
    RESERVED,
    request_body,
    startup_script,
)
from tpucfg.targets.compute_engine.rules import rules, spec_findings
from tpucfg.targets.interface import commands_in

__all__ = [
    "DOCUMENTS",
    "KIND_PREFIX",
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
