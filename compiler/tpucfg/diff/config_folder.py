"""Read the configs in a folder: the output of `tpucfg render --out`, or any YAML and JSON files."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.diff.change import ConfigKey
from tpucfg.findings import Finding, collect, errors
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_file

MAX_FILES: Final = 100_000
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_CONFIG: Final = "config"
"""The stem of a rendered config. Its folder is named after the size, and the folder above after the environment."""


class ConfigFolder(NamedTuple):
    """The configs in a folder."""

    configs: dict[ConfigKey, Any]
    findings: tuple[Finding, ...]
    """Findings about files that cannot be read."""
    sources: dict[str, str]
    """The text of those files, by name."""


def read_folder(folder: Path) -> ConfigFolder:
    """Read all configs below a folder. Symbolic links, hidden files and hidden folders are skipped."""
    configs: dict[ConfigKey, Any] = {}
    broken: list[Document] = []
    for path in _config_files(folder):
        document = read_file(path)
        if errors(document.findings):
            broken.append(document)
        else:
            configs[_config_key(path.relative_to(folder))] = document.data
    findings = collect(finding for document in broken for finding in document.findings)
    return ConfigFolder(configs, findings, {document.file: document.text for document in broken})


def _config_files(folder: Path) -> Iterator[Path]:
    """Yield the files in a stable order, up to MAX_FILES."""
    remaining = MAX_FILES
    for root, folders, names in os.walk(folder):
        # Changed in place: os.walk descends into the folders that are left in this list, in its order.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if name.endswith(_SUFFIXES) and not name.startswith(".") and not path.is_symlink():
                yield path
                remaining -= 1
            if not remaining:
                return


def _config_key(path: Path) -> ConfigKey:
    """Return the key of a file by its path below the folder."""
    if path.stem == _CONFIG and len(path.parts) > 1:
        # In the output for a single environment, there is no folder above the size's folder.
        environment = path.parent.parent.as_posix() if len(path.parts) > 2 else ""  # noqa: PLR2004 - env, size, file
        return ConfigKey(environment, path.parent.name)
    return ConfigKey(path.parent.as_posix() if len(path.parts) > 1 else "", path.name)
