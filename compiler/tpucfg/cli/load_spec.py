"""What most commands begin with: the spec compiled, its findings said, and an end where one of them is an error."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, USAGE, CommandExit
from tpucfg.findings import Finding, errors
from tpucfg.plan import Selection, SelectionError
from tpucfg.render.pipeline import CompiledSpec, check_spec_file
from tpucfg.spec.parse import parse_project
from tpucfg.spec.project import Project
from tpucfg.yamldoc.reader import read_file


def load_checked(path: Path, catalog: Catalog, selection: Selection) -> tuple[CompiledSpec | None, list[Finding], str]:
    """What a spec compiles to, all findings about it, and its text. Nothing is compiled where its structure is broken.

    Raises:
        Stop: The selection names what the spec does not have.
    """
    try:
        compiled, found, text = check_spec_file(path, catalog, selection)
    except SelectionError as error:
        raise CommandExit(USAGE, str(error)) from None
    return compiled, list(found), text


def load_compiled(path: Path, catalog: Catalog, selection: Selection, *, quiet: bool = False) -> CompiledSpec:
    """What a spec compiles to; its errors and warnings go to stderr, its notes to nobody but `check`.

    Raises:
        Stop: A finding is an error, or the selection names what the spec does not have.
    """
    compiled, found, text = load_checked(path, catalog, selection)
    stops = compiled is None or bool(errors(found))
    if stops or not quiet:
        print_findings([finding for finding in found if finding.level != "note"], {str(path): text})
    if compiled is None or stops:
        raise CommandExit(ERRORS)
    return compiled


def load_project_or_exit(path: Path) -> Project:
    """The project in a spec, without its configs; its findings go to stderr.

    Raises:
        Stop: The spec's structure does not hold.
    """
    document = read_file(path)
    project, found = parse_project(document)
    if project is None or errors(found):
        print_findings(found, {str(path): document.text})
        raise CommandExit(ERRORS)
    return project


def print_findings(findings: Sequence[Finding], sources: Mapping[str, str]) -> None:
    """Findings as text, on stderr."""
    if not findings:
        return
    from tpucfg.findings.formats.text import report

    sys.stderr.write(report(findings, sources, colour=has_colour(sys.stderr)))


def has_colour(stream: object) -> bool:
    """Whether a stream shows colour: a terminal that is not dumb, and no NO_COLOR (https://no-color.org)."""
    import os

    is_terminal = bool(getattr(stream, "isatty", bool)())
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def project_of(compiled: CompiledSpec) -> Project:
    """The project behind what was compiled."""
    return compiled.plan.project
