"""The user's program: its training step, by a function or as MaxText's own, and the files that it imports and opens."""

from __future__ import annotations

import contextlib
import importlib.metadata
import linecache
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
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
    return {
        "file": relative(file, folder) or os.path.abspath(file),
        "line": line,
        "name": name,
        "code": code[:500],
    }


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


class JittedStep(NamedTuple):
    """A jitted function and its arguments."""

    jitted: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def load_function(step: str) -> Callable[..., Any]:
    """Import the function that `module:function` names, or MaxText's own."""
    if step.partition(" ")[0] == _MAXTEXT:
        return _load_maxtext(step)
    module_name, _, name = step.partition(":")
    module = _import(module_name)
    function = getattr(module, name, None)
    if not callable(function):
        problem = "is not a function" if hasattr(module, name) else "does not exist"
        raise StepError("no-function", f"`{name}` {problem} in module `{module_name}`")
    return function  # type: ignore[no-any-return]


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The missing module may also be one that the user's module imports.
        kind = (
            "no-module"
            if error.name and f"{name}.".startswith(f"{error.name}.")
            else "import-failed"
        )
        raise StepError(kind, describe(error), error) from None
    except BaseException as error:  # noqa: BLE001 - a program may call sys.exit, or raise anything
        raise StepError("import-failed", describe(error), error) from None


def call_function(
    function: Callable[..., Any], devices: Sequence[Any], flags: Mapping[str, Any]
) -> JittedStep:
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


def _step(returned: Any, name: str) -> JittedStep:
    """Return the parts of the function's result."""
    if not isinstance(returned, (tuple, list)) or len(returned) not in (2, 3):
        raise StepError(
            "wrong-return", f"`{name}` returned {_kind_of(returned)}; it has to return {WANTED}"
        )
    jitted, args, kwargs = (*returned, {}) if len(returned) == 2 else returned  # noqa: PLR2004 - without kwargs
    is_jitted = hasattr(jitted, "trace") and hasattr(jitted, "lower")
    are_args = isinstance(args, (tuple, list)) and not hasattr(args, "_fields")
    are_kwargs = isinstance(kwargs, Mapping) and all(isinstance(key, str) for key in kwargs)
    for place, value, is_right, wanted in (
        ("first", jitted, is_jitted, f"return {WANTED}"),
        ("second", args, are_args, "be the tuple of arguments"),
        ("third", kwargs, are_kwargs, "be a dict of keyword arguments"),
    ):
        if not is_right:
            problem = f"the {place} element that `{name}` returned is {_kind_of(value)}; it has to {wanted}"
            raise StepError("wrong-return", problem)
    return JittedStep(jitted, tuple(args), dict(kwargs))


def _kind_of(value: Any) -> str:
    """Return a few words about a value of a wrong type."""
    if value is None:
        return "None"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function `{value.__name__}` without jax.jit"
    return f"a value of type {type(value).__name__}"


def _wrong_arguments(step: JittedStep, devices: frozenset[Any]) -> Iterator[str]:
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


# The step of MaxText itself, which a spec with `flags: maxtext` needs no function for.
#
# MaxText's `train_compile` builds the step, its arguments and its mesh from a command line and the devices of a
# topology, and hands them to one function, `jit_and_compile`. It is given the slice's devices, and its step is taken
# from that function. Whatever a version of MaxText does before that, the step is its own.

_MAXTEXT: Final = "maxtext"
"""Stands for MaxText's step where a spec's own would be `module:function`; its file of defaults may follow a space."""
_CONFIGS: Final = "src/maxtext/configs/"
"""The folder of MaxText's own files: its parser takes this path for the one of its package."""
_REPLACED: Final = ("get_topology_desc", "jit_and_compile")
_ARGUMENTS: Final = 10
"""Arguments of `jit_and_compile` in MaxText 0.2.5."""
_RNG_FLAG: Final = "--xla_tpu_spmd_rng_bit_generator_unsafe"

_contexts = contextlib.ExitStack()
"""The mesh and the rules of the step, which is traced after its function has returned."""


