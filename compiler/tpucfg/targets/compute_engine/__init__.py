"""Compute Engine: the config is a managed instance group of TPU VMs with its template and policy, or one instance.

`request` makes the objects, `paths` their names, `machine` what describes a host in them, `startup` the script of a
host, `findings` the findings about a spec, `submission` the commands. `rules` has the findings about a config, from
`host_rules` with `scheduling_rules`, `group_rules` and `name_rules`; `config_hosts` reads the hosts of a config, and
`references` the paths in a group.
"""

from tpucfg.targets.compute_engine.findings import spec_findings
from tpucfg.targets.compute_engine.origins import ORIGINS, RESERVED
from tpucfg.targets.compute_engine.paths import DOCUMENTS, KIND_PREFIX, NAME, REFERENCES, REFUSED_KINDS
from tpucfg.targets.compute_engine.request import request_body
from tpucfg.targets.compute_engine.rules import rules
from tpucfg.targets.compute_engine.startup import startup_script
from tpucfg.targets.compute_engine.submission import submission

__all__ = [
    "DOCUMENTS",
    "KIND_PREFIX",
    "NAME",
    "ORIGINS",
    "REFERENCES",
    "REFUSED_KINDS",
    "RESERVED",
    "request_body",
    "rules",
    "spec_findings",
    "startup_script",
    "submission",
]
