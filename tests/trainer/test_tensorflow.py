import signal
import subprocess
from pathlib import Path
from typing import Final

import pytest

import trainers
from trainers import Run, Trainer

pytestmark = [pytest.mark.trainer, pytest.mark.xdist_group("tensorflow")]

SIZES: Final = ("v5litepod-4", "v5litepod-8")
"""The new project's ladder: one host per rung."""
BUCKET: Final = "my-project-dev-mnist-dev-us-central1"


@pytest.fixture(scope="module")
def trainer(tensorflow: str, tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    """Create a project with digits in the folder that replaces its bucket."""
    assert tensorflow
    project = trainers.new(tmp_path_factory.mktemp("tensorflow") / "mnist", "tensorflow")
    project.run(
        [str(project.folder / BUCKET / "data"), "--train=5000", "--test=1000"], "trainer.digits"
    )
    return project


def _flags(trainer: Trainer, size: str, *changed_flags: str) -> list[str]:
    return [*trainers.with_local_buckets(trainer.flags(size), trainer.folder), *changed_flags]


@pytest.fixture(scope="module")
def rungs(trainer: Trainer) -> dict[str, Run]:
    """Run both rungs."""
    return {size: trainer.run(_flags(trainer, size)) for size in SIZES}


def test_rungs_see_equally_many_examples(rungs: dict[str, Run]) -> None:
    """With the flags of the configs, except for the bucket's URL, both rungs see equally many examples."""
    for run in rungs.values():
        assert run.figures.keys() == {"accuracy", "examples_seen", "examples_per_second"}
        assert run.figures["examples_seen"] == 200 * 1024
        assert run.figures["accuracy"] > 0.9


def test_job_leaves_checkpoints_and_a_trace_in_its_folder(
    trainer: Trainer, rungs: dict[str, Run]
) -> None:
    """The job's folder contains its newest checkpoints and the profiler's trace, and no incomplete file."""
    assert rungs
    folder = trainer.folder / BUCKET / "jobs" / "mnist" / SIZES[0]

    names = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert names == [f"step-{step:09}.npz" for step in (100, 150, 200)]
    assert list((folder / "profile").rglob("*.pb"))


def test_killed_run_continues(trainer: Trainer, rungs: dict[str, Run], tmp_path: Path) -> None:
    """A killed run with a truncated newest checkpoint ends with the result of an uninterrupted run."""
    flags = _flags(trainer, SIZES[0], f"--model_dir={tmp_path}", "--save_checkpoints_steps=20")
    process = trainer.start("trainer", flags)
    assert process.stdout
    while "step 80 " not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    *_, older, newest = sorted((tmp_path / "checkpoints").glob("step-*.npz"))
    newest.write_bytes(newest.read_bytes()[:5000])

    resumed = trainer.run(flags)

    assert f"resumed after step {int(older.name[5:14])}" in resumed.lines
    assert resumed.figures["examples_seen"] == rungs[SIZES[0]].figures["examples_seen"]
    assert resumed.losses()["200"] == pytest.approx(rungs[SIZES[0]].losses()["200"], abs=1e-3)


@pytest.mark.telling
def test_stopped_run_saves_a_checkpoint(trainer: Trainer, tmp_path: Path) -> None:
    """After SIGTERM, a run saves a checkpoint and ends with status 143, and the next start resumes after it.

    It finds flags of a config that the trainer does not take, and a restart that begins anew or sees examples twice.
    """
    flags = _flags(trainer, SIZES[0], f"--model_dir={tmp_path}", "--save_checkpoints_steps=9999")
    process = trainer.start("trainer", flags)
    assert process.stdout
    while "loss" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    output, messages = process.communicate(timeout=trainers.TIMEOUT_SECONDS)

    assert process.returncode == 143, messages
    (saved,) = (tmp_path / "checkpoints").glob("step-*.npz")
    step = int(saved.name[5:14])
    assert f"stopped by SIGTERM after step {step}" in output
    resumed = trainer.run(flags)
    assert f"resumed after step {step}" in resumed.lines
    assert resumed.figures["examples_seen"] == 200 * 1024


def test_several_hosts_are_rejected(trainer: Trainer) -> None:
    """A slice of several hosts, of which this trainer would use only one, is rejected before the training."""
    assert "--hosts=4: this trainer runs on the cores of one host" in trainer.error_of(
        _flags(trainer, SIZES[0], "--hosts=4")
    )


TWO_REPLICAS = """
import sys
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from trainer import data, order
from trainer.replicas import Replicas
examples, held_out = data.load(sys.argv[1])
alone, both = (
    Replicas(1, tf.distribute.MirroredStrategy(devices)) for devices in (["CPU:0"], ["CPU:0", "CPU:1"])
)
for replicas in (alone, both):
    for step in range(20):
        replicas.step(examples, order.rows(step * 256, 256, len(examples.labels)), 0.1)
    print(replicas.count, replicas.loss(), replicas.accuracy(held_out))
"""


def test_loss_does_not_depend_on_the_replicas(tensorflow: str, trainer: Trainer) -> None:
    """Two replicas see half of each batch, and reach the loss of one replica with all of it."""
    command = [tensorflow, "-c", TWO_REPLICAS, str(trainer.folder / BUCKET / "data")]
    completed = subprocess.run(
        command, cwd=trainer.folder, capture_output=True, text=True, check=True
    )

    alone, both = (
        [float(word) for word in line.split()] for line in completed.stdout.splitlines()[-2:]
    )
    assert (alone[0], both[0]) == (1, 2)
    assert both[1:] == pytest.approx(alone[1:], abs=2e-3)
