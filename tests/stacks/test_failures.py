"""What is said about a refusal of Google: the thing, the consequence, and the command that ends it."""

from pathlib import Path

import pytest
import specs

from failures import Failure, help_for
from settings import Settings, StackConfig, settings_of
from tpucfg.spec.load import load

BUCKET = "gcp:storage/bucket:Bucket"
GRANT = "gcp:projects/iAMMember:IAMMember"
KSA = "gcp:serviceaccount/iAMMember:IAMMember"
SERVICE = "gcp:projects/service:Service"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of the smallest spec."""
    project, found = load(specs.write(tmp_path, specs.spec()))
    assert project, found
    return settings_of(project, "dev", StackConfig())


def said(settings: Settings, type_: str, error: str) -> str:
    """What is said about one refusal."""
    urn = f"urn:pulumi:dev::tpucfg::tpucfg:index:Environment${type_}::it"
    return help_for(Failure(type_, "it", urn, {}, error), settings)


CASES = {
    "taken": (
        BUCKET,
        "googleapi: Error 409: The requested bucket name is not available., conflict",
        ("belongs to somebody else", "environments.dev.bucket", "pulumi up --stack dev"),
    ),
    "owned": (
        BUCKET,
        "googleapi: Error 409: Your previous request to create the named bucket succeeded and you already own it.",
        ("pulumi import gcp:storage/bucket:Bucket it acme-dev-mnist-dev-us-central1 --stack dev", "--protect=false"),
    ),
    "full": (
        BUCKET,
        "googleapi: Error 409: The bucket you tried to delete is not empty., conflict",
        ("environments.dev.keep_data",),
    ),
    "nowhere": (
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
        ("the permission storage.buckets.create", "--role=roles/storage.admin", "docs/bootstrap.md"),
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
    "pool": (
        KSA,
        "googleapi: Error 400: Identity Pool does not exist (acme-dev.svc.id.goog)., badRequest",
        ("--workload-pool=acme-dev.svc.id.goog",),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refusal_names_the_way_out(settings: Settings, case: str) -> None:
    """Each kind of refusal has its own words, which name what to change or to run in this environment."""
    type_, error, expected = CASES[case]

    words = said(settings, type_, error)

    assert "\nhelp: " in words
    assert all(part in words for part in expected), words


def test_unknown_refusal_is_left_to_google(settings: Settings) -> None:
    """Where we know no better, nothing is added to Google's words."""
    assert not said(settings, BUCKET, "googleapi: Error 503: The service is currently unavailable., backendError")
