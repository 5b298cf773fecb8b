"""The status of an environment's whole ladder: its records, and the evaluation, costs and fit of each rung."""

import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.plan import Rung, Selection, ladder, plan
from tpucfg.plan.job import SpeedSettings, program_of
from tpucfg.plan.rung import probe_rung
from tpucfg.results.cost import Cost, costs
from tpucfg.results.evaluation import RungEvaluation, evaluate_rungs, records_of_programs
from tpucfg.results.records import Results, read_records
from tpucfg.spec import Environment, Gate, Probe, Project, Settings, command_words

# Imported by the function that reads fits: most specs name no training step.
if TYPE_CHECKING:
    from tpucfg.fit.fit_findings import FitProblem
    from tpucfg.fit.forecast import StepInterval
    from tpucfg.fit.rung_fit import KnownFits, RungFit


class RungStatus(NamedTuple):
    """One rung of a ladder, with its measurements, its costs and its fit."""

    rung: Rung
    settings: Settings
    evaluation: RungEvaluation
    cost: Cost
    """The cost of a whole run."""
    probe_cost: Cost | None = None
    """The cost of a probe; None for a spec without probes."""
    fit: "RungFit | None" = None
    """None if the spec names no training step for the rung."""
    fit_problem: "FitProblem | None" = None
    """The reason why `gate.fit` lets the rung not start; None for a gate without it."""
    forecast: "StepInterval | None" = None
    """The time in which a step is expected; None if it is not known."""

    @property
    def size(self) -> str:
        """The accelerator type: `v3-32`."""
        return self.rung.size


