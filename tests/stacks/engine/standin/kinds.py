"""Resource types of the gcp provider that a stack uses: their operations on the cloud, and their replacement.

The behaviour follows the provider's source: https://github.com/hashicorp/terraform-provider-google-beta and
https://github.com/pulumi/pulumi-terraform-bridge
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from standin.cloud import Cloud
from standin.errors import ApiError, ProviderError


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One resource type."""

    create: Callable[[Cloud, dict[str, Any]], tuple[str, dict[str, Any]]]
    """Create the resource from its inputs; return its id and outputs."""
    read: Callable[[Cloud, str, dict[str, Any]], dict[str, Any] | None]
    """Return the current outputs from id and state; None if the resource does not exist."""
    delete: Callable[[Cloud, str, dict[str, Any]], None]
    """Delete the resource, from id and state."""
    update: Callable[[Cloud, str, dict[str, Any]], dict[str, Any]]
    """Update the resource in place; return its outputs."""
    required: frozenset[str]
    """Inputs without which the provider rejects the resource at preview."""
    replaces: frozenset[str]
    """Inputs that require a replacement."""
    computed: frozenset[str]
    """Outputs that are unknown before the resource exists."""
    labels: frozenset[str] = frozenset({"pulumiLabels", "effectiveLabels"})
    """Outputs that the provider derives from labels."""
    kept: frozenset[str] = frozenset()
    """Inputs whose removal is no difference: the server's value is kept."""
    deletes_first: bool = False
    """The old resource is deleted before the new one is created, because both would have the same address."""
    wording: Callable[[dict[str, Any], ApiError], str] = lambda _, error: str(error)
    """Formats an API error like the provider."""

    @property
    def outputs_only(self) -> frozenset[str]:
        """Outputs that are no inputs, also of an imported resource."""
        return self.computed | self.labels


def _no_update(_cloud: Cloud, _identifier: str, inputs: dict[str, Any]) -> dict[str, Any]:
    return inputs


def _bucket_outputs(cloud: Cloud, name: str) -> dict[str, Any]:
    bucket = cloud.bucket(name)
    labels = bucket.body.get("labels", {})
    return {
        **bucket.body,
        "url": f"gs://{name}",
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{name}",
        "projectNumber": cloud.number(bucket.project),
        "pulumiLabels": labels,
        "effectiveLabels": {**labels, "goog-pulumi-provisioned": "true"},
    }


def _bucket_body(inputs: dict[str, Any]) -> dict[str, Any]:
    defaults = {
        "storageClass": "STANDARD",
        "forceDestroy": False,
        # Google keeps deleted objects for seven days by default: https://cloud.google.com/storage/docs/soft-delete
        "softDeletePolicy": {"retentionDurationSeconds": 604_800},
    }
    return {**defaults, **inputs, "location": inputs["location"].upper()}


