"""The candidates of a search: the rung with other values, planned as the spec's own rungs are."""

from typing import Any

import pytest

from spec_factory import CATALOG, ROOT, planned, project, spec
from tpucfg.fit.inputs import fit_inputs
from tpucfg.fit.tune_candidates import (
    Candidate,
    Choices,
    lines_of,
    plan_candidates,
    read_choices,
    step_key,
)

CHAT = (ROOT / "examples" / "chat" / "tpucfg.yaml").read_text()
FIT = {"step": "trainer.fit:abstract_step"}


def candidates(
    data: Any, choices: Choices, env: str = "dev", size: str = ""
) -> tuple[Candidate, ...]:
    """Return the candidates of the rung of a size, by default the tuned one."""
    of_spec = project(data)
    wanted = size or of_spec.training.tuned_on
    job = next(
        job for job in planned(data).jobs if (job.environment.name, job.size) == (env, wanted)
    )
    return plan_candidates(of_spec, CATALOG, job, choices).rows


@pytest.mark.parametrize("example", ["chat", "maxtext"])
def test_a_rung_with_its_own_values_is_compiled_as_it_is(example: str) -> None:
    """The spec that is tuned on a rung, with its figures, has the same step there: nothing else has changed."""
    path = ROOT / "examples" / example / "tpucfg.yaml"
    if not path.exists():
        pytest.skip(f"there is no example {example}")
    text = path.read_text()
    of_spec = project(text)
    for job in planned(text).jobs:
        rung = job.rung
        inputs = fit_inputs(of_spec, job)
        if inputs is None:
            continue
        choices = Choices(model_parallel=(rung.model_parallel,), grad_accum=(rung.grad_accum or 1,))
        tried = plan_candidates(of_spec, CATALOG, job, choices).rows
        # Equal steps are one candidate, so the changed spec made none beside the rung itself.
        assert [candidate.is_current for candidate in tried] == [True], (job.name, tried[1:])


def test_the_batch_stays_on_another_size() -> None:
    """On another size, batch, steps and rate are those of the rung; the accumulation and the slice are not."""
    tried = candidates(CHAT, Choices(sizes=("v5litepod-64",), grad_accum=(4,)), env="prod")
    job = next(each.job for each in tried if each.values.size == "v5litepod-64")
    assert job is not None
    assert (job.rung.batch_size, job.rung.train_steps, job.rung.learning_rate) == (
        256,
        9537,
        "3e-4",
    )
    assert job.rung.steps == {
        "train_steps": 9537,
        "save_checkpoints_steps": 50,
        "warmup_steps": 200,
    }
    assert (job.rung.grad_accum, int(job.rung.micro_batch), job.slice.chips) == (4, 4, 64)


def test_the_figures_of_a_scaled_rung_stay() -> None:
    """A rung that is not the tuned one keeps the steps and the rate that the rules gave it."""
    tried = candidates(CHAT, Choices(grad_accum=(8,)), env="prod", size="v5litepod-256")
    job = next(each.job for each in tried if not each.is_current)
    assert job is not None
    assert (job.rung.batch_size, job.rung.train_steps, job.rung.learning_rate) == (
        4096,
        597,
        "0.0012",
    )
    assert job.rung.steps["warmup_steps"] == 13


def test_another_batch_follows_the_rules_of_the_spec() -> None:
    """The steps of another batch see as many tokens, and its rate grows by the rule."""
    tried = candidates(CHAT, Choices(batch_size=(1024,), grad_accum=(16,)), env="prod")
    job = next(each.job for each in tried if each.values.batch_size == 1024)
    assert job is not None
    assert (job.rung.train_steps, job.rung.learning_rate, job.rung.steps["warmup_steps"]) == (
        2385,
        "0.0006",
        50,
    )


def test_parallelism_that_the_program_does_not_get_is_not_tried() -> None:
    """No accumulation shows what another parallelism would do, also where no other candidate has it."""
    data = spec(
        target="gke",
        environments={
            "dev": {"project": "my-project-dev", "region": "us-west4", "kube_context": "a"}
        },
        sizes=["v5litepod-8"],
        trainer={"image": "r.io/i:1", "fit": FIT},
        training={
            "tuned_on": "v5litepod-8",
            "batch_size": 256,
            "train_steps": 4000,
            "grad_accum": 8,
        },
    )
    tried = candidates(data, Choices(model_parallel=(1, 2)))
    assert {each.values.model_parallel for each in tried} == {1}
    data["trainer"]["args"] = {"mesh": "${model_parallel}"}
    assert {
        each.values.model_parallel for each in candidates(data, Choices(model_parallel=(1, 2)))
    } == {1, 2}


def test_what_the_plan_refuses_has_its_reason() -> None:
    """A batch that does not divide is listed with the plan's message, and is in no line."""
    tried = candidates(CHAT, Choices(grad_accum=(16, 5)), env="prod")
    refused = [each for each in tried if each.job is None]
    assert [each.values.grad_accum for each in refused] == [5]
    assert "a batch of 256 does not divide over the 4 replicas" in refused[0].problem
    assert all(each.job for line in lines_of(tried, Choices()) for each in line.candidates)


def test_a_size_that_the_region_lacks_is_compiled_with_a_note() -> None:
    """The place of a size changes nothing about its compilation; the reason is kept."""
    tried = candidates(CHAT, Choices(sizes=("v6e-16",), grad_accum=(16,)), env="prod")
    other = next(each for each in tried if each.values.size == "v6e-16")
    assert other.job is not None
    assert other.problem == "v6e-16 is not offered in us-west4"


def test_without_a_list_accumulation_halves_and_doubles() -> None:
    """A rung with accumulation is tried with every power of two that divides the examples of a replica."""
    tried = candidates(CHAT, Choices(), env="prod")
    (line,) = lines_of(tried, Choices())
    assert [each.values.grad_accum for each in line.candidates] == [64, 32, 16, 8, 4, 2, 1]
    assert tried[0].is_current


def test_a_rung_without_accumulation_gets_none() -> None:
    """A program without a flag for accumulation is tried as it is; 1 in a list means the same."""
    data = spec(trainer__fit=FIT)
    assert len(candidates(data, Choices())) == 1
    assert len(candidates(data, Choices(grad_accum=(1,)))) == 1


def test_values_keep_their_spelling() -> None:
    """A value that is tried reaches the program as the spec writes it, and null is a bare flag."""
    data = spec(trainer__fit=FIT, trainer__args={"remat": "full"})
    text = (
        f"{data!r}".replace("'", '"')[:-1]
        + ', "tune": {"args": {"remat": ["1e-3", 1e-3, true, null]}}}'
    )
    choices = read_choices(project(text).document)
    tried = candidates(text, choices)
    flags = [dict(each.job.flags).get("remat", "") for each in tried if each.job]
    assert flags == ["full", "1e-3", "true", None]
    assert len({step_key(each) for each in tried}) == len(tried)
