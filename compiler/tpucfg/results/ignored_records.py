"""Report findings about the `results` folder: errors in its files, and notes about records that are not counted.

A record that is not counted is not an error: records of sizes that were removed from the ladder are its history, and
two specs may share a folder. But if the project was renamed, or a file is named after no environment, the gate would
be closed without an explanation. `tpucfg check` therefore prints a note.
"""

from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from tpucfg.findings import Finding, Location
from tpucfg.fs import sorted_glob
from tpucfg.results.records import FOLDER, Results, read_records
from tpucfg.spec import Environment, Project
from tpucfg.text_format import dotted, format_count, listed, nearest, quote_key

_MAX_UNKNOWN_FILES: Final = 10
"""Maximum files that are reported."""
_EXTENSION: Final = ".jsonl"


def record_findings(
    folder: Path, project: Project, environments: Collection[str] = ()
) -> tuple[list[Finding], dict[str, str]]:
    """Return all findings about the results next to a spec, and the texts of their files by name.

    Args:
        folder: The spec's folder.
        project: The spec.
        environments: The environments to check; if empty, all of them, and files that are named after no environment.
    """
    files = [
        (read_records(folder, environment.name), environment)
        for environment in project.environments.values()
        if not environments or environment.name in environments
    ]
    findings = [finding for results, _ in files for finding in results.findings]
    # In a spec with errors, names and sizes may be stand-ins, with which no record would match.
    if not project.broken:
        for results, environment in files:
            findings += ignored_records(results, environment, project.name)
        if not environments:
            findings += _unknown_files(folder, project.environments)
    return findings, {results.file: results.text for results, _ in files}


def ignored_records(results: Results, environment: Environment, name: str) -> Iterator[Finding]:
    """Yield a note, at the last of them, about the records that are not counted in an environment of that project."""
    others = [record for record in results.records if record.name != name]
    names = listed(sorted({record.name for record in others}), last=" and ")
    ladder = listed(environment.sizes, last=" and ")
    outside = [record for record in results.records if record.name == name and record.size not in environment.sizes]
    sizes = listed(sorted({record.size for record in outside}), last=" and ")
    rename = f'if {name} was called {names} before, write "name": "{name}" in those records'
    rows = (
        (
            others,
            f"with another name ({names}) not counted: the spec's name is {name}",
            f"{rename}; if another spec shares the folder, change nothing",
        ),
        (
            outside,
            f"of a size outside the ladder ({sizes}) not counted: {environment.name} has {ladder}",
            f"add {sizes} to {dotted(environment.sizes_path)}, or keep the records as history",
        ),
    )
    for records, problem, hint in rows:
        if records:
            location = records[-1].location or Location(results.file)
            yield Finding.of("TPU103", f"{format_count(len(records), 'record')} {problem}", location, help=hint)


def _unknown_files(folder: Path, environments: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each results file that is named after no environment, and is therefore never read."""
    names = listed([*environments], last=" and ")
    paths = [] if (folder / FOLDER).is_symlink() else sorted_glob(folder / FOLDER, f"*{_EXTENSION}")
    for path in islice((path for path in paths if path.stem not in environments), _MAX_UNKNOWN_FILES):
        file, similar = path.name, nearest(path.stem, [*environments])
        rename = f"rename it to {similar}{_EXTENSION}" if similar else "name it after an environment"
        yield Finding.of(
            "TPU103",
            f"{quote_key(file)} is named after no environment, so its records are not counted: the spec has {names}",
            Location(str(path)),
            help=f"{rename}, or delete it; if another spec shares the folder, change nothing",
        )
