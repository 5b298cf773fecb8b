"""The pipeline from a spec file to its verified configs, shared by every command that compiles a spec.

The steps, in the order of the functions: compile the spec to one request body for each selected job, collect the
findings of every stage, have `config` render and verify the text of each request body, and check request bodies by
their API's schema and their service's rules. `output_dir` writes the texts to files.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, Literal

from tpucfg import schemas
from tpucfg.catalog import TARGET_FACTS, Catalog
from tpucfg.findings import MAX_FINDINGS, RULES, Finding, Location, collect, errors
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import KeyPath, first_match, overlap, value_at
from tpucfg.plan import Job, Plan, Selection, plan, select_sizes
from tpucfg.plan.rules.project_rules import BucketUse, bucket_uses
from tpucfg.plan.rules.unused_settings import unused_allowances, unused_settings
from tpucfg.plan.rung import slice_in_force
from tpucfg.render.config import Config, render_config, round_trip_finding
from tpucfg.schemas import Problem
from tpucfg.spec import Project
from tpucfg.spec.credentials import hidden_text
from tpucfg.spec.parse import parse_project
from tpucfg.spec.sections import compares
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.extra import (
    FieldRefusal,
    Merged,
    extra_path,
    merged_request_body,
    refused_extra,
)
from tpucfg.targets.interface import spec_path
from tpucfg.targets.objects import (
    companion_path,
    companion_schemas,
    companions_of,
    document_keys,
    is_foreign,
    json_value,
    kubernetes_objects,
    merge_documents,
    unknown_kind,
)
from tpucfg.targets.rules import target_findings
from tpucfg.text_format import json_text
from tpucfg.yamldoc import Document
from tpucfg.yamldoc.reader import read_file

ConfigFormat = Literal["yaml", "json"]

_MAX_REQUEST_BODY_FINDINGS: Final = 5 * MAX_FINDINGS
"""Enough to fill the report: jobs share most of their mistakes, and each job's findings are computed anew."""


class CompiledSpec(NamedTuple):
    """A spec's selected jobs with their request bodies, and all findings about the spec."""

    project: Project | None
    """None if the spec's structure is invalid; then there are no request bodies either."""
    request_bodies: tuple[tuple[Job, RequestBody], ...]
    """Each selected job with its request body; empty if an error prevents planning."""
    findings: tuple[Finding, ...]
    source: str
    """The spec's own text, which reports quote."""
    plan: Plan | None = None
    """The jobs before their request bodies, also if an error prevents those; None if nothing can be planned."""

    @property
    def jobs(self) -> list[Job]:
        """The selected jobs."""
        return [job for job, _ in self.request_bodies]


class RenderedSpec(NamedTuple):
    """The config texts of one spec, none if a finding is an error."""

    path: str
    """The spec's file."""
    source: str
    """The spec's own text, which reports quote; empty if there is no finding to report."""
    findings: tuple[Finding, ...]
    """Errors and warnings, without notes."""
    project: str
    """The project's name."""
    configs: tuple[tuple[str, str], ...]
    """The path `<env>/<size>/config.<format>` and the text of each selected job; a probe's is in a folder `probe`."""
    all_paths: tuple[str, ...]
    """The config paths of all jobs of the spec, or of all its probes, including those that are not selected."""
    buckets: tuple[BucketUse, ...] = ()
    """Its environments' uses of their buckets, to compare with those of other specs."""
    compiled: CompiledSpec | None = None
    """The compiled spec if it names a training step, whose fit is then shown; hundreds of specs are not kept."""


class RenderError(Exception):
    """A config differs from its job, or its spec has errors; nothing may be written."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = tuple(findings)


def compile_spec_file(
    path: Path, catalog: Catalog, selection: Selection, shown: str | None = None
) -> CompiledSpec:
    """Compile the spec in a file.

    Args:
        path: The spec's file.
        catalog: The catalog of TPU sizes.
        selection: The jobs to compile.
        shown: The name of the file in findings; its path by default.

    Raises:
        SelectionError: The selection names an environment or a size that the spec does not have.
    """
    document = read_file(path, shown)
    if selection.changes:
        from tpucfg.yamldoc.edits import replace_values

        document = replace_values(document, selection.changes)
    project, findings = parse_project(document)
    if project is None:
        return CompiledSpec(None, (), findings, hidden_text(document))
    beside = findings_beside(project, path.parent, catalog, selection.target)
    compiled = compile_project(project, catalog, selection, (*findings, *beside))
    # A broken project was compiled with stand-ins, only to collect findings.
    return compiled._replace(project=None) if project.broken else compiled


def findings_beside(
    project: Project, folder: Path, catalog: Catalog, target: str | None = None
) -> Iterator[Finding]:
    """Yield the findings about files beside the spec: its package, and its trainer's lock file."""
    # Most specs have no package, and most targets need no version of JAX.
    if any(settings.trainer.package for settings in project.distinct_settings()):
        from tpucfg.spec.package_rules import package_findings

        yield from package_findings(project, folder)
    targets = (
        {target}
        if target
        else {environment.target for environment in project.environments.values()}
    )
    if any(TARGET_FACTS[name].oldest_jax for name in targets if name in TARGET_FACTS):
        from tpucfg.spec.package_rules import jax_findings

        yield from jax_findings(project, catalog, folder, target)


