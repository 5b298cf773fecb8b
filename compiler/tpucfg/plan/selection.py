"""Select the environments and sizes that a command works on, and group environments that its output shows once."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.job import Job, capacity_name
from tpucfg.plan.rung import Rung
from tpucfg.refusal import UsageError
from tpucfg.spec import Environment, Project
from tpucfg.text_format import nearest
from tpucfg.yamldoc import Assignment


def set_options(changes: Iterable[str]) -> tuple[str, ...]:
    """Return the options that repeat `--set` values, each `PATH=VALUE`."""
    return tuple(word for change in changes for word in ("--set", change))


class RunPart(NamedTuple):
    """The steps that a run made on one size."""

    size: str
    """Empty for a part that names none: the size is that of the run's records."""
    step: int
    """The step at its end, counted from the first step of the run, whatever sizes it was on."""
    batch_size: int | None = None
    """The examples of its steps, as they were recorded; None for those of the spec."""
    sequence_length: int | None = None
    """The tokens of an example, as they were recorded; None for those of the spec."""


class Selection(NamedTuple):
    """The jobs that a command works on; an empty field selects all."""

    environments: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    target: str | None = None
    """A target that replaces the one in the spec."""
    run: str | None = None
    probe: bool = False
    """True for the probes of the jobs."""
    done: tuple[RunPart, ...] = ()
    """The steps of the run, as the command line states them."""
    changes: tuple[Assignment, ...] = ()
    """Values that replace those of the spec."""
    recorded: Mapping[tuple[str, str], tuple[RunPart, ...]] = MappingProxyType({})
    """The steps of the run by its records, by project and environment."""


SelectedSizes = tuple[tuple[Environment, tuple[str, ...]], ...]
"""The selected environments, each on its selected target and with its selected sizes."""


class SelectionError(UsageError):
    """The selection names an environment or a size that the spec does not have."""


def select_sizes(project: Project, selection: Selection) -> SelectedSizes:
    """Return the selected environments with their selected target and sizes, in the project's order.

    Raises:
        SelectionError: An environment or size is unknown, or the selection names a size and an environment without it.
    """
    _refuse_unknown_environments(project, selection)
    selected = [
        (
            environment._replace(target=selection.target or environment.target),
            tuple(
                size for size in environment.sizes if not selection.sizes or size in selection.sizes
            ),
        )
        for environment in project.environments.values()
        if not selection.environments or environment.name in selection.environments
    ]
    for size in selection.sizes:
        without_size = [
            environment.name for environment, _ in selected if size not in environment.sizes
        ]
        if without_size and (selection.environments or len(without_size) == len(selected)):
            raise SelectionError(
                _unknown_size(project, size, without_size if selection.environments else [])
            )
    return tuple((environment, sizes) for environment, sizes in selected if sizes)


def _refuse_unknown_environments(project: Project, selection: Selection) -> None:
    for name in selection.environments:
        if name not in project.environments:
            near = nearest(name, tuple(project.environments))
            hint = f"did you mean {near}? " if near else ""
            known = ", ".join(project.environments)
            raise SelectionError(f"there is no environment {name}; {hint}the spec has {known}")


def _unknown_size(project: Project, size: str, lacking: Sequence[str]) -> str:
    ladders = [
        f"  {name}: {', '.join(environment.sizes)}"
        for name, environment in project.environments.items()
    ]
    problem = (
        f"{size} is not in the ladder of {' and '.join(lacking)}"
        if lacking
        else f"{size} is in no ladder"
    )
    return "\n".join([f"{problem}. The ladders are:", *ladders])


class LadderGroup(NamedTuple):
    """Environments that run the same ladder with the same target and capacities in the same region."""

    environments: tuple[str, ...]
    region: str
    target: str
    rungs: tuple[Rung, ...]
    """From small to large; never empty."""
    capacities: tuple[str, ...]
    """The capacity of each rung, in words."""

    @property
    def title(self) -> str:
        """The heading of the group: `dev, staging: vertex-ai in us-central1`."""
        probes = ", probes" if self.rungs[0].is_probe else ""
        return f"{', '.join(self.environments)}: {self.target} in {self.region}{probes}"


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
        capacities = tuple(capacity_name(job.target, job.settings) for job in environment_jobs)
        key = (
            region,
            target,
            tuple(job.size for job in environment_jobs),
            capacities,
            distinct_by.get(name),
        )
        rungs = tuple(job.rung for job in environment_jobs)
        group = groups.get(key) or LadderGroup((), region, target, rungs, capacities)
        groups[key] = group._replace(environments=(*group.environments, name))
    return tuple(groups.values())
