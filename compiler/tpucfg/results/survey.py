"""One environment's whole ladder at once: the records beside the spec, where each rung stands, and what runs cost."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.config.render import digest, message_of
from tpucfg.plan import Rung, Selection, ladder, plan
from tpucfg.results.cost import Cost, costs
from tpucfg.results.line import Example
from tpucfg.results.model import Record, Results
from tpucfg.results.read import latest, read
from tpucfg.results.standing import Standing, standings
from tpucfg.spec.model import Environment, Gate, Project


class Survey(NamedTuple):
    """An environment's ladder with what was measured on it."""

    environment: Environment
    results: Results
    rungs: tuple[Rung, ...]
    """All of them, whatever was selected: a rung is judged by the one below."""
    standings: tuple[Standing, ...]
    """Of each rung."""
    costs: tuple[Cost, ...]
    """Of a whole run on each rung."""
    gate: Gate | None
    """What the standings were judged by."""
    jobs: Mapping[str, str]
    """The hash of the job that the spec makes now, by size, of each rung whose record has one."""

    @property
    def outdated(self) -> tuple[str, ...]:
        """The sizes that were recorded for another config than the spec makes now."""
        jobs = ((it.size, it.record.job) for it in self.standings if it.record and it.record.job)
        return tuple(size for size, job in jobs if job != self.jobs.get(size))

    def standing(self, size: str) -> Standing:
        """That of one rung."""
        return next(it for it in self.standings if it.size == size)

    def cost(self, size: str) -> Cost:
        """That of a run on one rung."""
        return next(cost for rung, cost in zip(self.rungs, self.costs, strict=True) if rung.size == size)

    def below(self, size: str) -> Standing | None:
        """That of the rung below, which has to have passed; None for the first rung."""
        below = self.standing(size).below
        return self.standing(below.size) if below else None


def survey(project: Project, catalog: Catalog, environment: Environment, folder: Path) -> Survey:
    """The ladder of one environment, with the results beside a spec in that folder."""
    results = read(folder, environment.name, Example(project.name, environment.sizes[0]))
    rungs = ladder(project, catalog, environment.sizes)
    records = latest(results, project.name)
    standing = standings([rung.slice for rung in rungs], records, project.gate)
    run_costs = costs(standing, [rung.examples for rung in rungs], project.prices)
    jobs = _jobs(project, catalog, environment, records)
    return Survey(environment, results, rungs, standing, run_costs, project.gate, jobs)


def _jobs(
    project: Project, catalog: Catalog, environment: Environment, records: Mapping[str, Record]
) -> Mapping[str, str]:
    """As the environment's own target has them: a record knows no other."""
    sizes = tuple(size for size in environment.sizes if size in records and records[size].job)
    jobs = plan(project, catalog, Selection((environment.name,), sizes)).jobs if sizes else ()
    return {job.size: digest(job, message_of(job)) for job in jobs}


def surveys(
    project: Project, catalog: Catalog, environments: Iterable[Environment], folder: Path
) -> Mapping[str, Survey]:
    """Each of these environments once, by its name."""
    return {it.name: survey(project, catalog, it, folder) for it in {it.name: it for it in environments}.values()}
