"""The part of a job that decides its compilation: what is compared with a result, the slice, and the variables."""

import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.plan import XLA_FLAGS_VARIABLE, Job, make_job
from tpucfg.plan.job import FlagValue, flag_values
from tpucfg.spec import Project

IMAGE_PYTHON: Final = "image"
"""Stands for the Python of the job's own image where a spec's path of a Python would be."""


class FitInputs(NamedTuple):
    """The values with which a rung's training step is built and compiled."""

    step: str
    """The function: `<module>:<function>`."""
    flags: Mapping[str, FlagValue]
    """The flags of the config, without their dashes."""
    env: Mapping[str, str]
    """The variables that the config sets, without that of the compiler's flags."""
    xla_flags: tuple[str, ...]
    topology: str
    """Chips of one slice along each axis; empty if no source states it."""
    chips_per_host: int
    image: str = ""
    """The job's image if the step is compiled inside of it."""


def fit_inputs(project: Project, job: Job) -> FitInputs | None:
    """Return the inputs of a job's compilation; None if the spec names no step for it.

    They are those of the job without a run's id: another output folder makes no other program.
    """
    fit = job.settings.trainer.fit
    if fit is None:
        return None
    if job.run:
        job = make_job(project, job.environment, job.rung, None)
    env = dict(job.env)
    xla_flags = env.pop(XLA_FLAGS_VARIABLE, "").split()
    place = job.slice
    image = job.image or "" if fit.python == IMAGE_PYTHON else ""
    return FitInputs(
        fit.step,
        flag_values(job.flags),
        env,
        tuple(xla_flags),
        place.topology or "",
        place.chips_per_host,
        image,
    )


# The slice, as JAX's topology API takes it, which describes the devices of a slice without a TPU.
#
# `jax.experimental.topologies.get_topology_desc` takes a name such as `v5e:4x4`, and options for libtpu. MaxText calls
# it for the sizes in its table:
# https://github.com/AI-Hypercomputer/maxtext/blob/e591f30cbbf217ed67ef71263ec0538239f9c3b8/src/maxtext/utils/accelerator_to_spec_map.py.
# libtpu knows a generation by the catalog's name of it, and none of the sizes of Google's services (`v5litepod-16`).

_HOST_BOUNDS: Final[Mapping[int, tuple[int, int, int]]] = {1: (1, 1, 1), 4: (2, 2, 1), 8: (2, 4, 1)}
"""Chips of one host along each axis, by their number: the slices of one host have these topologies.

https://docs.cloud.google.com/tpu/docs/v6e and https://docs.cloud.google.com/tpu/docs/v5p.
"""


class Topology(NamedTuple):
    """A slice as the topology API takes it."""

    name: str
    """Generation and chips along each axis of one slice, such as `v5e:4x4`."""

    options: Mapping[str, Any]
    """Keyword arguments of the API, as JSON values."""

    devices: int
    """JAX devices of all slices together, with which the answer has to agree."""


class UnknownTopology(NamedTuple):
    """A size that the topology API cannot be asked about."""

    reason: str
    """A clause to follow a colon, without a final full stop."""


def compiler_topology(slice_: Slice) -> Topology | UnknownTopology:
    """Return the name and the options of a slice, on its machine, with its topology and its number of slices."""
    if slice_.topology is None:
        return UnknownTopology(f"no source states the topology of {slice_.accelerator_type}")
    bounds = _HOST_BOUNDS.get(slice_.chips_per_host)
    if bounds is None:
        return UnknownTopology(
            f"no source states how the {slice_.chips_per_host} chips of a host are connected"
        )
    if not _divides(bounds, slice_.topology):
        block = "x".join(map(str, bounds))
        return UnknownTopology(
            f"a topology of {slice_.topology} cannot be divided into hosts of {block} chips"
        )
    options: dict[str, Any] = {"chips_per_host_bounds": list(bounds)}
    if slice_.slices > 1:
        options["num_slices"] = slice_.slices
    if slice_.cores > slice_.devices:
        # By default the two TensorCores of a v4 chip are two devices, which JAX on a real v4 never shows.
        options["chip_config_name"] = "megacore"
    return Topology(f"{slice_.generation}:{slice_.topology}", options, slice_.devices)


def _divides(bounds: tuple[int, ...], shape: str) -> bool:
    """Return True if hosts with these bounds fill a topology along each axis; an absent axis has one chip."""
    axes = [int(axis) for axis in shape.split("x")]
    axes += [1] * (len(bounds) - len(axes))
    return all(axis % bound == 0 for axis, bound in zip(axes, bounds, strict=True))


# The environment variables of a compilation: those of the caller and of the job, as far as they are about the program.
#
# In a real job the program has the variables of the spec on a TPU host. Here it has them on the caller's machine, so
# those about a host stay the caller's, and those about the compiler are the job's alone: the caller's `XLA_FLAGS` or
# `JAX_ENABLE_X64` would compile another program than the job's.

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
    *(
        "ALLOW_MULTIPLE_LIBTPU_LOAD",
        "JAX_COMPILATION_CACHE_DIR",
        "JAX_PLATFORM_NAME",
        "JAX_PLATFORMS",
    ),
    *("CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS"),
)
"""The job's variables that are about its own host: folders, devices, credentials, a cache of programs for a TPU."""
_PREFIXES_OF_THE_MACHINE: Final = ("LD_", "LIBTPU_", "MEGASCALE_", "PYTHON", "TPU_")


def worker_environment(inputs: FitInputs) -> dict[str, str]:
    """Return the variables of the process that compiles a rung."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_OF_THE_COMPILER) and name not in _OF_PYTHON
    }
    return kept | container_environment(inputs)


def container_environment(inputs: FitInputs) -> dict[str, str]:
    """Return the variables that a compilation in the job's image has beside the image's own."""
    return {**program_variables(inputs), **PROTOCOL, XLA_FLAGS_VARIABLE: " ".join(inputs.xla_flags)}


def program_variables(inputs: FitInputs) -> dict[str, str]:
    """Return the job's own variables that the process gets."""
    return {
        name: value
        for name, value in inputs.env.items()
        if name not in _OF_THE_MACHINE and not name.startswith(_PREFIXES_OF_THE_MACHINE)
    }


def compiler_variables(inputs: FitInputs) -> tuple[tuple[str, str], ...]:
    """Return the job's variables that may change the result of equal StableHLO."""
    return tuple(
        sorted(
            item
            for item in program_variables(inputs).items()
            if item[0].upper().startswith(_OF_THE_COMPILER)
        )
    )
