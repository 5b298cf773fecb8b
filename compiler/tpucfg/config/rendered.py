"""A spec's file to the texts of its configs: the whole way, as plain data that another process can hand over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.config.checked import checked
from tpucfg.config.compile import RenderError, render_all
from tpucfg.config.render import Config
from tpucfg.findings import Finding, errors
from tpucfg.plan import Selection
from tpucfg.spec.model import Project
from tpucfg.wording import json_text

Format = Literal["yaml", "json"]


class Rendered(NamedTuple):
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


def rendered(path: Path, catalog: Catalog, selection: Selection, format_: Format) -> Rendered:
    """Everything between the spec's file and the files of its configs.

    Raises:
        SelectionError: The selection names what the spec does not have.
    """
    compiled, found, text = checked(path, catalog, selection)
    said = tuple(finding for finding in found if finding.level != "note")
    if compiled is None or errors(said):
        return Rendered(str(path), text, said, "", (), ())
    project = compiled.plan.project
    try:
        configs = tuple((_place(config, format_), _text(config, format_)) for config in render_all(compiled))
    except RenderError as error:
        return Rendered(str(path), text, (*said, *error.findings), "", (), ())
    return Rendered(str(path), text if said else "", said, project.name, configs, tuple(_jobs(project, format_)))


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
