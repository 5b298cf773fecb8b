"""The status of an environment's whole ladder: its records, the evaluation of each rung, and the cost of runs."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.plan import Rung, Selection, ladder, plan
from tpucfg.plan.job import Program, capacity_name, program_of
from tpucfg.plan.rung import probe_rung
from tpucfg.results.cost import Cost, costs
from tpucfg.results.evaluation import RungEvaluation, evaluate_rungs
from tpucfg.results.records import Results, read_records, records_of_programs
from tpucfg.spec import CapacityKind, Environment, Gate, Probe, Project

# Imported by the function that reads fits: most specs name no training step.
if TYPE_CHECKING:
    from tpucfg.fit.fit_findings import FitProblem
    from tpucfg.fit.forecast import StepInterval
    from tpucfg.fit.rung_fit import KnownFits, RungFit


class LadderStatus(NamedTuple):
    """An environment's ladder with its measurements."""

    environment: Environment
    results: Results
    rungs: tuple[Rung, ...]
    """All rungs of the ladder, because a rung is compared with the one below even if that one is not selected."""
    evaluations: tuple[RungEvaluation, ...]
    """One for each rung."""
    costs: tuple[Cost, ...]
    """The cost of a whole run, one for each rung."""
    capacities: tuple[CapacityKind, ...]
    """The capacity of each rung, which decides its price."""
    capacity_names: tuple[str, ...]
    """The capacity of each rung in words, such as for a spec that sets none."""
    gate: Gate | None
    """The gate of the evaluations."""
    programs: Mapping[str, Program]
    """The program of each recorded rung's job, by size."""
    probe: Probe | None = None
    """None for a spec without probes."""
    probe_costs: tuple[Cost, ...] = ()
    """The cost of a probe, one for each rung; none for a spec without probes."""
    fits: "KnownFits | None" = None
    """The fits of the rungs; None if the spec names no training step for any of them."""
    fit_problems: "Mapping[str, FitProblem]" = MappingProxyType({})
    """The reason why `gate.fit` lets a rung not start, by size; empty for a gate without it."""
    forecasts: "Mapping[str, StepInterval]" = MappingProxyType({})
    """The time in which a step is expected, by size; without rungs that have no forecast."""

    @property
    def others(self) -> tuple[str, ...]:
        """The sizes whose throughput is that of another program."""
        return tuple(rung.size for rung in self.evaluations if rung.is_other)

    def with_costs_of_probes(self) -> "LadderStatus":
        """Return the ladder with the figures and costs of probes in the place of those of runs."""
        rungs = tuple(probe_rung(rung, self.probe) for rung in self.rungs) if self.probe else self.rungs
        return self._replace(rungs=rungs, costs=self.probe_costs, probe=None, probe_costs=())

    def for_probes(self) -> "LadderStatus":
        """Return the ladder by the gate of probes, which asks for no metric of a whole run."""
        gate = self.gate.for_probes if self.gate else None
        records = {rung.size: rung.records for rung in self.evaluations}
        evaluations = evaluate_rungs([rung.slice for rung in self.evaluations], records, gate)
        return self._replace(gate=gate, evaluations=evaluations)

    @property
    def is_measured(self) -> bool:
        """True if the gate compares measurements of the rungs."""
        return self.gate is not None and self.gate.measures

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The errors in the files of records and of fits."""
        return (*self.results.findings, *(self.fits.file.findings if self.fits else ()))

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """The names and texts of these files."""
        fits = ((str(self.fits.file.path), self.fits.file.text),) if self.fits else ()
        return ((self.results.file, self.results.text), *fits)

    def evaluation(self, size: str) -> RungEvaluation:
        """Return the evaluation of one rung."""
        return next(rung for rung in self.evaluations if rung.size == size)

    def fit(self, size: str) -> "RungFit | None":
        """Return the fit of one rung; None if the spec names no training step for it."""
        return self.fits.of_environment(self.environment.name).get(size) if self.fits else None

    def rung(self, size: str) -> Rung:
        """Return one rung with its figures."""
        return next(rung for rung in self.rungs if rung.size == size)

    def cost(self, size: str) -> Cost:
        """Return the cost of a run on one rung."""
        return next(cost for rung, cost in zip(self.rungs, self.costs, strict=True) if rung.size == size)

    def probe_cost(self, size: str) -> Cost | None:
        """Return the cost of a probe on one rung; None for a spec without probes."""
        costs_by_size = dict(zip((rung.size for rung in self.rungs), self.probe_costs, strict=False))
        return costs_by_size.get(size)


def ladder_status(project: Project, catalog: Catalog, environment: Environment, folder: Path) -> LadderStatus:
    """Return the status of one environment's ladder, with the results next to a spec in that folder."""
    return ladder_statuses(project, catalog, [environment], folder)[environment.name]


