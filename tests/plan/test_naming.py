"""The names of what a job uses, as the compiler and the infrastructure both make them."""

import pytest

from spec_factory import planned, spec
from tpucfg.plan.naming import account_email, account_id, bucket_name, job_name


def test_the_names_of_a_job() -> None:
    """Job, bucket, folder and account of one rung, with and without the id of a run."""
    for run, end in ((None, ""), ("r-2", "r-2")):
        (job,) = planned(spec(), sizes=("v2-32",), run=run).jobs
        assert job.name == "-".join(filter(None, ["mnist-dev-v2-32", end]))
        assert job.bucket == "my-project-dev-mnist-dev-us-central1"
        assert job.job_dir == "/".join(filter(None, [f"gs://{job.bucket}/jobs/mnist/v2-32", end]))
        assert job.account == "tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com"
        assert (job.run, job.target) == (run, "vertex-ai")


def test_an_explicit_bucket_replaces_the_default() -> None:
    """The bucket of the spec is used in every value that has the bucket's name."""
    (job,) = planned(
        spec(environments__dev__bucket="my-bucket", trainer__args={"d": "${bucket}/x"}), sizes=("v2-8",)
    ).jobs
    assert (job.bucket, job.job_dir, job.args[0]) == (
        "my-bucket",
        "gs://my-bucket/jobs/mnist/v2-8",
        "--d=gs://my-bucket/x",
    )


def test_another_target_than_the_spec_s() -> None:
    """A selected target takes the place of the environment's, and its own settings come with it."""
    settings = {"cloud-tpu": {"spot": True}, "vertex-ai": {"strategy": "SPOT"}}
    data = spec(environments__dev__target="gke", targets=settings)
    assert [planned(data).jobs[0].target, planned(data).jobs[0].options] == ["gke", {}]
    (job, _) = planned(data, target="cloud-tpu").jobs
    assert (job.target, job.options) == ("cloud-tpu", {"spot": True})


@pytest.mark.parametrize(
    ("project", "address"),
    [
        ("my-project", "tpu-mnist-dev@my-project.iam.gserviceaccount.com"),
        ("example.com:my-project", "tpu-mnist-dev@my-project.example.com.iam.gserviceaccount.com"),
    ],
)
def test_the_address_of_an_account(project: str, address: str) -> None:
    """A project of a domain is turned around, as Google does it."""
    assert account_email(project=project, name="mnist", environment="dev") == address


def test_names_by_themselves() -> None:
    """The functions that `stacks/` calls join their parts in the documented order."""
    assert bucket_name(project="p", name="n", environment="e", region="r") == "p-n-e-r"
    assert account_id(name="n", environment="e") == "tpu-n-e"
    assert job_name(name="n", environment="e", size="v2-8", run=None) == "n-e-v2-8"
