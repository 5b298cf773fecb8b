"""Both models of the JAX trainer on meshes of different shapes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import trainers
from trainers import Run, Trainer, devices

pytestmark = [pytest.mark.trainer, pytest.mark.xdist_group("jax_mesh")]

EXAMPLES: Final = 512
LENGTH: Final = 16
"""Tokens of an example."""
MODELS: Final = {
    "mnist": ["--data_dir=digits", "--learning_rate=0.1"],
    "transformer": [
        "--model=transformer",
        "--data_dir=tokens",
        "--learning_rate=0.003",
        "--layers=2",
        "--width=128",
        f"--sequence_length={LENGTH}",
        "--vocabulary=64",
    ],
}
SMALL: Final = ("--batch_size=32", "--data_parallel=4")
"""Flags of a rung of 4 devices."""
LARGE: Final = ("--batch_size=64", "--data_parallel=4", "--model_parallel=2", "--grad_accum=2")
"""Flags of a rung of 8 devices."""
WATCH: Final = """
import json, os, signal, sys
from trainer import order
from trainer.flags import parse

stop_after, rows, calls = int(sys.argv[1]), order.rows, []

def watched(first, count, size):
    indices = rows(first, count, size)
    calls.append(indices)
    with open("seen.jsonl", "a") as file:
        file.write(json.dumps(indices.tolist()) + "\\n")
    if len(calls) == stop_after:
        os.kill(os.getpid(), signal.SIGTERM)
    return indices

order.rows = watched
from trainer.train import train
train(parse(sys.argv[2:]))
"""
"""Trains, notes the indices of the examples, and gets SIGTERM before a step."""


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    """Create a project with digits and tokens; a token depends on the one before it."""
    project = trainers.new(tmp_path_factory.mktemp("mesh") / "mnist", "jax")
    project.run(["digits", f"--train={EXAMPLES}", "--test=100"], "trainer.digits")
    random = np.random.default_rng(0)
    steps = random.integers(3, size=(EXAMPLES + 50) * LENGTH + 1)
    tokens = (np.cumsum(steps) % 64).astype("<u2")
    (project.folder / "tokens").mkdir()
    tokens[: EXAMPLES * LENGTH + 1].tofile(project.folder / "tokens" / "train.bin")
    tokens[EXAMPLES * LENGTH :].tofile(project.folder / "tokens" / "val.bin")
    (project.folder / "watch.py").write_text(WATCH)
    return project


def _flags(model: str, folder: Path, *changed_flags: str) -> list[str]:
    own = [
        f"--model_dir={folder}",
        "--epochs=1",
        "--warmup_steps=2",
        "--save_checkpoints_steps=1000",
    ]
    return [*MODELS[model], *own, *changed_flags]


def _count(flags: Sequence[str]) -> int:
    """Return the devices that a rung's flags need."""
    values = dict(flag.removeprefix("--").split("=") for flag in flags)
    return int(values["data_parallel"]) * int(values.get("model_parallel", 1))


