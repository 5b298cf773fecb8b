"""The files of `tpucfg review --fit`: results that a job of the same run has made, from code of the change."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tpucfg.cli.environment_files import require_independent_files
from tpucfg.cli.exit_codes import USAGE, CommandExit
from tpucfg.text_format import printable

if TYPE_CHECKING:
    from tpucfg.review.changes.fits.revision_fits import RunFits

ONLY: Final = ""
"""The name of a file without a folder: it belongs to the only spec, or to the one at the root."""


def read_run_fits(options: Sequence[str], folder: Path, head: str | None) -> "Mapping[str, RunFits]":
    """Return the results by the folder of their spec, each read within its limits before any program runs.

    A file that is missing or cannot be read is no error here: the job that writes it runs the change, and may fail.

    Args:
        options: The values of the option, `[FOLDER=]FILE`.
        folder: A folder of the repository under review.
        head: The revision under review; None for the working tree.

    Raises:
        CommandExit: A value has another form, or its file is part of the change.
        RevisionError: The repository or the revision cannot be read.
    """
    files = _parse(options)
    require_independent_files(files, folder, head)
    return {name: _read(path) for name, path in files.items()}


def _parse(options: Sequence[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for value in options:
        given, separator, file = value.partition("=")
        if not separator:
            given, file = "", value
        if not file or (separator and not given):
            message = f"--fit {printable(value)}: it takes FILE or FOLDER=FILE"
            raise CommandExit(USAGE, message, "for example: --fit projects/mnist=fit.json")
        if given.startswith("/") or ".." in given.split("/"):
            raise CommandExit(USAGE, f"--fit {printable(given)}=…: a folder is relative to the root of the repository")
        name = os.path.normpath(given) if separator else ONLY
        if name in files:
            raise CommandExit(USAGE, f"--fit {printable(value)}: this folder has another file already", "give one file")
        files[name] = Path(file)
    return files


def _read(path: Path) -> "RunFits":
    from tpucfg.fit.fit_file import read_fit_file
    from tpucfg.review.changes.fits.revision_fits import RunFits

    file = read_fit_file(path, is_trusted=True)
    if file.findings:
        return RunFits(file, file.findings[0].message)
    # Only the file's name: its folder differs between machines, but equal reviews must have equal text.
    return RunFits(file, "" if os.path.lexists(path) else f"its job has left no {path.name}")
