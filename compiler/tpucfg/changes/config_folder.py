"""Read two folders of configs for a comparison: the output of `tpucfg render --out`, or any YAML and JSON files."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.changes.facts import Scope
from tpucfg.findings import Finding, collect, errors
from tpucfg.fs import has_equal_bytes
from tpucfg.targets.objects import combined_data
from tpucfg.yamldoc.config_files import SUFFIXES, find_config_files
from tpucfg.yamldoc.reader import MAX_FILE_BYTES, read_file

_CONFIG_NAMES: Final = frozenset(f"config{suffix}" for suffix in SUFFIXES)
"""A rendered config. Its folder is named after the size, and the folder above after the environment."""


class ConfigFolders(NamedTuple):
    """The configs in two folders."""

    before: dict[Scope, Any]
    """The data of the configs that may differ."""
    after: dict[Scope, Any]
    equal: AbstractSet[Scope]
    """The configs whose files have equal bytes. They are not parsed, so a file may be invalid in both folders."""
    findings: tuple[Finding, ...]
    """Findings about folders and files that cannot be read."""
    sources: dict[str, str]
    """The text of those files, by name."""


def read_folders(before: Path, after: Path) -> ConfigFolders:
    """Read the configs below two folders. Symbolic links, hidden files and hidden folders are skipped.

    Only files that differ are parsed: a comparison of large trees costs little more than reading them. Files with equal
    bytes are no difference, whatever is in them, so an invalid file prevents a comparison only if it differs or is in
    one folder only.
    """
    old_files, new_files = find_config_files(before), find_config_files(after)
    before_files, after_files = _by_key(before, old_files.paths), _by_key(after, new_files.paths)
    common = before_files.keys() & after_files.keys()
    equal = frozenset(key for key in common if has_equal_bytes(before_files[key], after_files[key], MAX_FILE_BYTES))
    old, new = (
        {key: read_file(Path(file), several=True) for key, file in files.items() if key not in equal}
        for files in (before_files, after_files)
    )
    broken = [document for document in (*old.values(), *new.values()) if errors(document.findings)]
    return ConfigFolders(
        {key: combined_data(document) for key, document in old.items()},
        {key: combined_data(document) for key, document in new.items()},
        equal,
        (*old_files.findings, *new_files.findings, *collect(each for document in broken for each in document.findings)),
        {document.file: document.text for document in broken},
    )


def _by_key(folder: Path, paths: Sequence[str]) -> dict[Scope, str]:
    """Return the files of a folder by the key of their config."""
    files: dict[Scope, str] = {}
    prefix = str(folder / " ")[:-1]  # without the `./` of the current folder
    for path in paths:
        key = _config_key(path)
        # `config.json` next to `config.yaml` would have its key: a file without one of its own is known by its path.
        files[Scope("", path) if key in files else key] = prefix + path
    return files


def _config_key(path: str) -> Scope:
    """Return the key of a file by its path below the folder."""
    parent, _, name = path.rpartition("/")
    if parent and name in _CONFIG_NAMES:
        # In the output for a single environment, there is no folder above the size's folder.
        environment, _, size = parent.rpartition("/")
        return Scope(environment, size)
    return Scope(parent, name)
