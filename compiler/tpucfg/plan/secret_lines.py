"""Lines with which a program reads Secret Manager itself, for a service that has no variables from it."""

from collections.abc import Iterable
from typing import Final

from tpucfg.spec.project import Environment
from tpucfg.spec.settings import Secret

WITHOUT_SECRETS: Final = frozenset(("vertex-ai", "ai-platform"))
"""The targets whose variables cannot refer to a secret: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar."""
_READER: Final = "roles/secretmanager.secretAccessor"


def secret_lines(environment: Environment, account: str, secrets: Iterable[Secret]) -> list[str]:
    """Return the lines of Python that read secrets into variables, and the commands that let the job's account do so.

    https://cloud.google.com/secret-manager/docs/access-secret-version
    """
    all_secrets = tuple(secrets)
    return [
        "import os; from google.cloud import secretmanager",
        "client = secretmanager.SecretManagerServiceClient()",
        *(_read_line(secret, environment) for secret in all_secrets),
        *(_grant_command(secret, environment, account) for secret in all_secrets),
    ]


def _read_line(secret: Secret, environment: Environment) -> str:
    name = f"projects/{secret.project or environment.project}/secrets/{secret.name}/versions/{secret.version}"
    return f'os.environ["{secret.variable}"] = client.access_secret_version(name="{name}").payload.data.decode()'


def _grant_command(secret: Secret, environment: Environment, account: str) -> str:
    project = f"--project={secret.project or environment.project}"
    member = f"--member=serviceAccount:{account} --role={_READER}"
    return f"gcloud secrets add-iam-policy-binding {secret.name} {project} {member}"
