"""Rules about the whole spec, which stop every command whatever it selects."""

from typing import Any

import pytest

from spec_factory import ids, missing_words, planned, spec, the


def test_a_size_that_does_not_exist() -> None:
    """Each place that names one has a finding with the size that was likely meant, and no job is planned."""
    result = planned(spec(sizes=["v2-8", "v5e-16", "v2-31"], training__tuned_on="v3-16"))
    assert result.jobs == ()
    assert ids(result.findings) == ["TPU020"] * 3
    assert [it.message.split()[0] for it in result.findings] == ["v5e-16", "v2-31", "v3-16"]
    assert [it.help for it in result.findings[:2]] == ["did you mean v5litepod-16?", "did you mean v2-32?"]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (["v2-32", "v2-8"], ["v2-8 has 8 cores", "v2-32", "32", "[v2-8, v2-32]"]),
        (["v2-8", "v2-8"], ["v2-8", "twice"]),
        (["v2-8", "v3-8"], ["v3-8 has 8 cores", "v2-8"]),
        (["v2-8", "v2-128", "v2-32"], ["v2-32 has 32 cores", "v2-128", "128", "[v2-8, v2-32, v2-128]"]),
    ],
)
def test_a_ladder_out_of_order(sizes: list[str], words: list[str]) -> None:
    """A ladder rises in cores from rung to rung; both rungs are shown, with their cores and the edit."""
    finding = the("TPU023", planned(spec(sizes=sizes)).findings)
    assert missing_words(finding, *words) == []
    assert len(finding.related) == 1


def test_a_shared_ladder_is_judged_once() -> None:
    """Three environments that share the ladder at the top share its mistake."""
    environments = {name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("a", "b", "c")}
    assert ids(planned(spec(environments=environments, sizes=["v2-32", "v2-8"])).findings) == ["TPU023"]


def test_overrides_and_zones_of_no_rung() -> None:
    """An entry for a size that no ladder has would change nothing; a zone looks at its own environment's ladder."""
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


@pytest.mark.parametrize(
    ("change", "expected", "help_"),
    [
        (
            {"training__batch_size": 1020},
            "a batch of 1,020 does not divide over the 8 cores of v2-8: 127.5 per core",
            "set training.batch_size to 1024 or 1016",
        ),
        (
            {"training__batch_size": 7},
            "a batch of 7 does not divide over the 8 cores of v2-8: 0.875 per core",
            "set training.batch_size to 8",
        ),
        (
            {"overrides": {"v2-32": {"batch_size": 4000 + 1}}},
            "a batch of 4,001 does not divide over the 32 cores of v2-32: 125.031 per core",
            "set overrides.v2-32.batch_size to 4032 or 4000",
        ),
    ],
)
def test_a_batch_that_does_not_divide(change: dict[str, Any], expected: str, help_: str) -> None:
    """The global batch is a whole number on every core; the nearest batches that are stand in the help."""
    result = planned(spec(**change))
    finding = the("TPU040", result.findings)
    assert (finding.message, finding.help) == (expected, help_)
    assert result.jobs == ()


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
        ({"training__steps": {"w": 1}, "training__flags": {"w": "batch_size"}}, "--batch_size would be given 2 times"),
    ],
)
def test_a_flag_given_twice(change: dict[str, Any], expected: str) -> None:
    """Which of two would win is up to the program, so neither is left to chance."""
    assert the("TPU050", planned(spec(**change)).findings).message.startswith(expected)


def test_a_flag_that_is_left_out_is_not_given() -> None:
    """A figure without a flag leaves the name to args."""
    data = spec(trainer__args={"batch_size": "mine"}, training__flags={"batch_size": None})
    assert planned(data).findings == ()
    assert planned(data).jobs[0].args == ("--batch_size=mine", "--train_steps=4000")


def test_two_environments_with_one_bucket() -> None:
    """Both environments are shown, whether the names are explicit or one is the default."""
    other = {"project": "my-project-x", "region": "us-central1", "bucket": "my-project-dev-mnist-dev-us-central1"}
    finding = the("TPU029", planned(spec(environments__other=other)).findings)
    assert finding.message.startswith("other and dev share the bucket my-project-dev-mnist-dev-us-central1")
    assert finding.location.line != finding.related[0][0].line


def test_they_stop_whatever_is_selected() -> None:
    """A mistake in another environment's ladder is found even if that environment is not selected."""
    other = {"project": "my-project-x", "region": "us-central1", "sizes": ["v2-32", "v2-8"]}
    assert ids(planned(spec(environments__other=other), environments=("dev",)).findings) == ["TPU023"]
