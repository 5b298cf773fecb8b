"""The choice of what a search compiles, on memories that grow in a straight line."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fit_results import GIB, RESULT
from spec_factory import CATALOG, planned, project, spec
from tpucfg.fit.answers import FitFailure
from tpucfg.fit.fit_file import Memory
from tpucfg.fit.launcher import Outcome
from tpucfg.fit.tune_candidates import Choices, Line, lines_of, plan_candidates, step_key
from tpucfg.fit.tune_search import Trial, fate, frontier, next_candidate

DATA = spec(trainer__fit={"step": "a:b"}, training__grad_accum=1)
CANDIDATES = plan_candidates(
    project(DATA), CATALOG, planned(DATA, sizes=("v2-8",)).jobs[0], Choices()
).rows
LINE: Line = lines_of(CANDIDATES, Choices())[0]
"""Eight accumulations, from 128 with a micro-batch of 1 to 1 with 128."""


def searched(
    state: float, per_example: float, failing: frozenset[int] = frozenset()
) -> dict[str, Trial]:
    """Return the trials of a search of the line, on 16 GiB; `failing` are the micro-batches that crash."""
    trials: dict[str, Trial] = {}
    while candidate := next_candidate(LINE, trials):
        assert candidate.job is not None
        micro_batch = int(candidate.job.rung.micro_batch)
        used = round((state + per_example * micro_batch) * GIB)
        memory = Memory(used, 16 * GIB, exact=used <= 16 * GIB)
        result: Any = RESULT._replace(fits=memory.exact, memory=memory)
        outcome = Outcome(candidate.job, result)
        if micro_batch in failing:
            outcome = Outcome(candidate.job, None, FitFailure("step-failed"))
        trials[step_key(candidate)] = Trial(candidate, outcome)
    return trials


@given(st.floats(0, 20), st.floats(0.001, 20))
def test_the_largest_that_fits_is_found(state: float, per_example: float) -> None:
    """Whatever the line, the largest micro-batch that fits is compiled, and the next one is refused."""
    trials = searched(state, per_example)
    sizes = [int(each.job.rung.micro_batch) for each in LINE.candidates if each.job]
    fitting = [size for size in sizes if round((state + per_example * size) * GIB) <= 16 * GIB]
    largest, refused = frontier(LINE, trials)
    assert (largest.micro_batch if largest else None) == (max(fitting) if fitting else None)
    assert (refused.micro_batch if refused else None) == next(
        (size for size in sizes if size not in fitting), None
    )
    compiled = [trial for trial in trials.values() if trial.result and trial.result.fits]
    assert len(compiled) <= 1, "what fits takes a minute to compile, and one of it is enough"


def test_the_largest_alone_is_compiled_if_it_fits() -> None:
    """Nothing smaller is compiled beside it."""
    trials = searched(1, 0.01)
    assert [trial.micro_batch for trial in trials.values()] == [128]
    assert {fate(LINE, each, trials) for each in LINE.candidates[:-1]} == {"larger fits"}


def test_a_line_that_never_fits_ends_at_its_smallest() -> None:
    """Two refusals give the line, and a third one proves it."""
    trials = searched(17, 1)
    assert [trial.micro_batch for trial in trials.values()] == [128, 64, 1]
    assert {fate(LINE, each, trials) for each in LINE.candidates[1:-2]} == {"smaller does not fit"}


def test_a_candidate_that_crashes_is_passed_over() -> None:
    """The rest of a line is searched without it; after two, the line is left."""
    largest, _ = frontier(LINE, searched(1, 0.01, frozenset({128})))
    assert largest is not None
    assert largest.micro_batch == 64
    trials = searched(1, 0.01, frozenset({128, 64}))
    assert frontier(LINE, trials) == (None, None)
    assert fate(LINE, LINE.candidates[0], trials) == "failures"
