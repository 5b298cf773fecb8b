"""The edit that a help names for a step with too much memory: only settings that the program can see."""

from fractions import Fraction
from typing import Any

import pytest

from spec_factory import planned, project, spec
from tpucfg.fit.fit_findings import less_memory, memory_details
from tpucfg.fit.rung_fit import memory_settings

GRAD_ACCUM = "set training.grad_accum to {} or more"
MODEL_PARALLEL = "raise overrides.v2-8.model_parallel"
NEITHER = "lower the memory of the program's step on v2-8"
NO_FLAG = {
    "tuned_on": "v2-8",
    "batch_size": 1024,
    "train_steps": 4000,
    "flags": {"grad_accum": None},
}


def edit(excess: Fraction, **changes: Any) -> str:
    """Return the edit for v2-8 of a spec with other values."""
    data = spec(sizes=["v2-8"], **changes)
    (job,) = planned(data).jobs
    return less_memory("v2-8", memory_settings(project(data), job), excess)


@pytest.mark.parametrize(
    ("excess", "changes", "expected"),
    [
        (Fraction(3, 2), {}, GRAD_ACCUM.format(2)),
        (Fraction(2), {}, GRAD_ACCUM.format(2)),
        (Fraction(201, 100), {}, GRAD_ACCUM.format(4)),
        (Fraction(3, 2), {"training__grad_accum": 4}, GRAD_ACCUM.format(8)),
        # 8 devices with 12 examples each: 3 divides them, 5 does not.
        (Fraction(5, 2), {"training__batch_size": 96}, GRAD_ACCUM.format(3)),
        (Fraction(9, 2), {"training__batch_size": 96}, GRAD_ACCUM.format(6)),
        # One example cannot be split.
        (Fraction(3, 2), {"training__batch_size": 8}, NEITHER),
        (Fraction(200), {}, NEITHER),
        (Fraction(3, 2), {"training__model_parallel": 2}, GRAD_ACCUM.format(2)),
        (
            Fraction(3, 2),
            {"trainer__args": {"mesh": "${data_parallel},${model_parallel}"}},
            f"{GRAD_ACCUM.format(2)}, or {MODEL_PARALLEL}",
        ),
        # All 8 devices share a copy of the batch already.
        (
            Fraction(3, 2),
            {
                "trainer__args": {"mesh": "${data_parallel},${model_parallel}"},
                "training__model_parallel": 8,
            },
            GRAD_ACCUM.format(2),
        ),
        (Fraction(3, 2), {"trainer__args": {"mesh": "$${model_parallel}"}}, GRAD_ACCUM.format(2)),
        (Fraction(3, 2), {"training": NO_FLAG}, NEITHER),
        (
            Fraction(3, 2),
            {"training": NO_FLAG, "trainer__env": {"MESH": "${model_parallel}"}},
            MODEL_PARALLEL,
        ),
        (
            Fraction(3, 2),
            {"training": NO_FLAG, "trainer__args": {"micro": "${grad_accum}"}},
            GRAD_ACCUM.format(2),
        ),
    ],
)
def test_the_edit_is_one_that_the_program_can_see(
    excess: Fraction, changes: dict[str, Any], expected: str
) -> None:
    """The accumulation divides the micro-batch and is no lower than needed; parallelism needs a placeholder."""
    assert edit(excess, **changes) == expected


def test_the_details_promise_nothing() -> None:
    """Memory does not fall in proportion, and a program need not read a flag."""
    data = spec(sizes=["v2-8"], training__flags={"grad_accum": "accumulate"})
    (job,) = planned(data).jobs
    values = memory_settings(project(data), job)
    assert [*memory_details(values, Fraction(3, 2))] == [
        "grad_accum 2 would do if all of the memory fell in proportion, which parameters do not",
        "a program that does not read --accumulate needs a smaller micro-batch of its own",
    ]
    assert [*memory_details(values, Fraction(1000))] == [
        "its micro-batch of 128 cannot be split far enough by grad_accum"
    ]


def test_the_edit_of_the_tuned_size_changes_no_micro_batch_of_others() -> None:
    """An override there would be a warning, whose help takes it back; on another size it is the only edit."""
    data = spec(sizes=["v2-8", "v2-32"])
    smaller, larger = planned(data).jobs
    assert (
        less_memory("v2-8", memory_settings(project(data), smaller), Fraction(2))
        == "set training.grad_accum to 2 or more"
    )
    assert less_memory("v2-32", memory_settings(project(data), larger), Fraction(2)) == (
        "set overrides.v2-32.grad_accum to 2 or more"
    )

    overridden = spec(sizes=["v2-8"], overrides={"v2-8": {"grad_accum": 2}})
    (job,) = planned(overridden).jobs
    assert less_memory("v2-8", memory_settings(project(overridden), job), Fraction(2)) == (
        "set overrides.v2-8.grad_accum to 4 or more"
    )
