"""The command `tpucfg status`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Final

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.load_spec import load_compiled, print_findings
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
    """Show each rung's status: what it measured, how it scales, what it costs, and the next rung to run.

    Example: tpucfg status --env prod
    """
    require_choice(format, tuple(_FORMATS), "--format")
    catalog = Catalog()
    project, compiled = load_compiled(spec, catalog, selection(env), quiet=True)
    environments = [job.environment for job in compiled.jobs]
    ladders = ladder_statuses(project, catalog, environments, spec.parent).values()
    statuses = [EnvironmentStatus(ladder, tuple(next_steps(ladder, spec))) for ladder in ladders]
    for line in _FORMATS[format](project, statuses):
        print(line)
    if findings := [finding for ladder in ladders for finding in ladder.findings]:
        print_findings([*dict.fromkeys(findings)], {file: text for ladder in ladders for file, text in ladder.sources})
        raise CommandExit(ERRORS)


def _text(project: Project, statuses: Sequence[EnvironmentStatus]) -> Iterator[str]:
    for number, environment in enumerate(statuses):
        yield from ([""] if number else [])
        yield printable(environment.title)
        yield from text_table(*status_table(environment, project))
        yield ""
        yield from map(str, status_notes(environment, project))


def _markdown(project: Project, statuses: Sequence[EnvironmentStatus]) -> Iterator[str]:
    for number, environment in enumerate(statuses):
        yield from ([""] if number else [])
        yield f"**{prose(environment.title)}**"
        yield ""
        yield from markdown_table(*status_table(environment, project))
        yield ""
        for text, command in status_notes(environment, project):
            yield f"- {prose(text)}" + (f": {code(command)}" if command else "")


def _json(project: Project, statuses: Sequence[EnvironmentStatus]) -> Iterator[str]:
    gate = project.gate._asdict() if project.gate else None
    environments = [
        {
            "name": status.ladder.environment.name,
            "target": status.ladder.environment.target,
            "region": status.ladder.environment.region,
            "results": status.ladder.results.file,
            "rungs": [rung_data(evaluation, status.ladder) for evaluation in status.ladder.evaluations],
            "findings": [finding.data("id", "message", "location", "help") for finding in status.ladder.findings],
        }
        for status in statuses
    ]
    yield json_text({"project": project.name, "gate": gate, "environments": environments}).rstrip("\n")


_FORMATS: Final[Mapping[str, Callable[[Project, Sequence[EnvironmentStatus]], Iterator[str]]]] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
}
