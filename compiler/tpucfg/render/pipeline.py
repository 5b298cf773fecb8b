"""The pipeline from a spec file to its verified configs, shared by every command that compiles a spec.

The steps, in the order of the functions: compile the spec to one request body for each selected job, collect the
findings of every stage, render each request body as text, and parse each text again to compare it with its request
body. `output_dir` writes the texts to files.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from tpucfg import __version__
from tpucfg.catalog import Catalog
from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.findings import MAX_FINDINGS, RULES, Finding, Location, collect, errors
from tpucfg.plan import Job, Selection, plan, select_sizes
from tpucfg.plan.rules.unused_settings import unused_allowances, unused_settings
from tpucfg.render.extra_findings import refused_extra
from tpucfg.render.validate import request_body_findings
from tpucfg.spec.credentials import hidden_text
from tpucfg.spec.parse import parse_project
from tpucfg.spec.project import Project
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.companions import companions_of, json_value
from tpucfg.targets.documents import documents
from tpucfg.targets.extra import Merged, merged_request_body
from tpucfg.text_format import json_text
from tpucfg.yamldoc.reader import read_file, read_text

ConfigFormat = Literal["yaml", "json"]

_MAX_REQUEST_BODY_FINDINGS: Final = 5 * MAX_FINDINGS
"""Enough to fill the report: jobs share most of their mistakes, and each job's findings are computed anew."""
_READ_BY_TARGETS: Final = frozenset(("name", "target", "sizes", "environments", "trainer", "targets"))
"""The spec's sections that `spec_findings` of a target reads: a stand-in for one could cause a false finding."""
_CANONICAL_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class CompiledSpec(NamedTuple):
    """A spec's selected jobs with their request bodies, and all findings about the spec."""

    project: Project | None
    """None if the spec's structure is invalid; then there are no request bodies either."""
    request_bodies: tuple[tuple[Job, RequestBody], ...]
    """Each selected job with its request body; empty if an error prevents planning."""
    findings: tuple[Finding, ...]
    source: str
    """The spec's own text, which reports quote."""


class Config(NamedTuple):
    """The rendered file of one job."""

    job: Job
    request_body: RequestBody
    companions: tuple[RequestBody, ...]
    """The objects that are created before the request body; most jobs have none."""
    text: str
    """All of them as YAML documents, below a header comment, the request body last."""

    @property
    def documents(self) -> tuple[RequestBody, ...]:
        """The values of the text's documents, in order."""
        return (*self.companions, *documents(target_named(self.job.target), self.request_body))


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
    """The path `<env>/<size>/config.<format>` and the text of each selected job."""
    all_paths: tuple[str, ...]
    """The config paths of all jobs of the spec, including those that are not selected."""
    compiled: CompiledSpec | None = None
    """The compiled spec if it names a training step, whose fit is then shown; hundreds of specs are not kept."""


class RenderError(Exception):
    """A config differs from its job, or its spec has errors; nothing may be written."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = tuple(findings)


def compile_spec_file(path: Path, catalog: Catalog, selection: Selection, shown: str | None = None) -> CompiledSpec:
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
    project, findings = parse_project(document)
    if project is None:
        return CompiledSpec(None, (), findings, hidden_text(document))
    beside = findings_beside(project, path.parent, catalog, selection.target)
    compiled = compile_project(project, catalog, selection, (*findings, *beside))
    # A broken project was compiled with stand-ins, only to collect findings.
    return compiled._replace(project=None) if project.broken else compiled


def findings_beside(project: Project, folder: Path, catalog: Catalog, target: str | None = None) -> Iterator[Finding]:
    """Yield the findings about files beside the spec: its package, and its trainer's lock file."""
    # Most specs have no package, and most targets need no version of JAX.
    if any(settings.trainer.package for settings in project.distinct_settings()):
        from tpucfg.spec.package_rules import package_findings

        yield from package_findings(project, folder)
    targets = {target} if target else {environment.target for environment in project.environments.values()}
    if any(TARGET_FACTS[name].oldest_jax for name in targets if name in TARGET_FACTS):
        from tpucfg.plan.rules.jax_rules import jax_findings
        from tpucfg.spec.lock_files import jax_pins

        yield from jax_findings(project, catalog, tuple(jax_pins(folder)), target)


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
    findings = [*earlier_findings, *_without_stand_ins(project, planned.findings)]
    if not project.broken & _READ_BY_TARGETS:
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
            findings += unused_allowances(project, {finding.id for finding in findings})
    return CompiledSpec(project, request_bodies, _allowed(project, findings), project.document.text)


