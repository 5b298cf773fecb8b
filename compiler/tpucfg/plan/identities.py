"""The identities of an environment's jobs, and the access that they need besides the environment's bucket.

The stack program grants exactly this. Every rung counts, as the layers of a spec may give each size an account, secrets
and a longest run of its own.
"""

from typing import NamedTuple

from tpucfg.plan.naming import kubernetes_account, named_account, workload_account
from tpucfg.plan.slice_deletion import deletes_its_slice
from tpucfg.spec.project import Environment, Project


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