@pytest.mark.parametrize(
    ("model", "first", "second", "stop_after"),
    [
        pytest.param("mnist", SMALL, LARGE, 6, id="mnist-larger", marks=pytest.mark.telling),
        pytest.param("transformer", SMALL, LARGE, 6, id="transformer-larger"),
        pytest.param("transformer", LARGE, SMALL, 3, id="transformer-smaller"),
    ],
)
def test_stopped_run_continues_on_another_rung(
    trainer: Trainer,
    tmp_path: Path,
    model: str,
    first: Sequence[str],
    second: Sequence[str],
    stop_after: int,
) -> None:
    """A run that SIGTERM stops on one rung ends on another, on another mesh, and sees each example once.

    It finds examples that are skipped or seen twice, and checkpoints that another mesh cannot read.
    """
    seen = trainer.folder / "seen.jsonl"
    seen.unlink(missing_ok=True)
    flags = _flags(model, tmp_path / "first", *first)
    process = trainer.start("watch", [str(stop_after), *flags], **devices(_count(first)))
    output, messages = process.communicate(timeout=trainers.TIMEOUT_SECONDS)
    assert process.returncode == 143, messages
    assert f"stopped by SIGTERM after step {stop_after}" in output

    flags = _flags(model, tmp_path / "first", *second)
    resumed = trainer.run(["0", *flags], "watch", **devices(_count(second)))

    assert any(line.endswith(f"with {192:,} examples seen") for line in resumed.lines)
    assert resumed.figures["examples_seen"] == EXAMPLES
    indices = [index for line in seen.read_text().splitlines() for index in json.loads(line)]
    assert sorted(indices) == list(range(EXAMPLES))


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the folder for the jobs of `whole`."""
    return tmp_path_factory.mktemp("whole")


@pytest.fixture(scope="module")
def whole(trainer: Trainer, jobs: Path) -> dict[str, Run]:
    """Run both models on 4 devices, each of which is a replica."""
    return {
        model: trainer.run(_flags(model, jobs / model, *SMALL), **devices(4)) for model in MODELS
    }


@pytest.mark.parametrize(
    ("model", "count", "changed_flags"),
    [
        pytest.param("transformer", 8, ["--model_parallel=2"], id="transformer-model_parallel"),
        pytest.param("transformer", 4, ["--grad_accum=4"], id="transformer-grad_accum"),
        *(
            pytest.param(
                model,
                2,
                ["--data_parallel=1", "--model_parallel=2", "--grad_accum=2"],
                id=f"{model}-both",
            )
            for model in MODELS
        ),
    ],
)
def test_loss_does_not_depend_on_the_mesh(
    trainer: Trainer,
    whole: dict[str, Run],
    tmp_path: Path,
    model: str,
    count: int,
    changed_flags: Sequence[str],
) -> None:
    """Devices that share a replica, and gradients of micro-batches, give the losses of a run without either."""
    other = trainer.run(_flags(model, tmp_path, *SMALL, *changed_flags), **devices(count))

    tolerance = {"mnist": 1e-4, "transformer": 1e-2}[
        model
    ]  # bfloat16 rounds sums of another order differently
    assert other.losses() == pytest.approx(whole[model].losses(), abs=tolerance)
    assert other.figures["loss"] == pytest.approx(whole[model].figures["loss"], abs=tolerance)


def test_models_learn(whole: dict[str, Run]) -> None:
    """The loss of both models falls in a short run."""
    for run in whole.values():
        losses = list(run.losses().values())
        assert losses[-1] < 0.9 * losses[0]
        assert run.figures.keys() == {"accuracy", "loss", "examples_seen", "examples_per_second"}


def test_checkpoint_of_another_model_is_refused(
    trainer: Trainer, whole: dict[str, Run], jobs: Path
) -> None:
    """A checkpoint with arrays of other shapes is not restored."""
    assert whole
    flags = _flags("transformer", jobs / "transformer", *SMALL, "--layers=3")
    process = trainer.start("trainer", flags, **devices(4))
    _, message = process.communicate(timeout=trainers.TIMEOUT_SECONDS)
    assert process.returncode == 1
    assert f"-{EXAMPLES:015} is of another model, or is damaged: " in message


def test_replica_may_span_hosts(trainer: Trainer, whole: dict[str, Run], tmp_path: Path) -> None:
    """Two hosts whose devices share one replica load equal examples, and write one checkpoint."""
    flags = _flags(
        "transformer",
        tmp_path,
        "--batch_size=32",
        "--data_parallel=1",
        "--model_parallel=2",
        "--hosts=2",
    )
    started = [trainer.start("trainer", flags, **devices(1), **host) for host in trainers.hosts(2)]
    first, *_ = [trainers.wait_for(process) for process in started]

    assert first.losses() == pytest.approx(whole["transformer"].losses(), abs=1e-2)


SAME_STEP: Final = """
import sys
import jax
from trainer import fit, train
from trainer.flags import parse

class Recorded(Exception):
    pass

def recorded(devices, flags):
    built = program(devices, flags)
    def lower(*arguments):
        texts.append(built.step.lower(*arguments).as_text())
        raise Recorded
    return built._replace(step=lower)

texts, program = [], train.program
assert fit.program is program
train.program = recorded
try:
    train.train(parse(sys.argv[1:]))
except Recorded:
    pass
values = dict(flag.removeprefix("--").split("=") for flag in sys.argv[1:])
step, arguments = fit.abstract_step(jax.devices(), values)
abstract = step.lower(*arguments).as_text()
assert [abstract] == texts
assert "sharding" in abstract
try:
    fit.abstract_step(jax.devices(), {**values, "widht": "128"})
except ValueError as error:
    assert "unrecognized arguments: --widht=128" in str(error), error
else:
    raise AssertionError("accepted")
print("equal:", step.__wrapped__.func.__name__, len(abstract))
"""
"""Compares the program that `train` lowers for its actual arguments with that of `abstract_step`."""


@pytest.mark.parametrize("model", ["mnist", pytest.param("transformer", marks=pytest.mark.telling)])
def test_fit_compiles_the_step_of_the_training(
    trainer: Trainer, tmp_path: Path, model: str
) -> None:
    """`abstract_step` gives the function that the training calls, and both lower to one program.

    A flag that the training does not accept is refused. It finds a forecast of another program than the one that runs.
    """
    (trainer.folder / "same_step.py").write_text(SAME_STEP)

    (*_, line) = trainer.run(_flags(model, tmp_path, *LARGE), "same_step", **devices(8)).lines
    assert line.startswith("equal: _step ")
