"""`tpucfg status`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Final

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.load_spec import load_compiled, print_findings, project_of
from tpucfg.cli.options import SPEC, EnvOption, SpecOption, format_option, require_choice, selection
from tpucfg.cli.status_table import EnvironmentStatus, rung_data, status_notes, status_table
from tpucfg.cli.table import markdown_table, text_table
from tpucfg.markdown import code, prose
from tpucfg.results.ladder_status import ladder_statuses
from tpucfg.results.next_steps import next_steps
from tpucfg.spec.project import Project
from tpucfg.text_format import json_text, printable


def status(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    format: Annotated[str, format_option("text|markdown|json")] = "text",
) -> None:
    """Print where each rung stands: what it measured, how it scales, what it costs, and which rung comes next.

    Example: tpucfg status --env prod
    """
    require_choice(format, tuple(_FORMATS), "--format")
    catalog = Catalog()
    compiled = load_compiled(spec, catalog, selection(env), quiet=True)
    project = project_of(compiled)
    measured = ladder_statuses(project, catalog, [job.environment for job, _ in compiled.request_bodies], spec.parent)
    every = [EnvironmentStatus(it, tuple(next_steps(it, spec))) for it in measured.values()]
    for line in _FORMATS[format](project, every):
        print(line)
    if found := [finding for it in measured.values() for finding in it.results.findings]:
        print_findings(found, {it.results.file: it.results.text for it in measured.values()})
        raise CommandExit(ERRORS)


def _text(project: Project, every: Sequence[EnvironmentStatus]) -> Iterator[str]:
    for number, one in enumerate(every):
        yield from ([""] if number else [])
        yield printable(one.title)
        yield from text_table(*status_table(one, project))
        yield ""
        yield from map(str, status_notes(one, project))


def _markdown(project: Project, every: Sequence[EnvironmentStatus]) -> Iterator[str]:
    for number, one in enumerate(every):
        yield from ([""] if number else [])
        yield f"**{prose(one.title)}**"
        yield ""
        yield from markdown_table(*status_table(one, project))
        yield ""
        for text, command in status_notes(one, project):
            yield f"- {prose(text)}" + (f": {code(command)}" if command else "")


def _json(project: Project, every: Sequence[EnvironmentStatus]) -> Iterator[str]:
    gate = project.gate._asdict() if project.gate else None
    environments = [
        {
            "name": one.survey.environment.name,
            "target": one.survey.environment.target,
            "region": one.survey.environment.region,
            "results": one.survey.results.file,
            "rungs": [rung_data(one, at, project) for at in range(len(one.survey.evaluations))],
            "findings": [
                {"id": it.id, "message": it.message, "location": str(it.location), "help": it.help}
                for it in one.survey.results.findings
            ],
        }
        for one in every
    ]
    document = {"project": project.name, "gate": gate, "environments": environments}
    yield json_text(document).rstrip("\n")


_FORMATS: Final[Mapping[str, Callable[[Project, Sequence[EnvironmentStatus]], Iterator[str]]]] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
}
