"""Explanations of Google's API errors: the resource, the consequence, and the command that fixes it."""

from pathlib import Path

import pytest
import specs

from tpucfg.spec.parse import load_project
from tpucfg.stack.api_error import ApiError
from tpucfg.stack.error_help import help_for
from tpucfg.stack.settings import StackConfig, StackSettings, settings_of

BUCKET = "gcp:storage/bucket:Bucket"
GRANT = "gcp:projects/iAMMember:IAMMember"
KSA = "gcp:serviceaccount/iAMMember:IAMMember"
SERVICE = "gcp:projects/service:Service"
ACCOUNT = "gcp:serviceaccount/account:Account"
READER = "gcp:secretmanager/secretIamMember:SecretIamMember"
ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"


@pytest.fixture
def settings(tmp_path: Path) -> StackSettings:
    """Return the settings of a minimal spec."""
    project, findings = load_project(specs.write(tmp_path, specs.spec()))
    assert project, findings
    return settings_of(project, "dev", StackConfig())


def explanation(
    settings: StackSettings, type_: str, message: str, operation: str = "create", **inputs: str
) -> str:
    """Return the explanation of an error for a resource called `name`."""
    urn = f"urn:pulumi:dev::tpucfg::tpucfg:index:Environment${type_}::name"
    return help_for(ApiError(type_, "name", urn, inputs, message, operation), settings)


