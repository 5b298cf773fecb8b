"""A secret without a version, and a mount of a bucket that the stack does not grant, are warnings."""

from typing import Any

import pytest

from spec_factory import finding_with_id, ids, planned, spec

OWN = "my-project-dev-mnist-dev-us-central1"
PROD = {"project": "my-project-prod", "region": "us-central1"}
ACCOUNT = "serviceAccount:tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com"


def warnings(data: dict[str, Any], **selection: Any) -> list[str]:
    """Return the ids of this module's findings."""
    return [id_ for id_ in ids(planned(data, **selection).findings) if id_ in ("TPU086", "TPU087")]


@pytest.mark.parametrize(
    ("secret", "open_version"),
    [
        ("wandb", True),
        ("latest", True),
        ("wandb/latest", False),
        ("wandb/3", False),
        ("projects/my-project/secrets/wandb/versions/latest", False),
        ("projects/my-project/secrets/wandb/versions/3", False),
    ],
)
def test_only_a_bare_name_has_no_version(secret: str, open_version: bool) -> None:
    """`latest` is a decision where the spec has the word as a version, and an accident where it has no version."""
    assert warnings(spec(trainer__secrets={"KEY": secret})) == ["TPU086"] * open_version


def test_a_secret_is_found_once_where_it_is_set() -> None:
    """A layer that adds a version ends the warning for its own size only; the location is that of the open one."""
    data = spec(trainer__secrets={"KEY": "wandb"}, environments__prod=PROD)
    assert warnings(data) == ["TPU086"]

    data["overrides"] = {
        size: {"trainer": {"secrets": {"KEY": "wandb/3"}}} for size in ("v2-8", "v2-32")
    }
    assert warnings(data) == []

    data["environments"]["prod"]["trainer"] = {"secrets": {"OTHER": "hf"}}
    finding = finding_with_id("TPU086", planned(data).findings)
    assert finding.message.startswith("environments.prod.trainer.secrets.OTHER has no version")
    assert "gcloud secrets versions list hf --project=my-project-prod" in finding.help
    assert warnings(data, environments=("dev",)) == []


@pytest.mark.parametrize(
    ("source", "foreign"),
    [
        ("${bucket}", False),
        ("${bucket}/data", False),
        (f"gs://{OWN}/data", False),
        (f"gs://{OWN}", False),
        (f"gs://{OWN}-not/data", True),
        ("gs://elsewhere", True),
        ("gs://${project}-data/x", True),
    ],
)
def test_a_mount_outside_the_bucket_is_not_granted(source: str, foreign: bool) -> None:
    """Only the environment's bucket is granted, however the source is written."""
    assert warnings(spec(trainer__mounts={"/data": source})) == ["TPU087"] * foreign


def test_a_mount_names_every_account_that_needs_the_grant() -> None:
    """One finding has the accounts of all environments and sizes, each once."""
    own = "big@my-project-dev.iam.gserviceaccount.com"
    data = spec(
        trainer__mounts={"/data": "gs://elsewhere/x"},
        environments__prod=PROD,
        overrides={"v2-32": {"targets": {"vertex-ai": {"service_account": own}}}},
    )

    finding = finding_with_id("TPU087", planned(data).findings)

    assert "which the stack of dev and prod does not grant" in finding.message
    assert (
        f"add-iam-policy-binding gs://elsewhere --member={ACCOUNT} --role=roles/storage.objectUser"
        in finding.help
    )
    assert (
        f", and equally for serviceAccount:{own} and serviceAccount:tpu-mnist-prod@" in finding.help
    )


def test_a_selected_target_has_its_own_accounts() -> None:
    """The command grants the bucket to the account of the selected target, and not to that of the spec's."""
    accounts = {
        name: {"service_account": f"{name}@p.iam.gserviceaccount.com"}
        for name in ("vertex-ai", "cloud-tpu")
    }
    data = spec(trainer__mounts={"/data": "gs://elsewhere/x"}, targets=accounts)

    finding = finding_with_id("TPU087", planned(data, target="cloud-tpu").findings)

    assert "--member=serviceAccount:cloud-tpu@p.iam.gserviceaccount.com --role" in finding.help
