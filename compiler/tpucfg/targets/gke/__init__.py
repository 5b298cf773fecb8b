"""GKE: the config is a JobSet with one job for each slice, whose pods take one host each.

Sources: https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/ (the request body),
https://cloud.google.com/kubernetes-engine/docs/how-to/tpus (selectors and chips of a pod),
https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-multislice (JobSets on TPU slices).
"""

from tpucfg.targets.gke.findings import NAME, spec_findings
from tpucfg.targets.gke.jobset import companions, request_body
from tpucfg.targets.gke.origins import ORIGINS, RESERVED
from tpucfg.targets.gke.rules import rules
from tpucfg.targets.gke.secrets import COMPANION_SCHEMAS
from tpucfg.targets.gke.submission import submission

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
