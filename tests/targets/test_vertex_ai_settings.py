"""Deadline, restarts, capacity, secrets and mounts on Vertex AI."""

from typing import Any

import pytest

from jobs import job
from spec_factory import CATALOG, compiled, finding_with_id, missing_words, spec
from tpucfg.findings import Finding
from tpucfg.targets import vertex_ai

BUCKET = "my-project-dev-mnist-dev-us-central1"


def scheduling(size: str = "v2-8", **changes: Any) -> Any:
    """Return the config's scheduling; None if it has none."""
    return vertex_ai.request_body(job("vertex-ai", size, **changes)).get("scheduling")


def refusal(**changes: Any) -> Finding:
    """Return the only TPU059 of a spec on vertex-ai."""
    return finding_with_id("TPU059", compiled(spec(**changes)).findings)


def test_nothing_is_rendered_by_default() -> None:
    """Without a setting, the service does what it does."""
    assert scheduling() is None


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("90s", "90s"), ("30m", "1800s"), ("12h", "43200s"), ("2d", "172800s")],
)
def test_the_deadline_is_in_seconds(duration: str, seconds: str) -> None:
    """A duration of the API has seconds: https://protobuf.dev/reference/protobuf/google.protobuf/#duration."""
    assert scheduling(trainer={"max_run_duration": duration}) == {"timeout": seconds}


def test_no_restarts_disable_retries() -> None:
    """Zero is the only number of restarts that the service has a field for."""
    assert scheduling(trainer={"restarts": 0}) == {"disableRetries": True}


@pytest.mark.parametrize("restarts", [1, 3, 100])
def test_other_restarts_are_refused_with_the_rule_of_the_service(restarts: int) -> None:
    """The error has the numbers of the service's own rule, and both edits that work."""
    finding = refusal(trainer__restarts=restarts)
    assert (
        missing_words(finding, f"is {restarts}", "up to 5 times", "up to 3 times", "set it to 0")
        == []
    )
    assert not any(other.id == "TPU059" for other in compiled(spec(trainer__restarts=0)).findings)


def test_spot_is_a_strategy() -> None:
    """Spot on one host is rendered, beside its warning."""
    assert scheduling(capacity="spot") == {"strategy": "SPOT"}


@pytest.mark.parametrize(
    ("reservation", "name"),
    [
        ("r1", "projects/my-project/zones/us-central1-b/reservations/r1"),
        (
            "projects/shared-project/reservations/r1",
            "projects/shared-project/zones/us-central1-b/reservations/r1",
        ),
    ],
)
def test_a_reservation_has_its_project_and_zone(reservation: str, name: str) -> None:
    """A reservation of the project itself, and one that another project shares."""
    job_ = job("vertex-ai", "v2-8", capacity={"reservation": reservation})
    affinity = vertex_ai.request_body(job_)["workerPoolSpecs"][0]["machineSpec"][
        "reservationAffinity"
    ]
    assert affinity["values"] == [name]
    assert affinity["reservationAffinityType"] == "SPECIFIC_RESERVATION"


def test_the_lines_for_secrets_are_a_program() -> None:
    """The lines compile, read each secret by its full name, and the commands grant the job's own account."""
    secrets = {"HF_TOKEN": "hf", "WANDB_API_KEY": "projects/other-project/secrets/wandb/versions/3"}
    finding = refusal(trainer__secrets=secrets)
    program = [line for line in finding.details if not line.startswith(("gcloud", "see "))]
    compile("\n".join(program), "trainer.py", "exec")
    assert missing_words(
        finding,
        'os.environ["HF_TOKEN"]',
        "projects/my-project-dev/secrets/hf/versions/latest",
        'os.environ["WANDB_API_KEY"]',
        "projects/other-project/secrets/wandb/versions/3",
        "binding hf --project=my-project-dev --member=serviceAccount:tpu-mnist-dev@my-project-dev.",
        "binding wandb --project=other-project",
    ) == []  # fmt: skip