class LadderStatus(NamedTuple):
    """An environment's ladder with its measurements."""

    project: Project
    environment: Environment
    results: Results
    rungs: tuple[RungStatus, ...]
    """All rungs of the ladder, because a rung is compared with the one below even if that one is not selected."""
    gate: Gate | None
    """The gate of the evaluations."""
    programs: Mapping[str, SpeedSettings]
    """The program of each recorded rung's job, by size."""
    probe: Probe | None = None
    """None for a spec without probes."""
    fits: "KnownFits | None" = None
    """The fits of the rungs; None if the spec names no training step for any of them."""

    @property
    def evaluations(self) -> tuple[RungEvaluation, ...]:
        """The evaluation of each rung."""
        return tuple(each.evaluation for each in self.rungs)

    @property
    def others(self) -> tuple[str, ...]:
        """The sizes whose throughput is that of another program."""
        return tuple(each.size for each in self.rungs if each.evaluation.is_other)

    def with_costs_of_probes(self) -> "LadderStatus":
        """Return the ladder with the figures and costs of probes in the place of those of runs."""
        if self.probe is None:
            return self
        rungs = (
            each._replace(
                rung=probe_rung(each.rung, self.probe),
                cost=each.probe_cost or each.cost,
                probe_cost=None,
            )
            for each in self.rungs
        )
        return self._replace(rungs=tuple(rungs), probe=None)

    def for_probes(self) -> "LadderStatus":
        """Return the ladder by the gate of probes, which asks for no metric of a whole run."""
        gate = self.gate.for_probes if self.gate else None
        records = {each.size: each.evaluation.records for each in self.rungs}
        evaluations = evaluate_rungs([each.rung.slice for each in self.rungs], records, gate)
        pairs = zip(self.rungs, evaluations, strict=True)
        return self._replace(
            gate=gate, rungs=tuple(each._replace(evaluation=new) for each, new in pairs)
        )

    @property
    def is_measured(self) -> bool:
        """True if the gate compares measurements of the rungs."""
        return self.gate is not None and self.gate.measures

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The errors in the files of records and of fits."""
        return (*self.results.findings, *(self.fits.file.findings if self.fits else ()))

    @property
    def sources(self) -> dict[str, str]:
        """The texts of these files by their names."""
        fits = {str(self.fits.file.path): self.fits.file.text} if self.fits else {}
        return {self.results.file: self.results.text} | fits

    def rung(self, size: str) -> RungStatus:
        """Return one rung."""
        return next(each for each in self.rungs if each.size == size)

    def command(self, name: str, size: str, *options: str) -> str:
        """Return a tpucfg command line about one rung."""
        return command_line(self.project, self.environment.name, name, size, *options)


def command_line(project: Project, environment: str, name: str, size: str, *options: str) -> str:
    """Return a tpucfg command line about one rung, quoted for a shell."""
    return shlex.join(
        [*command_words(name, project.document.file, env=environment, size=size), *options]
    )


def ladder_status(
    project: Project, catalog: Catalog, environment: Environment, folder: Path
) -> LadderStatus:
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
    project: Project,
    catalog: Catalog,
    environment: Environment,
    folder: Path,
    fits: "KnownFits | None",
) -> LadderStatus:
    results = read_records(folder, environment.name)
    # The environment's whole ladder, and not the selected jobs: --size must not change how a rung is evaluated.
    rungs = ladder(project, catalog, environment.sizes)
    programs = _programs(project, catalog, environment, results)
    same_image = project.gate is not None and project.gate.same_image
    records = records_of_programs(results, project.name, programs, same_image=same_image)
    evaluations = evaluate_rungs([rung.slice for rung in rungs], records, project.gate)
    settings = [project.settings[environment.name, rung.size] for rung in rungs]
    by_size = fits.of_environment(environment.name) if fits else {}
    forecasts = _forecasts(rungs, evaluations, by_size)
    slowest = {
        rung.size: rung.batch_size / forecasts[rung.size].high
        for rung in rungs
        if rung.size in forecasts
    }
    problems = _fit_problems(project.gate, fits, environment)
    probe = project.probe

    def costs_of(ladder_: Iterable[Rung]) -> tuple[Cost, ...]:
        return costs(
            evaluations, [rung.examples for rung in ladder_], project.prices, settings, slowest
        )

    probe_costs = (
        costs_of(probe_rung(rung, probe) for rung in rungs) if probe else [None] * len(rungs)
    )
    every = zip(rungs, settings, evaluations, costs_of(rungs), probe_costs, strict=True)
    statuses = tuple(
        RungStatus(
            *each, by_size.get(size := each[0].size), problems.get(size), forecasts.get(size)
        )
        for each in every
    )
    return LadderStatus(
        project, environment, results, statuses, project.gate, programs, probe, fits
    )


def _programs(
    project: Project, catalog: Catalog, environment: Environment, results: Results
) -> Mapping[str, SpeedSettings]:
    """Return the programs of the rungs that have records which state one."""
    # Always for the environment's own target, regardless of --target: `record` takes no other.
    recorded = {
        record.size for record in results.records if record.name == project.name and record.program
    }
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

    jobs = plan(
        project, catalog, Selection(tuple(environment.name for environment in environments))
    ).jobs
    return read_known_fits(project, jobs, folder)


def _fit_problems(
    gate: Gate | None, fits: "KnownFits | None", environment: Environment
) -> "Mapping[str, FitProblem]":
    """Return the reasons why `gate.fit` lets rungs not start, by size; none for a gate without it."""
    if gate is None or not gate.fit or fits is None:
        return {}
    from tpucfg.fit.fit_findings import fit_problems

    return fit_problems(fits, environment.name, environment.sizes)


def _forecasts(
    rungs: tuple[Rung, ...], evaluations: tuple[RungEvaluation, ...], fits: "Mapping[str, RungFit]"
) -> "Mapping[str, StepInterval]":
    """Return the time in which the step of each rung is expected, by size."""
    if not fits:
        return {}
    from tpucfg.fit.forecast import step_forecasts

    current = {size: fit.current for size, fit in fits.items() if fit.current}
    # Records of other programs predict nothing about this one's step.
    measured = {
        rung.size: rung.batch_size / each.throughput
        for rung, each in zip(rungs, evaluations, strict=True)
        if each.throughput and not each.is_other
    }
    return step_forecasts([rung.slice for rung in rungs], current, measured)
