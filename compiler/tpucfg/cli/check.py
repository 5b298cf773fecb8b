"""`tpucfg check`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tpucfg.catalog import Catalog
from tpucfg.cli.exits import ERRORS, USAGE, Stop
from tpucfg.cli.options import SPEC, EnvOption, SizeOption, SpecsOption, TargetOption, choice, selection
from tpucfg.cli.workspace import check_spec, has_colour
from tpucfg.findings import Finding, errors
from tpucfg.findings.formats import FORMATS, counted, format_named


def check(
    spec: SpecsOption = None,
    env: EnvOption = None,
    size: SizeOption = None,
    target: TargetOption = None,
    config: Annotated[
        list[Path] | None,
        typer.Option("--config", metavar="FILE", help="Check this config.yaml, whoever wrote it; needs --target."),
    ] = None,
    format: Annotated[str, typer.Option("--format", metavar="text|json|sarif|github", help="How to print.")] = "text",
) -> None:
    """Print every finding about the spec and about every config it makes.

    Example: tpucfg check --env prod --format github
    """
    choice(format, FORMATS, "--format")
    if config:
        found, sources, subject = _configs(config, target)
    else:
        found, sources, subject = _specs(spec or [SPEC], env, size, target)
    sys.stdout.write(format_named(format).report(found, sources, colour=has_colour(sys.stdout)))
    if format == "text":
        print(f"{subject}: {counted(found)}")
    if errors(found):
        raise Stop(ERRORS)


def _specs(
    paths: list[Path], env: list[str] | None, size: list[str] | None, target: str | None
) -> tuple[list[Finding], dict[str, str], str]:
    catalog, found, sources, configs = Catalog(), [], {}, 0
    for path in paths:
        compiled, of_spec, sources[str(path)] = check_spec(path, catalog, selection(env, size, target))
        found += of_spec
        configs += len(compiled.messages) if compiled else 0
    names = ", ".join(str(path) for path in paths)
    return found, sources, f"{names}, {configs} config{'s' if configs != 1 else ''}"


def _configs(paths: list[Path], target: str | None) -> tuple[list[Finding], dict[str, str], str]:
    from tpucfg.config.check import document_findings
    from tpucfg.spec.reader import read_file

    if target is None:
        raise Stop(USAGE, "--config needs --target: a config.yaml does not say which service it is for")
    documents = [read_file(path) for path in paths]
    found = [finding for document in documents for finding in document_findings(document, target, Catalog())]
    return found, {document.file: document.text for document in documents}, ", ".join(str(path) for path in paths)