def compile_project(
    project: Project,
    catalog: Catalog,
    selection: Selection | None = None,
    earlier_findings: Iterable[Finding] = (),
) -> CompiledSpec:
    """Compile a parsed spec: everything except the texts, whose template engine `check` does not need.

    Args:
        project: The parsed spec.
        catalog: The catalog of TPU sizes.
        selection: The jobs to compile; all of them by default.
        earlier_findings: Findings about the spec's text and the files next to it; `allow` applies to them too.

    Raises:
        SelectionError: The selection names an environment or a size that the spec does not have.
    """
    selection = selection or Selection()
    planned = plan(project, catalog, selection)
    # Probes have arguments of their own; everything that reads the spec beside this gets the whole runs.
    of_run, project = project, planned.project
    findings = [*earlier_findings, *_without_stand_ins(project, planned.findings)]
    findings += _without_stand_ins(project, _target_findings(project, catalog, selection))
    request_bodies: tuple[tuple[Job, RequestBody], ...] = ()
    if not errors(_allowed(project, findings)):
        merged = tuple((job, merged_request_body(job)) for job in planned.jobs)
        request_bodies = tuple((job, body.body) for job, body in merged)
        findings += refused_extra(project, ((job, body.refusals) for job, body in merged))
        findings += _request_body_findings(project, merged, catalog)
    # Only a complete compilation of a valid spec can show that a setting or an allowance is unused.
    if selection == Selection() and not project.broken:
        findings += unused_settings(project)
        if not errors(_allowed(project, findings)):
            findings += unused_allowances(project, findings)
    return CompiledSpec(
        of_run, request_bodies, _allowed(project, findings), project.document.text, planned
    )


@compares("name", "target", "sizes", "environments", "trainer", "targets")
def _target_findings(project: Project, catalog: Catalog, selection: Selection) -> Iterator[Finding]:
    """Yield the findings of each selected environment's target about the spec itself."""
    for environment, sizes in select_sizes(project, selection):
        known = [slice_ for size in sizes if (slice_ := catalog.find(size))]
        slices = [slice_in_force(project, environment.target, slice_) for slice_ in known]
        yield from target_findings(project, environment, slices)


def _request_body_findings(
    project: Project, request_bodies: Sequence[tuple[Job, Merged]], catalog: Catalog
) -> list[Finding]:
    """Return the findings about values that the services would refuse, up to a limit."""
    findings: list[Finding] = []
    for job, merged in request_bodies:
        findings += request_body_findings(project, job, merged, catalog)
        if len(findings) > _MAX_REQUEST_BODY_FINDINGS:
            break
    return findings


def _without_stand_ins(project: Project, findings: Iterable[Finding]) -> Iterable[Finding]:
    """Return the findings except those about the stand-in for a broken section."""
    if not project.broken:
        return findings
    # Imported here because most specs are valid.
    from tpucfg.spec.recovery import without_stand_ins

    return without_stand_ins(findings)


