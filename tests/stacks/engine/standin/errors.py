"""The refusals of Google's APIs that a stack meets, in Google's words."""


class ApiError(Exception):
    """A refusal, as the REST API sends it and as Google's Go client words it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"googleapi: Error {status}: {message}, {reason}")
        self.status = status
        """The HTTP status."""
        self.reason = reason
        """Google's word for the kind of refusal, such as `conflict`."""
        self.message = message
        """The sentence."""


def bucket_taken() -> ApiError:
    """Somebody else in the world has a bucket of that name.

    Source: https://github.com/GoogleCloudPlatform/accelerated-platforms/pull/238
    """
    return ApiError(
        409,
        "conflict",
        "The requested bucket name is not available. The bucket namespace is shared by all users of the system. "
        "Please select a different name and try again.",
    )


def bucket_owned() -> ApiError:
    """The bucket exists and belongs to the caller.

    Source: https://github.com/terraform-google-modules/terraform-google-cloud-storage/pull/238
    """
    return ApiError(
        409, "conflict", "Your previous request to create the named bucket succeeded and you already own it."
    )


def bucket_not_empty() -> ApiError:
    """A bucket with objects cannot be deleted."""
    return ApiError(409, "conflict", "The bucket you tried to delete is not empty.")


def no_principal(email: str) -> ApiError:
    """IAM does not see a service account, because it is not there or too new.

    Source: https://github.com/hashicorp/terraform-provider-google/issues/21931
    """
    return ApiError(400, "badRequest", f"Service account {email} does not exist.")


def api_not_used(title: str, service: str, number: int) -> ApiError:
    """An API is not enabled, or was enabled too recently.

    Source: https://github.com/hashicorp/terraform/issues/29006
    """
    return ApiError(
        403,
        "accessNotConfigured",
        f"{title} has not been used in project {number} before or it is disabled. Enable it by visiting "
        f"https://console.developers.google.com/apis/api/{service}/overview?project={number} then retry. If you "
        "enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.",
    )


def forbidden(permission: str, caller: str = "somebody@example.com") -> ApiError:
    """The caller lacks a permission.

    Source: https://github.com/data-integrations/google-cloud/pull/1503
    """
    return ApiError(
        403,
        "forbidden",
        f"{caller} does not have {permission} access to the Google Cloud project. Permission '{permission}' denied on "
        "resource (or it may not exist).",
    )


def location_refused(location: str) -> ApiError:
    """The organization allows no bucket there.

    Source: https://github.com/PaloAltoNetworks/terraform-google-vmseries-modules/issues/148
    """
    return ApiError(412, "conditionNotMet", f"'{location}' violates constraint 'constraints/gcp.resourceLocations'")


def unavailable() -> ApiError:
    """A passing fault on Google's side."""
    return ApiError(503, "backendError", "The service is currently unavailable.")


def not_found(what: str) -> ApiError:
    """The thing is not there."""
    return ApiError(404, "notFound", f"{what} was not found.")
