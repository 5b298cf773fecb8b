"""Plan the selected jobs of a project: pure arithmetic, without files, clock or network."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding, collect, errors
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.job import Job, make_job
from tpucfg.plan.rules.access_rules import access_findings
from tpucfg.plan.rules.capacity_rules import capacity_findings
from tpucfg.plan.rules.figure_rules import batch_per_device_findings
from tpucfg.plan.rules.location_rules import data_locality_findings, location_findings
from tpucfg.plan.rules.parallelism_rules import parallelism_findings
from tpucfg.plan.rules.project_rules import project_findings
from tpucfg.plan.rules.scaling_warnings import scaling_warnings
from tpucfg.plan.rules.trainer_rules import missing_values
from tpucfg.plan.run_progress import RunProgress, continued_rung, joined_parts, run_progress
from tpucfg.plan.rung import Rung, make_rung, probe_rung
from tpucfg.plan.selection import SelectedSizes, Selection, SelectionError, select_sizes
from tpucfg.spec import Environment, Project
from tpucfg.spec.sections import apply_rules, compares


class Plan(NamedTuple):
    """The selected jobs, and the findings about them."""

    project: Project
    jobs: tuple[Job, ...]
    """In the order of the environments' names, then of each ladder. Empty if no rung can be computed."""
    findings: tuple[Finding, ...]


PROBE_EXAMPLE: Final = "probe:\n  steps: 50\n"
"""The section that a spec without probes lacks."""
_UNPLANNABLE: Final = frozenset({"TPU020", "TPU040", "TPU048"})
"""Errors that prevent the computation of rungs: a size that does not exist, a batch or a slice that does not divide."""

_NO_TEXT: Final = r"[0-9]+(?:e-?[0-9]+)?|0x[0-9a-f]+|0b[01]+|null|true|false|yes|no|on|off"
"""The ids of runs that YAML 1.1 reads as a number, a boolean or null."""


def plan(project: Project, catalog: Catalog, selection: Selection | None = None) -> Plan:
    """Plan the selected jobs, and collect the findings about the project and the jobs.

    Raises:
        SelectionError: The selection names an environment or a size that the spec does not have, asks for probes of a
            spec without them, or for a run of which nothing is left or not enough is known, or whose name is no text.
    """
    selection = selection or Selection()
    if selection.run and project.training.preset and re.fullmatch(_NO_TEXT, selection.run):
        raise SelectionError(
            f"--run {selection.run}: the program reads its arguments as YAML, and this name not as text; "
            f"choose another one, such as r-{selection.run}"
        )
    of_run = project
    if selection.probe:
        project = _of_probes(project)
    selected = _selected(project, selection)
    findings = [
        *project_findings(project, catalog),
        *parallelism_findings(project, catalog),
        *_environment_findings(project, catalog, selected),
    ]
    if errors(findings) and any(finding.id in _UNPLANNABLE for finding in findings):
        return Plan(project, (), collect(findings))
    rungs = dict(_rungs(project, catalog, selected))
    findings += batch_per_device_findings(project, tuple(rungs.values()))
    findings += scaling_warnings(project, tuple(rungs.values()))
    jobs = tuple(_jobs(of_run, catalog, selection, selected, rungs))
    if selection.probe:
        jobs = tuple(_probes(project, jobs))
    findings += apply_rules((access_findings, missing_values), project, jobs)
    return Plan(project, jobs, collect(findings))


# All but the trainer: a ladder, which shows no program, has jobs with a stand-in for it.
@compares(
    "name",
    "target",
    "sizes",
    "environments",
    "capacity",
    "training",
    "overrides",
    "probe",
    "targets",
)
def _jobs(
    project: Project,
    catalog: Catalog,
    selection: Selection,
    selected: SelectedSizes,
    rungs: Mapping[str, Rung],
) -> Iterator[Job]:
    """Yield the jobs of whole runs, with the rungs by size as the selected run goes on with them."""
    for environment, sizes in selected:
        progress = run_progress_in(project, catalog, environment, selection)
        for size in sizes:
            rung = continued_rung(project.training, rungs[size], progress, selection.run)
            yield make_job(project, environment, rung, selection.run)


def _probes(project: Project, jobs: Sequence[Job]) -> Iterator[Job]:
    """Yield the probe of each job; of a spec whose probes are broken, the job itself."""
    for job in jobs:
        if project.probe is None:
            yield job
        else:
            rung = probe_rung(job.rung, project.probe)
            yield make_job(project, job.environment, rung, job.run, whole=job)


def run_progress_in(
    project: Project, catalog: Catalog, environment: Environment, selection: Selection
) -> RunProgress | None:
    """Return what the selected run has done in an environment; None for a new one, and for a probe.

    Raises:
        SelectionError: The size of a part of the run is unknown, or is needed and not given.
    """
    if selection.run is None or selection.probe:
        return None
    parts = joined_parts(
        selection.recorded.get((project.name, environment.name), ()), selection.done
    )

    def rung_of(size: str) -> Rung:
        if catalog.find(size) is None:
            raise SelectionError(
                f"--step {size}: there is no such size; the ladder has {', '.join(environment.sizes)}"
            )
        return ladder(project, catalog, (size,))[0]

    return run_progress(parts, rung_of, environment.sizes)


def _of_probes(project: Project) -> Project:
    """Return the project with the arguments of probes.

    Raises:
        SelectionError: The spec has no probes.
    """
    if project.probe is None and "probe" not in project.broken:
        raise SelectionError(
            f"{project.document.file} has no probe; add what a short run of a rung changes:\n\n{PROBE_EXAMPLE}"
        )
    return project.with_probe_args()


def _selected(project: Project, selection: Selection) -> SelectedSizes:
    """Return the selected sizes; if environments are broken, the sizes of every valid environment."""
    if "sizes" in project.broken:
        return ()
    # A selected environment may be among the broken ones, which must not be reported as an error of the selection.
    return select_sizes(project, Selection() if "environments" in project.broken else selection)


def ladder(project: Project, catalog: Catalog, sizes: Sequence[str]) -> tuple[Rung, ...]:
    """Return the rungs of these sizes, which must be in the catalog."""
    tuned_on = _slice(catalog, project.training.tuned_on)
    return tuple(make_rung(project, tuned_on, _slice(catalog, size)) for size in sizes)


def _environment_findings(
    project: Project, catalog: Catalog, selected: SelectedSizes
) -> Iterator[Finding]:
    for environment, sizes in selected:
        yield from location_findings(project, catalog, environment, sizes)
    yield from data_locality_findings(project, selected)
    yield from capacity_findings(project, catalog, selected)


@compares("training", "overrides")
def _rungs(
    project: Project, catalog: Catalog, selected: SelectedSizes
) -> Iterable[tuple[str, Rung]]:
    """Return the selected rungs with their sizes, each computed once for all environments."""
    sizes = tuple(dict.fromkeys(size for _, sizes in selected for size in sizes))
    return zip(sizes, ladder(project, catalog, sizes), strict=True)


def _slice(catalog: Catalog, size: str) -> Slice:
    slice_ = catalog.find(size)
    if slice_ is None:
        raise LookupError(size)  # an unknown size is TPU020, with which no rung is planned
    return slice_