def _create_bucket(cloud: Cloud, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    cloud.create_bucket(inputs["project"], inputs["name"], _bucket_body(inputs))
    return inputs["name"], _bucket_outputs(cloud, inputs["name"])


def _update_bucket(cloud: Cloud, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    cloud.update_bucket(name, _bucket_body(inputs))
    return _bucket_outputs(cloud, name)


def _read_bucket(cloud: Cloud, name: str, _state: dict[str, Any]) -> dict[str, Any] | None:
    return _bucket_outputs(cloud, name) if name in cloud.buckets else None


def _delete_bucket(cloud: Cloud, name: str, state: dict[str, Any]) -> None:
    cloud.delete_bucket(name, force=bool(state.get("forceDestroy")))


def _create_service(cloud: Cloud, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    project, service = inputs["project"], inputs["service"]
    # An API that is already enabled needs no call.
    if service not in cloud.services[project]:
        cloud.enable(project, service)
    return f"{project}/{service}", inputs


def _read_service(cloud: Cloud, _identifier: str, state: dict[str, Any]) -> dict[str, Any] | None:
    return state if state["service"] in cloud.services[state["project"]] else None


def _delete_service(cloud: Cloud, _identifier: str, state: dict[str, Any]) -> None:
    if state.get("disableOnDestroy"):
        cloud.disable(state["project"], state["service"])


def _create_identity(cloud: Cloud, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    email = cloud.generate_identity(inputs["project"], inputs["service"])
    named = {"email": email, "member": f"serviceAccount:{email}"} if email else {}
    return f"projects/{inputs['project']}/services/{inputs['service']}", {**inputs, **named}


def _create_account(cloud: Cloud, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    email = cloud.create_account(inputs["project"], inputs["accountId"], dict(inputs))
    identifier = f"projects/{inputs['project']}/serviceAccounts/{email}"
    return identifier, _account_outputs(identifier, inputs)


def _account_outputs(identifier: str, inputs: dict[str, Any]) -> dict[str, Any]:
    email = identifier.rpartition("/")[2]
    return {
        **inputs,
        "email": email,
        "member": f"serviceAccount:{email}",
        "name": identifier,
        "uniqueId": "1" * 21,
    }


def _update_account(cloud: Cloud, identifier: str, inputs: dict[str, Any]) -> dict[str, Any]:
    cloud.update_account(identifier.rpartition("/")[2], dict(inputs))
    return _account_outputs(identifier, inputs)


def _read_account(cloud: Cloud, identifier: str, state: dict[str, Any]) -> dict[str, Any] | None:
    email = identifier.rpartition("/")[2]
    return (
        {**state, **_account_outputs(identifier, cloud.accounts[email])}
        if email in cloud.accounts
        else None
    )


def _delete_account(cloud: Cloud, identifier: str, _state: dict[str, Any]) -> None:
    cloud.delete_account(identifier.rpartition("/")[2])


def _create_role(cloud: Cloud, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Create a custom role, or undelete one.

    https://github.com/hashicorp/terraform-provider-google/blob/main/google/services/resourcemanager/resource_google_project_iam_custom_role.go
    """
    name = f"projects/{inputs['project']}/roles/{inputs['roleId']}"
    existing = cloud.roles.get(name)
    if existing and existing.state == "active":
        raise ProviderError(f"Custom project role {name} already exists and must be imported")
    if existing and existing.state == "deleted":
        return name, _update_role(cloud, name, inputs)
    cloud.create_role(inputs["project"], inputs["roleId"], dict(inputs))
    return name, _role_outputs(cloud, name)


def _role_outputs(cloud: Cloud, name: str) -> dict[str, Any]:
    role = cloud.role(name)
    return {**role.body, "name": name, "deleted": role.state == "deleted"}


def _update_role(cloud: Cloud, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    if cloud.role(name).state == "deleted":
        cloud.undelete_role(name)
    cloud.update_role(name, dict(inputs))
    return _role_outputs(cloud, name)


def _read_role(cloud: Cloud, name: str, _state: dict[str, Any]) -> dict[str, Any] | None:
    return _role_outputs(cloud, name) if name in cloud.roles else None


def _delete_role(cloud: Cloud, name: str, _state: dict[str, Any]) -> None:
    cloud.delete_role(name)


def _role_wording(inputs: dict[str, Any], error: ApiError) -> str:
    name = f"projects/{inputs['project']}/roles/{inputs['roleId']}"
    return (
        str(error)
        if isinstance(error, ProviderError)
        else f"Error creating the custom project role {name}: {error}"
    )


def _secret_kind() -> Kind:
    """Return the type of an additive grant on a secret, which two inputs name."""

    def key_of(inputs: dict[str, Any]) -> dict[str, Any]:
        return {**inputs, "secret": f"projects/{inputs['project']}/secrets/{inputs['secretId']}"}

    inner = _member_kind("secret", lambda name: name, "secretmanager secret")

    def without_key(outputs: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in outputs.items() if key != "secret"}

    def create(cloud: Cloud, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        identifier, outputs = inner.create(cloud, key_of(inputs))
        return identifier, without_key(outputs)

    def read(cloud: Cloud, identifier: str, state: dict[str, Any]) -> dict[str, Any] | None:
        outputs = inner.read(cloud, identifier, key_of(state))
        return None if outputs is None else without_key(outputs)

    fields = frozenset({"project", "secretId", "role", "member"})
    return replace(
        inner,
        create=create,
        read=read,
        delete=lambda cloud, identifier, state: inner.delete(cloud, identifier, key_of(state)),
        required=fields,
        replaces=fields,
        wording=lambda inputs, error: inner.wording(key_of(inputs), error),
    )


def _member_kind(key: str, resource: Callable[[str], str], title: str) -> Kind:
    """Return the type of an additive grant on the resource that the input `key` names."""

    def outputs(cloud: Cloud, inputs: dict[str, Any]) -> dict[str, Any]:
        return {**inputs, "etag": cloud.etag(resource(inputs[key]))}

    def condition_of(inputs: dict[str, Any]) -> str:
        return str(inputs.get("condition", {}).get("expression", ""))

    def create(cloud: Cloud, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        cloud.grant(resource(inputs[key]), inputs["role"], inputs["member"], condition_of(inputs))
        return f"{resource(inputs[key])}/{inputs['role']}/{inputs['member']}", outputs(
            cloud, inputs
        )

    def read(cloud: Cloud, _identifier: str, state: dict[str, Any]) -> dict[str, Any] | None:
        granted = (state["role"], state["member"], condition_of(state)) in cloud.grants.get(
            resource(state[key]), set()
        )
        return outputs(cloud, state) if granted else None

    def delete(cloud: Cloud, _identifier: str, state: dict[str, Any]) -> None:
        cloud.revoke(resource(state[key]), state["role"], state["member"], condition_of(state))

    def wording(inputs: dict[str, Any], error: ApiError) -> str:
        description = f'{title} "{inputs[key]}"'
        return (
            f"Request `Create IAM Members {inputs['role']} {inputs['member']} for {description}` returned error: "
            f"Error applying IAM policy for {description}: Error setting IAM policy for {description}: {error}"
        )

    fields = frozenset({key, "role", "member"})
    return Kind(
        create=create,
        read=read,
        delete=delete,
        update=_no_update,
        required=fields,
        replaces=fields | {"condition"},
        computed=frozenset({"etag"}),
        deletes_first=True,
        wording=wording,
    )


KINDS = {
    "gcp:storage/bucket:Bucket": Kind(
        create=_create_bucket,
        read=_read_bucket,
        delete=_delete_bucket,
        update=_update_bucket,
        required=frozenset({"name", "location", "project"}),
        replaces=frozenset({"name", "location", "project", "hierarchicalNamespace"}),
        computed=frozenset({"url", "selfLink", "projectNumber"}),
        kept=frozenset({"softDeletePolicy"}),
        # For every bucket with an explicit name: the bridge cannot know that the new name differs.
        deletes_first=True,
    ),
    "gcp:projects/service:Service": Kind(
        create=_create_service,
        read=_read_service,
        delete=_delete_service,
        update=_no_update,
        required=frozenset({"service", "project"}),
        replaces=frozenset({"service", "project"}),
        computed=frozenset(),
    ),
    "gcp:projects/serviceIdentity:ServiceIdentity": Kind(
        create=_create_identity,
        # Google has no API to read or delete a service agent, so these operations do nothing.
        read=lambda _cloud, _identifier, state: state,
        delete=lambda _cloud, _identifier, _state: None,
        update=_no_update,
        required=frozenset({"service", "project"}),
        replaces=frozenset({"service", "project"}),
        computed=frozenset({"email", "member"}),
        wording=lambda _, error: f"Error creating Service Identity: {error}",
    ),
    "gcp:serviceaccount/account:Account": Kind(
        create=_create_account,
        read=_read_account,
        delete=_delete_account,
        update=_update_account,
        required=frozenset({"accountId", "project"}),
        replaces=frozenset({"accountId", "project"}),
        computed=frozenset({"email", "member", "name", "uniqueId"}),
        wording=lambda _, error: f"Error creating service account: {error}",
    ),
    "gcp:projects/iAMCustomRole:IAMCustomRole": Kind(
        create=_create_role,
        read=_read_role,
        delete=_delete_role,
        update=_update_role,
        required=frozenset({"permissions", "title"}),
        replaces=frozenset({"project", "roleId"}),
        computed=frozenset({"name", "deleted"}),
        deletes_first=True,
        wording=_role_wording,
    ),
    "gcp:secretmanager/secretIamMember:SecretIamMember": _secret_kind(),
    "gcp:projects/iAMMember:IAMMember": _member_kind(
        "project", lambda name: f"projects/{name}", "project"
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": _member_kind(
        "bucket", lambda name: f"b/{name}", "storage bucket"
    ),
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": _member_kind(
        "repository", lambda name: f"repositories/{name}", "repository"
    ),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": _member_kind(
        "cryptoKeyId", lambda name: name, "crypto key"
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": _member_kind(
        "serviceAccountId",
        lambda name: "serviceAccounts/" + name.rpartition("/")[2],
        "service account",
    ),
}