def ladder_statuses(
    project: Project, catalog: Catalog, environments: Iterable[Environment], folder: Path
) -> Mapping[str, LadderStatus]:
    """Return the status of each environment, by name; an environment may be given several times."""
    unique = {environment.name: environment for environment in environments}
    # One file has the fits of all environments, and the records of each have a file of their own.
    fits = _known_fits(project, catalog, unique.values(), folder)
    return {
        name: _status(project, catalog, environment, folder, fits and fits.in_environment(name))
        for name, environment in unique.items()
    }


def _status(
    project: Project, catalog: Catalog, environment: Environment, folder: Path, fits: "KnownFits | None"
) -> LadderStatus:
    results = read_records(folder, environment.name)
    # The environment's whole ladder, and not the selected jobs: --size must not change how a rung is evaluated.
    rungs = ladder(project, catalog, environment.sizes)
    programs = _programs(project, catalog, environment, results)
    same_image = project.gate is not None and project.gate.same_image
    records = records_of_programs(results, project.name, programs, same_image=same_image)
    evaluations = evaluate_rungs([rung.slice for rung in rungs], records, project.gate)
    settings = [project.settings[environment.name, rung.size] for rung in rungs]
    forecasts = _forecasts(rungs, evaluations, fits, environment)
    slowest = {rung.size: rung.batch_size / forecasts[rung.size].high for rung in rungs if rung.size in forecasts}
    probe = project.probe

    def costs_of(rungs_run: Iterable[Rung]) -> tuple[Cost, ...]:
        return costs(evaluations, [rung.examples for rung in rungs_run], project.prices, settings, slowest)

    return LadderStatus(
        environment=environment,
        results=results,
        rungs=rungs,
        evaluations=evaluations,
        costs=costs_of(rungs),
        capacities=tuple(each.capacity.kind for each in settings),
        capacity_names=tuple(capacity_name(environment.target, each) for each in settings),
        gate=project.gate,
        programs=programs,
        probe=probe,
        probe_costs=costs_of(probe_rung(rung, probe) for rung in rungs) if probe else (),
        fits=fits,
        fit_problems=_fit_problems(project.gate, fits, environment),
        forecasts=forecasts,
    )


def _programs(project: Project, catalog: Catalog, environment: Environment, results: Results) -> Mapping[str, Program]:
    """Return the programs of the rungs that have records which state one."""
    # Always for the environment's own target, regardless of --target: `record` takes no other.
    recorded = {record.size for record in results.records if record.name == project.name and record.program}
    sizes = tuple(size for size in environment.sizes if size in recorded)
    jobs = plan(project, catalog, Selection((environment.name,), sizes)).jobs if sizes else ()
    return {job.size: program_of(project, job) for job in jobs}


def _known_fits(
    project: Project, catalog: Catalog, environments: Collection[Environment], folder: Path
) -> "KnownFits | None":
    """Return the fits of ladders, from the results next to a spec in that folder; None if no rung has a step."""
    rungs = ((environment.name, size) for environment in environments for size in environment.sizes)
    if not any(project.settings[rung].trainer.fit for rung in rungs):
        return None
    from tpucfg.fit.rung_fit import read_known_fits

    jobs = plan(project, catalog, Selection(tuple(environment.name for environment in environments))).jobs
    return read_known_fits(project, jobs, folder)


def _fit_problems(gate: Gate | None, fits: "KnownFits | None", environment: Environment) -> "Mapping[str, FitProblem]":
    """Return the reasons why `gate.fit` lets rungs not start, by size; none for a gate without it."""
    if gate is None or not gate.fit or fits is None:
        return {}
    from tpucfg.fit.fit_findings import fit_problems

    return fit_problems(fits, environment.name, environment.sizes)


def _forecasts(
    rungs: tuple[Rung, ...],
    evaluations: tuple[RungEvaluation, ...],
    fits: "KnownFits | None",
    environment: Environment,
) -> "Mapping[str, StepInterval]":
    """Return the time in which the step of each rung is expected, by size."""
    if fits is None:
        return {}
    from tpucfg.fit.forecast import step_forecasts

    current = {size: fit.current for size, fit in fits.of_environment(environment.name).items() if fit.current}
    # Records of other programs predict nothing about this one's step.
    measured = {
        rung.size: rung.batch_size / each.throughput
        for rung, each in zip(rungs, evaluations, strict=True)
        if each.throughput and not each.is_other
    }
    return step_forecasts([rung.slice for rung in rungs], current, measured)
