"""The environment variables of a compilation: those of the caller and of the job, as far as they are about the program.

In a real job the program has the variables of the spec on a TPU host. Here it has them on the caller's machine, so
those about a host stay the caller's, and those about the compiler are the job's alone: the caller's `XLA_FLAGS` or
`JAX_ENABLE_X64` would compile another program than the job's.
"""

import os
from collections.abc import Mapping
from typing import Final

from tpucfg.fit.inputs import FitInputs
from tpucfg.plan.job import XLA_FLAGS_VARIABLE

PROTOCOL: Final[Mapping[str, str]] = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # without it, a second process aborts on a lock file
    "TPU_SKIP_MDS_QUERY": "1",  # no search for the metadata server of a TPU host
    "JAX_PLATFORMS": "cpu",  # no search for a TPU; the topology API needs none
    "TPU_LOG_DIR": "disabled",  # no logs in /tmp
    "PYTHONFAULTHANDLER": "1",  # a crash prints the lines that led to it
}
"""The variables with which JAX and libtpu compile on a machine without a TPU."""

_OF_THE_COMPILER: Final = ("JAX_", "LIBTPU_", "MEGASCALE_", "TPU_", "XLA_")
"""Prefixes of variables that are about a TPU, JAX or XLA: the caller's are dropped."""
_OF_PYTHON: Final = ("PYTHONHOME", "PYTHONSAFEPATH", "PYTHONINSPECT", "__PYVENV_LAUNCHER__")
"""The caller's variables with which another Python than tpucfg's does not start, or does not find the worker."""
_OF_THE_MACHINE: Final = (
    *("HOME", "LOGNAME", "PATH", "PWD", "SHELL", "TEMP", "TMP", "TMPDIR", "USER"),
    *("ALLOW_MULTIPLE_LIBTPU_LOAD", "JAX_COMPILATION_CACHE_DIR", "JAX_PLATFORM_NAME", "JAX_PLATFORMS"),
    *("CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS"),
)
"""The job's variables that are about its own host: folders, devices, credentials, a cache of programs for a TPU."""
_PREFIXES_OF_THE_MACHINE: Final = ("LD_", "LIBTPU_", "MEGASCALE_", "PYTHON", "TPU_")


def worker_environment(inputs: FitInputs) -> dict[str, str]:
    """Return the variables of the process that compiles a rung."""
    return {
        **{name: value for name, value in os.environ.items() if not _is_dropped(name)},
        **program_variables(inputs),
        **PROTOCOL,
        XLA_FLAGS_VARIABLE: " ".join(inputs.xla_flags),
    }


def program_variables(inputs: FitInputs) -> dict[str, str]:
    """Return the job's own variables that the process gets."""
    return {name: value for name, value in inputs.env.items() if not _is_about_a_host(name)}


def compiler_variables(inputs: FitInputs) -> tuple[tuple[str, str], ...]:
    """Return the job's variables that may change the result of equal StableHLO."""
    return tuple(
        sorted(item for item in program_variables(inputs).items() if item[0].upper().startswith(_OF_THE_COMPILER))
    )


def _is_dropped(name: str) -> bool:
    return name.startswith(_OF_THE_COMPILER) or name in _OF_PYTHON


def _is_about_a_host(name: str) -> bool:
    return name in _OF_THE_MACHINE or name.startswith(_PREFIXES_OF_THE_MACHINE)
