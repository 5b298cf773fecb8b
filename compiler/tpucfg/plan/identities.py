"""The identities of an environment's jobs, and the access that they need besides the environment's bucket.

The stack program grants exactly this. Every rung counts, as the layers of a spec may give each size an account, secrets
and a longest run of its own. Jobs with a longest run delete their own slice, unless the service ends it itself.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from tpucfg.catalog import TARGET_FACTS
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.job import Job
from tpucfg.plan.naming import kubernetes_account, named_account, workload_account
from tpucfg.spec import Environment, Project, Secret, Settings


class SecretName(NamedTuple):
    """A secret in Secret Manager; access is granted to all its versions."""

    project: str
    name: str


class Identity(NamedTuple):
    """An account that jobs of an environment run as."""

    email: str
    """The Google service account."""
    is_created: bool
    """True if the environment's stack creates the account; False if the spec names an existing one."""
    kubernetes: str | None = None
    """On gke, the Kubernetes service account of the pods, which may act as the account: `namespace/name`."""
    secrets: tuple[SecretName, ...] = ()
    """The secrets that its jobs read, sorted."""
    deletes_slices: bool = False
    """True if its jobs delete their slice at the end of the run."""


def identities(project: Project, environment: Environment) -> tuple[Identity, ...]:
    """Return the identities of an environment's jobs without repeats; the environment's own is the first.

    The order decides the names of the stack's resources: an account that one size adds leaves the others unchanged.
    """
    first = _identity(project, environment, "")
    merged: dict[tuple[str, str | None], Identity] = {}
    for identity in (
        identity
        for size in environment.sizes
        for identity in _identities(project, environment, size)
    ):
        key = identity.email, identity.kubernetes
        merged[key] = _union(merged[key], identity) if key in merged else identity
    first_key = first.email, first.kubernetes
    return tuple(merged[key] for key in sorted(merged, key=lambda key: key != first_key))


def _identities(project: Project, environment: Environment, size: str) -> Iterator[Identity]:
    """Yield the identity of a job, and that of its program if it has the account of the node."""
    yield _identity(project, environment, size)
    options = project.settings[environment.name, size].targets.get(environment.target, {})
    # Mounts and secrets still use the pod's own account, so that both need access.
    if options.get("host_network") and options.get("node_service_account"):
        yield Identity(options["node_service_account"], is_created=False)


def _identity(project: Project, environment: Environment, size: str) -> Identity:
    settings = project.settings[environment.name, size]
    secrets = {
        SecretName(secret.project or environment.project, secret.name)
        for secret in settings.trainer.secrets
    }
    return Identity(
        email=workload_account(project, environment, size),
        is_created=named_account(project, environment, size) is None,
        kubernetes=kubernetes_account(project, environment, size),
        secrets=tuple(sorted(secrets)),
        deletes_slices=deletes_its_slice(environment.target, settings),
    )


def _union(one: Identity, other: Identity) -> Identity:
    return one._replace(
        is_created=one.is_created or other.is_created,
        secrets=tuple(sorted({*one.secrets, *other.secrets})),
        deletes_slices=one.deletes_slices or other.deletes_slices,
    )


# The images.

PUBLIC_REPOSITORIES: Final = ("cloud-tpu-images",)
"""Google's projects whose images everyone may pull, and no stack can grant: https://cloud.google.com/tpu/docs/runtimes."""
_IMAGE: Final = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/([^/]+)/([^/]+)/.+")
"""https://cloud.google.com/artifact-registry/docs/docker/names."""


class ImageRepository(NamedTuple):
    """A repository of Artifact Registry."""

    project: str
    location: str
    name: str


class ImagePull(NamedTuple):
    """An account that pulls images of a repository."""

    email: str
    repository: ImageRepository


def repository_of(image: str | None) -> ImageRepository | None:
    """Return the repository of an image in Artifact Registry that a stack can grant; None for every other image."""
    match = _IMAGE.fullmatch(image or "")
    if match is None or match[2] in PUBLIC_REPOSITORIES:
        return None
    return ImageRepository(match[2], match[1], match[3])


