"""Project and selection to Plan: pure arithmetic, no file, no clock, no network."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding, collect, errors
from tpucfg.plan.model import Job, Plan, Rung, Selection
from tpucfg.plan.names import account_email, job_name
from tpucfg.plan.rung import figures, flag_of, make_rung, program_args
from tpucfg.plan.storage import outside_findings
from tpucfg.plan.warnings import rung_warnings
from tpucfg.plan.where import environment_findings, zone_of
from tpucfg.plan.whole import bucket_of, whole_findings
from tpucfg.schemas import nearest
from tpucfg.spec.model import Environment, Project
from tpucfg.spec.placeholders import fill

_UNPLANNABLE: Final = frozenset({"TPU020", "TPU040"})
"""Findings without whose end no rung can be worked out: a size that does not exist, a batch that does not divide."""


class SelectionError(Exception):
    """The command asks for an environment or a size that the spec does not have."""


def select(project: Project, selection: Selection) -> tuple[tuple[Environment, tuple[str, ...]], ...]:
    """The selected environments with their selected sizes, in the project's order.

    Raises:
        SelectionError: An environment or size is unknown, or an environment named beside a size lacks it.
    """
    _known_environments(project, selection)
    chosen = [
        (environment, tuple(size for size in environment.sizes if not selection.sizes or size in selection.sizes))
        for environment in project.environments.values()
        if not selection.environments or environment.name in selection.environments
    ]
    for size in selection.sizes:
        lacking = [environment.name for environment, _ in chosen if size not in environment.sizes]
        if lacking and (selection.environments or len(lacking) == len(chosen)):
            raise SelectionError(_no_such_size(project, size, lacking if selection.environments else []))
    return tuple((environment, sizes) for environment, sizes in chosen if sizes)


def plan(project: Project, catalog: Catalog, selection: Selection | None = None) -> Plan:
    """The selected jobs with all figures worked out, and every finding about them.

    Raises:
        SelectionError: As `select` says.
    """
    selection = selection or Selection()
    chosen = _chosen(project, selection)
    found = [*whole_findings(project, catalog), *_environment_findings(project, catalog, chosen, selection)]
    if errors(found) and any(finding.id in _UNPLANNABLE for finding in found):
        return Plan(project, (), collect(found))
    rungs = {} if project.broken & {"training", "overrides"} else _rungs(project, catalog, chosen)
    found += rung_warnings(project, tuple(rungs.values()))
    jobs = () if project.broken else tuple(_jobs(project, chosen, rungs, selection))
    return Plan(project, jobs, collect(found))


def _chosen(project: Project, selection: Selection) -> tuple[tuple[Environment, tuple[str, ...]], ...]:
    """What `select` gives; of a broken spec all sound environments, as one asked for may be among the others."""
    if "sizes" in project.broken:
        return ()
    return select(project, Selection() if "environments" in project.broken else selection)


def ladder(project: Project, catalog: Catalog, sizes: Sequence[str]) -> tuple[Rung, ...]:
    """The rungs of these sizes, which the catalogue must know."""
    tuned_on = _slice(catalog, project.training.tuned_on)
    return tuple(make_rung(project, tuned_on, _slice(catalog, size)) for size in sizes)


def _environment_findings(
    project: Project,
    catalog: Catalog,
    chosen: Sequence[tuple[Environment, tuple[str, ...]]],
    selection: Selection,
) -> Iterator[Finding]:
    if not project.broken & {"name", "target"}:
        for environment, sizes in chosen:
            target = selection.target or environment.target
            yield from environment_findings(project, catalog, environment, sizes, target)
    if not project.broken & {"name", "trainer", "overrides"}:
        yield from outside_findings(project, chosen)


def _rungs(
    project: Project, catalog: Catalog, chosen: Sequence[tuple[Environment, tuple[str, ...]]]
) -> dict[str, Rung]:
    """Each selected rung once, by its size, however many environments climb it."""
    sizes = tuple(dict.fromkeys(size for _, sizes in chosen for size in sizes))
    return dict(zip(sizes, ladder(project, catalog, sizes), strict=True))


def _jobs(
    project: Project,
    chosen: Sequence[tuple[Environment, tuple[str, ...]]],
    rungs: Mapping[str, Rung],
    selection: Selection,
) -> Iterator[Job]:
    for environment, sizes in chosen:
        for size in sizes:
            yield _job(project, environment, rungs[size], selection)


def _job(project: Project, environment: Environment, rung: Rung, selection: Selection) -> Job:
    target, run = selection.target or environment.target, selection.run
    bucket = bucket_of(project, environment)
    job_dir = "/".join(part for part in (f"gs://{bucket}/jobs", project.name, rung.size, run) if part)
    values = {
        "project": environment.project,
        "name": project.name,
        "env": environment.name,
        "region": environment.region,
        "bucket": f"gs://{bucket}",
        "job_dir": job_dir,
        "size": rung.size,
        "cores": str(rung.slice.cores),
        "hosts": str(rung.slice.hosts),
    }
    trainer = project.trainer
    filled: dict[str, Any] = {
        key: fill(text, values) if (text := getattr(trainer, key)) else None
        for key in ("image", "worker_image", "package")
    }
    return Job(
        project=project.name,
        environment=environment,
        rung=rung,
        target=target,
        run=run,
        name=job_name(name=project.name, environment=environment.name, size=rung.size, run=run),
        bucket=bucket,
        job_dir=job_dir,
        zone=zone_of(environment, rung.slice),
        account=account_email(project=environment.project, name=project.name, environment=environment.name),
        module=trainer.module,
        runtime=trainer.runtime,
        python=trainer.python,
        args=tuple(_args(project, rung, values)),
        env=tuple((key, fill(text, values)) for key, text in trainer.env),
        options=project.targets.get(target, {}),
        **filled,
    )


def _args(project: Project, rung: Rung, values: dict[str, str]) -> Iterator[str]:
    """The program's own flags, then the rung's figures."""
    for arg in program_args(project, rung.size):
        for value in arg.values:
            yield f"--{arg.key}" if value is None else f"--{arg.key}={fill(value, values)}"
    for key, text in figures(rung):
        if (flag := flag_of(project.training, key)) is not None:
            yield f"--{flag}={text}"


def _slice(catalog: Catalog, size: str) -> Slice:
    slice_ = catalog.find(size)
    if slice_ is None:
        raise LookupError(size)  # whole_findings has refused it before anything is planned
    return slice_


def _known_environments(project: Project, selection: Selection) -> None:
    for name in selection.environments:
        if name not in project.environments:
            near = nearest(name, tuple(project.environments))
            hint = f"did you mean {near}? " if near else ""
            known = ", ".join(project.environments)
            raise SelectionError(f"there is no environment {name}; {hint}the spec has {known}")


def _no_such_size(project: Project, size: str, lacking: Sequence[str]) -> str:
    ladders = [f"  {name}: {', '.join(environment.sizes)}" for name, environment in project.environments.items()]
    where = f"the ladder of {' and '.join(lacking)}" if lacking else "no ladder"
    said = f"{size} is not in {where}" if lacking else f"{size} is in {where}"
    return "\n".join([f"{said}. The ladders are:", *ladders])
