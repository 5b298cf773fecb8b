"""`tpucfg check`."""

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, USAGE, CommandExit
from tpucfg.cli.load_spec import has_colour, load_checked, load_project_or_exit, project_of
from tpucfg.cli.options import (
    SPEC,
    EnvOption,
    SizeOption,
    SpecsOption,
    TargetOption,
    format_option,
    require_choice,
    selection,
)
from tpucfg.findings import Finding, errors
from tpucfg.findings.formats import FORMATS, format_counts, format_named
from tpucfg.spec.project import Project
from tpucfg.text_format import printable

_NAMED: Final = 8
"""Specs: of more of them, the line that sums up tells the number."""


def check(
    spec: SpecsOption = None,
    env: EnvOption = None,
    size: SizeOption = None,
    target: TargetOption = None,
    config: Annotated[
        list[Path] | None,
        typer.Option("--config", metavar="FILE", help="Check this config.yaml, whoever wrote it; needs --target."),
    ] = None,
    stack_outputs: Annotated[
        Path | None,
        typer.Option(
            "--stack-outputs",
            metavar="FILE",
            help="Compare what `pulumi stack output --json` printed with the spec; --env says whose it is.",
        ),
    ] = None,
    format: Annotated[str, format_option("text|json|sarif|github")] = "text",
) -> None:
    """Print every finding about the spec, about every config it makes, and about the stack files and results beside it.

    Example: tpucfg check --env prod --format github
    """
    require_choice(format, FORMATS, "--format")
    if config:
        if spec or env or size:
            raise CommandExit(
                USAGE, "--config checks files by themselves, without a spec: leave out --spec, --env and --size"
            )
        found, sources, subject = _configs(config, target)
    elif stack_outputs:
        found, sources, subject = _outputs(stack_outputs, spec or [SPEC], env)
    else:
        found, sources, subject = _specs(spec or [SPEC], env, size, target)
    sys.stdout.write(format_named(format).report(found, sources, colour=has_colour(sys.stdout)))
    if format == "text":
        print(f"{printable(subject)}: {format_counts(found)}")
    if errors(found):
        raise CommandExit(ERRORS)


def _specs(
    paths: list[Path], env: list[str] | None, size: list[str] | None, target: str | None
) -> tuple[list[Finding], dict[str, str], str]:
    from tpucfg.infra import stack_files

    catalog, found, sources, configs = Catalog(), [], {}, 0
    for path in paths:
        compiled, of_spec, sources[str(path)] = load_checked(path, catalog, selection(env, size, target))
        found += of_spec
        configs += len(compiled.request_bodies) if compiled else 0
        if not (size or target):  # who selects those asks about jobs
            project = project_of(compiled) if compiled else None
            of_stacks, texts = stack_files.stack_file_findings(path, project, env or ())
            of_results, records = _results(path.parent, project, env)
            known = {(it.id, it.location) for it in found}
            found += [
                *of_stacks,
                *(it for it in of_results if (it.id, it.location) not in known),
            ]  # two specs may share a folder
            sources |= texts | records
    names = ", ".join(str(path) for path in paths) if len(paths) <= _NAMED else f"{len(paths)} specs"
    return found, sources, f"{names}, {configs} config{'s' if configs != 1 else ''}"


def _results(folder: Path, project: Project | None, env: list[str] | None) -> tuple[list[Finding], dict[str, str]]:
    if project is None or not os.path.lexists(folder / "results"):  # most projects have recorded nothing
        return [], {}
    from tpucfg.results.ignored_records import record_findings

    return record_findings(folder, project, env or ())


def _configs(paths: list[Path], target: str | None) -> tuple[list[Finding], dict[str, str], str]:
    from tpucfg.render.validate import config_findings
    from tpucfg.yamldoc.reader import read_file

    if target is None:
        raise CommandExit(USAGE, "--config needs --target: a config.yaml does not say which service it is for")
    documents = [read_file(path) for path in paths]
    found = [finding for document in documents for finding in config_findings(document, target, Catalog())]
    found = [it._replace(help="give the config's path with --config FILE") if it.id == "TPU001" else it for it in found]
    return found, {document.file: document.text for document in documents}, ", ".join(str(path) for path in paths)


def _outputs(path: Path, specs: list[Path], env: list[str] | None) -> tuple[list[Finding], dict[str, str], str]:
    from tpucfg.infra.stack_outputs import environment_of, output_findings, unreadable_outputs
    from tpucfg.yamldoc.reader import read_file

    if len(specs) > 1 or len(env or ()) > 1:
        raise CommandExit(USAGE, "--stack-outputs is about one stack: give one spec and one environment")
    project, document = load_project_or_exit(specs[0]), read_file(path)
    if env and env[0] not in project.environments:
        raise CommandExit(USAGE, f"there is no environment {env[0]}; there are: {', '.join(project.environments)}")
    if found := unreadable_outputs(document):
        return list(found), {str(path): document.text}, str(path)
    environment = project.environments[env[0]] if env else environment_of(document, project)
    if environment is None:
        message = f"neither the bucket nor the account in {path} is any environment's"
        raise CommandExit(USAGE, message, "say whose stack it is with --env ENV")
    sources = {str(path): document.text, project.document.file: project.document.text}
    return list(output_findings(document, project, environment)), sources, f"{path}, stack {environment.name}"
