"""Project and selection to Plan: pure arithmetic, no file, no clock, no network."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding, collect, errors
from tpucfg.plan.job import Job, make_job
from tpucfg.plan.rules.location_rules import data_locality_findings, location_findings
from tpucfg.plan.rules.scaling_warnings import scaling_warnings
from tpucfg.plan.rules.spec_rules import project_findings
from tpucfg.plan.rung import Rung, make_rung
from tpucfg.plan.selection import SelectedSizes, Selection, select_sizes
from tpucfg.spec.project import Project


class Plan(NamedTuple):
    """The selected jobs, and what is to be said about them."""

    project: Project
    jobs: tuple[Job, ...]
    """By the environments' names, each in the order of its ladder. Empty where no rung can be worked out."""
    findings: tuple[Finding, ...]


_UNPLANNABLE: Final = frozenset({"TPU020", "TPU040"})
"""Findings without whose end no rung can be worked out: a size that does not exist, a batch that does not divide."""


def plan(project: Project, catalog: Catalog, selection: Selection | None = None) -> Plan:
    """The selected jobs with all figures worked out, and every finding about them.

    Raises:
        SelectionError: As `select` says.
    """
    selection = selection or Selection()
    chosen = _chosen(project, selection)
    found = [*project_findings(project, catalog), *_environment_findings(project, catalog, chosen, selection)]
    if errors(found) and any(finding.id in _UNPLANNABLE for finding in found):
        return Plan(project, (), collect(found))
    rungs = {} if project.broken & {"training", "overrides"} else _rungs(project, catalog, chosen)
    found += scaling_warnings(project, tuple(rungs.values()))
    jobs = () if project.broken else tuple(_jobs(project, chosen, rungs, selection))
    return Plan(project, jobs, collect(found))


def _chosen(project: Project, selection: Selection) -> SelectedSizes:
    """What `select` gives; of a broken spec all sound environments, as one asked for may be among the others."""
    if "sizes" in project.broken:
        return ()
    return select_sizes(project, Selection() if "environments" in project.broken else selection)


def ladder(project: Project, catalog: Catalog, sizes: Sequence[str]) -> tuple[Rung, ...]:
    """The rungs of these sizes, which the catalogue must know."""
    tuned_on = _slice(catalog, project.training.tuned_on)
    return tuple(make_rung(project, tuned_on, _slice(catalog, size)) for size in sizes)


def _environment_findings(
    project: Project,
    catalog: Catalog,
    chosen: SelectedSizes,
    selection: Selection,
) -> Iterator[Finding]:
    if not project.broken & {"name", "target"}:
        for environment, sizes in chosen:
            target = selection.target or environment.target
            yield from location_findings(project, catalog, environment, sizes, target)
    if not project.broken & {"name", "trainer", "overrides"}:
        yield from data_locality_findings(project, chosen)


def _rungs(project: Project, catalog: Catalog, chosen: SelectedSizes) -> dict[str, Rung]:
    """Each selected rung once, by its size, however many environments climb it."""
    sizes = tuple(dict.fromkeys(size for _, sizes in chosen for size in sizes))
    return dict(zip(sizes, ladder(project, catalog, sizes), strict=True))


def _jobs(
    project: Project,
    chosen: SelectedSizes,
    rungs: Mapping[str, Rung],
    selection: Selection,
) -> Iterator[Job]:
    for environment, sizes in chosen:
        for size in sizes:
            yield make_job(project, environment, rungs[size], selection)


def _slice(catalog: Catalog, size: str) -> Slice:
    slice_ = catalog.find(size)
    if slice_ is None:
        raise LookupError(size)  # whole_findings has refused it before anything is planned
    return slice_