def image_pulls(jobs: Iterable[Job]) -> tuple[ImagePull, ...]:
    """Return who pulls the images of jobs from which repositories, sorted, as far as the spec names the account."""
    pulls = set()
    for job in jobs:
        repository, email = repository_of(job.image), _puller(job)
        if repository and email and job.environment.grants_images:
            pulls.add(ImagePull(email, repository))
    return tuple(sorted(pulls))


def _puller(job: Job) -> str | None:
    key = {"account": "service_account", "nodes": "node_service_account"}.get(
        TARGET_FACTS[job.target].image_puller
    )
    named: str | None = job.options.get(key or "")
    return named or (job.account if key == "service_account" else None)


# The deletion of a job's own slice.
#
# Cloud TPU has no policy on a single node or queued resource, so a role with these permissions reaches every TPU of its
# project: https://cloud.google.com/tpu/docs/iam. On Compute Engine it reaches every group, and the instances that the
# condition names.


def deletes_its_slice(target: str, settings: Settings) -> bool:
    """Return True if a job deletes its slice itself, at the end of its program or of its longest run."""
    return (
        bool(TARGET_FACTS[target].deletion_permissions)
        and settings.trainer.max_run_duration is not None
    )


def deletion_permissions(target: str, hosts: Iterable[int]) -> tuple[str, ...]:
    """Return the permissions with which jobs on slices of these numbers of hosts delete their own slice."""
    facts = TARGET_FACTS[target]
    one_host = facts.one_host_deletion_permissions or facts.deletion_permissions
    needed = (one_host if count == 1 else facts.deletion_permissions for count in hosts)
    return tuple(dict.fromkeys(permission for permissions in needed for permission in permissions))


def deletion_condition(target: str, names: Iterable[str]) -> str | None:
    """Return an expression that limits the deletion of slices of one host to those with certain names.

    It is true for every other type of resource, as the same grant deletes groups, whose names no condition can read:
    https://cloud.google.com/iam/docs/configuring-resource-based-access#extract-resource-name.

    Args:
        target: The environment's target.
        names: The names of the jobs on one host; a job's own name may continue with the id of its run.

    Returns:
        The expression; None without such jobs, or if the service has no condition for them.
    """
    resource = TARGET_FACTS[target].one_host_resource
    prefixes = [*dict.fromkeys(names)]
    if resource is None or not prefixes:
        return None
    # Strings of CEL have the escapes of JSON:
    # https://github.com/google/cel-spec/blob/master/doc/langdef.md#string-and-bytes-values
    type_, template = json.dumps(resource.type), json.dumps(resource.template)
    terms = [
        f"resource.name.extract({template}).startsWith({json.dumps(prefix)})" for prefix in prefixes
    ]
    return " || ".join([f"resource.type != {type_}", *terms])


# Secrets on a service that has no variables from Secret Manager: the program reads them itself.

_READER: Final = "roles/secretmanager.secretAccessor"


def secret_lines(environment: Environment, account: str, secrets: Iterable[Secret]) -> list[str]:
    """Return the lines of Python that read secrets into variables, and the commands that let the job's account do so.

    https://cloud.google.com/secret-manager/docs/access-secret-version
    """
    lines = [
        "import os; from google.cloud import secretmanager",
        "client = secretmanager.SecretManagerServiceClient()",
    ]
    commands = []
    for secret in secrets:
        project, grant = (
            secret.project or environment.project,
            f"--member=serviceAccount:{account} --role={_READER}",
        )
        version = f"projects/{project}/secrets/{secret.name}/versions/{secret.version}"
        value = f'client.access_secret_version(name="{version}")'
        lines.append(f'os.environ["{secret.variable}"] = {value}.payload.data.decode()')
        commands.append(
            f"gcloud secrets add-iam-policy-binding {secret.name} --project={project} {grant}"
        )
    return [*lines, *commands]