def _allowed(project: Project, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings in order, with allowed findings turned into notes that contain the spec's reason."""
    if "allow" in project.broken:
        # The allowed ids are unknown, so every finding that could be allowed is left out.
        findings = [finding for finding in findings if not RULES[finding.id].allowable]
    return collect(finding.allowed_by(project.allow) for finding in findings)


def render_configs(compiled: CompiledSpec) -> Iterator[Config]:
    """Yield the configs one by one, each verified against its request body.

    Raises:
        RenderError: The findings contain an error, or a text differs from its request body.
    """
    if stopping := errors(compiled.findings):
        raise RenderError(stopping)
    for job, request_body in compiled.request_bodies:
        config = render_config(job, request_body)
        if difference := round_trip_finding(config):
            raise RenderError([difference])
        yield config


def render_spec(
    path: Path, catalog: Catalog, selection: Selection, format_: ConfigFormat
) -> RenderedSpec:
    """Compile the spec in a file, and render and verify the config of each selected job.

    Raises:
        SelectionError: The selection names an environment or a size that the spec does not have.
    """
    compiled = compile_spec_file(path, catalog, selection)
    findings = tuple(finding for finding in compiled.findings if finding.level != "note")
    if compiled.project is None or errors(findings):
        return RenderedSpec(str(path), compiled.source, findings, "", (), ())
    try:
        configs = tuple(
            (_path_of(config, format_), _text_of(config, format_))
            for config in render_configs(compiled)
        )
    except RenderError as error:
        return RenderedSpec(str(path), compiled.source, (*findings, *error.findings), "", (), ())
    return RenderedSpec(
        path=str(path),
        # Hundreds of specs may be rendered at once, so a text that no finding quotes is not kept.
        source=compiled.source if findings else "",
        findings=findings,
        project=compiled.project.name,
        configs=configs,
        all_paths=tuple(_all_paths(compiled.project, format_, "/probe" if selection.probe else "")),
        buckets=bucket_uses(compiled.project),
        compiled=compiled if any(job.settings.trainer.fit for job in compiled.jobs) else None,
    )


def _all_paths(project: Project, format_: ConfigFormat, folder: str) -> Iterator[str]:
    for name, environment in project.environments.items():
        for size in environment.sizes:
            yield f"{name}/{size}{folder}/config.{format_}"


def _path_of(config: Config, format_: ConfigFormat) -> str:
    job = config.job
    return f"{job.environment.name}/{job.size}{'/probe' if job.whole else ''}/config.{format_}"


def _text_of(config: Config, format_: ConfigFormat) -> str:
    return (
        config.text
        if format_ == "yaml"
        else json_text(json_value(config.request_body, config.companions))
    )


def request_body_findings(
    project: Project, job: Job, merged: Merged, catalog: Catalog
) -> Iterator[Finding]:
    """Yield the findings about a job's request body and companions, each at the line of the spec that caused it."""
    for problem in _problems(job.target, merged.body, catalog):
        if not any(_follows_from(problem, refusal) for refusal in merged.refusals):
            yield problem.finding_at(_location_in_spec(project, job, merged, problem))
    for companion in companions_of(job):
        for problem in schemas.schema_problems(
            _companion_schema(job.target, companion), companion, schemas.CONFIG
        ):
            path = companion_path(companion, problem.path)
            yield problem.finding_at(
                _location_in_spec(project, job, merged, problem._replace(path=path))
            )


def _follows_from(problem: Problem, refusal: FieldRefusal) -> bool:
    """Return True if a problem may be only that a field of `extra` was left out, such as a missing field beside it."""
    path = problem.path[:-1] if problem.id == schemas.CONFIG.missing else problem.path
    return overlap(path, refusal.field)


def config_findings(document: Document, target: str, catalog: Catalog) -> tuple[Finding, ...]:
    """Return the findings about a config file, whether it was rendered or written by hand."""
    if document.root is None:
        return collect(document.findings)
    known_lines = {finding.location.point for finding in document.findings}
    findings = _object_findings(document, target, catalog)
    return collect(
        [
            *document.findings,
            *(finding for finding in findings if finding.location.point not in known_lines),
        ]
    )


def _object_findings(document: Document, target: str, catalog: Catalog) -> Iterator[Finding]:
    """Yield the findings about each object of a file: a request body and its companions."""
    if document_keys(target_named(target)):
        yield from _merged_findings(document, target, catalog)
        return
    if not companion_schemas(target):
        yield from (
            problem.finding_in(document) for problem in _problems_in(document, target, catalog)
        )
        return
    bodies, others = kubernetes_objects(document, target)
    for other in others:
        if schema := _companion_schema(target, other.data):
            problems = schemas.schema_problems(
                schema, other.data, schemas.CONFIG, other.source_text
            )
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
    target: str,
    request_body: RequestBody,
    catalog: Catalog,
    written: Callable[[KeyPath], str] | None = None,
) -> tuple[Problem, ...]:
    """Return the problems by the schema, then those by the target's rules in the values that the schema accepts."""
    refused = schemas.schema_problems(target, request_body, schemas.CONFIG, written)
    if not refused:
        return tuple(schemas.limit_problems(target_named(target).rules(request_body, catalog)))
    if refused_help := getattr(target_named(target), "refused_help", None):
        parents = [value_at(request_body, problem.path[:-1]) for problem in refused]
        refused = [
            problem._replace(
                help=(problem.path and refused_help(problem.path, parent, catalog)) or problem.help
            )
            for problem, parent in zip(refused, parents, strict=True)
        ]
    rest = _without_values(request_body, refused)
    # The rest may still not fit the schema, and the rules assume that it does.
    if not schemas.is_valid(target, rest):
        return tuple(refused)
    return (
        *refused,
        *schemas.limit_problems(
            _unrelated_problems(target_named(target).rules(rest, catalog), refused)
        ),
    )


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


def _unrelated_problems(
    problems: Iterable[Problem], refused: Sequence[Problem]
) -> Iterator[Problem]:
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
