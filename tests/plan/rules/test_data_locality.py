"""A path outside the environment's bucket is a warning, because its region is unknown."""

from typing import Any

import pytest

from spec_factory import finding_with_id, ids, planned, spec

OWN = "my-project-dev-mnist-dev-us-central1"


@pytest.mark.parametrize(
    ("value", "outside"),
    [
        ("gs://elsewhere/data", True),
        ("gs://elsewhere", True),
        (["local", "gs://elsewhere/x"], True),
        (f"gs://{OWN}-not/x", True),
        ("${bucket}/data", False),
        ("${job_dir}", False),
        (f"gs://{OWN}/data", False),
        ("gs://${project}-data/x", False),
        ("/local/path", False),
        ("see gs://elsewhere", False),
        ("gs://", True),
        (8, False),
        (None, False),
    ],
)
def test_a_written_out_path_outside_the_bucket_is_a_warning(value: Any, outside: bool) -> None:
    """Only a path that begins with gs:// and contains no placeholder of a bucket or project is checked."""
    findings = planned(spec(trainer__args={"data_dir": value})).findings
    assert ids(findings) == (["TPU031"] if outside else [])
    if outside:
        assert finding_with_id("TPU031", findings).message.startswith("trainer.args.data_dir")


def test_env_and_overrides_are_checked() -> None:
    """Each path has its own finding, and that of an unselected rung has none."""
    data = spec(trainer__env={"D": "gs://a/x"}, overrides={"v2-32": {"args": {"d": "gs://b/x"}}})
    assert [finding.message.split()[0] for finding in planned(data).findings] == [
        "trainer.env.D",
        "overrides.v2-32.args.d",
    ]
    assert [finding.message.split()[0] for finding in planned(data, sizes=("v2-8",)).findings] == [
        "trainer.env.D"
    ]


def test_an_argument_that_every_rung_overrides_is_not_checked() -> None:
    """An argument that no selected rung has is not checked."""
    data = spec(
        trainer__args={"d": "gs://a/x"}, overrides={"v2-32": {"args": {"d": "${bucket}/x"}}}
    )
    assert ids(planned(data, sizes=("v2-8",)).findings) == ["TPU031"]
    assert planned(data, sizes=("v2-32",)).findings == ()


def test_the_bucket_of_one_environment_is_outside_that_of_another() -> None:
    """A written-out bucket is right for one environment only: selected alone, that one has no finding."""
    data = spec(
        environments__prod={"project": "my-project-prod", "region": "us-central1"},
        trainer__args={"d": f"gs://{OWN}/x"},
    )
    (finding,) = planned(data).findings
    assert finding.message.endswith(
        "in the bucket of dev, which jobs of other environments would read too"
    )
    assert finding.help == "write ${bucket}/x, in the bucket of each environment"
    assert planned(data, environments=("dev",)).findings == ()
