"""The training step of MaxText itself, which a spec with `flags: maxtext` needs no function for.

MaxText's `train_compile` builds the step, its arguments and its mesh from a command line and the devices of a topology,
and hands them to one function, `jit_and_compile`. This module gives it the slice's devices, and takes the step of that
function. Whatever a version of MaxText does before that, the step is its own.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from user_function import StepError, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_STEP: Final = "maxtext"
"""Stands for MaxText's step where a spec's own would be `module:function`; its file of defaults may follow a space."""
_CONFIGS: Final = "src/maxtext/configs/"
"""The folder of MaxText's own files: its parser takes this path for the one of its package."""
_REPLACED: Final = ("get_topology_desc", "jit_and_compile")
_ARGUMENTS: Final = 10
"""Arguments of `jit_and_compile` in MaxText 0.2.5."""
_RNG_FLAG: Final = "--xla_tpu_spmd_rng_bit_generator_unsafe"

_contexts = contextlib.ExitStack()
"""The mesh and the rules of the step, which is traced after its function has returned."""


def is_maxtext(step: str) -> bool:
    """Return true for MaxText's own step."""
    return step.partition(" ")[0] == _STEP


class _Taken(BaseException):
    """Ends MaxText's `main` once it has built the step; no `except Exception` of MaxText catches it."""


def load_maxtext(step: str) -> Callable[..., Any]:
    """Import MaxText, and return a function like that of a spec: it takes devices and flags, and returns the step."""
    _, _, config = step.partition(" ")
    # As `train` does, and before libtpu is initialized, which reads the variable only then.
    flags = os.environ.get("LIBTPU_INIT_ARGS", "")
    if _RNG_FLAG not in flags:
        os.environ["LIBTPU_INIT_ARGS"] = f"{flags} {_RNG_FLAG}=true".strip()
    try:
        from maxtext.trainers.pre_train import train_compile
    except ModuleNotFoundError as error:
        kind = "no-module" if error.name in ("maxtext", "maxtext.trainers") else "import-failed"
        raise StepError(kind, describe(error), error) from None
    except BaseException as error:  # noqa: BLE001 - a package of another version may raise anything
        raise StepError("import-failed", describe(error), error) from None
    missing = [name for name in (*_REPLACED, "main") if not callable(getattr(train_compile, name, None))]
    if missing:
        raise StepError("no-function", _other_version("has other functions"))

    def maxtext_step(devices: Sequence[Any], flags: Mapping[str, Any]) -> tuple[Any, ...]:
        return _step(train_compile, devices, [_config_path(config), *_words(devices, flags)])

    return maxtext_step


def _step(train_compile: Any, devices: Sequence[Any], words: Sequence[str]) -> tuple[Any, ...]:
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


def _words(devices: Sequence[Any], flags: Mapping[str, Any]) -> list[str]:
    """Return the arguments of the job, and those of the slice; without the number of slices, the batch would be 0."""
    slices = {getattr(device, "slice_index", 0) or 0 for device in devices}
    topology = {
        "compile_topology": "tpucfg",
        "compile_topology_num_slices": len(slices),
        "internal_compile": "true",
        "internal_compile_num_devices": len(devices),
    }
    words = {name: value for name, value in flags.items() if name not in topology}
    return [f"{name}={'' if value is None else value}" for name, value in {**words, **topology}.items()]


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
    for context in (jax.set_mesh(mesh), mesh, rules) if config.enable_diloco else (jax.set_mesh(mesh), rules):
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
    import importlib.metadata

    version = importlib.metadata.version("maxtext")
    return f"MaxText {version} {problem} than 0.2.5, the version that tpucfg takes its step from"
