"""The configs in a folder, as `tpucfg render --out` writes them, or any files of YAML and JSON."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.diff.change import ConfigKey
from tpucfg.findings import Finding, collect, errors
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_file

MAX_FILES: Final = 100_000
_ENDINGS: Final = (".yaml", ".yml", ".json")
_CONFIG: Final = "config"
"""The stem of a config's name; its folder is the size, and what lies above that the environment."""


class ConfigFolder(NamedTuple):
    """What a folder holds."""

    configs: dict[ConfigKey, Any]
    findings: tuple[Finding, ...]
    """About the files that cannot be read."""
    sources: dict[str, str]
    """The text of those files, by name."""


def read_folder(folder: Path) -> ConfigFolder:
    """All configs below a folder. Symbolic links are not followed, and hidden files and folders are left alone."""
    configs: dict[ConfigKey, Any] = {}
    broken: list[Document] = []
    for path in _files(folder):
        document = read_file(path)
        if errors(document.findings):
            broken.append(document)
        else:
            configs[_key(path.relative_to(folder))] = document.data
    findings = collect(finding for document in broken for finding in document.findings)
    return ConfigFolder(configs, findings, {document.file: document.text for document in broken})


def _files(folder: Path) -> Iterator[Path]:
    left = MAX_FILES
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if name.endswith(_ENDINGS) and not name.startswith(".") and not path.is_symlink():
                yield path
                left -= 1
            if not left:
                return


def _key(path: Path) -> ConfigKey:
    if path.stem == _CONFIG and len(path.parts) > 1:
        return ConfigKey(path.parent.parent.as_posix() if len(path.parts) > 2 else "", path.parent.name)  # noqa: PLR2004 - env, size, file
    return ConfigKey(path.parent.as_posix() if len(path.parts) > 1 else "", path.name)