class _Taken(BaseException):
    """Ends MaxText's `main` once it has built the step; no `except Exception` of MaxText catches it."""


def _load_maxtext(step: str) -> Callable[..., Any]:
    """Import MaxText, and return a function like that of a spec: it takes devices and flags, and returns the step."""
    _, _, config = step.partition(" ")
    # As `train` does, and before libtpu is initialized, which reads the variable only then.
    flags = os.environ.get("LIBTPU_INIT_ARGS", "")
    if _RNG_FLAG not in flags:
        os.environ["LIBTPU_INIT_ARGS"] = f"{flags} {_RNG_FLAG}=true".strip()
    train_compile = _import("maxtext.trainers.pre_train.train_compile")
    missing = [
        name for name in (*_REPLACED, "main") if not callable(getattr(train_compile, name, None))
    ]
    if missing:
        raise StepError("no-function", _other_version("has other functions"))

    def maxtext_step(devices: Sequence[Any], flags: Mapping[str, Any]) -> tuple[Any, ...]:
        return _maxtext_parts(
            train_compile, devices, [_config_path(config), *_maxtext_words(devices, flags)]
        )

    return maxtext_step


def _maxtext_parts(
    train_compile: Any, devices: Sequence[Any], words: Sequence[str]
) -> tuple[Any, ...]:
    taken: list[tuple[Any, ...]] = []

    def take(*arguments: Any) -> None:
        taken.append(arguments)
        raise _Taken

    train_compile.get_topology_desc = lambda **_: SimpleNamespace(devices=list(devices))
    train_compile.jit_and_compile = take
    try:
        train_compile.main(["", *words])
    except _Taken:
        pass
    except SystemExit as error:
        # MaxText prints what its parser refuses, and ends the process.
        raise error.__context__ or error from None
    if not taken or len(taken[0]) != _ARGUMENTS:
        raise StepError("no-function", _other_version("hands its step on in another way"))
    return _jitted(*taken[0])


def _config_path(word: str) -> str:
    """Return the path of a file of defaults: a file of the spec's folder, or one of MaxText's own wherever it lies."""
    if Path(word).is_file():
        return word
    return _CONFIGS + (word.rpartition("configs/")[2] or "base.yml")


def _maxtext_words(devices: Sequence[Any], flags: Mapping[str, Any]) -> list[str]:
    """Return the arguments of the job, and those of the slice; without the number of slices, the batch would be 0."""
    slices = {getattr(device, "slice_index", 0) or 0 for device in devices}
    topology = {
        "compile_topology": "tpucfg",
        "compile_topology_num_slices": len(slices),
        "internal_compile": "true",
        "internal_compile_num_devices": len(devices),
    }
    words = {name: value for name, value in flags.items() if name not in topology}
    return [
        f"{name}={'' if value is None else value}" for name, value in {**words, **topology}.items()
    ]


def _jitted(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    mesh: Any,
    in_shardings: Any,
    out_shardings: Any,
    static: Any,
    donated: Any,
    config: Any,
    rules: Any,
) -> tuple[Any, ...]:
    """Return the step as `jit_and_compile` would compile it."""
    import jax
    from maxtext.utils import max_utils

    jax.config.update("jax_use_shardy_partitioner", config.shardy)  # as `train` does
    for context in (
        (jax.set_mesh(mesh), mesh, rules) if config.enable_diloco else (jax.set_mesh(mesh), rules)
    ):
        _contexts.enter_context(context)
    jitted = jax.jit(
        function,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static,
        donate_argnums=donated,
        compiler_options=max_utils.parse_libtpu_flags_to_dict(config.compile_xla_flags) or None,
    )
    return jitted, tuple(args), dict(kwargs)


def _other_version(problem: str) -> str:
    version = importlib.metadata.version("maxtext")
    return f"MaxText {version} {problem} than 0.2.5, the version that tpucfg takes its step from"


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
        return not is_result and not any(
            part.startswith(".") or part == "__pycache__" for part in parts
        )

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
