"""Findings about values of the spec that Vertex AI refuses.

It has no field for restarts, except to turn its own off, for variables from Secret Manager, and for mounts.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.plan.identities import secret_lines
from tpucfg.plan.job import path_values
from tpucfg.plan.naming import workload_account
from tpucfg.spec.placeholders import fill_placeholders
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Mount, Settings
from tpucfg.targets.common import (
    distinct_settings,
    long_account_id,
    unsupported_machines,
    unsupported_sizes,
    uses_own_account,
)
from tpucfg.targets.trainer_settings import removal_hint
from tpucfg.targets.vertex_ai.request import NAME, is_counted
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

_FUSE: Final = "https://cloud.google.com/vertex-ai/docs/training/cloud-storage-file-system"
_RESTARTS: Final = "https://cloud.google.com/vertex-ai/docs/training/understanding-training-service"
_ENV: Final = "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar"
_ROOT: Final = "/gcs/"
"""The folder in which the service shows every bucket that the job's account may read (_FUSE)."""
_JOB_DIR: Final = "${job_dir}"


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, machines and trainers that Vertex AI refuses."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    for slice_ in slices:
        # If accelerators are counted, the machine type is a fixed text (cloud-tpu), so the spec cannot choose it.
        yield from unsupported_machines(project, [slice_], NAME, chooses=not is_counted(slice_))
        yield from _setting_findings(project, environment, slice_)
    for settings in distinct_settings(project, environment, slices):
        yield from _trainer_findings(project, settings)
    if not uses_own_account(project, environment, slices, NAME):
        yield from long_account_id(project, environment, NAME)


def _trainer_findings(project: Project, settings: Settings) -> Iterator[Finding]:
    trainer, path = settings.trainer, settings.source(("trainer", "package"))
    if trainer.package and not trainer.image:
        hint = "add image: us-docker.pkg.dev/vertex-ai/training/tf-tpu.2-15.cp310:latest, or another executor image"
        message = f"a package needs an executor image on {NAME}, which runs the package in it"
        yield Finding.of("TPU051", message, project.document.key_location(path), help=hint)
    if trainer.package and not trainer.package.startswith(("gs://", "${bucket}", "${job_dir}")):
        hint = f"build it with: python -m build --sdist, copy it to the bucket, and set {dotted(path)} to ${{bucket}}/…"
        message = f"{dotted(path)} is the local folder {trainer.package}; {NAME} reads packages from Cloud Storage"
        yield Finding.of("TPU051", message, project.document.value_location(path), help=hint)


def _setting_findings(project: Project, environment: Environment, slice_: Slice) -> Iterator[Finding]:
    """Yield an error for each setting of a size's trainer that the service cannot do."""
    settings = project.settings[environment.name, slice_.size]
    if settings.trainer.restarts:
        yield _restart_count(project, environment, settings)
    if settings.trainer.secrets:
        account = workload_account(project, environment, slice_.size)
        yield _secret_variables(project, environment, settings, account)
    for mount in settings.trainer.mounts:
        yield from _mount_elsewhere(project, environment, slice_, mount)


def _restart_count(project: Project, environment: Environment, settings: Settings) -> Finding:
    path = settings.source(("trainer", "restarts"))
    return Finding.of(
        "TPU059",
        f"{dotted(path)} is {settings.trainer.restarts}, and {NAME} takes no number: it restarts a failed worker "
        "up to 5 times and then the whole job up to 3 times, or never",
        project.document.value_location(path),
        help=f"{removal_hint(project, environment, path, 'restarts')}, or set it to 0 for no restart",
        details=(f"see {_RESTARTS}",),
    )


def _secret_variables(project: Project, environment: Environment, settings: Settings, account: str) -> Finding:
    """Return an error whose details are the lines that the trainer needs instead, ready to paste."""
    path, secrets = settings.source(("trainer", "secrets")), settings.trainer.secrets
    hint = removal_hint(project, environment, path, "secrets")
    variables = ", ".join(secret.variable for secret in secrets)
    return Finding.of(
        "TPU059",
        f"{NAME} has no variables from Secret Manager: the program has to read {variables} itself, by these lines",
        project.document.key_location(path),
        help=f"{hint}, add these lines to the trainer, and run the command once",
        details=(
            *secret_lines(environment, account, secrets),
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
        f"{NAME} cannot mount {mount.source} at {mount.path}: every bucket is below {_ROOT}, and this one at {folder}",
        project.document.key_location(path),
        help=f"{move}, and add to {dotted(own_path)}: {folder}: {mount.source}",
        details=(f"see {_FUSE}",),
    )


def _mounted_job_dir(project: Project, environment: Environment, settings: Settings, mount: Mount) -> Finding:
    """Return an error for a mount of the job's own folder: its path below the root is another one for each run."""
    path = settings.source(("trainer", "mounts", mount.path))
    return Finding.of(
        "TPU059",
        f"{NAME} cannot mount {mount.source} at {mount.path}: below {_ROOT}, its folder changes with the size and run",
        project.document.key_location(path),
        help=f"{removal_hint(project, environment, path, 'mounts', mount.path)}, and pass {mount.source} as a flag",
        details=(f"see {_FUSE}",),
    )


class _KnownPlaceholders(dict[str, str]):
    """Values of placeholders; one without a value, which depends on the figures of a rung, stays."""

    def __missing__(self, name: str) -> str:
        return f"${{{name}}}"
