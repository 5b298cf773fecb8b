"""Restarts, secrets and mounts on Vertex AI, which has no field for them, except to turn its own restarts off."""

from collections.abc import Iterator
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.plan.job import path_values
from tpucfg.plan.secret_lines import secret_lines
from tpucfg.spec.placeholders import fill_placeholders
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Mount, Settings
from tpucfg.targets.trainer_settings import removal_hint
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

_NAME: Final = "vertex-ai"
_FUSE: Final = "https://cloud.google.com/vertex-ai/docs/training/cloud-storage-file-system"
_RESTARTS: Final = "https://cloud.google.com/vertex-ai/docs/training/understanding-training-service"
_ENV: Final = "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar"
_ROOT: Final = "/gcs/"
"""The folder in which the service shows every bucket that the job's account may read (_FUSE)."""
_JOB_DIR: Final = "${job_dir}"


def setting_findings(project: Project, environment: Environment, slice_: Slice) -> Iterator[Finding]:
    """Yield an error for each setting of a size's trainer that the service cannot do."""
    settings = project.settings[environment.name, slice_.size]
    if settings.trainer.restarts:
        yield _restart_count(project, environment, settings)
    if settings.trainer.secrets:
        yield _secret_variables(project, environment, settings)
    for mount in settings.trainer.mounts:
        yield from _mount_elsewhere(project, environment, slice_, mount)


def _restart_count(project: Project, environment: Environment, settings: Settings) -> Finding:
    path = settings.source(("trainer", "restarts"))
    return Finding.of(
        "TPU059",
        f"{dotted(path)} is {settings.trainer.restarts}, and {_NAME} takes no number: it restarts a failed worker "
        "up to 5 times and then the whole job up to 3 times, or never",
        project.document.value_location(path),
        help=f"{removal_hint(project, environment, path, 'restarts')}, or set it to 0 for no restart",
        details=(f"see {_RESTARTS}",),
    )


def _secret_variables(project: Project, environment: Environment, settings: Settings) -> Finding:
    """Return an error whose details are the lines that the trainer needs instead, ready to paste."""
    path, secrets = settings.source(("trainer", "secrets")), settings.trainer.secrets
    hint = removal_hint(project, environment, path, "secrets")
    variables = ", ".join(secret.variable for secret in secrets)
    account = settings.targets.get(_NAME, {}).get("service_account") or ""
    return Finding.of(
        "TPU059",
        f"{_NAME} has no variables from Secret Manager: the program has to read {variables} itself, by these lines",
        project.document.key_location(path),
        help=f"{hint}, add these lines to the trainer, and run the command once",
        details=(
            *secret_lines(project, environment, account, secrets),
            f"the variables of a job: {_ENV}",
        ),
    )


def _mount_elsewhere(project: Project, environment: Environment, slice_: Slice, mount: Mount) -> Iterator[Finding]:
    """Yield an error for a mount whose folder is not the one where the service shows the bucket."""
    settings = project.settings[environment.name, slice_.size]
    if _JOB_DIR in mount.source:
        yield _mounted_job_dir(project, environment, settings, mount)
        return
    values = _KnownPlaceholders(path_values(project, environment, slice_.size))
    source = fill_placeholders(mount.source, values).rstrip("/")
    folder = _ROOT + source.removeprefix("gs://")
    if mount.path == folder:
        return
    path = settings.source(("trainer", "mounts", mount.path))
    move = removal_hint(project, environment, path, "mounts", mount.path)
    own_path: KeyPath = path[:-1] if move.startswith("delete") else (*environment.path, "trainer", "mounts")
    yield Finding.of(
        "TPU059",
        f"{_NAME} cannot mount {mount.source} at {mount.path}: every bucket is below {_ROOT}, and this one at {folder}",
        project.document.key_location(path),
        help=f"{move}, and add to {dotted(own_path)}: {folder}: {mount.source}",
        details=(f"see {_FUSE}",),
    )


def _mounted_job_dir(project: Project, environment: Environment, settings: Settings, mount: Mount) -> Finding:
    """Return an error for a mount of the job's own folder: its path below the root is another one for each run."""
    path = settings.source(("trainer", "mounts", mount.path))
    return Finding.of(
        "TPU059",
        f"{_NAME} cannot mount {mount.source} at {mount.path}: below {_ROOT}, its folder changes with the size and run",
        project.document.key_location(path),
        help=f"{removal_hint(project, environment, path, 'mounts', mount.path)}, and pass {mount.source} as a flag",
        details=(f"see {_FUSE}",),
    )


class _KnownPlaceholders(dict[str, str]):
    """Values of placeholders; one without a value, which depends on the figures of a rung, stays."""

    def __missing__(self, name: str) -> str:
        return f"${{{name}}}"
