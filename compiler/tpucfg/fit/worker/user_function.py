"""The user's program: the function that returns its training step, and the files that it imports and opens."""

from __future__ import annotations

import contextlib
import importlib
import linecache
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
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


# The program.

WANTED = "(jitted, args) or (jitted, args, kwargs), with jitted from jax.jit"


class Step(NamedTuple):
    """A jitted function and its arguments."""

    jitted: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def load_function(step: str) -> Callable[..., Any]:
    """Import the function that `module:function` names."""
    module_name, _, name = step.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # The missing module may also be one that the user's module imports.
        kind = "no-module" if error.name and f"{module_name}.".startswith(f"{error.name}.") else "import-failed"
        raise StepError(kind, describe(error), error) from None
    except BaseException as error:  # noqa: BLE001 - a program may call sys.exit, or raise anything
        raise StepError("import-failed", describe(error), error) from None
    function = getattr(module, name, None)
    if not callable(function):
        problem = "is not a function" if hasattr(module, name) else "does not exist"
        raise StepError("no-function", f"`{name}` {problem} in module `{module_name}`")
    return function  # type: ignore[no-any-return]


def call_function(function: Callable[..., Any], devices: Sequence[Any], flags: Mapping[str, Any]) -> Step:
    """Call the user's function, and return the step that it describes."""
    try:
        returned = function(list(devices), dict(flags))
    except StepError:
        raise
    except BaseException as error:  # noqa: BLE001 - a program may call sys.exit, or raise anything
        raise StepError("step-failed", describe(error), error) from None
    step = _step(returned, getattr(function, "__name__", "the function"))
    for problem in _wrong_arguments(step, frozenset(devices)):
        raise StepError("wrong-return", problem)
    return step


def _step(returned: Any, name: str) -> Step:
    """Return the parts of the function's result."""
    if not isinstance(returned, (tuple, list)) or len(returned) not in (2, 3):
        raise StepError("wrong-return", f"`{name}` returned {_kind_of(returned)}; it has to return {WANTED}")
    jitted, args, kwargs = (*returned, {}) if len(returned) == 2 else returned  # noqa: PLR2004 - without kwargs
    if not (hasattr(jitted, "trace") and hasattr(jitted, "lower")):
        raise StepError(
            "wrong-return", f"the first element that `{name}` returned is {_kind_of(jitted)}; it has to return {WANTED}"
        )
    if not isinstance(args, (tuple, list)) or hasattr(args, "_fields"):
        raise StepError(
            "wrong-return",
            f"the second element that `{name}` returned is {_kind_of(args)}; it has to be the tuple of arguments",
        )
    if not isinstance(kwargs, Mapping) or not all(isinstance(key, str) for key in kwargs):
        raise StepError(
            "wrong-return",
            f"the third element that `{name}` returned is {_kind_of(kwargs)}; it has to be a dict of keyword arguments",
        )
    return Step(jitted, tuple(args), dict(kwargs))


def _kind_of(value: Any) -> str:
    """Return a few words about a value of a wrong type."""
    if value is None:
        return "None"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function `{value.__name__}` without jax.jit"
    return f"a value of type {type(value).__name__}"


def _wrong_arguments(step: Step, devices: frozenset[Any]) -> Iterator[str]:
    """Yield a message for each argument that is placed on other devices than those of the slice."""
    import jax

    for path, leaf in jax.tree_util.tree_leaves_with_path((step.args, step.kwargs)):
        sharding = getattr(leaf, "sharding", None)
        # An array that was created without a placement may move to any device.
        if sharding is None or (isinstance(leaf, jax.Array) and not leaf.committed):
            continue
        try:
            used = frozenset(sharding.device_set)
        except Exception:  # noqa: BLE001, S112 - the sharding of an abstract mesh names no devices
            continue
        if not used <= devices:
            platforms = ", ".join(sorted({str(device.platform) for device in used - devices}))
            yield (
                f"argument {_argument_name(path)} is placed on other devices ({platforms}) than those that the "
                "function was given; it has to be a jax.ShapeDtypeStruct with a sharding over the given devices"
            )


def _argument_name(path: Sequence[Any]) -> str:
    """Return the argument as an expression, such as args[0]['kernel']."""
    import jax

    first = ("args", "kwargs")[path[0].idx]
    return first + jax.tree_util.keystr(tuple(path[1:]))


# The files of the program.

MAX_FILES: Final = 1000
"""A program that reads more is reading data."""
MAX_FILE_BYTES: Final = 4 << 20
"""The largest file that tpucfg hashes."""
_MAX_SEEN: Final = 100_000
"""Files of which the first opening is remembered."""
MAX_TOTAL_BYTES: Final = 64 << 20
"""Each command that reads a result hashes all of its files."""
_RESULTS: Final = "results"
_WRITES: Final = os.O_TRUNC | os.O_APPEND


def imported_files(folder: str) -> list[str]:
    """Return the files below the folder that the program has imported, without those of a virtual environment in it."""
    environment = environment_prefix(folder)
    files = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        name = relative(file, folder) if isinstance(file, str) else None
        if name and not (environment and os.path.abspath(str(file)).startswith(environment)):
            files.add(name)
    return sorted(files)


class OpenedFiles:
    """Records files by an audit hook, which sees each `open` of Python, and none of native code or other processes.

    The first opening of a file decides: one that the program has written itself is no input of it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._environment = environment_prefix(folder)
        self._remaining_files = MAX_FILES
        self._remaining_bytes = MAX_TOTAL_BYTES
        self._is_input: dict[str, bool] = {}
        self._is_recording = True
        sys.addaudithook(self._hook)

    def stop(self) -> list[str]:
        """Record no more, and return the files that were read, relative to the folder, in the order of opening."""
        self._is_recording = False
        return [name for name, is_input in self._is_input.items() if is_input]

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not self._is_recording or len(self._is_input) >= _MAX_SEEN:
            return
        with contextlib.suppress(Exception):  # it would be an error of the user's `open`
            self._record(os.path.abspath(os.fsdecode(args[0])), args[2])

    def _record(self, path: str, flags: int) -> None:
        is_written = bool(flags & _WRITES) or flags & os.O_ACCMODE == os.O_WRONLY
        if not is_written and not Path(path).is_file():
            return
        # A link and its target are two files: either may change.
        for file in dict.fromkeys((path, os.path.realpath(path))):
            name = relative(file, self._folder)
            if name and name not in self._is_input and self._is_programs(file, name):
                self._is_input[name] = not is_written and self._is_affordable(file)

    def _is_programs(self, path: str, name: str) -> bool:
        """Return false for a file of the virtual environment, of the results, in a cache, or hidden.

        A hidden file such as .env may have a secret, of which a committed hash would be a hint.
        """
        if self._environment and path.startswith(self._environment):
            return False
        first, *others = parts = name.split("/")
        is_result = bool(others) and first == _RESULTS
        return not is_result and not any(part.startswith(".") or part == "__pycache__" for part in parts)

    def _is_affordable(self, path: str) -> bool:
        size = os.lstat(path).st_size
        if not self._remaining_files or size > min(MAX_FILE_BYTES, self._remaining_bytes):
            return False
        self._remaining_files -= 1
        self._remaining_bytes -= size
        return True


def environment_prefix(folder: str) -> str | None:
    """Return the start of the paths of a virtual environment below the folder; None if it is elsewhere."""
    prefix = os.path.abspath(sys.prefix)
    return prefix + os.sep if relative(prefix, folder) not in (None, ".") else None
