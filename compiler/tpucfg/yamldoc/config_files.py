"""Find the config files below a folder: YAML and JSON files by their suffix."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from tpucfg.findings import Finding, Location
from tpucfg.fs import is_directory, walk_files
from tpucfg.named_tuple import NamedTuple

MAX_FILES: Final = 100_000
"""Limit for the config files of a folder: a large repository has a twentieth of it."""
SUFFIXES: Final = (".yaml", ".yml", ".json")


class ConfigFiles(NamedTuple):
    """The config files below a folder."""

    paths: tuple[str, ...]
    """Relative to the folder, sorted."""
    findings: tuple[Finding, ...] = ()
    """An error if some files are missing in `paths`."""


def find_config_files(folder: Path) -> ConfigFiles:
    """Return the config files below a folder. Symbolic links, hidden files and hidden folders are skipped."""
    name = str(folder)
    try:
        paths = tuple(islice(walk_files(name, SUFFIXES), MAX_FILES + 1))
    except OSError as error:
        unreadable = str(error.filename or name).rstrip("/")
        message = f"{unreadable} cannot be read: {error.strerror or error}"
        hint = "make the folder readable, or leave it out"
        return ConfigFiles((), (Finding.of("TPU001", message, Location(unreadable), help=hint),))
    if len(paths) > MAX_FILES:
        message = f"{name} has more than {MAX_FILES:,} YAML and JSON files"
        return ConfigFiles((), (Finding.of("TPU010", message, Location(name), help="give folders inside it"),))
    return ConfigFiles(paths)


def files_of(paths: Iterable[Path]) -> ConfigFiles:
    """Return files, and the config files below folders, in the order of the paths and without repetition."""
    files: list[str] = []
    findings: list[Finding] = []
    for path in paths:
        if not is_directory(path):
            files.append(str(path))
            continue
        below = find_config_files(path)
        files += [str(path / file) for file in below.paths]
        findings += below.findings
        if not below.paths and not below.findings:
            message = f"{path} has no file to check: none ends with {', '.join(SUFFIXES)}"
            hint = "check the path; symbolic links, hidden files and hidden folders are not searched"
            findings.append(Finding.of("TPU001", message, Location(str(path)), help=hint))
    return ConfigFiles(tuple(dict.fromkeys(files)), tuple(findings))
