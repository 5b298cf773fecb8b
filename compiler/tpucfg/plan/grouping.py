"""Group environments that run the same ladder in the same way, so that output shows them once."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from tpucfg.plan.job import Job
from tpucfg.plan.rung import Rung
from tpucfg.spec.settings import CapacityKind


class LadderGroup(NamedTuple):
    """Environments that run the same ladder with the same target and capacities in the same region."""

    environments: tuple[str, ...]
    region: str
    target: str
    rungs: tuple[Rung, ...]
    """From small to large; never empty."""
    capacities: tuple[CapacityKind, ...]
    """The capacity of each rung."""

    @property
    def title(self) -> str:
        """The heading of the group: `dev, staging: vertex-ai in us-central1`."""
        return f"{', '.join(self.environments)}: {self.target} in {self.region}"


def group_ladders(
    jobs: Sequence[Job], distinct_by: Mapping[str, Hashable] = MappingProxyType({})
) -> tuple[LadderGroup, ...]:
    """Return the groups of a plan's jobs, in the order of each group's first environment.

    Args:
        jobs: The jobs of a plan, ordered by environment.
        distinct_by: By environment, further output; environments are grouped only if it is equal.
    """
    groups: dict[Hashable, LadderGroup] = {}
    for name, jobs_of_environment in groupby(jobs, key=lambda job: job.environment.name):
        environment_jobs = tuple(jobs_of_environment)
        region, target = environment_jobs[0].environment.region, environment_jobs[0].target
        capacities = tuple(job.capacity.kind for job in environment_jobs)
        key = (region, target, tuple(job.size for job in environment_jobs), capacities, distinct_by.get(name))
        rungs = tuple(job.rung for job in environment_jobs)
        group = groups.get(key) or LadderGroup((), region, target, rungs, capacities)
        groups[key] = group._replace(environments=(*group.environments, name))
    return tuple(groups.values())