CASES = {
    "taken": (
        BUCKET,
        "googleapi: Error 409: The requested bucket name is not available., conflict",
        ("belongs to another owner", "environments.dev.bucket", "pulumi up --stack dev"),
    ),
    "owned": (
        BUCKET,
        "googleapi: Error 409: Your previous request to create the named bucket succeeded and you already own it.",
        (
            "pulumi import gcp:storage/bucket:Bucket name acme-dev-mnist-dev-us-central1 --stack dev",
            "--protect=false",
        ),
    ),
    "not empty": (
        BUCKET,
        "googleapi: Error 409: The bucket you tried to delete is not empty., conflict",
        ("environments.dev.keep_data",),
    ),
    "invalid location": (
        BUCKET,
        "googleapi: Error 400: The specified location constraint is not valid., invalid",
        ("no location us-central1", "environments.dev.region"),
    ),
    "disabled": (
        SERVICE,
        (
            "googleapi: Error 403: Cloud TPU API has not been used in project 1 before or it is disabled. Enable it at "
            "https://console.developers.google.com/apis/api/tpu.googleapis.com/overview?project=1 then retry."
        ),
        ("gcloud services enable tpu.googleapis.com --project acme-dev",),
    ),
    "permission": (
        BUCKET,
        "googleapi: Error 403: a@example.com does not have storage.buckets.create access to the Google Cloud project.",
        (
            "the permission storage.buckets.create",
            "--role=roles/storage.admin",
            "docs/bootstrap.md",
        ),
    ),
    "policy": (
        GRANT,
        "Error setting IAM policy: googleapi: Error 403: Policy update access denied., forbidden",
        ("--role=roles/resourcemanager.projectIamAdmin",),
    ),
    "account": (
        KSA,
        "googleapi: Error 403: Permission 'iam.serviceAccounts.setIamPolicy' denied on resource",
        ("iam.serviceAccounts.setIamPolicy", "--role=roles/iam.serviceAccountAdmin"),
    ),
    # https://github.com/PaloAltoNetworks/terraform-google-vmseries-modules/issues/148
    "location": (
        BUCKET,
        "googleapi: Error 412: 'us' violates constraint 'constraints/gcp.resourceLocations', conditionNotMet",
        (
            "the organization's policy gcp.resourceLocations does not allow this in acme-dev: name was not created",
            "gcloud org-policies describe gcp.resourceLocations --project=acme-dev --effective",
            "set environments.dev.region to a region that it allows, or ask",
        ),
    ),
    # https://github.com/terraform-google-modules/terraform-example-foundation/issues/1454
    "outsider": (
        GRANT,
        (
            "googleapi: Error 400: One or more users named in the policy do not belong to a permitted customer.\n"
            'Details: [{"@type": "type.googleapis.com/google.rpc.PreconditionFailure", "violations": [{"type": '
            '"constraints/iam.allowedPolicyMemberDomains"}]}], failedPrecondition'
        ),
        (
            "describe iam.allowedPolicyMemberDomains --project=acme-dev --effective",
            "ask the organization's administrator",
        ),
    ),
    # https://github.com/googlemaps/js-route-optimization-app/issues/198
    "outsider without a name": (
        GRANT,
        (
            "googleapi: Error 400: One or more users named in the policy do not belong to a permitted customer,  "
            "perhaps due to an organization policy."
        ),
        ("describe iam.allowedPolicyMemberDomains --project=acme-dev --effective",),
    ),
    # https://cloud.google.com/resource-manager/docs/organization-policy/restricting-service-accounts
    "no accounts": (
        ACCOUNT,
        (
            "googleapi: Error 400: Service account creation is not allowed on this project.\n"
            'Details: [{"violations": [{"type": "constraints/iam.disableServiceAccountCreation"}]}]'
        ),
        ("name an existing account with targets.vertex-ai.service_account in the spec",),
    ),
    # https://github.com/terraform-google-modules/terraform-example-foundation/issues/974
    "perimeter": (
        BUCKET,
        (
            "googleapi: Error 403: Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: "
            'VQQnKfXtZ16N\nDetails: [{"reason": "SECURITY_POLICY_VIOLATED"}], forbidden'
        ),
        (
            "a perimeter of VPC Service Controls around acme-dev",
            "identifier VQQnKfXtZ16N: ",
            "No role changes that",
        ),
    ),
    # https://github.com/hashicorp/terraform-provider-google/issues/19112
    "account there": (
        ACCOUNT,
        (
            "Error creating service account: googleapi: Error 409: Service account tpu-mnist-dev already exists within "
            "project projects/acme-dev.\nDetails: [], alreadyExists"
        ),
        (
            "pulumi import gcp:serviceaccount/account:Account name ",
            " projects/acme-dev/serviceAccounts/tpu-mnist-dev@acme-dev.iam.gserviceaccount.com --stack dev",
            "gcloud iam service-accounts delete tpu-mnist-dev@acme-dev.iam.gserviceaccount.com --project=acme-dev",
        ),
    ),
    "no account": (
        GRANT,
        "googleapi: Error 400: Service account mine@acme-dev.iam.gserviceaccount.com does not exist., badRequest",
        (
            "gcloud iam service-accounts create mine --project=acme-dev; then: pulumi up --stack dev",
        ),
    ),
    "no agent": (
        GRANT,
        "googleapi: Error 400: Service account service-1@cloud-tpu.iam.gserviceaccount.com does not exist., badRequest",
        ("has been invisible to IAM for five minutes", "help: in a minute: pulumi up --stack dev"),
    ),
    "pool": (
        KSA,
        "googleapi: Error 400: Identity Pool does not exist (acme-dev.svc.id.goog)., badRequest",
        ("--workload-pool=acme-dev.svc.id.goog",),
    ),
}


@pytest.fixture
def cloud_tpu(tmp_path: Path) -> StackSettings:
    """Return the settings of a spec on cloud-tpu whose jobs delete their slices."""
    data = specs.spec({"target": "cloud-tpu"})
    data["trainer"]["max_run_duration"] = "1h"
    project, findings = load_project(specs.write(tmp_path, data))
    assert project, findings
    return settings_of(project, "dev", StackConfig())


