"""Both sides of a comparison compiled by the rules and targets of the installed tool, whatever wrote them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.diff.change import ConfigKey
from tpucfg.findings import Finding, errors
from tpucfg.git.snapshots import Snapshot
from tpucfg.plan import Job, Selection, SelectionError
from tpucfg.render.pipeline import compile_spec_file
from tpucfg.spec.parse import parse_project
from tpucfg.spec.project import Project
from tpucfg.targets import RequestBody
from tpucfg.yamldoc.reader import read_file


class CompiledRevision(NamedTuple):
    """What a side makes of the selected environments and sizes."""

    snapshot: Snapshot
    project: Project | None
    """None where there is no spec, or a broken one."""
    made: tuple[tuple[Job, RequestBody], ...]
    findings: tuple[Finding, ...]
    text: str
    """The spec's own, to show places in."""

    @property
    def is_broken(self) -> bool:
        """Whether an error keeps this side from being compared."""
        return bool(errors(self.findings))

    @property
    def jobs(self) -> dict[ConfigKey, Job]:
        """By environment and size."""
        return {config_key(job): job for job, _ in self.made}

    @property
    def configs(self) -> dict[ConfigKey, Any]:
        """Likewise the messages, which the rendered configs say to the letter."""
        return {config_key(job): message for job, message in self.made}


def config_key(job: Job) -> ConfigKey:
    """What both sides know a job by."""
    return ConfigKey(job.environment.name, job.size)


def compile_revisions(
    sides: tuple[Snapshot, Snapshot], catalog: Catalog, selection: Selection
) -> tuple[CompiledRevision, CompiledRevision]:
    """What the two sides make; an environment or a size that is asked for has to be on one of them.

    Raises:
        SelectionError: It is on neither.
    """
    made: list[CompiledRevision] = []
    unknown: list[SelectionError] = []
    for side in sides:
        try:
            made.append(_made(side, catalog, selection))
        except SelectionError as error:
            unknown.append(error)
            made.append(_as_far_as_there(side, catalog, selection))
    if unknown and len(unknown) == sum(side.exists for side in sides):
        raise unknown[-1]
    return made[0], made[1]


def _made(side: Snapshot, catalog: Catalog, selection: Selection) -> CompiledRevision:
    if not side.exists:
        return CompiledRevision(side, None, (), (), "")
    compiled = compile_spec_file(side.spec, catalog, selection, side.shown)
    if errors(compiled.findings):
        return CompiledRevision(side, None, (), compiled.findings, compiled.source)
    return CompiledRevision(side, compiled.project, compiled.request_bodies, compiled.findings, compiled.source)


def _as_far_as_there(side: Snapshot, catalog: Catalog, selection: Selection) -> CompiledRevision:
    """The same where the side lacks some of what is selected, because the other brings it."""
    project = parse_project(read_file(side.spec, side.shown)).project
    known = project.environments if project else {}
    there = tuple(name for name in selection.environments or known if name in known)
    if not there:
        return CompiledRevision(side, project, (), (), "")
    made = _made(side, catalog, Selection(there, (), selection.target))
    return made._replace(made=tuple(_of_sizes(made.made, selection.sizes)))


def _of_sizes(made: Sequence[tuple[Job, RequestBody]], sizes: Sequence[str]) -> list[tuple[Job, RequestBody]]:
    return [(job, message) for job, message in made if not sizes or job.size in sizes]
