"""The failure of a compilation that has a cause outside this program: its kind, its message, the user's own lines."""

from __future__ import annotations

import linecache
import os
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

MAX_FRAMES: Final = 20
MAX_MESSAGE: Final = 4_000
_PACKAGES: Final = frozenset(("site-packages", "dist-packages"))
_NOT_THE_USERS: Final = (
    os.path.dirname(os.path.abspath(__file__)),
    *(os.path.abspath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")),
)


class StepError(Exception):
    """A failure with its kind; `cause` is the exception of the user's program or of a library, if there is one."""

    def __init__(self, kind: str, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.cause = cause

    def payload(self, folder: str) -> dict[str, Any]:
        """Return the failure as an answer; paths below the folder become relative to it."""
        frames = list(_frames(self.cause, folder))[-MAX_FRAMES:] if self.cause else []
        return {"kind": self.kind, "message": shorten(str(self)), "frames": frames}


def describe(error: BaseException) -> str:
    """Return the exception's type and text, without the notes that JAX adds about its own frames."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the __str__ of a user's exception may fail
        text = "(its text cannot be shown)"
    name = type(error).__name__
    if isinstance(error, SystemExit):
        return f"the program called sys.exit({text})"
    return f"{name}: {text}" if text else name


def shorten(text: str) -> str:
    """Return the text, cut to the length that an answer may have."""
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def _frames(error: BaseException, folder: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of the user's program that the exception passed, innermost last."""
    traceback = error.__traceback__
    while traceback:
        frame = _frame(traceback, folder)
        if frame:
            yield frame
        traceback = traceback.tb_next
    # The file of a syntax error was never run, so no frame of the traceback is in it.
    if isinstance(error, SyntaxError) and error.filename and _is_users(error.filename, folder):
        code = (error.text or "").strip()
        yield _row(error.filename, error.lineno or 0, "<module>", code, folder)


def _frame(traceback: TracebackType, folder: str) -> dict[str, Any] | None:
    code = traceback.tb_frame.f_code
    if not _is_users(code.co_filename, folder):
        return None
    line = linecache.getline(code.co_filename, traceback.tb_lineno).strip()
    return _row(code.co_filename, traceback.tb_lineno, code.co_name, line, folder)


def _row(file: str, line: int, name: str, code: str, folder: str) -> dict[str, Any]:
    return {"file": relative(file, folder) or os.path.abspath(file), "line": line, "name": name, "code": code[:500]}


def _is_users(file: str, folder: str) -> bool:
    """Return true for a file that is neither an installed package, nor Python's own, nor part of this worker."""
    if file.startswith("<"):  # such as <frozen importlib._bootstrap>
        return False
    path = os.path.abspath(file)
    if not _PACKAGES.isdisjoint(Path(path).parts):
        return False
    return relative(path, folder) is not None or not path.startswith(_NOT_THE_USERS)


def relative(file: str, folder: str) -> str | None:
    """Return the path relative to the folder, with slashes; None for a file outside."""
    path = Path(os.path.abspath(file))
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else None
