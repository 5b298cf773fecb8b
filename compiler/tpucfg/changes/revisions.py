"""Open two revisions of a spec and compile them.

Both are compiled with the rules and targets of the installed version of tpucfg, even if a spec is older.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.changes.facts import Scope
from tpucfg.findings import Finding, errors
from tpucfg.git.snapshots import CompareRequest, Snapshot, open_snapshots
from tpucfg.plan import Job, Selection, SelectionError
from tpucfg.render.pipeline import compile_spec_file
from tpucfg.spec.parse import parse_project
from tpucfg.spec.project import Environment, Project
from tpucfg.targets import RequestBody
from tpucfg.targets.objects import combined, companions_of
from tpucfg.yamldoc.reader import read_file


class CompiledRevision(NamedTuple):
    """The selected jobs of one revision, compiled."""

    snapshot: Snapshot
    project: Project | None
    """None if the revision has no spec, or one with errors."""
    request_bodies: tuple[tuple[Job, RequestBody], ...]
    findings: tuple[Finding, ...]
    text: str
    """The text of the spec, to show findings in."""

    @property
    def is_broken(self) -> bool:
        """True if errors in the spec prevent a comparison."""
        return bool(errors(self.findings))

    @property
    def environments(self) -> Mapping[str, Environment]:
        """The environments of the spec; none without a project."""
        return self.project.environments if self.project else {}

    @property
    def jobs(self) -> dict[Scope, Job]:
        """The jobs by environment and size."""
        return {config_key(job): job for job, _ in self.request_bodies}

    @property
    def configs(self) -> dict[Scope, Any]:
        """The configs' objects by environment and size, which equal the data of the rendered configs."""
        return {
            config_key(job): combined(body, companions_of(job)) for job, body in self.request_bodies
        }


def config_key(job: Job) -> Scope:
    """Return the key by which both revisions identify a job."""
    return Scope(job.environment.name, job.size)


@contextmanager
def open_compiled_revisions(
    request: CompareRequest, selection: Selection
) -> Iterator[tuple[CompiledRevision, CompiledRevision]]:
    """Open both revisions of a comparison and compile them; their files exist until the context ends.

    Raises:
        RevisionError: A revision cannot be read.
        SelectionError: A selected environment or size is in neither revision.
    """
    with open_snapshots(request) as snapshots:
        yield compile_revisions(snapshots, Catalog(), selection)


def compile_revisions(
    snapshots: tuple[Snapshot, Snapshot], catalog: Catalog, selection: Selection
) -> tuple[CompiledRevision, CompiledRevision]:
    """Compile both revisions. A selected environment or size may be missing in one, if the other adds or removes it.

    Raises:
        SelectionError: A selected environment or size is in neither revision.
    """
    compiled: list[CompiledRevision] = []
    selection_errors: list[SelectionError] = []
    for snapshot in snapshots:
        try:
            compiled.append(_compile(snapshot, catalog, selection))
        except SelectionError as error:
            selection_errors.append(error)
            compiled.append(_compile_available(snapshot, catalog, selection))
    if selection_errors and len(selection_errors) == sum(snapshot.exists for snapshot in snapshots):
        raise selection_errors[-1]
    return compiled[0], compiled[1]


def _compile(snapshot: Snapshot, catalog: Catalog, selection: Selection) -> CompiledRevision:
    if not snapshot.exists:
        return CompiledRevision(snapshot, None, (), (), "")
    compiled = compile_spec_file(snapshot.spec, catalog, selection, snapshot.display_path)
    if errors(compiled.findings):
        return CompiledRevision(snapshot, None, (), compiled.findings, compiled.source)
    return CompiledRevision(
        snapshot, compiled.project, compiled.request_bodies, compiled.findings, compiled.source
    )


def _compile_available(
    snapshot: Snapshot, catalog: Catalog, selection: Selection
) -> CompiledRevision:
    """Compile the environments and sizes of the selection that exist in the revision."""
    project = parse_project(read_file(snapshot.spec, snapshot.display_path)).project
    known = project.environments if project else {}
    names = tuple(name for name in selection.environments or known if name in known)
    if not names:
        return CompiledRevision(snapshot, project, (), (), "")
    # Every size is compiled and filtered afterwards: selecting a size that is in no ladder is an error.
    revision = _compile(snapshot, catalog, Selection(names, (), selection.target))
    chosen = (
        pair
        for pair in revision.request_bodies
        if not selection.sizes or pair[0].size in selection.sizes
    )
    return revision._replace(request_bodies=tuple(chosen))