def test_an_account_of_your_own_reads_the_secrets() -> None:
    """The command grants the account that the jobs run as."""
    own = {"vertex-ai": {"service_account": "me@my-project-dev.iam.gserviceaccount.com"}}
    finding = refusal(trainer__secrets={"A": "a/1"}, targets=own)
    assert (
        missing_words(finding, "--member=serviceAccount:me@my-project-dev.iam.gserviceaccount.com")
        == []
    )


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (f"/gcs/{BUCKET}", "${bucket}"),
        (f"/gcs/{BUCKET}/data", "${bucket}/data"),
        (f"/gcs/{BUCKET}/data", "${bucket}/data/"),
        ("/gcs/other-bucket/a/b", "gs://other-bucket/a/b"),
        ("/gcs/my-project-dev-x", "gs://${project}-x"),
    ],
)
def test_the_folder_of_the_service_needs_no_field(path: str, source: str) -> None:
    """A mount where the service shows the bucket anyway is accepted, and changes no config."""
    (with_mount, body), *_ = compiled(spec(trainer__mounts={path: source})).request_bodies
    (_, without), *_ = compiled(spec()).request_bodies
    assert body == without
    assert with_mount.mounts


@pytest.mark.parametrize(
    ("path", "source", "right"),
    [
        ("/data", "${bucket}/data", f"/gcs/{BUCKET}/data"),
        ("/gcs/data", "${bucket}/data", f"/gcs/{BUCKET}/data"),
        (f"/gcs/{BUCKET}", "${bucket}/data", f"/gcs/{BUCKET}/data"),
        ("/data", "gs://other", "/gcs/other"),
    ],
)
def test_another_folder_is_refused_with_the_right_one(path: str, source: str, right: str) -> None:
    """The help writes the line that works."""
    finding = refusal(trainer__mounts={path: source})
    assert (
        finding.help
        == f"delete trainer.mounts.{path}, and add to trainer.mounts: {right}: {source}"
    )
    assert compiled(spec(trainer__mounts={right: source})).request_bodies


def test_a_mount_of_several_environments_is_replaced_in_one() -> None:
    """The layer of the environment takes the mount away, so that the other environments keep it."""
    prod = {"project": "my-project-prod", "region": "us-central1"}
    mounts: dict[str, Any] = {f"/gcs/{BUCKET}/data": "${bucket}/data"}
    finding = refusal(trainer__mounts=mounts, environments__prod=prod)
    right = "/gcs/my-project-prod-mnist-prod-us-central1/data"
    assert (
        missing_words(
            finding, f"add to environments.prod.trainer.mounts: {right}: ${{bucket}}/data"
        )
        == []
    )
    layer = {"mounts": {f"/gcs/{BUCKET}/data": None, right: "${bucket}/data"}}
    fixed = spec(trainer__mounts=mounts, environments__prod={**prod, "trainer": layer})
    assert not any(other.id == "TPU059" for other in compiled(fixed).findings)


@pytest.mark.parametrize("source", ["${job_dir}", "${job_dir}/out"])
def test_the_folder_of_a_job_is_no_mount(source: str) -> None:
    """It changes with the run, which a fixed mount point cannot follow."""
    finding = refusal(sizes=["v2-8"], trainer__mounts={f"/gcs/{BUCKET}/jobs/mnist/v2-8": source})
    assert missing_words(finding, f"and pass {source} as a flag") == []


@pytest.mark.parametrize(
    ("size", "strategy", "refused"),
    [
        ("v3-8", "SPOT", False),
        ("v3-32", "SPOT", True),
        ("v6e-8", "SPOT", False),
        ("v6e-16", "SPOT", True),
        ("v3-8", "FLEX_START", True),
        ("v6e-16", "FLEX_START", True),
        ("v6e-16", "STANDARD", False),
        ("v6e-16", "ON_DEMAND", False),
    ],
)
def test_a_config_written_by_hand_is_judged_too(size: str, strategy: str, refused: bool) -> None:
    """The rules of a config refuse what the table refuses, and name its pages."""
    body = {**vertex_ai.request_body(job("vertex-ai", size)), "scheduling": {"strategy": strategy}}
    problems = [*vertex_ai.rules(body, CATALOG)]
    assert [problem.path for problem in problems] == (
        [("scheduling", "strategy")] if refused else []
    )
    assert all("https://" in "".join(problem.details) for problem in problems)
