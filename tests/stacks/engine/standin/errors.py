"""Errors of Google's APIs that a stack may encounter, with Google's messages."""


class ApiError(Exception):
    """An error, as the REST API sends it and as Google's Go client formats it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"googleapi: Error {status}: {message}, {reason}")
        self.status = status
        """The HTTP status."""
        self.reason = reason
        """Google's reason code, such as `conflict`."""
        self.message = message
        """The message text."""


class ProviderError(ApiError):
    """An error that the provider itself raises, without a call that failed."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "", message)
        self.args = (message,)


def bucket_taken() -> ApiError:
    """Return the error for a bucket name that belongs to another owner.

    Source: https://github.com/GoogleCloudPlatform/accelerated-platforms/pull/238
    """
    return ApiError(
        409,
        "conflict",
        "The requested bucket name is not available. The bucket namespace is shared by all users of the system. "
        "Please select a different name and try again.",
    )


def bucket_owned() -> ApiError:
    """Return the error for a bucket that exists and belongs to the caller.

    Source: https://github.com/terraform-google-modules/terraform-google-cloud-storage/pull/238
    """
    return ApiError(
        409,
        "conflict",
        "Your previous request to create the named bucket succeeded and you already own it.",
    )


def bucket_not_empty() -> ApiError:
    """Return the error for deleting a bucket with objects."""
    return ApiError(409, "conflict", "The bucket you tried to delete is not empty.")


def no_secret(number: int, secret: str) -> ApiError:
    """Return the error for a secret that does not exist, which has the number of its project."""
    return ApiError(404, "notFound", f"Secret [projects/{number}/secrets/{secret}] not found.")


def role_exists(role_id: str) -> ApiError:
    """Return the error for the id of an existing custom role."""
    return ApiError(409, "alreadyExists", f"A role named {role_id} already exists.")


def role_marked_for_deletion(role_id: str) -> ApiError:
    """Return the error for the id of a custom role that was deleted in the last 37 days.

    Source: https://github.com/GoogleCloudPlatform/gke-autoneg-controller/issues/71
    """
    message = f"You can't create a role_id ({role_id}) which has been marked for deletion."
    return ApiError(400, "failedPrecondition", message)


def no_principal(email: str) -> ApiError:
    """Return the error for a service account that IAM does not see, because it does not exist or is too new.

    Source: https://github.com/hashicorp/terraform-provider-google/issues/21931
    """
    return ApiError(400, "badRequest", f"Service account {email} does not exist.")


def api_not_used(title: str, service: str, number: int) -> ApiError:
    """Return the error for an API that is not enabled, or was enabled too recently.

    Source: https://github.com/hashicorp/terraform/issues/29006
    """
    return ApiError(
        403,
        "accessNotConfigured",
        f"{title} has not been used in project {number} before or it is disabled. Enable it by visiting "
        f"https://console.developers.google.com/apis/api/{service}/overview?project={number} then retry. If you "
        "enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.",
    )


def forbidden(permission: str, caller: str = "caller@example.com") -> ApiError:
    """Return the error for a permission that the caller lacks.

    Source: https://github.com/data-integrations/google-cloud/pull/1503
    """
    return ApiError(
        403,
        "forbidden",
        f"{caller} does not have {permission} access to the Google Cloud project. Permission '{permission}' denied on "
        "resource (or it may not exist).",
    )


def location_refused(location: str) -> ApiError:
    """Return the error for a bucket location that the organization does not allow.

    Source: https://github.com/PaloAltoNetworks/terraform-google-vmseries-modules/issues/148
    """
    return ApiError(
        412,
        "conditionNotMet",
        f"'{location}' violates constraint 'constraints/gcp.resourceLocations'",
    )


def unavailable() -> ApiError:
    """Return a transient error on Google's side."""
    return ApiError(503, "backendError", "The service is currently unavailable.")


def not_found(name: str) -> ApiError:
    """Return the error for a resource that does not exist."""
    return ApiError(404, "notFound", f"{name} was not found.")
