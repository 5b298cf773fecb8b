"""Everything that is to be said of the folder `results/`: of what is no record, and of records that are not counted.

A record that is not counted is no mistake: a ladder that was changed leaves its history behind, and two specs may share
a folder. But a project that was renamed, and a file that is named after no environment, look the same, and close the
gate without a word. So `check` notes them, and nothing is stopped.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.findings import Finding, Location
from tpucfg.results.record import Record, Results
from tpucfg.results.record_file import FOLDER, read_records, record_path
from tpucfg.results.record_parser import ExampleRecord
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import dotted, listed, nearest, quote_key

_MOST_FILES: Final = 1_000
"""Looked at; a folder with more is no folder of results."""
_MOST_STRAYS: Final = 10
"""Files that are named."""
_ENDING: Final = ".jsonl"


class IgnoredRecords(NamedTuple):
    """Records of one file that count for nothing, for one reason."""

    said: str
    help: str
    location: Location | None
    """The last of them."""


def record_findings(
    folder: Path, project: Project, environments: Collection[str] = ()
) -> tuple[list[Finding], dict[str, str]]:
    """What there is to say of the results beside a spec, and their texts by name.

    `environments`: those that are asked about; none for all, and for the files of none as well.
    """
    asked = [it for it in project.environments.values() if not environments or it.name in environments]
    every = [(read_records(folder, it.name, ExampleRecord(project.name, it.sizes[0])), it) for it in asked]
    found = [finding for results, _ in every for finding in results.findings]
    for results, environment in every if not project.broken else ():
        found += [
            Finding.of("TPU103", it.said, it.location or Location(results.file), help=it.help)
            for it in ignored_records(results, environment, project.name)
        ]
    found += () if environments or project.broken else _strays(folder, project.environments)
    return found, {results.file: results.text for results, _ in every}


def ignored_records(results: Results, environment: Environment, name: str) -> Iterator[IgnoredRecords]:
    """The records that count for nothing in an environment of the project of that name."""
    others = [it for it in results.records if it.name != name]
    if others:
        names = _each([it.name for it in others])
        renamed = f'if {names} is what {name} was called, write "name": "{name}" there'
        yield IgnoredRecords(
            f"{_counted(others)} of another name ({names}) {_verb(others)} not counted: the spec's name is {name}",
            f"{renamed}; if another spec shares the folder, leave it as it is",
            others[-1].location,
        )
    elsewhere = [it for it in results.records if it.name == name and it.size not in environment.sizes]
    if elsewhere:
        sizes, ladder = _each([it.size for it in elsewhere]), listed(environment.sizes, last=" and ")
        yield IgnoredRecords(
            f"{_counted(elsewhere)} of a size outside the ladder ({sizes}) {_verb(elsewhere)} not counted: "
            f"{environment.name} has {ladder}",
            f"add {sizes} to {dotted(environment.sizes_path)} to climb by it, or leave it as it is",
            elsewhere[-1].location,
        )


def _counted(records: Sequence[Record]) -> str:
    return "1 record" if len(records) == 1 else f"{len(records):,} records"


def _verb(records: Sequence[Record]) -> str:
    return "is" if len(records) == 1 else "are"


def _each(texts: Sequence[str]) -> str:
    return listed(sorted(set(texts)), last=" and ")


def _strays(folder: Path, environments: Collection[str]) -> Iterator[Finding]:
    """Files of records that nobody reads, as no environment has their name."""
    names = listed([*environments], last=" and ")
    strays = (file for file in _files(folder / FOLDER) if file.removesuffix(_ENDING) not in environments)
    for file in islice(strays, _MOST_STRAYS):
        near = nearest(file.removesuffix(_ENDING), [*environments])
        renamed = f"did you mean {near}{_ENDING}? Rename it" if near else "name it after an environment"
        yield Finding.of(
            "TPU103",
            f"{quote_key(file)} belongs to no environment, and nothing of it is counted: the spec has {names}",
            Location(str(record_path(folder, file.removesuffix(_ENDING)))),
            help=f"{renamed}, or delete it; if another spec shares the folder, leave it as it is",
        )


def _files(folder: Path) -> Sequence[str]:
    """The names of the files of records in a folder; none where it cannot be read, or is a link."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        with os.scandir(descriptor) as entries:
            return sorted(it.name for it in islice(entries, _MOST_FILES) if it.name.endswith(_ENDING))
    except OSError:
        return ()
    finally:
        os.close(descriptor)
