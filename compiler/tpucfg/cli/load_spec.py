"""Load specs for a command: print their findings, and end the command if one of them is an error."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.findings import Finding, errors
from tpucfg.plan import Job, Selection
from tpucfg.refusal import UsageError
from tpucfg.render.pipeline import CompiledSpec, compile_spec_file
from tpucfg.spec import Project, command_words
from tpucfg.spec.credentials import hidden_text
from tpucfg.spec.parse import parse_project
from tpucfg.text_format import format_count, printable
from tpucfg.yamldoc.reader import read_file

if TYPE_CHECKING:
    from tpucfg.fit.rung_fit import KnownFits


def load_compiled(
    path: Path,
    catalog: Catalog,
    selection: Selection,
    *,
    warnings: Literal["all", "number", "none"] = "number",
) -> tuple[Project, CompiledSpec]:
    """Compile a spec, and print its errors and warnings to stderr.

    Args:
        path: The spec's file.
        catalog: The catalog of TPU sizes.
        selection: The jobs to compile.
        warnings: The warnings to print: all of them where a job is made or started, none where the output has them.

    Raises:
        CommandExit: A finding is an error, or the spec does not have a selected environment or size.
    """
    compiled = compile_spec_file(path, catalog, with_records(selection, path))
    is_valid = compiled.project is not None and not errors(compiled.findings)
    if warnings != "none" or not is_valid:
        print_result(path, compiled.findings, compiled.source, in_full=warnings == "all")
    if compiled.project is None or not is_valid:
        raise CommandExit(ERRORS)
    return compiled.project, compiled


def with_records(selection: Selection, spec: Path) -> Selection:
    """Return the selection of a run with what its records beside the spec say that it has done.

    Raises:
        CommandExit: The records cannot be read, or have invalid lines, of which each could be the run's last one.
    """
    if selection.run is None or selection.probe or selection.recorded:
        return selection
    from tpucfg.results.records import read_every_record, run_parts

    files = read_every_record(spec.parent)
    findings = [finding for results in files.values() for finding in results.findings]
    require_none(findings, {results.file: results.text for results in files.values()})
    return selection._replace(recorded=run_parts(files, selection.run))


def load_project(path: Path) -> Project:
    """Parse a spec without compiling it, and print its findings to stderr if one is an error.

    Raises:
        CommandExit: The spec's structure is invalid.
    """
    document = read_file(path)
    project, findings = parse_project(document)
    if project is None or errors(findings):
        print_findings(findings, {str(path): hidden_text(document)})
        raise CommandExit(ERRORS)
    return project


def single_job(jobs: Sequence[Job], size: str) -> Job:
    """Return the only job of a size.

    Raises:
        UsageError: Several environments have the size.
    """
    if len(jobs) > 1:
        names = [job.environment.name for job in jobs]
        message = f"{size} is a rung of {len(names)} environments: {', '.join(names)}"
        raise UsageError(message, f"choose one, for example --env {names[0]}")
    return jobs[0]


def load_fits(project: Project, jobs: Iterable[Job], spec: Path) -> "KnownFits | None":
    """Return what is known of the fits of jobs; None, and no file is read, if the spec names no training step.

    A probe runs the step of the whole run.
    """
    with_step = [job.whole_run for job in jobs if job.settings.trainer.fit]
    if not with_step:
        return None
    # Most specs name no step, and their commands start faster without these modules.
    from tpucfg.fit.rung_fit import read_known_fits

    return read_known_fits(project, with_step, spec.parent)


def print_fit_warnings(project: Project, fits: "KnownFits") -> None:
    """Print a warning about each step that does not fit, or about a file of fits that cannot be read, on stderr."""
    from tpucfg.fit.fit_findings import known_fit_findings

    findings = known_fit_findings(project, fits, level="warning")
    sources = {project.document.file: project.document.text, str(fits.file.path): fits.file.text}
    print_findings(
        [finding for finding in findings if finding.level == "warning" and finding.id != "TPU106"],
        sources,
    )


def print_result(
    path: str | Path, findings: Sequence[Finding], source: str, *, in_full: bool = False
) -> None:
    """Print errors and warnings on stderr; of warnings alone, one line, unless `in_full`.

    The commands that make or start a job print warnings in full. Repeated by every command, they would go unread.
    """
    serious = [finding for finding in findings if finding.level != "note"]
    if in_full or errors(serious):
        print_findings(serious, {str(path): source})
    elif serious:
        import shlex

        count, pronoun = (
            format_count(len(serious), "warning"),
            "it" if len(serious) == 1 else "them",
        )
        command = shlex.join(command_words("check", path))
        print(printable(f"{path}: {count}; {command} shows {pronoun}"), file=sys.stderr)


def print_findings(findings: Sequence[Finding], sources: Mapping[str, str]) -> None:
    """Print findings as text on stderr, with the lines of `sources` that they are about."""
    if not findings:
        return
    # Imported here because most specs have no findings.
    from tpucfg.findings.text import report

    sys.stderr.write(report(findings, sources, colour=has_color(sys.stderr)))


def require_none(findings: Iterable[Finding], sources: Mapping[str, str]) -> None:
    """Print findings that end a command, each once.

    Raises:
        CommandExit: There is one.
    """
    if distinct := [*dict.fromkeys(findings)]:
        print_findings(distinct, sources)
        raise CommandExit(ERRORS)


def has_color(stream: object) -> bool:
    """Return True if a stream is a terminal with colors, and NO_COLOR is not set (https://no-color.org)."""
    is_terminal = bool(getattr(stream, "isatty", bool)())
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
