"""One environment's whole ladder at once: the records beside the spec, where each rung stands, and what runs cost."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.plan import Rung, Selection, ladder, plan
from tpucfg.render.pipeline import build_request_body, job_hash
from tpucfg.results.cost import Cost, costs
from tpucfg.results.evaluation import RungEvaluation, evaluate_rungs
from tpucfg.results.record import Record, Results
from tpucfg.results.record_file import latest_records, read_records
from tpucfg.results.record_parser import ExampleRecord
from tpucfg.spec.project import Environment, Gate, Project


class LadderStatus(NamedTuple):
    """An environment's ladder with what was measured on it."""

    environment: Environment
    results: Results
    rungs: tuple[Rung, ...]
    """All of them, whatever was selected: a rung is judged by the one below."""
    evaluations: tuple[RungEvaluation, ...]
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
        jobs = ((it.size, it.record.job) for it in self.evaluations if it.record and it.record.job)
        return tuple(size for size, job in jobs if job != self.jobs.get(size))

    def standing(self, size: str) -> RungEvaluation:
        """That of one rung."""
        return next(it for it in self.evaluations if it.size == size)

    def cost(self, size: str) -> Cost:
        """That of a run on one rung."""
        return next(cost for rung, cost in zip(self.rungs, self.costs, strict=True) if rung.size == size)

    def below(self, size: str) -> RungEvaluation | None:
        """That of the rung below, which has to have passed; None for the first rung."""
        below = self.standing(size).below
        return self.standing(below.size) if below else None


def ladder_status(project: Project, catalog: Catalog, environment: Environment, folder: Path) -> LadderStatus:
    """The ladder of one environment, with the results beside a spec in that folder."""
    results = read_records(folder, environment.name, ExampleRecord(project.name, environment.sizes[0]))
    rungs = ladder(project, catalog, environment.sizes)
    records = latest_records(results, project.name)
    standing = evaluate_rungs([rung.slice for rung in rungs], records, project.gate)
    run_costs = costs(standing, [rung.examples for rung in rungs], project.prices)
    jobs = _jobs(project, catalog, environment, records)
    return LadderStatus(environment, results, rungs, standing, run_costs, project.gate, jobs)


def _jobs(
    project: Project, catalog: Catalog, environment: Environment, records: Mapping[str, Record]
) -> Mapping[str, str]:
    """As the environment's own target has them: a record knows no other."""
    sizes = tuple(size for size in environment.sizes if size in records and records[size].job)
    jobs = plan(project, catalog, Selection((environment.name,), sizes)).jobs if sizes else ()
    return {job.size: job_hash(job, build_request_body(job)) for job in jobs}


def ladder_statuses(
    project: Project, catalog: Catalog, environments: Iterable[Environment], folder: Path
) -> Mapping[str, LadderStatus]:
    """Each of these environments once, by its name."""
    return {
        it.name: ladder_status(project, catalog, it, folder) for it in {it.name: it for it in environments}.values()
    }
