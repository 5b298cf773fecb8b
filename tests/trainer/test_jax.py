import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import Popen
from typing import Final

import pytest

import trainers
from bucket_server import Buckets, buckets
from tpucfg.cli.app import run
from trainers import Run, Trainer, devices

pytestmark = [pytest.mark.trainer, pytest.mark.xdist_group("jax")]

SIZES: Final = {"v2-8": 1, "v2-32": 4}
"""Hosts of each rung of the new project's ladder."""
BUCKET: Final = "gs://my-project-dev-mnist-dev-us-central1"
JOBS: Final = f"{BUCKET}/jobs/mnist"
RUNS: Final = f"{BUCKET}/runs/mnist/mnist-dev"
"""The folder of a run without a name, without its size."""


DEVICES: Final = 8
"""Devices of each rung in these tests."""


def _flags(trainer: Trainer, size: str, *changed_flags: str) -> list[str]:
    """Return the flags of the config, for the devices of these tests."""
    return [*trainer.flags(size), f"--data_parallel={DEVICES}", *changed_flags]


@pytest.fixture(scope="module")
def server() -> Iterator[Buckets]:
    """Run a server of buckets."""
    with buckets() as buckets_server:
        yield buckets_server


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory, server: Buckets) -> Trainer:
    """Create a project with digits in its bucket and in the folder `local`."""
    project = trainers.new(tmp_path_factory.mktemp("jax") / "mnist", "jax")
    digits = ["--train=5000", "--test=1000"]
    project.run([f"{BUCKET}/data", *digits], "trainer.digits", **server.environment)
    project.run(["local/data", *digits], "trainer.digits")
    return project


