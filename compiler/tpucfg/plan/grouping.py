"""Jobs to climbs: environments that climb the same ladder in the same way are shown as one."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from tpucfg.plan.job import Job
from tpucfg.plan.rung import Rung


class LadderGroup(NamedTuple):
    """Environments that climb the same ladder with the same target in the same region."""

    environments: tuple[str, ...]
    region: str
    target: str
    rungs: tuple[Rung, ...]
    """From small to large; never empty."""

    @property
    def title(self) -> str:
        """`dev, staging: vertex-ai in us-central1`."""
        return f"{', '.join(self.environments)}: {self.target} in {self.region}"


def group_ladders(jobs: Sequence[Job], apart: Mapping[str, Hashable] = MappingProxyType({})) -> tuple[LadderGroup, ...]:
    """The climbs of a plan's jobs, in the order in which their first environments stand there.

    `apart`: what else is shown of an environment, by its name; those of which it differs are not shown as one.
    """
    made: dict[Hashable, LadderGroup] = {}
    for name, jobs_of_one in groupby(jobs, key=lambda job: job.environment.name):
        own = tuple(jobs_of_one)
        region, target = own[0].environment.region, own[0].target
        key = (region, target, tuple(job.size for job in own), apart.get(name))
        before = made.get(key) or LadderGroup((), region, target, tuple(job.rung for job in own))
        made[key] = before._replace(environments=(*before.environments, name))
    return tuple(made.values())
