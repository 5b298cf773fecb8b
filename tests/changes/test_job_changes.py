"""Sentences about changed fields of jobs."""

from typing import Any, Final

import pytest

from spec_changes import impact, statements
from spec_factory import spec
from tpucfg.changes.facts import Risk

_LOCATIONS: Final = {
    name: {"project": f"my-project-{name}", "region": "us-central1", "kube_context": "c"}
    for name in ("dev", "prod")
}
_GKE: Final[dict[str, Any]] = {
    "target": "gke",
    "sizes": ["v6e-8", "v6e-16"],
    "training__tuned_on": "v6e-8",
}


def cautions(before: Any, after: Any) -> list[str]:
    """Return the statements with a risk."""
    return [located.plain for located in impact(before, after).statements if located.statement.risk]


def vertex(**options: Any) -> dict[str, Any]:
    """Return a spec with options of Vertex AI."""
    return spec(targets={"vertex-ai": options})


def test_arguments_and_variables_are_named_once_for_all_sizes() -> None:
    """All arguments are one sentence and all variables another; the sizes in them are placeholders."""
    before = spec(
        trainer__args={"a": "1", "b": "2", "dir": "${job_dir}"}, trainer__env={"LOG": "1"}
    )
    after = spec(
        trainer__args={"b": "3", "dir": "${job_dir}/x", "fast": None},
        trainer__env={"LOG": "2", "NEW": "0"},
    )
    moved = "--dir changed from ${job_dir} to ${job_dir}/x"
    assert statements(before, after) == [
        f"every config: arguments --b changed from 2 to 3, {moved}, --fast added, --a removed (was 1)",
        "every config: variables LOG changed from 1 to 2, NEW added (0)",
    ]


def test_what_other_statements_explain_is_not_repeated() -> None:
    """Figures, and values that follow a renamed bucket, image or account, have statements of their own."""
    args = {"trainer__args": {"dir": "${job_dir}", "data": "${bucket}/x"}}
    text = " ".join(
        statements(
            spec(**args),
            spec(**args, name="digits", training__batch_size=2048, trainer__env={"A": "1"}),
        )
    )

    assert "variable A added (1)" in text
    assert not {"--dir", "--data", "--batch_size", "service account", "output folder"} & {
        *text.split()
    }


@pytest.mark.parametrize(
    "target", ["vertex-ai", "cloud-tpu", "compute-engine", "gke", "ai-platform"]
)
def test_every_target_names_its_arguments(target: str) -> None:
    """The program's flags have names wherever a target stores them, even in a script and with several lines."""
    others: dict[str, Any] = {"target": target, "environments": _LOCATIONS, "sizes": ["v2-8"]}
    if target in ("gke", "compute-engine"):
        others |= {"sizes": ["v6e-8"], "training__tuned_on": "v6e-8"}
    if target == "ai-platform":
        others["trainer__runtime"] = "2.2"
    value = "it's\n--x=$(id)"

    reported = statements(
        spec(**others, trainer__args={"a": "1"}), spec(**others, trainer__args={"a": value})
    )

    assert reported == ["every config: argument --a changed from 1 to it's\\u000a--x=$(id)"]


def test_another_target_is_compared_by_meaning() -> None:
    """Arguments and variables that stay equal are not mentioned when the fields around them have other names."""
    args = {"trainer__args": {"a": "1", "b": "2"}, "trainer__env": {"A": "x\ny"}}
    after = spec(**args, target="cloud-tpu") | {
        "trainer": {**spec(**args)["trainer"], "args": {"a": "1", "b": "3"}}
    }

    assert statements(spec(**args), after) == [
        "dev: setting target changed from vertex-ai to cloud-tpu",
        "every config: argument --b changed from 2 to 3",
    ]


@pytest.mark.parametrize(
    ("before", "after", "caution"),
    [
        (
            "us-docker.pkg.dev/p/a/i:1",
            "us-docker.pkg.dev/p/b/j:2",
            "code comes from us-docker.pkg.dev/p/b/j",
        ),
        ("localhost:5000/i:1", "localhost:5000/i:2", ""),
        (
            "us-docker.pkg.dev/p/a/i:1",
            "eu-docker.pkg.dev/p/a/i:1",
            "code comes from eu-docker.pkg.dev/p/a/i",
        ),
        (
            "gcr.io/example.com/p/i:1",
            "gcr.io/example.com/q/i:1",
            "code comes from gcr.io/example.com/q/i",
        ),
        ("docker.io/library/i:1", "docker.io/evil/i:1", "code comes from docker.io/evil/i"),
        ("r.io/a/i@sha256:" + "a" * 64, "r.io/a/i@sha256:" + "b" * 64, ""),
        ("r.io/a/i@sha256:" + "a" * 64, "r.io/a/i:1", "the digest that fixed its content is gone"),
        ("r.io/a/i:1", "r.io/a/i", "its tag can mean another image at any time"),
        ("r.io/a/i", "r.io/a/i:latest", ""),
    ],
)
def test_source_of_an_image_is_judged(before: str, after: str, caution: str) -> None:
    """Another image, a lost digest and a tag that can change are cautions; a new version is none."""
    reported = cautions(spec(trainer__image=before), spec(trainer__image=after))

    assert (caution in reported[0]) if caution else reported == []


def test_account_of_the_stack_is_no_caution() -> None:
    """Only an account that the stack does not create is a caution."""
    other = vertex(service_account="a@p.iam.gserviceaccount.com")

    assert len(cautions(spec(), other)) == 1
    assert cautions(other, spec()) == []


def test_new_environment_has_only_its_dangers() -> None:
    """Of a new environment or size the dangerous fields are named, unless the environment had them before."""
    extra = {"targets": {"vertex-ai": {"extra": {"enableWebAccess": True}}}}
    text = "field enableWebAccess added (true): people can open a shell in the running job"
    dev = {"dev": _LOCATIONS["dev"]}

    assert cautions(None, spec(**extra)) == [f"every config: {text}"]
    assert cautions(spec(**extra, environments=dev), spec(**extra, environments=_LOCATIONS)) == [
        f"every size of prod: {text}"
    ]
    assert cautions(spec(**extra, sizes=["v2-8"]), spec(**extra)) == []
    assert cautions(spec(environments=dev), spec(environments=_LOCATIONS)) == []


@pytest.mark.slow
def test_huge_extra_hides_nothing() -> None:
    """Of thousands of new fields the dangerous ones have statements of their own."""
    annotations = {f"a{number}": "x" * 50 for number in range(1500)}
    template = {"spec": {"template": {"spec": {"hostPID": True}}}}
    pod = {"spec": {"replicatedJobs": [{"name": "slice", "template": template}]}}
    before = spec(**_GKE, environments=_LOCATIONS)
    reported = impact(
        before,
        {**before, "targets": {"gke": {"extra": {"metadata": {"annotations": annotations}} | pod}}},
    )

    assert any("hostPID added" in located.plain for located in reported.statements)


def test_highest_risk_is_listed_first() -> None:
    """Cautions are sorted by risk."""
    after = vertex(service_account="a@p.iam.gserviceaccount.com", extra={"network": "n"})
    risks = [located.statement.risk for located in impact(spec(), after).statements]

    assert risks == [Risk.ACCESS, Risk.CAUTION]