def job_hash(job: Job, request_body: RequestBody) -> str:
    """Return a hash of the resolved job, which changes if and only if the effect of the config changes."""
    # hashlib loads OpenSSL, and `check` computes no hash.
    import hashlib

    resolved = [job.target, job.name, request_body, *companions_of(job)]
    return hashlib.sha256(_CANONICAL_JSON.encode(resolved).encode()).hexdigest()[:16]


def _target_findings(project: Project, catalog: Catalog, selection: Selection) -> Iterator[Finding]:
    """Yield the findings of each selected environment's target about the spec itself."""
    for environment, sizes in select_sizes(project, selection):
        target = target_named(environment.target)
        slices = [slice_ for size in sizes if (slice_ := catalog.find(size))]
        yield from target.spec_findings(project, environment, slices)


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


def render_config(job: Job, request_body: RequestBody) -> Config:
    """Render the config of a job as YAML, by its target's template."""
    # Only commands that render import the writer and the template engine.
    from tpucfg.render.field_writer import FieldWriter

    companions = companions_of(job)
    values = {
        "version": __version__,
        "job": job,
        "slice": job.slice,
        "companions": [FieldWriter(companion) for companion in companions],
        "body": FieldWriter(request_body),
        "digest": job_hash(job, request_body),
    }
    return Config(job, request_body, companions, _template(f"{job.target}/config.yaml.j2").render(values))


@cache
def _template(name: str) -> Any:
    return config_template_engine().get_template(name)


@cache
def config_template_engine() -> Any:
    """Return the template engine of the configs, with filters that write values as YAML and quote them."""
    from tpucfg import templating
    from tpucfg.render.field_writer import FILTERS
    from tpucfg.yamldoc.writer import to_yaml

    return templating.template_engine(yaml=to_yaml, **FILTERS)


def round_trip_finding(config: Config) -> Finding | None:
    """Return an error if the text, parsed again, differs from the request body, which is a mistake in the template."""
    from tpucfg.yamldoc.writer import round_trips

    name = f"{config.job.name}.yaml"
    if round_trips(config.text, *config.documents):
        return None
    if syntax_errors := read_text(config.text, name, several=len(config.documents) > 1).findings:
        return syntax_errors[0]
    message = f"the rendered text of {config.job.name} differs from its job: its template is at fault"
    return Finding.of("TPU079", message, Location(f"templates/{config.job.target}/config.yaml.j2"))


def render_spec(path: Path, catalog: Catalog, selection: Selection, format_: ConfigFormat) -> RenderedSpec:
    """Compile the spec in a file, and render and verify the config of each selected job.

    Raises:
        SelectionError: The selection names an environment or a size that the spec does not have.
    """
    compiled = compile_spec_file(path, catalog, selection)
    findings = tuple(finding for finding in compiled.findings if finding.level != "note")
    if compiled.project is None or errors(findings):
        return RenderedSpec(str(path), compiled.source, findings, "", (), ())
    try:
        configs = tuple((_path_of(config, format_), _text_of(config, format_)) for config in render_configs(compiled))
    except RenderError as error:
        return RenderedSpec(str(path), compiled.source, (*findings, *error.findings), "", (), ())
    return RenderedSpec(
        path=str(path),
        # Hundreds of specs may be rendered at once, so a text that no finding quotes is not kept.
        source=compiled.source if findings else "",
        findings=findings,
        project=compiled.project.name,
        configs=configs,
        all_paths=tuple(_all_paths(compiled.project, format_)),
        compiled=compiled if any(job.settings.trainer.fit for job, _ in compiled.request_bodies) else None,
    )


def _all_paths(project: Project, format_: ConfigFormat) -> Iterator[str]:
    for name, environment in project.environments.items():
        for size in environment.sizes:
            yield _config_path(name, size, format_)


def _path_of(config: Config, format_: ConfigFormat) -> str:
    return _config_path(config.job.environment.name, config.job.size, format_)


def _config_path(environment: str, size: str, format_: ConfigFormat) -> str:
    return f"{environment}/{size}/config.{format_}"


def _text_of(config: Config, format_: ConfigFormat) -> str:
    return config.text if format_ == "yaml" else json_text(json_value(config.request_body, config.companions))
