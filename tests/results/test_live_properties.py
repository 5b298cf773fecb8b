"""No answer of a service ends `tpucfg status --live`, whatever its form and its values."""

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from jobs import job, project
from live_answers import NO_CAPACITY, RUNNING, condition, jobset, workloads
from tpucfg.catalog import Catalog
from tpucfg.cli.status import live_data, live_section
from tpucfg.render.pipeline import compile_project
from tpucfg.results.ladder_status import ladder_status
from tpucfg.results.live import LiveAnswers, live_job
from tpucfg.targets.live import LiveState, live_questions
from tpucfg.text_format import json_text

TARGETS = ("gke", "vertex-ai", "cloud-tpu", "compute-engine")
VALUES: Final[tuple[Any, ...]] = (
    *(
        None,
        True,
        0,
        -1,
        10**400,
        float("nan"),
        "",
        "x" * 5_000,
        "\ud800\x1b[2J",
        [],
        {},
        [[]],
        [{}],
        {"a": 1},
    ),
    *(
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "2026-01-01",
        "2026-13-01T00:00:00Z",
    ),
)
FURTHER = {
    "get workloads": workloads(),
    "get events": {
        "items": [{"involvedObject": {"name": "mnist-dev-v6e-16-slice-0"}, "message": "refused"}]
    },
    "managed list-errors": [{"error": {"message": NO_CAPACITY}}],
    "managed list": [{"name": "mnist-dev-v6e-16"}],
}


def mutated(value: Any, random: Random) -> Any:
    """Return data with other values, keys and numbers of items here and there."""
    if random.random() < 0.05:
        return random.choice(VALUES)
    if isinstance(value, dict):
        return {
            key if random.random() > 0.02 else "other": mutated(each, random)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [
            mutated(each, random) for each in value for _ in range(random.choice((0, 1, 1, 1, 2)))
        ]
    return value


def answered(target: str, answers: dict[str, Any]) -> LiveState:
    """Return the state that a target reads from answers, by the words of the questions."""
    options = {"queue": "tpu"} if target == "gke" else {}
    questions = live_questions(
        job(target, "v6e-16", environment={"region": "us-east5"}, options=options)
    )
    assert questions is not None
    answer: Any = None
    try:
        while True:
            question = questions.send(answer)
            line = " ".join(question.argv)
            answer = next((value for words, value in answers.items() if words in line), None)
            if question.is_log and not isinstance(answer, str):
                answer = json.dumps(answer)
    except StopIteration as end:
        state: LiveState = end.value
        return state


@given(st.sampled_from(TARGETS), st.randoms(use_true_random=False))
def test_any_answer_becomes_a_row(target: str, random: Random) -> None:
    """Missing fields, other types and impossible times are unknown values, and the row is printed in each format."""
    status = condition(
        random.choice(("Failed", "Completed", "Suspended")), random.choice(("True", "False"))
    )
    answers = {**FURTHER, **RUNNING[target]}
    if target == "gke":
        answers["get jobset/"] = jobset(
            status, restarts=random.choice((0, 2)), suspend=random.random() < 0.5
        )
    spec = project(target, "v6e-16", environment={"region": "us-east5"}, prices={"v6e": 2})
    ((one, body),) = compile_project(spec, Catalog()).request_bodies
    state = answered(target, {words: mutated(answer, random) for words, answer in answers.items()})
    now = datetime.now(UTC)
    live = live_job(spec, one, body, LiveAnswers(state), now)
    ladder = ladder_status(spec, Catalog(), spec.environments["dev"], Path("none"))
    section = live_section(ladder, [live], now)
    printed = [*map(str, section.lines), *(text or "" for row in section.rows for _, text in row)]
    assert all(text.isprintable() and len(text) < 2_000 for text in printed)
    assert json.loads(json_text(live_data(live, ladder)))
