"""Hosts that start the trainer's container when they boot: their start-up script, and the rules that they share.

The script runs the container, and ends the slice when the program has ended. Targets with such hosts are Cloud TPU and
Compute Engine. Sources: https://cloud.google.com/tpu/docs/run-in-container (docker on a TPU VM),
https://cloud.google.com/storage/docs/cloud-storage-fuse/install (mounts),
https://cloud.google.com/secret-manager/docs/reference/rest/v1/projects.secrets.versions/access (secrets).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import KeyPath, matches
from tpucfg.plan import Job, zone_of
from tpucfg.schemas import Problem
from tpucfg.spec import Environment, Project
from tpucfg.targets.interface import google_account
from tpucfg.targets.rules import long_job_names, service_problem
from tpucfg.text_format import dotted

if TYPE_CHECKING:
    from jinja2 import Template

CONTAINER: Final = "trainer"
"""The name of the container on every host."""
WATCHDOG: Final = "tpucfg-watchdog"
"""The systemd unit that restarts the program and deletes the slice."""
DEADLINE: Final = "tpucfg-deadline"
"""The systemd unit that deletes the slice at the deadline, and the name of its script."""

_GOOGLE_REGISTRY: Final = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev|([a-z0-9-]+\.)?gcr\.io")
"""Registries that accept the token of a Google account:
https://cloud.google.com/artifact-registry/docs/docker/authentication#token."""
_MAX_STOP_SECONDS: Final = 300
"""The time for a last checkpoint before the deadline; a fifth of a run shorter than 25 minutes."""
_MAX_LOG_SECONDS: Final = 60
"""The time before the deadline at which the log of a program that runs on is saved."""
_MAX_EARLY_SECONDS: Final = 90
"""The time between the deadline and the service's own limit of the hosts; a tenth of a run shorter than 15 minutes."""
_STORAGE: Final = "https://storage.googleapis.com"
_PROJECTS: Final = "https://cloudresourcemanager.googleapis.com/v3/projects"


class HostMount(NamedTuple):
    """A bucket, or a folder of one, on a host."""

    folder: str
    """The mount point on the host, which the container shows as `path`."""
    path: str
    bucket: str
    directory: str
    """The folder in the bucket; empty for all of it."""


class Service(NamedTuple):
    """The differences between the services whose hosts run the script."""

    delete_url: str
    """The URL that a DELETE request deletes the slice by, with its query."""
    slice_noun: str
    """The objects that the request deletes, in words."""
    permission: str
    """The permission that the request needs."""
    installs_docker: bool = False
    """True if the image of the hosts has no Docker."""
    log_label: str = ""
    """The label of the container under which Cloud Logging gets its output; empty if the output stays on the host."""
    limits_hosts: bool = False
    """True if the service itself deletes each host when `max_run_duration` has passed since its start."""


class ScriptValues(NamedTuple):
    """The values of the script that are not in the job."""

    service: Service
    mounts: tuple[HostMount, ...]
    workers: int
    """Hosts of all slices."""
    account: str
    watched: bool
    """True if a watchdog restarts the program or deletes the slice."""
    deletes: bool
    """True if the watchdog deletes the slice."""
    stop_seconds: int
    """The seconds before the deadline at which the program receives SIGTERM."""
    log_seconds: int
    """The seconds before the deadline at which its log is saved if it runs on."""
    early_seconds: int
    """The seconds between the deadline and the service's own limit of the hosts; 0 if it has none."""
    uploads: str
    """The URL of uploads to the folder of the logs in the bucket, without the name of a log."""
    permissions: str
    """The URL that answers which permissions an account has in the project."""
    container: str = CONTAINER
    unit: str = WATCHDOG
    deadline_unit: str = DEADLINE
    state: str = "/var/lib/tpucfg"
    boot: str = "/run/tpucfg"
    secrets_folder: str = "/run/tpucfg/secrets"
    gcsfuse: str = "gcsfuse=3.*"
    """The package and its version: https://github.com/GoogleCloudPlatform/gcsfuse/releases."""
    grace_seconds: int = 60
    """The time from the program's end to the deletion, in which other hosts end and logs are saved."""
    poll_seconds: int = 5
    retry_seconds: int = 30
    log_lines: int = 100_000
    """The last lines of the program's output that are saved before the slice is deleted."""

    @property
    def purpose(self) -> str:
        """The work of the watchdog."""
        return (
            "restarts it, and deletes the slice at its end"
            if self.deletes
            else "restarts it after a failure"
        )


def startup_script(job: Job, service: Service) -> str:
    """Return the bash script that every host runs as root at every boot."""
    host = (job.image or "").partition("/")[0]
    registry = host if _GOOGLE_REGISTRY.fullmatch(host) else None
    return str(_template().render(job=job, registry=registry, run=_run(job, service)))


def log_folder(job: Job) -> str:
    """Return the URL of the folder with the logs of a job's hosts."""
    return f"{job.job_dir}/.tpucfg/logs/"


