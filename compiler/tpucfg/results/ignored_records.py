"""Report findings about the `results` folder: errors in its files, and notes about records that are not counted.

A record that is not counted is not an error: records of sizes that were removed from the ladder are its history, and
two specs may share a folder. But if the project was renamed, or a file is named after no environment, the gate would
be closed without an explanation. `tpucfg check` therefore prints a note.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from tpucfg.findings import Finding, Location
from tpucfg.fs import sorted_glob
from tpucfg.results.records import FOLDER, Record, Results, read_records
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
    other_name = [record for record in results.records if record.name != name]
    if other_name:
        names = _distinct([record.name for record in other_name])
        subject = f"{_count(other_name)} with another name ({names}) {_verb(other_name)} not counted"
        rename = f'if {name} was called {names} before, write "name": "{name}" in those records'
        yield Finding.of(
            "TPU103",
            f"{subject}: the spec's name is {name}",
            other_name[-1].location or Location(results.file),
            help=f"{rename}; if another spec shares the folder, change nothing",
        )
    other_size = [record for record in results.records if record.name == name and record.size not in environment.sizes]
    if other_size:
        sizes, ladder = _distinct([record.size for record in other_size]), listed(environment.sizes, last=" and ")
        subject = f"{_count(other_size)} of a size outside the ladder ({sizes}) {_verb(other_size)} not counted"
        yield Finding.of(
            "TPU103",
            f"{subject}: {environment.name} has {ladder}",
            other_size[-1].location or Location(results.file),
            help=f"add {sizes} to {dotted(environment.sizes_path)}, or keep the records as history",
        )


def _count(records: Sequence[Record]) -> str:
    return format_count(len(records), "record")


def _verb(records: Sequence[Record]) -> str:
    return "is" if len(records) == 1 else "are"


def _distinct(texts: Sequence[str]) -> str:
    return listed(sorted(set(texts)), last=" and ")


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
