"""Jobs that move to another target are compared as jobs, and not as request bodies."""

from pathlib import Path

import pytest

from repositories import Repository
from spec_factory import ROOT
from tpucfg.cli.app import run

EXAMPLE = ROOT / "examples" / "compute-engine-v6e" / "tpucfg.yaml"
VERSIONS = "projects/my-project-prod/secrets/wandb/versions"
TARGETS = ("--target", "cloud-tpu", "--target", "compute-engine")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def moved(repository: Repository) -> Repository:
    """Return a repository whose last commit has the example on Cloud TPU."""
    text = EXAMPLE.read_text()
    head, _, _ = text.partition("targets:\n")
    repository.spec.write_text(head.replace("target: compute-engine", "target: cloud-tpu"))
    repository.commit()
    return repository


def test_the_example_is_the_same_job_on_both_targets(capsys: Captured) -> None:
    """Before anything is edited, the exit status is that of equal jobs; settings of one target are listed."""
    assert run(["diff", "--spec", str(EXAMPLE), *TARGETS, "--exit-code"]) == 0
    output, log = capsys.readouterr()
    assert output == "3 jobs stay as they are\n"
    assert log == "tpucfg: not compared, as one target reads them: targets.compute-engine.disk_gb\n"


def test_an_account_of_one_target_is_a_difference(tmp_path: Path, capsys: Captured) -> None:
    """Jobs that would run as another account differ, on the sizes where they do."""
    spec = tmp_path / "tpucfg.yaml"
    account = "big@my-project-prod.iam.gserviceaccount.com"
    spec.write_text(EXAMPLE.read_text() + f"  cloud-tpu: {{service_account: {account}}}\n")

    assert run(["diff", "--spec", str(spec), *TARGETS, "--exit-code"]) == 3
    own = "tpu-vit-prod@my-project-prod.iam.gserviceaccount.com"
    assert capsys.readouterr().out == f"every job\n  account: {account} → {own}\n\n3 jobs change\n"
    # On gke the setting is the pods' account, which acts as that of the stack.
    assert (
        run(
            [
                "diff",
                "--spec",
                str(spec),
                "--target",
                "compute-engine",
                "--target",
                "gke",
                "--exit-code",
            ]
        )
        == 0
    )


def test_what_hosts_lose_on_the_other_target_is_a_difference(
    tmp_path: Path, capsys: Captured
) -> None:
    """Hosts that become public, lose a disk or what `extra` adds end a pipeline; equal settings do not."""
    spec = tmp_path / "tpucfg.yaml"
    closed = "{external_ips: false, network: train, tags: [], extra: {queueingPolicy: {}}}"
    spec.write_text(EXAMPLE.read_text() + f"  cloud-tpu: {closed}\n")
    assert run(["diff", "--spec", str(spec), *TARGETS, "--exit-code"]) == 3
    output, log = capsys.readouterr()
    assert output.splitlines()[:4] == [
        "every job",
        "  removed external_ips: false",
        "  removed extra: fields of the service",
        "  removed network: train",
    ]
    assert "targets.cloud-tpu.extra" in log
    text = EXAMPLE.read_text().replace("{disk_gb: 300}", "{external_ips: false}")
    spec.write_text(text + "  cloud-tpu: {external_ips: false, network: default}\n")
    assert run(["diff", "--spec", str(spec), *TARGETS, "--exit-code"]) == 0


def test_what_the_other_target_refuses_is_an_error(capsys: Captured) -> None:
    """A size that does not exist on the other target ends the comparison with the finding."""
    chat = ROOT / "examples" / "chat" / "tpucfg.yaml"

    assert run(["diff", "--spec", str(chat), "--target", "gke", "--target", "compute-engine"]) == 1
    assert "error[TPU024]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["HEAD", *TARGETS],
        [*TARGETS, "--target", "gke"],
        ["--target", "gke", "--target", "gke"],
        ["--target", "tpu"],
    ],
)
def test_other_numbers_of_targets_are_usage_errors(arguments: list[str]) -> None:
    """Two targets are different, and are those of the working tree."""
    assert run(["diff", "--spec", str(EXAMPLE), *arguments]) == 2


def test_a_moved_job_is_compared_as_a_job(moved: Repository, capsys: Captured) -> None:
    """After the edit, the diff has what changes for the program, and none of the services' own fields."""
    moved.spec.write_text(
        EXAMPLE.read_text()
        .replace("wandb/3", "wandb/4")
        .replace("{reservation: vit-2026}", "flex-start")
    )

    assert run(["diff"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "every config",
        "  target: cloud-tpu → compute-engine",
        f"  secrets.WANDB_API_KEY: {VERSIONS}/3 → {VERSIONS}/4",
        "  capacity: reservation vit-2026 → flex-start",
        "  added targets.compute-engine.disk_gb: 300",
        "",
        "3 configs change",
    ]


def test_flags_of_a_moved_job_are_compared_by_name(moved: Repository, capsys: Captured) -> None:
    """A figure that the same edit changes is the flag that the program gets, on whatever target."""
    moved.edit(("target: cloud-tpu", "target: gke"), ("warmup_steps: 6400", "warmup_steps: 3200"))

    assert run(["diff", "--size", "v6e-4"]) == 0
    output = capsys.readouterr().out
    assert "  target: cloud-tpu → gke\n" in output
    assert "  --warmup_steps: 6400 → 3200\n" in output
    assert "replicatedJobs" not in output