def test_missing_secret_is_created_in_its_own_project(settings: StackSettings) -> None:
    """The error of the secret's policy becomes the command that creates the secret, in the project of the secret."""
    message = (
        'Error retrieving IAM policy for secretmanager secret "projects/acme-shared/secrets/hf": '
        "googleapi: Error 404: Secret [projects/175415323680/secrets/hf] not found."
    )

    text = explanation(settings, READER, message, project="acme-shared", secretId="hf")

    assert "the project acme-shared has no secret hf" in text
    assert "gcloud secrets create hf --project=acme-shared --replication-policy=automatic" in text


def test_missing_permission_on_a_secret_is_granted_on_that_secret(settings: StackSettings) -> None:
    """The caller needs no role on the whole project of a secret, which can belong to another team."""
    message = (
        "googleapi: Error 403: Permission 'secretmanager.secrets.getIamPolicy' denied for resource"
    )

    text = explanation(settings, READER, message, project="acme-shared", secretId="hf")

    assert (
        "lacks the permission secretmanager.secrets.getIamPolicy on the secret hf of acme-shared"
        in text
    )
    assert "gcloud secrets add-iam-policy-binding hf --project=acme-shared --member=" in text
    assert "--role=roles/secretmanager.admin" in text


def test_existing_role_is_imported_or_granted_as_it_is(cloud_tpu: StackSettings) -> None:
    """A role of the same id can be imported, or granted without being changed."""
    text = explanation(
        cloud_tpu,
        ROLE,
        "Custom project role projects/acme-dev/roles/tpu.mnist.dev already exists and must be imported",
    )

    assert (
        "pulumi import gcp:projects/iAMCustomRole:IAMCustomRole name projects/acme-dev/roles/tpu.mnist.dev "
        in text
    )
    assert (
        "pulumi config set deletionRole projects/acme-dev/roles/tpu.mnist.dev --stack dev" in text
    )


def test_role_that_cannot_be_undeleted_is_replaced(cloud_tpu: StackSettings) -> None:
    """While Google reserves the id of a deleted role, a role with another id is created by hand and granted."""
    message = (
        "Error creating the custom project role projects/acme-dev/roles/tpu.mnist.dev: googleapi: Error 400: You can't "
        "create a role_id (tpu.mnist.dev) which has been marked for deletion., failedPrecondition"
    )

    text = explanation(cloud_tpu, ROLE, message)

    assert "--permissions=tpu.nodes.delete,tpu.nodes.get,tpu.nodes.list,tpu.operations.get" in text
    assert (
        "pulumi config set deletionRole projects/acme-dev/roles/tpuSliceDeleter --stack dev" in text
    )


@pytest.mark.parametrize("case", CASES)
def test_explanation_names_the_fix(settings: StackSettings, case: str) -> None:
    """Each kind of error has its own explanation, which names the key to change or the command to run."""
    type_, message, expected = CASES[case]

    text = explanation(settings, type_, message)

    assert "\nhelp: " in text
    assert all(part in text for part in expected), text


@pytest.mark.parametrize(
    ("operation", "consequence", "retry_command"),
    [
        ("create", "name was not created", "pulumi up --stack dev"),
        ("update", "name is unchanged", "pulumi up --stack dev"),
        ("delete", "name still exists", "the same command"),
    ],
)
def test_consequence_depends_on_the_operation(
    settings: StackSettings, operation: str, consequence: str, retry_command: str
) -> None:
    """A resource that could not be deleted is described as existing, not as missing."""
    message = (
        "googleapi: Error 412: it violates constraint 'constraints/storage.softDeletePolicySeconds'"
    )
    text = explanation(settings, BUCKET, message, operation)
    assert f"in acme-dev: {consequence}.\n" in text
    assert text.endswith(f"for an exception, then: {retry_command}")


def test_unknown_error_has_no_explanation(settings: StackSettings) -> None:
    """An error of an unknown kind is left to the provider's message."""
    assert not explanation(
        settings,
        BUCKET,
        "googleapi: Error 503: The service is currently unavailable., backendError",
    )
