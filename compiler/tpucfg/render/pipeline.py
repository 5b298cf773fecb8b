"""Job to Config: the target's message, laid out by its template."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from tpucfg import __version__
from tpucfg.catalog import Catalog
from tpucfg.findings import MAX_FINDINGS, RULES, Finding, Location, collect, errors
from tpucfg.plan import Job, Plan, Selection, plan, select_sizes
from tpucfg.plan.rules.spec_rules import unused_allowances, unused_settings
from tpucfg.render.field_writer import FILTERS, FieldWriter
from tpucfg.render.validate import request_body_findings
from tpucfg.spec.package_rules import package_findings
from tpucfg.spec.parse import parse_project
from tpucfg.spec.project import Project
from tpucfg.spec.recovery import without_stand_ins
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.common import deep_merge
from tpucfg.text_format import json_text
from tpucfg.yamldoc.reader import read_file, read_text
from tpucfg.yamldoc.writer import round_trips

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class Config(NamedTuple):
    """The rendered file of one job."""

    job: Job
    message: RequestBody
    """What the text says, as plain data."""
    text: str


def request_body(job: Job) -> RequestBody:
    """The target's message with the spec's `extra` merged in: mappings are merged, anything else is replaced."""
    return deep_merge(target_named(job.target).request_body(job), job.options.get("extra", {}))


def render_config(job: Job, message: RequestBody) -> Config:
    """The config as YAML, by the target's template."""
    values = {
        "version": __version__,
        "job": job,
        "slice": job.slice,
        "body": FieldWriter(message),
        "digest": job_hash(job, message),
    }
    return Config(job, message, _template(f"{job.target}/config.yaml.j2").render(values))


def job_hash(job: Job, message: RequestBody) -> str:
    """The hash of the resolved job: it changes where, and only where, the config would do something else."""
    import hashlib

    resolved = [job.target, job.name, message]
    return hashlib.sha256(_CANONICAL.encode(resolved).encode()).hexdigest()[:16]


@cache
def _template(name: str) -> Any:
    return config_environment().get_template(name)


@cache
def config_environment() -> Any:
    """The configs' engine. Values reach YAML through `yaml` and the filters of FieldWriter only, which quote."""
    from tpucfg import templating
    from tpucfg.yamldoc.writer import to_yaml

    return templating.environment(yaml=to_yaml, **FILTERS)


# The whole way for one spec: plan, message, check, and the text where it is wanted.


_ENOUGH: Final = 5 * MAX_FINDINGS
"""Jobs have most mistakes in common, and each job's are worked out anew."""
_READ_BY_TARGETS: Final = frozenset(("name", "target", "sizes", "environments", "trainer", "targets"))
"""Sections of which a stand-in could be at fault for a target's refusal."""


class CompiledSpec(NamedTuple):
    """The selected jobs of one spec with their messages, and all findings about them."""

    plan: Plan
    request_bodies: tuple[tuple[Job, RequestBody], ...]
    findings: tuple[Finding, ...]


