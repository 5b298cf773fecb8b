"""The pipeline from a spec file to its verified configs, shared by every command that compiles a spec.

The steps, in the order of the functions: compile the spec to one request body for each selected job, collect the
findings of every stage, and have `config` render and verify the text of each request body. `output_dir` writes the
texts to files.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from tpucfg.catalog import TARGET_FACTS, Catalog
from tpucfg.findings import MAX_FINDINGS, RULES, Finding, collect, errors
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan import Job, Plan, Selection, plan, select_sizes
from tpucfg.plan.rules.project_rules import BucketUse, bucket_uses
from tpucfg.plan.rules.unused_settings import unused_allowances, unused_settings
from tpucfg.plan.rung import slice_in_force
from tpucfg.render.config import Config, render_config, round_trip_finding
from tpucfg.render.validate import request_body_findings
from tpucfg.spec import Project
from tpucfg.spec.credentials import hidden_text
from tpucfg.spec.parse import parse_project
from tpucfg.targets import RequestBody
from tpucfg.targets.extra import Merged, merged_request_body, refused_extra
from tpucfg.targets.objects import json_value
from tpucfg.targets.rules import target_findings
from tpucfg.text_format import json_text
from tpucfg.yamldoc.reader import read_file

ConfigFormat = Literal["yaml", "json"]

_MAX_REQUEST_BODY_FINDINGS: Final = 5 * MAX_FINDINGS
"""Enough to fill the report: jobs share most of their mistakes, and each job's findings are computed anew."""
_READ_BY_TARGETS: Final = frozenset(("name", "target", "sizes", "environments", "trainer", "targets"))
"""The spec's sections that `spec_findings` of a target reads: a stand-in for one could cause a false finding."""


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
    if selection.changes:
        from tpucfg.yamldoc.changed_values import replace_values

        document = replace_values(document, selection.changes)
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
            findings += unused_allowances(project, findings)
    return CompiledSpec(of_run, request_bodies, _allowed(project, findings), project.document.text, planned)


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
    return config.text if format_ == "yaml" else json_text(json_value(config.request_body, config.companions))
