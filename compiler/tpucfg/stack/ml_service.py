"""Look-up of AI Platform Training's tenant project, and of the TPU account in it.

`projects.getConfig` returns both (https://cloud.google.com/ai-platform/training/docs/using-tpus). The service was shut
down, so stack config can set both instead. Only the target ai-platform makes this call.
"""

import os
from typing import Any, Final, NamedTuple

import pulumi
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.settings import get_monitor

from tpucfg.stack.settings import StackSettings

ENDPOINT_VARIABLE: Final = "GOOGLE_ML_ENGINE_CUSTOM_ENDPOINT"
TOKEN_VARIABLE: Final = "GOOGLE_OAUTH_ACCESS_TOKEN"  # noqa: S105 - the variable's name, not a token
ENDPOINT: Final = "https://ml.googleapis.com/v1/"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
TIMEOUT_SECONDS: Final = 30


class Names(NamedTuple):
    """The two names that the guide requires."""

    project: str
    """Number of the project in which the TPU identity is generated."""
    tpu_account: str
    """E-mail of the grants' member."""


def names(settings: StackSettings) -> Names:
    """Return the names from stack config; any that config does not set are requested from the service.

    Raises:
        pulumi.RunError: The call failed; the message names the config that replaces it.
    """
    config = settings.config
    if config.service_account_project and config.tpu_service_account:
        return Names(config.service_account_project, config.tpu_service_account)
    # `tpucfg infra` and the tests run without network access.
    if isinstance(get_monitor(), MockMonitor):
        looked_up = Names(f"tenant-of-{settings.project}", f"tpu-account-of-{settings.project}")
    else:
        looked_up = _request_names(settings)
    return Names(
        config.service_account_project or looked_up.project,
        config.tpu_service_account or looked_up.tpu_account,
    )


def _request_names(settings: StackSettings) -> Names:
    endpoint = (os.environ.get(ENDPOINT_VARIABLE) or ENDPOINT).rstrip("/")
    url = f"{endpoint}/projects/{settings.project}:getConfig"
    try:
        body = _get(url)
        return Names(str(body["serviceAccountProject"]), str(body["config"]["tpuServiceAccount"]))
    except Exception as error:  # noqa: BLE001 - whatever failed, the fix is to set the config
        raise pulumi.RunError(_error_message(settings, url, error)) from None


def _error_message(settings: StackSettings, url: str, error: Exception) -> str:
    cause = (
        f"the answer has no {error}"
        if isinstance(error, KeyError)
        else (str(error) or type(error).__name__)
    )
    stack = settings.environment
    return (
        f"the TPU account of AI Platform in {settings.project} cannot be looked up ({url}: {cause}). The service was "
        "shut down; without the account, its TPUs cannot be granted access. Nothing was changed.\n"
        "help: set both names in the stack's config, if you know them:\n"
        f"  pulumi config set serviceAccountProject NUMBER --stack {stack}\n"
        f"  pulumi config set tpuServiceAccount EMAIL --stack {stack}\n"
        "or choose another target in the spec: vertex-ai, cloud-tpu, compute-engine or gke"
    )


def _get(url: str) -> dict[str, Any]:
    """Send the request, with the token of the environment or the default credentials."""
    # Imported here, because only the target ai-platform needs them.
    import google.auth
    from google.auth.transport.requests import AuthorizedSession
    from google.oauth2.credentials import Credentials

    token = os.environ.get(TOKEN_VARIABLE)
    credentials: Any = Credentials(token=token) if token else google.auth.default(scopes=[SCOPE])[0]  # type: ignore[no-untyped-call]
    with AuthorizedSession(credentials) as session:  # type: ignore[no-untyped-call]
        response = session.get(url, timeout=TIMEOUT_SECONDS)
        response.raise_for_status()
        body: dict[str, Any] = response.json()
        return body
