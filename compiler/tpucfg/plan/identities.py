"""The identities of an environment's jobs, and the access that they need besides the environment's bucket.

The stack program grants exactly this. Every rung counts, as the layers of a spec may give each size an account, secrets
and a longest run of its own.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.plan.naming import kubernetes_account, named_account, workload_account
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Settings

DELETION_PERMISSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    target: facts.deletion_permissions for target, facts in TARGET_FACTS.items() if facts.deletion_permissions
}
"""The permissions with which a job deletes its own slice, by target; the other services end the slice themselves.

Cloud TPU has no policy on a single node or queued resource, so a role with these permissions reaches every TPU of its
project: https://cloud.google.com/tpu/docs/iam. On Compute Engine it reaches every group, and of the instances those in
`deletion_condition`.
"""


def deletion_permissions(target: str, hosts: Iterable[int]) -> tuple[str, ...]:
    """Return the permissions with which jobs on slices of these numbers of hosts delete their own slice."""
    facts = TARGET_FACTS[target]
    one_host = facts.one_host_deletion_permissions or facts.deletion_permissions
    needed = (one_host if count == 1 else facts.deletion_permissions for count in hosts)
    return tuple(dict.fromkeys(permission for permissions in needed for permission in permissions))


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


def deletes_its_slice(target: str, settings: Settings) -> bool:
    """Return True if a job deletes its slice itself, at the end of its program or of its longest run."""
    return target in DELETION_PERMISSIONS and settings.trainer.max_run_duration is not None


def identities(project: Project, environment: Environment) -> tuple[Identity, ...]:
    """Return the identities of an environment's jobs without repeats, the one that the environment itself names first.

    The order decides the names of the stack's resources: an account that one size adds leaves the others unchanged.
    """
    first = _identity(project, environment, "")
    merged: dict[tuple[str, str | None], Identity] = {}
    for identity in (_identity(project, environment, size) for size in environment.sizes):
        key = identity.email, identity.kubernetes
        merged[key] = _union(merged[key], identity) if key in merged else identity
    first_key = first.email, first.kubernetes
    return tuple(merged[key] for key in sorted(merged, key=lambda key: key != first_key))


def _identity(project: Project, environment: Environment, size: str) -> Identity:
    settings = project.settings[environment.name, size]
    secrets = {SecretName(secret.project or environment.project, secret.name) for secret in settings.trainer.secrets}
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