class RenderError(Exception):
    """A text came out otherwise than its job; nothing of it may be written."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = tuple(findings)


def compile_project(
    project: Project, catalog: Catalog, selection: Selection | None = None, beside: Iterable[Finding] = ()
) -> CompiledSpec:
    """Everything but the texts, which need a template engine that a check does not.

    `beside`: findings about the spec's text and about what lies beside it, which `allow` in it covers too.

    Raises:
        SelectionError: The selection names what the spec does not have.
    """
    selection = selection or Selection()
    planned = plan(project, catalog, selection)
    found = [*beside, *without_stand_ins(planned.findings)]
    if not project.broken & _READ_BY_TARGETS:
        found += without_stand_ins(_refusals(project, catalog, selection))
    messages: tuple[tuple[Job, RequestBody], ...] = ()
    if not errors(_judged(project, found)):
        messages = tuple((job, request_body(job)) for job in planned.jobs)
        found += _refused(project, messages, catalog)
    if selection == Selection() and not project.broken:
        found += unused_settings(project)
        if not errors(_judged(project, found)):
            found += unused_allowances(project, {finding.id for finding in found})
    return CompiledSpec(planned, messages, _judged(project, found))


def _refused(project: Project, messages: Sequence[tuple[Job, RequestBody]], catalog: Catalog) -> list[Finding]:
    """What the services refuse of the messages; of many jobs with many mistakes, what the first of them have."""
    found: list[Finding] = []
    for job, message in messages:
        found += request_body_findings(project, job, message, catalog)
        if len(found) > _ENOUGH:
            break
    return found


def _refusals(project: Project, catalog: Catalog, selection: Selection) -> Iterator[Finding]:
    """What the targets refuse of the spec itself, asked once for each environment."""
    for environment, sizes in select_sizes(project, selection):
        target = target_named(selection.target or environment.target)
        slices = [slice_ for size in sizes if (slice_ := catalog.find(size))]
        yield from target.spec_findings(project, environment, slices)


def _judged(project: Project, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """With the findings that the spec allows as notes that carry its reason."""
    if "allow" in project.broken:  # what it allows is not known yet
        found = [finding for finding in found if not RULES[finding.id].allowable]
    return collect(item.allowed(project.allow[item.id]) if item.id in project.allow else item for item in found)


def round_trip_finding(config: Config) -> Finding | None:
    """An error where the text, read again, is not the message to the letter: its template lost something."""
    if round_trips(config.text, config.message):
        return None
    if unread := read_text(config.text, f"{config.job.name}.yaml").findings:
        return unread[0]
    message = f"the text of {config.job.name} does not say what its job says: its template is at fault"
    return Finding.of("TPU079", message, Location(f"templates/{config.job.target}/config.yaml.j2"))


def render_configs(compiled: CompiledSpec) -> Iterator[Config]:
    """The configs one by one, each read again and compared with its job.

    Raises:
        RenderError: A text differs from its job, or the findings hold an error.
    """
    if stopping := errors(compiled.findings):
        raise RenderError(stopping)
    for job, message in compiled.request_bodies:
        config = render_config(job, message)
        if different := round_trip_finding(config):
            raise RenderError([different])
        yield config


# A spec's file to what it compiles to, with all findings about it.


class CheckedSpec(NamedTuple):
    """All that can be said of a spec."""

    compiled: CompiledSpec | None
    """None where the structure of the spec is broken."""
    findings: tuple[Finding, ...]
    text: str
    """The spec's own, to show places in."""


def check_spec_file(path: Path, catalog: Catalog, selection: Selection, shown: str | None = None) -> CheckedSpec:
    """What the spec in a file compiles to; `shown` is what findings call the file.

    Raises:
        SelectionError: The selection names what the spec does not have.
    """
    document = read_file(path, shown)
    project, found = parse_project(document)
    if project is None:
        return CheckedSpec(None, found, document.text)
    compiled = compile_project(project, catalog, selection, [*found, *package_findings(project, path.parent)])
    return CheckedSpec(None if project.broken else compiled, compiled.findings, document.text)


# A spec's file to the texts of its configs: the whole way, as plain data that another process can hand over.


Format = Literal["yaml", "json"]


class RenderedSpec(NamedTuple):
    """What became of a spec. Where one of the findings is an error, there are no configs."""

    spec: str
    """The path of its file."""
    text: str
    """Its own, to show places in; empty where no finding would."""
    findings: tuple[Finding, ...]
    """The errors and the warnings."""
    project: str
    configs: tuple[tuple[str, str], ...]
    """`<env>/<size>/config.<format>` and the text of each selected job."""
    jobs: tuple[str, ...]
    """The same path of every job, whatever was selected."""


def render_spec(path: Path, catalog: Catalog, selection: Selection, format_: Format) -> RenderedSpec:
    """Everything between the spec's file and the files of its configs.

    Raises:
        SelectionError: The selection names what the spec does not have.
    """
    compiled, found, text = check_spec_file(path, catalog, selection)
    said = tuple(finding for finding in found if finding.level != "note")
    if compiled is None or errors(said):
        return RenderedSpec(str(path), text, said, "", (), ())
    project = compiled.plan.project
    try:
        configs = tuple((_place(config, format_), _text(config, format_)) for config in render_configs(compiled))
    except RenderError as error:
        return RenderedSpec(str(path), text, (*said, *error.findings), "", (), ())
    return RenderedSpec(str(path), text if said else "", said, project.name, configs, tuple(_jobs(project, format_)))


def _place(config: Config, format_: Format) -> str:
    return _path(config.job.environment.name, config.job.size, format_)


def _jobs(project: Project, format_: Format) -> Iterator[str]:
    for name, environment in project.environments.items():
        for size in environment.sizes:
            yield _path(name, size, format_)


def _path(environment: str, size: str, format_: Format) -> str:
    return f"{environment}/{size}/config.{format_}"


def _text(config: Config, format_: Format) -> str:
    return config.text if format_ == "yaml" else json_text(config.message)
