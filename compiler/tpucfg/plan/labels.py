"""Labels by which lists and the bill are read by spec, environment, size and run.

The keys and values have at most 63 lower-case letters, digits and dashes, with a letter first in a key:
https://cloud.google.com/resource-manager/docs/labels-overview#requirements. Values of Kubernetes also end with a letter
or a digit: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set.
"""

from typing import Final

from tpucfg.plan.job import PROBE, Job
from tpucfg.spec import Environment
from tpucfg.spec.project import RESERVED_LABELS

_MAX_VALUE_LENGTH: Final = 63


def environment_labels(name: str, environment: Environment, *rest: str) -> dict[str, str]:
    """Return the labels of what the stack creates for an environment: the spec, the environment, and its own labels.

    Args:
        name: The project's name in the spec.
        environment: The environment.
        rest: The values of the labels that only jobs have.
    """
    return {**dict(zip(RESERVED_LABELS, (name, environment.name, *rest), strict=False)), **environment.labels}


def job_labels(job: Job) -> dict[str, str]:
    """Return the labels of a job: those of its environment, its size, and its run.

    A job that is not part of a named run is a run of its own, by the job's name; a probe is never part of a run.
    """
    run = f"{PROBE}-{job.run}" if job.whole and job.run else job.run or job.name
    return environment_labels(job.project, job.environment, job.size, run[:_MAX_VALUE_LENGTH].rstrip("-"))