@pytest.fixture(scope="module")
def rungs(trainer: Trainer, server: Buckets) -> dict[str, Run]:
    """Run both rungs on 8 devices, each with one process per host."""
    runs = {}
    for size, count in SIZES.items():
        hosts = trainers.hosts(count) if count > 1 else [{}]
        started = [
            trainer.start(
                "trainer",
                _flags(trainer, size),
                **devices(8 // count),
                **server.environment,
                **host,
            )
            for host in hosts
        ]
        runs[size], *_ = [trainers.wait_for(process) for process in started]
    return runs


def checkpoint(step: int, batch_size: int) -> str:
    """Return the name of a checkpoint of a run that stayed on its size."""
    return f"{step:012}-{step * batch_size:015}"


def test_rungs_see_equally_many_examples(rungs: dict[str, Run]) -> None:
    """With the exact flags of the configs, runs on 1 host and on 4 hosts see equally many examples and learn them."""
    assert "devices: 8 (cpu), hosts: 1" in rungs["v2-8"].lines
    assert "devices: 8 (cpu), hosts: 4" in rungs["v2-32"].lines
    for rung_run in rungs.values():
        assert rung_run.figures.keys() == {
            "accuracy",
            "loss",
            "examples_seen",
            "examples_per_second",
        }
        assert rung_run.figures["examples_seen"] == 200 * 1024
        assert rung_run.figures["accuracy"] > 0.9
        assert rung_run.figures["examples_per_second"] > 0


def test_job_leaves_checkpoints_and_a_trace_in_its_folder(
    rungs: dict[str, Run], server: Buckets
) -> None:
    """A rung's bucket contains its newest checkpoints and the profiler's trace.

    The job's account reads and writes objects. Its program asks for nothing else.
    """
    assert rungs
    for size, steps in (("v2-8", (100, 150, 200)), ("v2-32", (26, 39, 50))):
        batch_size = 1024 * SIZES[size]
        objects = server.below(f"{RUNS}-{size}")
        names = {f"checkpoints/{checkpoint(step, batch_size)}" for step in steps}
        assert {
            name.rpartition("/")[0] for name in objects if name.endswith("commit_success.txt")
        } >= names
        assert {"/".join(name.split("/")[:2]) for name in objects} == names
        traces = server.below(f"{JOBS}/{size}")
        assert any(re.fullmatch(r"profile/plugins/profile/.+\.xplane\.pb", name) for name in traces)
    assert not server.refused


def test_loss_does_not_depend_on_the_devices(trainer: Trainer, rungs: dict[str, Run]) -> None:
    """A run on one device has the batches and the loss of a run on eight."""
    local = trainers.with_local_buckets(trainer.flags("v2-8"), trainer.folder)
    alone = trainer.run([*local, "--data_dir=local/data", "--data_parallel=1"], **devices(1))

    assert "devices: 1 (cpu), hosts: 1" in alone.lines
    assert alone.losses() == pytest.approx(rungs["v2-8"].losses(), abs=2e-3)
    assert alone.figures["accuracy"] == pytest.approx(rungs["v2-8"].figures["accuracy"], abs=5e-3)


def test_killed_run_continues(
    trainer: Trainer, rungs: dict[str, Run], server: Buckets, tmp_path: Path
) -> None:
    """A killed run that leaves an incomplete checkpoint ends with the result of an uninterrupted run."""
    own = ["--data_dir=local/data", f"--model_dir={tmp_path}", "--save_checkpoints_steps=20"]
    flags = _flags(trainer, "v2-8", *own)
    process = trainer.start("trainer", flags, **devices(DEVICES), **server.environment)
    assert process.stdout
    while "step 80 " not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    incomplete = tmp_path / "checkpoints" / f"{checkpoint(999, 1024)}.orbax-checkpoint-tmp-1"
    incomplete.mkdir()
    names = [path.name for path in (tmp_path / "checkpoints").iterdir() if "tmp" not in path.name]
    step, examples = map(int, max(names).split("-"))

    resumed = trainer.run(flags, **devices(DEVICES), **server.environment)

    assert f"resumed after step {step}, with {examples:,} examples seen" in resumed.lines
    assert not incomplete.exists()
    assert resumed.losses()["200"] == pytest.approx(rungs["v2-8"].losses()["200"], abs=1e-4)
    for name in ("examples_seen", "accuracy", "loss"):
        assert resumed.figures[name] == pytest.approx(rungs["v2-8"].figures[name], abs=1e-4)


def test_incomplete_checkpoint_in_a_bucket_is_removed(
    trainer: Trainer, rungs: dict[str, Run], server: Buckets
) -> None:
    """In a bucket, a checkpoint without its mark is incomplete: the one before it is used."""
    copied = f"{BUCKET}/jobs/incomplete"
    server.objects |= {
        f"{copied}/{name}": data for name, data in server.below(f"{RUNS}-v2-8").items()
    }
    del server.objects[f"{copied}/checkpoints/{checkpoint(200, 1024)}/commit_success.txt"]
    flags = _flags(trainer, "v2-8", f"--model_dir={copied}")

    resumed = trainer.run(flags, **devices(DEVICES), **server.environment)

    assert f"resumed after step 150, with {150 * 1024:,} examples seen" in resumed.lines
    assert resumed.figures["loss"] == pytest.approx(rungs["v2-8"].figures["loss"], abs=1e-4)
    assert f"checkpoints/{checkpoint(200, 1024)}/commit_success.txt" in server.below(copied)


@pytest.mark.parametrize(("size", "victim"), [("v2-8", 0), ("v2-32", 2)])
def test_stopped_run_saves_a_checkpoint(
    trainer: Trainer, server: Buckets, tmp_path: Path, size: str, victim: int
) -> None:
    """After SIGTERM to one host, all hosts stop at one step with status 143, and the next start resumes after it."""
    count = SIZES[size]
    own = [
        "--data_dir=local/data",
        f"--model_dir={tmp_path}",
        "--train_steps=400",
        "--save_checkpoints_steps=9999",
    ]
    flags = _flags(trainer, size, "--batch_size=1024", *own)

    def start() -> list[Popen[str]]:
        hosts = trainers.hosts(count) if count > 1 else [{}]
        settings = devices(DEVICES // count) | server.environment
        return [trainer.start("trainer", flags, **settings, **host) for host in hosts]

    processes = start()
    assert processes[0].stdout
    while "loss" not in processes[0].stdout.readline():
        assert processes[0].poll() is None
    processes[victim].send_signal(signal.SIGTERM)
    outputs = [process.communicate(timeout=trainers.TIMEOUT_SECONDS) for process in processes]

    assert [process.returncode for process in processes] == [143] * count, outputs
    (saved,) = (tmp_path / "checkpoints").iterdir()
    step, examples = map(int, saved.name.split("-"))
    assert 0 < step < 400
    assert f"stopped by SIGTERM after step {step}" in outputs[0][0]
    resumed, *_ = [trainers.wait_for(process) for process in start()]
    assert f"resumed after step {step}, with {examples:,} examples seen" in resumed.lines
    assert resumed.figures["examples_seen"] == 400 * 1024


@pytest.mark.parametrize(
    ("rule", "length"),
    [
        ("per_core", "train_steps: 200"),
        ("keep", "sequence_length: 4\n  train_tokens: 819200"),
    ],
)
def test_run_moves_to_another_size_and_back(
    trainer: Trainer, tmp_path: Path, rule: str, length: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is stopped twice goes on where it was, on each size, and ends with the examples of the spec."""
    folder = trainer.folder / f"moving-{rule}-{len(length)}"
    folder.mkdir()
    text = (trainer.folder / "tpucfg.yaml").read_text()
    text = text.replace("train_steps: 200", f"{length}\n  batch_rule: {rule}").replace(
        "${run_dir}", str(tmp_path) + "/${run}"
    )
    (folder / "tpucfg.yaml").write_text(text)
    chosen = ["--spec", str(folder / "tpucfg.yaml"), "--env", "dev", "--run", "a1"]
    lengths = []
    for size in ("v2-8", "v2-32", "v2-8"):
        capsys.readouterr()
        assert run(["render", *chosen, "--size", size]) == 0
        flags = trainers.flags_of(capsys.readouterr().out, trainer.target)
        lengths.append(next(flag for flag in flags if flag.startswith("--train_steps=")))
        own = [
            "--hosts=1",
            f"--data_parallel={DEVICES}",
            "--data_dir=local/data",
            f"--profile_dir={tmp_path}",
        ]
        process = trainer.start("trainer", [*flags, *own], **devices(DEVICES))
        if len(lengths) == len(SIZES) + 1:
            break
        assert process.stdout
        while "loss" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=trainers.TIMEOUT_SECONDS)
        stopped = re.search(r"stopped by SIGTERM after step (\d+)", output)
        assert stopped, errors
        assert run(["record", *chosen, "--size", size, "--step", stopped[1]]) == 0

    ended = trainers.wait_for(process)
    batch = 1024  # of the last size, which may be filled up by its last step
    assert 200 * 1024 <= ended.figures["examples_seen"] < 200 * 1024 + batch
    assert f"step {lengths[-1].partition('=')[2]} of" in ended.lines[-2]
    assert (len(set(lengths)) == 1) == (rule == "keep")


def test_finished_run_is_reported(trainer: Trainer, rungs: dict[str, Run], server: Buckets) -> None:
    """A second start of a finished run trains nothing, prints its metrics except for the speed, and fails."""
    process = trainer.start(
        "trainer", _flags(trainer, "v2-8"), **devices(DEVICES), **server.environment
    )
    output, message = process.communicate(timeout=trainers.TIMEOUT_SECONDS)

    expected = {
        key: value for key, value in rungs["v2-8"].figures.items() if key != "examples_per_second"
    }
    assert Run(output.splitlines()).figures == expected
    assert process.returncode == 1
    expected_message = f"nothing is left to train: step 200 of 200 is in {RUNS}-v2-8\nhelp: start it with another --run"
    assert expected_message in message


UNUSABLE: Final[Sequence[tuple[Sequence[str], Sequence[str]]]] = (
    # The first one, as JAX connects hosts only before anything else.
    (
        ["--hosts=4"],
        [
            "--hosts=4 needs a slice of 4 hosts",
            "help: to try it on one machine, give --hosts=1",
        ],
    ),
    (
        ["--hosts=1", "--data_parallel=4"],
        ["--data_parallel=4 and --model_parallel=1 need 4 devices, and there are 8"],
    ),
    (
        ["--model_parallel=2"],
        ["--data_parallel=8 and --model_parallel=2 need 16 devices, and there are 8"],
    ),
    (
        ["--grad_accum=3"],
        ["--batch_size=1024 cannot be divided among 8 replicas with --grad_accum=3"],
    ),
    (["--model=transformer", "--width=100"], ["--width=100 and --model_parallel=1 do not fit"]),
    (
        ["--model=transformer", "--width=192", "--model_parallel=2", "--data_parallel=4"],
        ["each of the 2 devices computes an equal number of heads, of 64 each"],
    ),
    (["--model=transformer"], [f"no tokens in {BUCKET}/data: put train.bin and val.bin there"]),
    (["--data_dir=nothing"], ["no MNIST in nothing: put mnist.npz there"]),
    (
        ["--batch_size=1023", "--model_dir=other"],
        ["--batch_size=1023 cannot be divided among 8 replicas"],
    ),
    (["--learning_rate=1e30", "--model_dir=other"], ["the loss is nan after step"]),
)
"""Changed flags, and the texts of the message."""
REFUSE: Final = """
import json, sys
from trainer.flags import parse
from trainer.train import train

for line in open(sys.argv[1]):
    try:
        train(parse(json.loads(line)))
    except SystemExit as end:
        print(json.dumps({"message": str(end)}), flush=True)
"""
"""Trains with the flags of each line of a file, in one process, as JAX's import takes most of a refused run."""


def test_unusable_settings_are_reported(trainer: Trainer, server: Buckets, tmp_path: Path) -> None:
    """Settings that the trainer cannot use end it with one sentence, before any training."""
    (trainer.folder / "refuse.py").write_text(REFUSE)
    lines = [json.dumps(_flags(trainer, "v2-8", *changed)) for changed, _ in UNUSABLE]
    (tmp_path / "flags").write_text("\n".join(lines))
    output = trainer.run(
        [str(tmp_path / "flags")], "refuse", **devices(DEVICES), **server.environment
    )
    messages = [json.loads(line)["message"] for line in output.lines if '"message"' in line]
    for (changed, texts), message in zip(UNUSABLE, messages, strict=True):
        assert [text for text in texts if text not in message] == [], (changed, message)


def test_an_unusable_setting_is_no_traceback(trainer: Trainer) -> None:
    """The message is all that the program prints to stderr, and its status is 1."""
    flags = _flags(trainer, "v2-8", "--data_dir=nothing", f"--model_dir={trainer.folder}/other")
    assert "no MNIST in nothing" in trainer.error_of(flags, **devices(DEVICES))


def test_metrics_are_recorded(
    trainer: Trainer, rungs: dict[str, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`tpucfg record --from` reads the log of each rung, and the gate compares the recorded metrics."""
    spec = ["--spec", str(trainer.folder / "tpucfg.yaml"), "--env", "dev"]
    for size, rung_run in rungs.items():
        log = tmp_path / f"{size}.log"
        log.write_text("".join(f"{line}\n" for line in rung_run.lines))
        assert run(["record", *spec, "--size", size, "--from", str(log)]) == 0
    capsys.readouterr()

    assert run(["status", *spec, "--format", "json"]) == 0
    message = capsys.readouterr().out
    for rung_run in rungs.values():
        assert f'"examples_per_second": {rung_run.figures["examples_per_second"]}' in message
        assert f'"accuracy": {rung_run.figures["accuracy"]}' in message


def test_hosts_without_a_shared_folder_are_reported(trainer: Trainer, tmp_path: Path) -> None:
    """Hosts that see different folders do not begin: each of them would write a part of a checkpoint."""
    flags = [
        *trainer.flags("v2-32"),
        "--hosts=2",
        "--data_parallel=2",
        "--train_steps=2",
        "--data_dir=local/data",
    ]
    started = [
        trainer.start(
            "trainer", [*flags, f"--model_dir={tmp_path / str(index)}"], **devices(1), **host
        )
        for index, host in enumerate(trainers.hosts(2))
    ]

    for process in started:
        message = process.communicate(timeout=trainers.TIMEOUT_SECONDS)[1]
        assert "the hosts do not share" in message


def test_hosts_that_install_for_minutes_are_waited_for(trainer: Trainer) -> None:
    """The trainer waits for the other hosts longer than the 300 seconds of JAX, as one may install Docker before."""
    program = "import jax; jax.distributed.initialize = lambda **options: print(options); from trainer.tpu import join"
    completed = subprocess.run(
        [str(trainer.python), "-c", f"{program}; join(2)"],
        cwd=trainer.folder,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.stdout == "{'initialization_timeout': 1800}\n"
    assert "this program runs on 1" in completed.stderr


def test_missing_hosts_are_reported(trainer: Trainer, server: Buckets) -> None:
    """A slice with another number of hosts than in the config does not train with the wrong batch size."""
    flags = [*trainer.flags("v2-32"), "--hosts=3"]
    started = [
        trainer.start("trainer", flags, **devices(1), **server.environment, **host)
        for host in trainers.hosts(2)
    ]

    for process in started:
        assert (
            "--hosts=3 needs a slice of 3 hosts, and this program runs on 2"
            in process.communicate(timeout=trainers.TIMEOUT_SECONDS)[1]
        )
