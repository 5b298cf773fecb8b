"""The longest time that a job may run, as far as its config limits it."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from tpucfg.plan import Job
from tpucfg.targets import RequestBody
from tpucfg.yamldoc.document import KeyPath

_LIMITS: Final[Mapping[str, KeyPath]] = {
    # https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling
    "vertex-ai": ("scheduling", "timeout"),
    # https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs#Scheduling
    "ai-platform": ("trainingInput", "scheduling", "maxRunningTime"),
}
"""By target, the field that limits the running time of a whole job, with every attempt. Other targets have none."""
_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)s")
_SECONDS_PER_HOUR: Final = 3600


def run_limit(job: Job, body: RequestBody) -> Fraction | None:
    """Return the most hours that a job may run; None if its config sets no limit.

    Read from the request body, because the spec's `extra` can set the field too. The default of a service does not
    count as a limit: the spec does not contain it, and the service may change it.
    """
    value: Any = body
    for step in _LIMITS.get(job.target, ()):
        value = value.get(step) if isinstance(value, dict) else None
    duration = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return Fraction(duration[1]) / _SECONDS_PER_HOUR if duration else None
