"""`tpucfg status`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Final

from tpucfg.catalog import Catalog
from tpucfg.cli.exits import ERRORS, Stop
from tpucfg.cli.options import SPEC, EnvOption, SpecOption, choice, format_option, selection
from tpucfg.cli.status_rows import Status, remarks, rung_data, status_table
from tpucfg.cli.table import markdown_table, text_table
from tpucfg.cli.workspace import compiled_spec, project_of, say
from tpucfg.results.advice import advice
from tpucfg.results.survey import surveys
from tpucfg.review.markdown import code, prose
from tpucfg.spec.model import Project
from tpucfg.wording import json_text, printable


def status(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    format: Annotated[str, format_option("text|markdown|json")] = "text",
) -> None:
    """Print where each rung stands: what it measured, how it scales, what it costs, and which rung comes next.

    Example: tpucfg status --env prod
    """
    choice(format, tuple(_FORMATS), "--format")
    catalog = Catalog()
    compiled = compiled_spec(spec, catalog, selection(env), quiet=True)
    project = project_of(compiled)
    measured = surveys(project, catalog, [job.environment for job, _ in compiled.messages], spec.parent)
    every = [Status(it, tuple(advice(it, spec))) for it in measured.values()]
    for line in _FORMATS[format](project, every):
        print(line)
    if found := [finding for it in measured.values() for finding in it.results.findings]:
        say(found, {it.results.file: it.results.text for it in measured.values()})
        raise Stop(ERRORS)


def _text(project: Project, every: Sequence[Status]) -> Iterator[str]:
    for number, one in enumerate(every):
        yield from ([""] if number else [])
        yield printable(one.title)
        yield from text_table(*status_table(one, project))
        yield ""
        yield from map(str, remarks(one, project))


def _markdown(project: Project, every: Sequence[Status]) -> Iterator[str]:
    for number, one in enumerate(every):
        yield from ([""] if number else [])
        yield f"**{prose(one.title)}**"
        yield ""
        yield from markdown_table(*status_table(one, project))
        yield ""
        for text, command in remarks(one, project):
            yield f"- {prose(text)}" + (f": {code(command)}" if command else "")


def _json(project: Project, every: Sequence[Status]) -> Iterator[str]:
    gate = project.gate._asdict() if project.gate else None
    environments = [
        {
            "name": one.survey.environment.name,
            "target": one.survey.environment.target,
            "region": one.survey.environment.region,
            "results": one.survey.results.file,
            "rungs": [rung_data(one, at, project) for at in range(len(one.survey.standings))],
            "findings": [
                {"id": it.id, "message": it.message, "place": str(it.place), "help": it.help}
                for it in one.survey.results.findings
            ],
        }
        for one in every
    ]
    document = {"project": project.name, "gate": gate, "environments": environments}
    yield json_text(document).rstrip("\n")


_FORMATS: Final[Mapping[str, Callable[[Project, Sequence[Status]], Iterator[str]]]] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
}
