"""Validate a request body against the API's schema and the target's own rules.

The rules of a target assume that a request body fits the schema. Where it does not, the values that the schema refuses
are removed first, so that one mistake does not hide the others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from tpucfg import schemas
from tpucfg.catalog import Catalog
from tpucfg.findings import Finding, Location, collect
from tpucfg.paths import KeyPath, first_match, overlap, value_at
from tpucfg.plan import Job
from tpucfg.schemas import Problem
from tpucfg.spec import Project
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.extra import Merged, Refusal, extra_path
from tpucfg.targets.interface import spec_path
from tpucfg.targets.objects import (
    companion_path,
    companion_schemas,
    companions_of,
    document_keys,
    is_foreign,
    kubernetes_objects,
    merge_documents,
    unknown_kind,
)
from tpucfg.yamldoc import Document


def request_body_findings(project: Project, job: Job, merged: Merged, catalog: Catalog) -> Iterator[Finding]:
    """Yield the findings about a job's request body and companions, each at the line of the spec that caused it."""
    for problem in _problems(job.target, merged.body, catalog):
        if not any(_follows_from(problem, refusal) for refusal in merged.refusals):
            yield problem.finding_at(_location_in_spec(project, job, merged, problem))
    for companion in companions_of(job):
        for problem in schemas.schema_problems(_companion_schema(job.target, companion), companion, schemas.CONFIG):
            path = companion_path(companion, problem.path)
            yield problem.finding_at(_location_in_spec(project, job, merged, problem._replace(path=path)))


def _follows_from(problem: Problem, refusal: Refusal) -> bool:
    """Return True if a problem may be only that a field of `extra` was left out, such as a missing field beside it."""
    path = problem.path[:-1] if problem.id == schemas.CONFIG.missing else problem.path
    return overlap(path, refusal.field)


def config_findings(document: Document, target: str, catalog: Catalog) -> tuple[Finding, ...]:
    """Return the findings about a config file, whether it was rendered or written by hand."""
    if document.root is None:
        return collect(document.findings)
    known_lines = {finding.location[:3] for finding in document.findings}
    findings = _object_findings(document, target, catalog)
    return collect([*document.findings, *(finding for finding in findings if finding.location[:3] not in known_lines)])


def _object_findings(document: Document, target: str, catalog: Catalog) -> Iterator[Finding]:
    """Yield the findings about each object of a file: a request body and its companions."""
    if document_keys(target_named(target)):
        yield from _merged_findings(document, target, catalog)
        return
    if not companion_schemas(target):
        yield from (problem.finding_in(document) for problem in _problems_in(document, target, catalog))
        return
    bodies, others = kubernetes_objects(document, target)
    for other in others:
        if schema := _companion_schema(target, other.data):
            problems = schemas.schema_problems(schema, other.data, schemas.CONFIG, other.source_text)
            yield from (problem.finding_in(other) for problem in problems)
        elif not is_foreign(other.data, target):
            yield unknown_kind(other.data, companion_schemas(target)).finding_in(other)
    for body in bodies:
        yield from (problem.finding_in(body) for problem in _problems_in(body, target, catalog))


def _merged_findings(document: Document, target: str, catalog: Catalog) -> Iterator[Finding]:
    """Yield the findings about a file whose documents are one request body.

    A document that is not recognized may be the object that the request body lacks, so that is not reported too.
    """
    merged, findings = merge_documents(document, target_named(target))
    yield from findings
    for problem in _problems_in(merged, target, catalog):
        if problem.path or not findings:
            yield problem.finding_in(merged)


def _companion_schema(target: str, companion: Any) -> str:
    """Return the name of the schema of a companion; empty if the target has no such companion."""
    kind = companion.get("kind") if isinstance(companion, dict) else None
    return companion_schemas(target).get(kind, "") if isinstance(kind, str) else ""


def _problems_in(document: Document, target: str, catalog: Catalog) -> Sequence[Problem]:
    return _problems(target, document.data, catalog, document.source_text)


def _problems(
    target: str, request_body: RequestBody, catalog: Catalog, written: Callable[[KeyPath], str] | None = None
) -> tuple[Problem, ...]:
    """Return the problems by the schema, then those by the target's rules in the values that the schema accepts."""
    refused = schemas.schema_problems(target, request_body, schemas.CONFIG, written)
    if not refused:
        return tuple(schemas.limit_problems(target_named(target).rules(request_body, catalog)))
    if refused_help := getattr(target_named(target), "refused_help", None):
        parents = [value_at(request_body, problem.path[:-1]) for problem in refused]
        refused = [
            problem._replace(help=(problem.path and refused_help(problem.path, parent, catalog)) or problem.help)
            for problem, parent in zip(refused, parents, strict=True)
        ]
    rest = _without_values(request_body, refused)
    # The rest may still not fit the schema, and the rules assume that it does.
    if not schemas.is_valid(target, rest):
        return tuple(refused)
    return (*refused, *schemas.limit_problems(_unrelated_problems(target_named(target).rules(rest, catalog), refused)))


def _location_in_spec(project: Project, job: Job, merged: Merged, problem: Problem) -> Location:
    """Return the location of the `extra` or the setting that produced a field, or else of the rung in its ladder."""
    document, path = project.document, problem.path
    source = merged.source(path)
    if source is not None and document.node(extra := extra_path(job, source)):
        return document.key_location(extra) if problem.at_key else document.value_location(extra)
    origin = first_match(target_named(job.target).ORIGINS.items(), path)
    if origin and origin.kind == "spec" and document.node(setting := spec_path(origin.detail, job)):
        return document.value_location(setting)
    # A field is missing in what `extra` adds, or what it adds conflicts with a field of the target.
    if (nearest_source := source or merged.source_below(path)) is not None:
        return document.value_location(extra_path(job, nearest_source))
    environment = job.environment
    return document.value_location((*environment.sizes_path, environment.sizes.index(job.size)))


def _without_values(request_body: Any, refused: Iterable[Problem]) -> Any:
    """Return a copy of the request body without the refused values."""
    rest = deepcopy(request_body)
    # From the last to the first, because removing an entry of a list moves the later ones.
    for path in sorted({problem.path for problem in refused}, key=_sort_key, reverse=True):
        _remove(rest, path)
    return rest


def _unrelated_problems(problems: Iterable[Problem], refused: Sequence[Problem]) -> Iterator[Problem]:
    """Yield the problems that the removal of the refused values cannot have caused: they concern other values."""
    removed = [_unreliable(problem.path) for problem in refused]
    removed += [(*problem.path[:-1], problem.meant) for problem in refused if problem.meant]
    for problem in problems:
        if not any(overlap(problem.path, path) for path in removed):
            yield problem


def _unreliable(path: KeyPath) -> KeyPath:
    """Return the path that the removal makes unreliable: for an entry, the whole list, as the other entries moved."""
    return path[:-1] if path and isinstance(path[-1], int) else path


def _sort_key(path: KeyPath) -> tuple[tuple[int, str], ...]:
    """Return a sort key for paths, in document order; a key is never compared with an index of the same parent."""
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in path)


def _remove(data: Any, path: KeyPath) -> None:
    data = value_at(data, path[:-1])
    for last in path[-1:]:
        if isinstance(data, dict):
            data.pop(last, None)
        elif isinstance(data, list) and isinstance(last, int):
            del data[last : last + 1]
