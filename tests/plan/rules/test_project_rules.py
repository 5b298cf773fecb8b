"""Rules about the whole spec, which stop every command whatever it selects."""

from typing import Any

import pytest

from spec_factory import finding_with_id, ids, missing_words, planned, spec


def test_an_unknown_size_is_an_error() -> None:
    """Each unknown size has a finding with the most similar size, and no job is planned."""
    result = planned(spec(sizes=["v2-8", "v5e-16", "v2-31"], training__tuned_on="v3-16"))
    assert result.jobs == ()
    assert ids(result.findings) == ["TPU020"] * 3
    assert [finding.message.split()[0] for finding in result.findings] == [
        "v5e-16",
        "v2-31",
        "v3-16",
    ]
    assert [finding.help for finding in result.findings[:2]] == [
        "did you mean v5litepod-16?",
        "did you mean v2-32?",
    ]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (["v2-32", "v2-8"], ["v2-8 has 8 cores", "v2-32", "32", "[v2-8, v2-32]"]),
        (["v2-8", "v2-8"], ["v2-8", "twice"]),
        (["v2-8", "v3-8"], ["v3-8 has 8 cores", "v2-8"]),
        (
            ["v2-8", "v2-128", "v2-32"],
            ["v2-32 has 32 cores", "v2-128", "128", "[v2-8, v2-32, v2-128]"],
        ),
    ],
)
def test_a_ladder_must_rise(sizes: list[str], words: list[str]) -> None:
    """The cores rise from rung to rung; the finding shows both rungs, their cores and the right order."""
    finding = finding_with_id("TPU023", planned(spec(sizes=sizes)).findings)
    assert missing_words(finding, *words) == []
    assert len(finding.related) == 1


def test_a_shared_ladder_is_checked_once() -> None:
    """A mistake in the top-level ladder of three environments is one finding."""
    environments = {
        name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("a", "b", "c")
    }
    assert ids(planned(spec(environments=environments, sizes=["v2-32", "v2-8"])).findings) == [
        "TPU023"
    ]


def test_an_entry_for_a_size_of_no_ladder_is_an_error() -> None:
    """An override is checked against all ladders, and a zone against that of its environment."""
    result = planned(
        spec(
            overrides={"v2-128": {"batch_size": 1024}, "v2-8": {"batch_size": 1024}},
            environments__dev__zones={"v3-8": "us-central1-a"},
        )
    )
    assert ids(result.findings) == ["TPU025", "TPU025"]
    zones, overrides = result.findings
    assert missing_words(zones, "environments.dev.zones", "v3-8") == []
    assert missing_words(overrides, "overrides", "v2-128") == []


def test_a_size_is_no_fallback_of_itself() -> None:
    """A run moves to another size; the help leaves the others of the list."""
    result = planned(spec(overrides={"v2-32": {"fallback": ["v2-32", "v2-8"]}}))
    (finding,) = result.findings
    assert (finding.id, finding.help) == ("TPU025", "delete overrides.v2-32.fallback[0]")
    assert missing_words(finding, "v2-32 cannot move to its own size") == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"trainer__args": {"batch_size": 1}},
            "--batch_size would be given twice: by trainer.args.batch_size and by training.batch_size",
        ),
        (
            {"trainer__args": {"bs": 1}, "training__flags": {"batch_size": "bs"}},
            "--bs would be given twice: by trainer.args.bs",
        ),
        (
            {"overrides": {"v2-32": {"args": {"train_steps": 1}}}},
            "--train_steps would be given twice: by overrides.v2-32.args",
        ),
        (
            {"training__flags": {"batch_size": "n", "train_steps": "n"}},
            "--n would be given 2 times: for batch_size and for train_steps",
        ),
        (
            {"training__steps": {"w": 1}, "training__flags": {"w": "batch_size"}},
            "--batch_size would be given 2 times",
        ),
        (
            {"training__grad_accum": 4, "trainer__args": {"grad_accum": 1}},
            "--grad_accum would be given twice: by trainer.args.grad_accum and by training.grad_accum",
        ),
        (
            {"training__batch_rule": "keep", "trainer__args": {"grad_accum": 1}},
            "--grad_accum would be given twice: by trainer.args.grad_accum and by training.grad_accum",
        ),
        (
            {
                "training": {
                    "tuned_on": "v2-8",
                    "batch_size": 8,
                    "sequence_length": 2,
                    "train_tokens": 16,
                },
                "trainer__args": {"train_steps": 1},
            },
            "--train_steps would be given twice: by trainer.args.train_steps and by training.train_tokens",
        ),
    ],
)
def test_a_flag_given_twice_is_an_error(change: dict[str, Any], expected: str) -> None:
    """Which of two equal flags counts depends on the program, so they are refused."""
    assert finding_with_id("TPU050", planned(spec(**change)).findings).message.startswith(expected)


def test_a_disabled_flag_may_be_an_argument() -> None:
    """If a figure has no flag, args may use its name."""
    data = spec(trainer__args={"batch_size": "${batch_size}"}, training__flags={"batch_size": None})
    assert planned(data).findings == ()
    assert planned(data).jobs[0].args == (
        "--batch_size=1024",
        "--train_steps=4000",
        "--learning_rate=0.1",
    )


def test_two_environments_cannot_share_a_bucket() -> None:
    """The finding shows both environments, also if one name is the default."""
    other = {
        "project": "my-project-x",
        "region": "us-central1",
        "bucket": "my-project-dev-mnist-dev-us-central1",
    }
    finding = finding_with_id("TPU029", planned(spec(environments__other=other)).findings)
    assert finding.message.startswith(
        "other and dev share the bucket my-project-dev-mnist-dev-us-central1"
    )
    assert finding.location.line != finding.related[0][0].line


def test_rules_apply_to_unselected_environments() -> None:
    """A mistake in another environment's ladder is found even if that environment is not selected."""
    other = {"project": "my-project-x", "region": "us-central1", "sizes": ["v2-32", "v2-8"]}
    assert ids(planned(spec(environments__other=other), environments=("dev",)).findings) == [
        "TPU023"
    ]
