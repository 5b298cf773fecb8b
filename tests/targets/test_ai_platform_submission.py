"""ai-platform: the commands that start, watch and delete a job."""

from typing import Any

import pytest

from ai_platform_specs import ARGS, SPEC, compiled, container, spec
from start_command import start_command
from tpucfg.targets import target_named
from tpucfg.targets.commands import Submission

START = "gcloud ai-platform jobs submit training mnist_dev_v2_8 --project=my-project-dev"
STAGING = "--staging-bucket=gs://my-project-dev-mnist-dev-us-central1 --config=/dev/stdin"
LABELS = "--labels=tpucfg-project=mnist,tpucfg-environment=dev,tpucfg-size=v2-8,tpucfg-run=mnist-dev-v2-8"
VERSIONS = "--module-name=trainer.task --runtime-version=2.2 --python-version=3.7"
CUSTOM = "--scale-tier=CUSTOM --master-machine-type=n1-highcpu-16 --region=us-central1"


def submission_of(data: dict[str, Any], run: str | None = None) -> Submission:
    """Return the commands of a spec's only job."""
    ((job, _),) = compiled(data, run).request_bodies
    return target_named("ai-platform").submission(job)


@pytest.mark.parametrize(
    ("data", "flags"),
    [
        (spec(), f"--package-path=trainer {VERSIONS} {CUSTOM}"),
        (
            spec(trainer={"package": "gs://b/t.tar.gz"}),
            f"--packages=gs://b/t.tar.gz {VERSIONS} {CUSTOM}",
        ),
        (container(), CUSTOM),
        (
            spec(targets={"ai-platform": {"machine": "basic"}}),
            f"--package-path=trainer {VERSIONS} --scale-tier=BASIC_TPU --region=us-central1",
        ),
        (
            spec(targets={"ai-platform": {"master": "n1-highmem-8"}}),
            f"--package-path=trainer {VERSIONS} {CUSTOM.replace('n1-highcpu-16', 'n1-highmem-8')}",
        ),
    ],
    ids=[
        "a local package",
        "a package in Cloud Storage",
        "containers",
        "the basic tier",
        "another master",
    ],
)
def test_the_command_repeats_what_gcloud_ignores_in_the_config(
    data: dict[str, Any], flags: str
) -> None:
    """Gcloud reads the config from standard input, and the fields that it would ignore there are flags."""
    start = start_command(submission_of(data))
    assert start.reads_config
    assert " ".join(start.argv) == f"{START} {STAGING} {flags} {LABELS} -- {' '.join(ARGS)}"


def test_the_flag_has_the_labels_of_the_config() -> None:
    """The flag replaces the labels of the file, so it has those of the environment and of `extra` too."""
    environments = {"dev": {**SPEC["environments"]["dev"], "labels": {"team": "vision"}}}
    data = spec(
        environments=environments, targets={"ai-platform": {"extra": {"labels": {"owner": "ada"}}}}
    )
    (flag,) = [
        word for word in start_command(submission_of(data)).argv if word.startswith("--labels=")
    ]
    assert flag == f"--labels=team=vision,owner=ada,{LABELS.removeprefix('--labels=')}"


def test_without_args_there_is_no_separator() -> None:
    """For a program without args, the command has no `--`."""
    no_flags = {"flags": {"batch_size": None, "epochs": None}}
    argv = start_command(submission_of(spec(trainer={"args": None}, training=no_flags))).argv
    assert argv[-2:] == ("--region=us-central1", LABELS)


def test_a_run_has_its_own_job_id() -> None:
    """The run's id ends the job's id, which has underscores in all three commands, and a note explains it."""
    submission = submission_of(spec(), run="lr-2")
    assert start_command(submission).argv[5] == "mnist_dev_v2_8_lr_2"
    job = "mnist_dev_v2_8_lr_2 --project=my-project-dev"
    assert " ".join(submission.watch.argv) == f"gcloud ai-platform jobs stream-logs {job}"
    assert " ".join(submission.deletes[0].argv) == f"gcloud ai-platform jobs cancel {job}"
    assert "--run" in submission.notes[0]


def test_a_note_names_the_folder_of_a_local_package() -> None:
    """The command has to run in the folder of a local package; a package in Cloud Storage has no such note."""
    (_, note) = submission_of(spec()).notes
    assert "the folder that contains both" in note
    assert len(submission_of(spec(trainer={"package": "gs://b/t.tar.gz"})).notes) == 1
