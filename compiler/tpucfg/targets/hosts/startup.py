"""The start-up script of a host: it runs the trainer's container, and ends the slice when the program has ended.

Sources: https://cloud.google.com/tpu/docs/run-in-container (docker on a TPU VM),
https://cloud.google.com/storage/docs/cloud-storage-fuse/install (mounts),
https://cloud.google.com/secret-manager/docs/reference/rest/v1/projects.secrets.versions/access (secrets).
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from tpucfg.named_tuple import NamedTuple
from tpucfg.plan import Job
from tpucfg.targets.common import google_account

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


class Run(NamedTuple):
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
        return "restarts it, and deletes the slice at its end" if self.deletes else "restarts it after a failure"


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


def _run(job: Job, service: Service) -> Run:
    duration = job.max_run_duration
    folder = log_folder(job).removeprefix(f"gs://{job.bucket}/").replace("/", "%2F")
    stop_seconds = min(_MAX_STOP_SECONDS, duration.seconds // 5) if duration else _MAX_STOP_SECONDS
    return Run(
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
        early_seconds=min(_MAX_EARLY_SECONDS, duration.seconds // 10) if duration and service.limits_hosts else 0,
        uploads=f"{_STORAGE}/upload/storage/v1/b/{job.bucket}/o?uploadType=media&name={folder}",
        permissions=f"{_PROJECTS}/{job.environment.project}:testIamPermissions",
    )


def _bucket_and_folder(source: str) -> tuple[str, str]:
    bucket, _, folder = source.removeprefix("gs://").partition("/")
    return bucket, folder


@cache
def _template() -> "Template":
    # jinja2 is imported here, because only a command that renders such a target needs it.
    from tpucfg.templating import template_engine

    return template_engine().get_template("hosts/startup.sh.j2")
