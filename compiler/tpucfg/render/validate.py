"""What is left of a message without what its schema refuses, so that one mistake does not hide the others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from tpucfg import schemas
from tpucfg.catalog import Catalog
from tpucfg.findings import Finding, Location, collect
from tpucfg.plan.job import Job
from tpucfg.schemas import Problem
from tpucfg.spec.project import Project
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.interface import origin_of, spec_path
from tpucfg.yamldoc.document import Document, KeyPath


def without_values(message: Any, refused: Iterable[Problem]) -> Any:
    """A copy of the message without the values that were refused; entries of lists go from the last to the first."""
    left = deepcopy(message)
    for path in sorted({problem.path for problem in refused}, key=_order, reverse=True):
        _remove(left, path)
    return left


def unrelated_problems(found: Iterable[Problem], refused: Sequence[Problem]) -> Iterator[Problem]:
    """Those of the problems that what is left out cannot have caused: they are about other values."""
    gone = [_lost(it.path) for it in refused] + [(*it.path[:-1], it.meant) for it in refused if it.meant]
    for problem in found:
        if not any(_touch(problem.path, path) for path in gone):
            yield problem


def _lost(path: KeyPath) -> KeyPath:
    """What cannot be spoken of any more: of a list without an entry the whole, as the others have moved."""
    return path[:-1] if path and isinstance(path[-1], int) else path


def _touch(path: KeyPath, other: KeyPath) -> bool:
    """Whether one of the two values holds the other."""
    shared = min(len(path), len(other))
    return path[:shared] == other[:shared]


def _order(path: KeyPath) -> tuple[tuple[int, str], ...]:
    """By depth-first position; a key and an index are never compared, as one place holds one of the two."""
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in path)


def _remove(data: Any, path: KeyPath) -> None:
    for step in path[:-1]:
        data = _at(data, step)
    for last in path[-1:]:
        if isinstance(data, dict):
            data.pop(last, None)
        elif isinstance(data, list) and isinstance(last, int):
            del data[last : last + 1]


def _at(data: Any, step: str | int) -> Any:
    """What stands there; None where nothing does."""
    if isinstance(data, dict):
        return data.get(step)
    return data[step] if isinstance(data, list) and isinstance(step, int) and step < len(data) else None


# Is a config what it should be: equal to its job, inside the API's schema, within the target's own rules.


def request_body_findings(project: Project, job: Job, message: RequestBody, catalog: Catalog) -> Iterator[Finding]:
    """What the API or the service would refuse of a job's message, at the line of the spec that it comes from."""
    for problem in _problems(job.target, message, catalog):
        yield problem.finding_at(_in_spec(project, job, problem))


def config_findings(document: Document, target: str, catalog: Catalog) -> tuple[Finding, ...]:
    """The same of a config.yaml that somebody else wrote, at its own lines."""
    if document.root is None:
        return collect(document.findings)
    known = {finding.location[:3] for finding in document.findings}
    found = [it.finding_in(document) for it in _problems(target, document.data, catalog, document.source_text)]
    return collect([*document.findings, *(finding for finding in found if finding.location[:3] not in known)])


def _problems(
    target: str, message: RequestBody, catalog: Catalog, written: Callable[[KeyPath], str] | None = None
) -> tuple[Problem, ...]:
    """The schema's, and the target's rules about all else: they take a message that fits the schema for granted."""
    refused = schemas.schema_problems(target, message, schemas.CONFIG, written)
    if not refused:
        return tuple(schemas.limit_problems(target_named(target).rules(message, catalog)))
    left = without_values(message, refused)
    if not schemas.is_valid(target, left):
        return tuple(refused)
    return (*refused, *schemas.limit_problems(unrelated_problems(target_named(target).rules(left, catalog), refused)))


def _in_spec(project: Project, job: Job, problem: Problem) -> Location:
    """The `extra` that brought the field in, or the line it comes from, or else the rung in its ladder."""
    document, path = project.document, problem.path
    extra: KeyPath = ("targets", job.target, "extra")
    if document.node((*extra, *path)):
        return document.key_location((*extra, *path)) if problem.at_key else document.value_location((*extra, *path))
    origin = origin_of(target_named(job.target).ORIGINS, path)
    if origin and origin.kind == "spec" and document.node(where := spec_path(origin, job)):
        return document.value_location(where)
    if path and document.node((*extra, path[0])):
        return document.value_location((*extra, *path))  # something is missing in what it brought in
    environment = job.environment
    return document.value_location((*environment.sizes_path, environment.sizes.index(job.size)))