def end_notes(job: Job) -> Iterator[str]:
    """Yield notes about the end of the slice, and about what outlives it."""
    if duration := job.max_run_duration:
        yield (
            f"the slice deletes itself a minute after the program's end, and at the latest {duration.text} after its "
            "hosts have started; waiting for capacity does not count"
        )
        yield f"the end of the program's output, or of a start that fails, is kept in {log_folder(job)}"
    else:
        yield "the slice is charged until it is deleted, even after the program has ended"


def _run(job: Job, service: Service) -> ScriptValues:
    duration = job.max_run_duration
    folder = log_folder(job).removeprefix(f"gs://{job.bucket}/").replace("/", "%2F")
    stop_seconds = min(_MAX_STOP_SECONDS, duration.seconds // 5) if duration else _MAX_STOP_SECONDS
    return ScriptValues(
        service=service,
        mounts=tuple(
            HostMount(f"/mnt/tpucfg/{number}", mount.path, *_bucket_and_folder(mount.source))
            for number, mount in enumerate(job.mounts)
        ),
        workers=job.slice.hosts,
        account=google_account(job),
        watched=bool(duration) or job.restarts is not None,
        deletes=bool(duration),
        stop_seconds=stop_seconds,
        log_seconds=min(_MAX_LOG_SECONDS, stop_seconds // 2),
        early_seconds=min(_MAX_EARLY_SECONDS, duration.seconds // 10)
        if duration and service.limits_hosts
        else 0,
        uploads=f"{_STORAGE}/upload/storage/v1/b/{job.bucket}/o?uploadType=media&name={folder}",
        permissions=f"{_PROJECTS}/{job.environment.project}:testIamPermissions",
    )


def _bucket_and_folder(source: str) -> tuple[str, str]:
    bucket, _, folder = source.removeprefix("gs://").partition("/")
    return bucket, folder


@cache
def _template() -> "Template":
    # jinja2 is imported here, because only a command that renders such a target needs it.
    from tpucfg.package_data import template_engine

    return template_engine().get_template("hosts/startup.sh.j2")


# The rules about a spec and about the disks of a config.

NAMES: Final = "https://cloud.google.com/compute/docs/naming-resources#resource-name-format"
_SHARED: Final = "https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage"
_ZONAL: Final = (
    "https://cloud.google.com/compute/docs/regions-zones/global-regional-zonal-resources"
)
_INSTANCES: Final = "https://cloud.google.com/compute/docs/reference/rest/v1/instances"
_DISK: Final = re.compile(r"(?:projects/([^/]+)/)?zones/([^/]+)/disks/([^/]+)$")
_BASH: Final = "https://www.gnu.org/software/bash/manual/html_node/Bash-Variables.html"
_HOST_VARIABLES: Final = (
    "_ BASH_* BASHOPTS BASHPID CDPATH COPROC DIRSTACK DOCKER_* ENV EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GCONV_PATH"
    " GLIBC_TUNABLES GLOBIGNORE GODEBUG GROUPS HISTCMD HOME IFS LD_* LINENO OPTIND PATH PIPESTATUS POSIXLY_CORRECT PPID"
    " RANDOM SECONDS SHELLOPTS SHLVL SRANDOM UID XDG_RUNTIME_DIR tpucfg_*"
)
"""Variables that bash, the loader of libraries, docker or the start-up script uses; a final `*` stands for any rest.

Docker takes the value of a secret from its own environment, where bash puts it: one of these would never reach the
program unchanged, or would change the start of the container.
"""


def host_findings(
    project: Project,
    environment: Environment,
    slices: Sequence[Slice],
    max_name_length: Callable[[Slice], int],
) -> Iterator[Finding]:
    """Yield findings about secrets, zones and names; `max_name_length` returns the limit of a job's name on a size."""
    yield from _secrets_of_the_host(project, environment, slices)
    yield from _missing_zones(project, environment, slices)
    yield from long_job_names(project, environment, slices, max_name_length, NAMES)


def _secrets_of_the_host(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield an error for each secret in a variable of the host, once for each layer that names it."""
    paths = {}
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        for secret in settings.trainer.secrets:
            if any(matches(name, (secret.variable,)) for name in _HOST_VARIABLES.split()):
                paths[settings.source(("trainer", "secrets", secret.variable))] = secret.variable
    for path, variable in paths.items():
        yield Finding.of(
            "TPU059",
            f"{environment.target} cannot set {variable} from Secret Manager: the host itself uses this variable",
            project.document.key_location(path),
            help=f"rename {dotted(path)}, for example to TRAINER_{variable}, and read that in the program",
            details=(f"see {_BASH}",),
        )


def _missing_zones(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
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
            yield service_problem(
                shown, f"{hosts} hosts cannot attach one disk for writing", fix, _SHARED
            )
        parts = disk_parts(disk.get(field, ""))
        if parts and zone and parts[1] != zone:
            fix = f"name a disk in {zone}"
            if parts[1].rpartition("-")[0] == zone.rpartition("-")[0]:
                fix += (
                    f", or request the slice in {parts[1]}: in a spec, by zones of the environment"
                )
            message = f"the disk is in {parts[1]}, and the slice in {zone}"
            yield service_problem((*path, index, field), message, fix, _ZONAL)
