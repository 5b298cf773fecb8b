"""Names of a job and its resources, which the compiler and the stack program share."""

import pytest

from spec_factory import planned, spec
from tpucfg.plan.naming import account_email, account_id, job_name


def test_a_job_has_its_names() -> None:
    """A rung has the documented names of job, bucket, folder and account, with and without a run id."""
    for run, suffix in ((None, ""), ("r-2", "r-2")):
        (job,) = planned(spec(), sizes=("v2-32",), run=run).jobs
        assert job.name == "-".join(filter(None, ["mnist-dev-v2-32", suffix]))
        assert job.bucket == "my-project-dev-mnist-dev-us-central1"
        assert job.job_dir == "/".join(
            filter(None, [f"gs://{job.bucket}/jobs/mnist/v2-32", suffix])
        )
        assert job.account == "tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com"
        assert (job.run, job.target) == (run, "vertex-ai")


def test_an_explicit_bucket_replaces_the_default() -> None:
    """The bucket of the spec is used in every value that has the bucket's name."""
    (job,) = planned(
        spec(environments__dev__bucket="my-bucket", trainer__args={"d": "${bucket}/x"}),
        sizes=("v2-8",),
    ).jobs
    assert (job.bucket, job.job_dir, job.args[0]) == (
        "my-bucket",
        "gs://my-bucket/jobs/mnist/v2-8",
        "--d=gs://my-bucket/x",
    )


def test_a_selected_target_has_its_own_settings() -> None:
    """A selected target replaces that of the environment, with its own settings."""
    settings = {"cloud-tpu": {"network": "train"}, "vertex-ai": {"service_account": "a@b.c"}}
    data = spec(environments__dev__target="gke", targets=settings)
    assert [planned(data).jobs[0].target, planned(data).jobs[0].options] == ["gke", {}]
    (job, _) = planned(data, target="cloud-tpu").jobs
    assert (job.target, job.options) == ("cloud-tpu", {"network": "train"})


@pytest.mark.parametrize(
    ("project", "email"),
    [
        ("my-project", "tpu-mnist-dev@my-project.iam.gserviceaccount.com"),
        ("example.com:my-project", "tpu-mnist-dev@my-project.example.com.iam.gserviceaccount.com"),
    ],
)
def test_the_email_of_an_account_contains_the_project(project: str, email: str) -> None:
    """A domain-scoped project is written in reverse order, as by Google."""
    assert account_email(project=project, name="mnist", environment="dev") == email


def test_names_join_their_parts_in_order() -> None:
    """The functions that `stacks/` calls join their parts in the documented order."""
    assert account_id(name="n", environment="e") == "tpu-n-e"
    assert job_name(name="n", environment="e", size="v2-8", run=None) == "n-e-v2-8"
