"""GKE: the config is a JobSet with one job for each slice, whose pods take one host each.

`request` makes the JobSet and its companions, on the `nodes` of their slices; `rules` has the findings about a spec and
a config, `commands` create and delete the objects. Sources:
https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/ (the request body),
https://cloud.google.com/kubernetes-engine/docs/how-to/tpus (selectors and chips of a pod),
https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-multislice (JobSets on TPU slices).
"""

from tpucfg.targets.gke.request import (
    COMPANION_SCHEMAS,
    NAME,
    ORIGINS,
    RESERVED,
    companions,
    request_body,
)
from tpucfg.targets.gke.rules import rules, spec_findings
from tpucfg.targets.interface import commands_in

__all__ = [
    "COMPANION_SCHEMAS",
    "NAME",
    "ORIGINS",
    "RESERVED",
    "companions",
    "request_body",
    "rules",
    "spec_findings",
    "submission",
]

submission = commands_in(f"{__name__}.commands")
