"""The rules that targets with hosts of their own share: zones, names and secrets of a spec, disks, and metadata.

Docker takes the value of a secret from its own environment, and bash puts it there. So a variable that bash, the loader
or docker itself reads would never reach the program unchanged, or change how the container is started.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import KeyPath, first_match
from tpucfg.plan import zone_of
from tpucfg.schemas import Problem
from tpucfg.spec import Environment, Project
from tpucfg.targets.rules import service_problem
from tpucfg.targets.spec_rules import long_job_names
from tpucfg.text_format import dotted

NAMES: Final = "https://cloud.google.com/compute/docs/naming-resources#resource-name-format"
_SHARED: Final = "https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage"
_ZONAL: Final = "https://cloud.google.com/compute/docs/regions-zones/global-regional-zonal-resources"
_INSTANCES: Final = "https://cloud.google.com/compute/docs/reference/rest/v1/instances"
_DISK: Final = re.compile(r"(?:projects/([^/]+)/)?zones/([^/]+)/disks/([^/]+)$")
_MAX_VALUE: Final = 256 * 1024
"""Bytes of one metadata value (_INSTANCES)."""


class _Reader(NamedTuple):
    """The program on the host that reads a variable."""

    effect: str
    """The effect on the start of the container, as a clause."""
    source: str
    """The public page about the variable."""


_BASH: Final = "https://www.gnu.org/software/bash/manual/html_node/Bash-Variables.html"
_SHELL: Final = _Reader("the shell on the host sets it itself", _BASH)
_START: Final = _Reader("the shell on the host would behave in another way", _BASH)
_SCRIPT: Final = _Reader("the start-up script uses it", "https://cloud.google.com/tpu/docs/run-in-container")
_LOADER: Final = _Reader(
    "every program on the host would load other libraries", "https://man7.org/linux/man-pages/man8/ld.so.8.html"
)
_DOCKER: Final = _Reader(
    "docker on the host would connect, or authenticate, in another way",
    "https://docs.docker.com/reference/cli/docker/#environment-variables",
)
_SET_BY_BASH: Final = (
    "_ BASHOPTS BASHPID BASH_* COPROC DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD LINENO OPTIND"
    " PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SHLVL SRANDOM UID"
)
_READ_BY_BASH: Final = "CDPATH ENV GLOBIGNORE IFS PATH POSIXLY_CORRECT"
_READ_BY_DOCKER: Final = "DOCKER_* HOME GODEBUG XDG_RUNTIME_DIR"

_READERS: Final[Mapping[str, _Reader]] = {
    **dict.fromkeys(_SET_BY_BASH.split(), _SHELL),
    **dict.fromkeys(_READ_BY_BASH.split(), _START),
    **dict.fromkeys(("LD_*", "GCONV_PATH", "GLIBC_TUNABLES"), _LOADER),
    **dict.fromkeys(_READ_BY_DOCKER.split(), _DOCKER),
    "tpucfg_*": _SCRIPT,
}
"""Variables by name; a final `*` stands for any rest."""


def host_findings(
    project: Project, environment: Environment, slices: Sequence[Slice], max_name_length: Callable[[Slice], int]
) -> Iterator[Finding]:
    """Yield findings about secrets, zones and names; `max_name_length` returns the limit of a job's name on a size."""
    yield from _secrets_of_the_host(project, environment, slices)
    yield from _missing_zones(project, environment, slices)
    yield from long_job_names(project, environment, slices, max_name_length, NAMES)


def _secrets_of_the_host(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield an error for each secret in a variable of the host, once for each layer that names it."""
    paths = {}
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        for secret in settings.trainer.secrets:
            if reader := first_match(_READERS.items(), (secret.variable,)):
                paths[settings.source(("trainer", "secrets", secret.variable))] = (secret.variable, reader)
    for path, (variable, reader) in paths.items():
        yield Finding.of(
            "TPU059",
            f"{environment.target} cannot set {variable} from Secret Manager: {reader.effect}",
            project.document.key_location(path),
            help=f"rename {dotted(path)}, for example to TRAINER_{variable}, and read that in the program",
            details=(f"see {reader.source}",),
        )


def _missing_zones(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield an error for each size of the target without a known zone."""
    for slice_ in slices:
        if environment.target not in slice_.targets or zone_of(environment, slice_):
            continue
        if slice_.zones and "TPU021" not in project.allow:
            continue  # TPU021 reports that the region does not offer the size
        path = (*environment.path, "zones")
        message = f"{environment.name} has no zone for {slice_.size}: no list has one in {environment.region}"
        hint = f"add {dotted((*path, slice_.size))}, for example {environment.region}-a"
        yield Finding.of("TPU005", message, project.document.key_location(path), help=hint)


def disk_parts(source: str) -> tuple[str, str, str] | None:
    """Return the project, the zone and the name of a disk by its path; None for what is no path of a zonal disk."""
    match = _DISK.search(source)
    return (match[1] or "", match[2], match[3]) if match else None


def disk_problems(
    path: KeyPath, disks: Sequence[Mapping[str, Any]], field: str, *, hosts: int, zone: str
) -> Iterator[Problem]:
    """Yield an error for each disk that several hosts would write to, or that is in another zone than the slice.

    Args:
        path: The path of the list of disks in the request body.
        disks: The list; an item without `field` is a new disk of each host.
        field: The field of an item that has the path or the name of an existing disk.
        hosts: The number of hosts that attach the disks.
        zone: The zone of the slice; empty if the config does not show it.
    """
    for index, disk in enumerate(disks):
        # READ_WRITE is the mode of the APIs by default.
        if hosts > 1 and field in disk and disk.get("mode") != "READ_ONLY":
            shown = (*path, index, "mode" if "mode" in disk else field)
            fix = "attach it for reading: READ_ONLY in a config, and in a spec without read_only: false"
            yield service_problem(shown, f"{hosts} hosts cannot attach one disk for writing", fix, _SHARED)
        parts = disk_parts(disk.get(field, ""))
        if parts and zone and parts[1] != zone:
            fix = f"name a disk in {zone}"
            if parts[1].rpartition("-")[0] == zone.rpartition("-")[0]:
                fix += f", or request the slice in {parts[1]}: in a spec, by zones of the environment"
            message = f"the disk is in {parts[1]}, and the slice in {zone}"
            yield service_problem((*path, index, field), message, fix, _ZONAL)


def long_values(values: Mapping[KeyPath, str]) -> Iterator[Problem]:
    """Yield an error for each value of metadata, by its path, that is too long for a host."""
    for path, value in values.items():
        # surrogatepass, because strict UTF-8 raises an error for a lone surrogate, and only the size matters here.
        if (size := len(value.encode("utf-8", "surrogatepass"))) > _MAX_VALUE:
            message = f"it has {size:,} bytes, and {_MAX_VALUE:,} are allowed for a metadata value"
            yield service_problem(
                path, message, "move the flags to a file in the bucket, and pass its path", _INSTANCES
            )
