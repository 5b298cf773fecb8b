"""Access to the secrets that the jobs read: one role, on each secret that the spec names."""

from collections.abc import Iterator, Sequence
from typing import Final

import pulumi_gcp as gcp
from pulumi import Resource

from tpucfg.plan.identities import SecretName
from tpucfg.stack.access import account_labels, kubernetes_member
from tpucfg.stack.apis import enable_api
from tpucfg.stack.resource_options import ResourceOptionsFactory
from tpucfg.stack.settings import StackSettings

SECRET_ACCESSOR: Final = "roles/secretmanager.secretAccessor"  # noqa: S105 - a role
"""Reads the versions of a secret, and neither lists, changes nor shares it:
https://cloud.google.com/secret-manager/docs/access-control."""

SECRETS_API: Final = "secretmanager.googleapis.com"
"""Has to be enabled in the project of the account that reads, whatever the project of the secret:
https://cloud.google.com/secret-manager/docs/configuring-secret-manager."""


def grant_secrets(
    settings: StackSettings, options: ResourceOptionsFactory, depends_on: Sequence[Resource]
) -> None:
    """Declare the access of each account to the secrets of its own jobs."""
    readers = [*_readers(settings)]
    if not readers:
        return
    # Not protected: revoking access has to be possible in one step, even in a protected environment.
    api = enable_api(SECRETS_API, settings, options, protect=False)
    for label, member, secret in readers:
        gcp.secretmanager.SecretIamMember(
            f"{label}-on-secret-{_short_name(secret, settings)}",
            project=secret.project,
            secret_id=secret.name,
            role=SECRET_ACCESSOR,
            member=member,
            opts=options.create([api, *depends_on], protect=False),
        )


def _readers(settings: StackSettings) -> Iterator[tuple[str, str, SecretName]]:
    """Yield the start of the grant's name, the member and the secret."""
    labels = account_labels(settings)
    # Sets, because several Kubernetes accounts can act as one Google account.
    by_account = {
        (identity.email, secret) for identity in settings.identities for secret in identity.secrets
    }
    for email, secret in sorted(by_account):
        yield labels[email], f"serviceAccount:{email}", secret
    for identity in settings.identities:
        if identity.kubernetes:
            # Secret Manager's controllers in the cluster read as the pods' Kubernetes account, or as the Google account
            # that it is annotated with; as it may act as that account anyway, this gives it nothing more:
            # https://github.com/GoogleCloudPlatform/secrets-store-csi-driver-provider-gcp/blob/main/auth/auth.go
            member = kubernetes_member(identity, settings)
            yield from (
                (f"pods-{identity.kubernetes}", member, secret) for secret in identity.secrets
            )


def _short_name(secret: SecretName, settings: StackSettings) -> str:
    return secret.name if secret.project == settings.project else f"{secret.project}/{secret.name}"
