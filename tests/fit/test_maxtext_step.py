"""The step of MaxText itself, for a spec with `flags: maxtext` and `trainer.fit` without a step."""

import json
from typing import Final

import pytest

from false_python import Folder
from official.maxtext_python import maxtext_python

OWN: Final = (
    ('fit: {step: "step:abstract_step", python: ./python}', "fit: {python: ./python}"),
    (
        "  image:",
        "  command: [python3, -m, maxtext.trainers.pre_train.train, src/maxtext/configs/base.yml]\n  image:",
    ),
    (
        "batch_size: 256, train_steps: 4000",
        "per_device_batch_size: 2, sequence_length: 1024, train_steps: 100, flags: maxtext",
    ),
)
"""The changes of a spec to MaxText's own step."""
LAYERS, WIDTH, HIDDEN, VOCABULARY = 2, 512, 2048, 1024
SMALL: Final = {
    "dataset_type": "synthetic",
    "base_num_decoder_layers": LAYERS,
    "base_emb_dim": WIDTH,
    "base_mlp_dim": HIDDEN,
    "base_num_query_heads": 4,
    "base_num_kv_heads": 4,
    "head_dim": WIDTH // 4,
    "vocab_size": VOCABULARY,
}
ONE: Final = ("--size", "v5litepod-16")


def test_the_step_is_asked_for_with_the_file_of_defaults(folder: Folder) -> None:
    """The process gets the arguments of the rung under MaxText's names."""
    folder.spec(*OWN)
    folder.python('open("request", "w").write(json.dumps(REQUEST)); answer(result=known(RESULT))')
    assert folder.fit(*ONE)[0] == 0
    request = json.loads((folder.path / "request").read_text())
    assert request["step"] == "maxtext src/maxtext/configs/base.yml"
    assert request["flags"]["per_device_batch_size"] == "2"
    assert request["flags"]["max_target_length"] == "1024"
    assert request["flags"]["run_name"] == "chat-dev-v5litepod-16"


@pytest.mark.parametrize(
    ("command", "step"),
    [
        (
            '[bash, -c, "pip install . && python3 -m MaxText.train MaxText/configs/base.yml"]',
            "maxtext MaxText/configs/base.yml",
        ),
        ("[python3, -m, maxtext.trainers.pre_train.train]", "maxtext"),
    ],
)
def test_the_file_of_defaults_is_that_of_the_command(
    folder: Folder, command: str, step: str
) -> None:
    """It stands in a script too, and may be left out."""
    folder.spec(
        *OWN,
        ("[python3, -m, maxtext.trainers.pre_train.train, src/maxtext/configs/base.yml]", command),
    )
    folder.python("answer(result=known(RESULT))")
    folder.fit(*ONE)
    assert [result["step"] for result in folder.file()] == [step]


def test_another_program_needs_a_step(folder: Folder) -> None:
    """The error is at `trainer.fit`, and names both ways."""
    folder.spec(OWN[0])
    status, _, errors = folder.fit()
    assert status == 1
    assert (
        "error[TPU005]: trainer.fit needs a training step, of trainer.fit.step or `flags: maxtext`"
        in errors
    )
    assert 'help: set trainer.fit.step to "trainer.fit:abstract_step"' in errors


@pytest.mark.parametrize(
    ("kind", "message", "words"),
    [
        (
            "no-module",
            "ModuleNotFoundError: No module named 'maxtext'",
            "./python -m pip install 'maxtext[tpu]'",
        ),
        (
            "import-failed",
            "ModuleNotFoundError: No module named 'tokamax'",
            "./python -m pip install 'maxtext[tpu]'",
        ),
        (
            "no-function",
            "MaxText 0.1 has other functions",
            "./python -m pip install 'maxtext[tpu]==0.2.5'",
        ),
        (
            "step-failed",
            "ValueError: no such key",
            "error[TPU117]: MaxText refuses the job: ValueError: no such key",
        ),
    ],
)
def test_a_failure_has_its_edit(folder: Folder, kind: str, message: str, words: str) -> None:
    """It is about MaxText and the spec's arguments, and not about a function that the spec does not have."""
    folder.spec(*OWN)
    folder.python(f"answer(error={ {'kind': kind, 'message': message, 'frames': []} })")
    status, _, errors = folder.fit(*ONE)
    assert status == 1
    assert words in errors
    assert "abstract_step" not in errors


@pytest.mark.tpu_compiler
def test_maxtexts_own_step_is_compiled(folder: Folder) -> None:
    """Its work is that of its matrix products, and its parser's refusal is shown.

    With full remat, the backward pass computes the products of a layer again, but for the last, whose result it does
    not need.
    """
    args = ", ".join(f"{key}: {value}" for key, value in SMALL.items())
    misspelled = "overrides: {v5litepod-64: {trainer: {args: {base_emb_dims: 512}}}}\ntraining:"
    python = ("./python", maxtext_python())
    folder.spec(
        *OWN, python, ("  image:", f"  args: {{{args}}}\n  image:"), ("training:", misspelled)
    )

    status, _, errors = folder.fit("--time-limit", "30m")

    assert status == 1
    assert "MaxText refuses the job: " in errors
    assert "'base_emb_dims' not in" in errors
    (result,) = folder.file()
    assert result["fits"]
    assert 0 < result["hbm"]["used"] < 1 << 30
    down = HIDDEN * WIDTH
    layer = 4 * WIDTH * WIDTH + 3 * down
    tokens = 16 * 2 * 1024
    flops = tokens * (6 * (LAYERS * layer + VOCABULARY * WIDTH) + 2 * LAYERS * (layer - down))
    assert result["flops"] == pytest.approx(flops, rel=0.01)
