"""The state of running jobs, as stand-ins of kubectl and gcloud print it."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from jobs import IMAGE, job, program, project
from live_answers import (
    NO_CAPACITY,
    NO_QUOTA,
    RUNNING,
    START,
    STEPS,
    Answers,
    Failing,
    condition,
    entries,
    install_clients,
    jobset,
    pod,
    pods,
    workloads,
)
from tpucfg.catalog import Catalog
from tpucfg.plan import Selection
from tpucfg.render.pipeline import compile_project
from tpucfg.results.live import LiveJob, ServiceClient, live_jobs, shown

SIZES = {"vertex-ai": "v2-8", "ai-platform": "v2-8"}
"""The size of the jobs of a target; v6e-16 on the others."""
NOW = datetime.fromisoformat(START) + timedelta(hours=2)
Ask = Callable[..., LiveJob]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return a function that asks about the only job of a target."""

    def live_job(
        target: str, answers: Answers, *, run: str | None = None, **changes: Any
    ) -> LiveJob:
        install_clients(tmp_path / "bin", answers)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
        size = SIZES.get(target, "v6e-16")
        if target == "ai-platform":
            runtime = {"runtime": "2.2", "worker_image": IMAGE}
            changes = changes | {"trainer": runtime | changes.get("trainer", {})}
        environment = {} if target in SIZES else {"region": "us-east5"}
        prices = {"v2": 1, "v6e": 2}
        spec = project(target, size, environment=environment, prices=prices, **changes)
        compiled = compile_project(spec, Catalog(), Selection(run=run))
        (live,) = live_jobs(spec, compiled.request_bodies, NOW)
        return live

    return live_job


def calls(folder: Path) -> list[str]:
    """Return the command lines of the clients."""
    return (folder / "bin" / "calls").read_text().splitlines()


def test_a_service_that_has_ended_is_not_asked(ask: Ask, tmp_path: Path) -> None:
    """The state of a job of AI Platform Training is unknown, with the reason, and no client is started."""
    live = ask("ai-platform", {})
    assert live.state.state == "unknown"
    assert [each.message for each in live.unanswered] == [
        "ai-platform cannot be asked about its jobs"
    ]
    assert calls(tmp_path) == []


@pytest.mark.parametrize(
    ("target", "seconds"),
    [("gke", 3), ("vertex-ai", 0.5), ("compute-engine", 0.5)],
)
def test_a_running_job_has_its_step_and_its_cost(
    ask: Ask, tmp_path: Path, target: str, seconds: float
) -> None:
    """Each service's answers are read: running for two hours, at step 120, with the time of a step and its cost."""
    live = ask(target, RUNNING[target])
    chips, price = (4, 1) if target in SIZES else (16, 2)
    assert live.unanswered == ()
    assert (live.state.state, live.step, live.step_seconds) == ("running", 120, Fraction(seconds))
    assert (live.usd, live.max_usd) == (Fraction(2 * chips * price), None)
    assert len(calls(tmp_path)) == (3 if target == "gke" else 2)


def test_cloud_tpu_names_the_command_of_its_log(ask: Ask) -> None:
    """No read-only command gets the log of a TPU VM, so the command that does is shown and not run."""
    live = ask("cloud-tpu", RUNNING["cloud-tpu"])
    assert (live.state.state, live.step, live.usd) == ("running", None, Fraction(64))
    assert live.state.log_command
    assert "ssh" in live.state.log_command.argv


@pytest.mark.parametrize("target", RUNNING)
def test_a_job_that_is_not_there_is_no_failure(ask: Ask, tmp_path: Path, target: str) -> None:
    """An empty answer means that there is no such job, and no log is asked for."""
    live = ask(target, {})
    assert (live.state.state, live.unanswered, live.usd) == ("not found", (), None)
    assert not [line for line in calls(tmp_path) if "log" in line]


@pytest.mark.parametrize("target", RUNNING)
def test_the_most_that_a_run_can_cost_is_beside_its_cost(ask: Ask, target: str) -> None:
    """With `max_run_duration`, the cost so far has its bound."""
    chips, price = (4, 1) if target in SIZES else (16, 2)
    assert (
        ask(target, RUNNING[target], trainer={"max_run_duration": "12h"}).max_usd
        == 12 * chips * price
    )


ENDED = condition("Completed", lastTransitionTime="2026-03-01T11:00:00Z")
BROKEN = condition("Failed", message="jobset failed due to one or more job failures")
UNSCHEDULABLE = condition(
    "PodScheduled", "False", reason="Unschedulable", message="0/8 nodes are available"
)
PULL = {
    "name": "trainer",
    "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}},
}


NO_ACCOUNT = (
    'Error creating: pods "mnist-dev-v6e-16-slice-0-0-" is forbidden: serviceaccount "x" not found'
)
EVENTS = {
    "items": [
        {"involvedObject": {"kind": "Job", "name": "other-slice-0"}, "message": "of another job"},
        {
            "involvedObject": {"kind": "Job", "name": "mnist-dev-v6e-16-slice-0"},
            "message": NO_ACCOUNT,
        },
    ]
}
TOO_LONG = "exceeding the maximum execution time"
EVICTED = condition(
    "Evicted", reason="DeactivatedDueToMaximumExecutionTimeExceeded", message=TOO_LONG
)
DEACTIVATED = {"items": [{"spec": {"active": False}, "status": {"conditions": [EVICTED]}}]}


@pytest.mark.parametrize(
    ("answers", "state", "reason", "usd"),
    [
        (
            {"get jobset/": jobset(ENDED), "get pods": pods(pod(0, "Succeeded"))},
            "succeeded",
            "",
            32,
        ),
        (
            {"get jobset/": jobset(BROKEN), "get pods": pods(pod(0, "Failed"))},
            "failed",
            BROKEN["message"],
            32,
        ),
        ({"get jobset/": jobset(), "get pods": pods()}, "waiting", "", None),
        (
            {"get jobset/": jobset(), "get pods": pods(), "get events": EVENTS},
            "waiting",
            NO_ACCOUNT,
            None,
        ),
        (
            {
                "get jobset/": jobset(),
                "get pods": pods(pod(0, "Pending", conditions=[UNSCHEDULABLE])),
            },
            "waiting",
            "Unschedulable: 0/8 nodes are available",
            None,
        ),
        (
            {
                "get jobset/": jobset(),
                "get pods": pods(pod(0), pod(1, "Pending", containerStatuses=[PULL])),
            },
            "waiting",
            "ImagePullBackOff: Back-off pulling image",
            64,
        ),
        (
            {"get jobset/": jobset(suspend=True), "get workloads": workloads()},
            "waiting",
            NO_QUOTA,
            None,
        ),
        (
            {"get jobset/": jobset(suspend=True), "get workloads": DEACTIVATED},
            "stopped",
            TOO_LONG,
            None,
        ),
    ],
    ids=[
        "ended",
        "failed",
        "no pods yet",
        "no account",
        "no nodes",
        "no image",
        "in a queue",
        "after its time",
    ],
)
def test_gke_states_why_a_job_waits(
    ask: Ask, answers: Answers, state: str, reason: str, usd: int | None
) -> None:
    """The reason is that of the JobSet, of a pod, or of Kueue; machines are charged from the first pod's start."""
    live = ask("gke", answers, options={"queue": "tpu"})
    assert (live.state.state, live.state.reason, live.usd) == (state, reason, usd)


def test_a_restarted_jobset_is_charged_from_its_admission(ask: Ask) -> None:
    """The pods of earlier attempts are gone, so the cost counts from the time at which the JobSet was resumed."""
    resumed = condition("Suspended", "False", lastTransitionTime="2026-03-01T09:30:00Z")
    answers = {**RUNNING["gke"], "get jobset/": jobset(resumed, restarts=2)}
    live = ask("gke", answers)
    assert (live.state.restarts, live.usd) == (2, Fraction(5, 2) * 32)
    assert ask("gke", {**answers, "get jobset/": jobset(restarts=1)}).usd == 3 * 32


def queued(state: str, **data: Any) -> Answers:
    """Return the answer about a request in a state."""
    (request,) = RUNNING["cloud-tpu"]["queued-resources list"]
    return {
        **RUNNING["cloud-tpu"],
        "queued-resources list": [{**request, "state": {"state": state, **data}}],
    }


@pytest.mark.parametrize(
    ("target", "answers", "state", "reason"),
    [
        ("cloud-tpu", queued("WAITING_FOR_RESOURCES"), "waiting", ""),
        ("cloud-tpu", queued("SUSPENDED"), "stopped", "its machines are gone"),
        (
            "cloud-tpu",
            queued("FAILED", failedData={"error": {"code": 8, "message": "no quota"}}),
            "failed",
            "no quota",
        ),
        ("cloud-tpu", queued("NEW_WORD"), "unknown", ""),
        (
            "vertex-ai",
            {
                "custom-jobs list": [
                    {"name": "j/1", "state": "JOB_STATE_FAILED", "error": {"message": "no image"}}
                ]
            },
            "failed",
            "no image",
        ),
        (
            "vertex-ai",
            {"custom-jobs list": [{"name": "j/1", "state": "JOB_STATE_PENDING"}]},
            "waiting",
            "",
        ),
        (
            "compute-engine",
            {
                "managed list-errors": [{"error": {"message": NO_CAPACITY}}],
                "managed list": [{"name": "mnist-dev-v6e-16"}],
            },
            "waiting",
            NO_CAPACITY,
        ),
        (
            "compute-engine",
            {"instances list": RUNNING["compute-engine"]["instances list"][:3]},
            "running",
            "",
        ),
        (
            "compute-engine",
            {
                "instances list": [
                    {"status": "RUNNING"},
                    {"status": "TERMINATED"},
                    *[{"status": "RUNNING"}] * 2,
                ]
            },
            "stopped",
            "",
        ),
    ],
)
def test_a_service_states_its_reason(
    ask: Ask, target: str, answers: Answers, state: str, reason: str
) -> None:
    """Words of the services become one of a few states, and their reason is kept."""
    live = ask(target, answers)
    assert live.state.state == state
    assert live.state.reason.startswith(reason)
    assert bool(live.state.reason) == bool(reason)


def test_only_the_labels_find_instances(ask: Ask, tmp_path: Path) -> None:
    """Another run of the same size has instances whose names begin alike, and other labels."""
    ask("compute-engine", {}, run="a1")
    assert "labels.tpucfg-size=v6e-16 AND labels.tpucfg-run=a1" in calls(tmp_path)[0]


# Failures


@pytest.mark.parametrize("target", RUNNING)
def test_a_missing_client_is_named(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: str
) -> None:
    """Without its client, a job is unknown, and the line has the command to try."""
    monkeypatch.setattr("tpucfg.results.live.shutil.which", lambda _: None)
    live = ask(target, RUNNING[target])
    (unanswered,) = live.unanswered
    client = "kubectl" if target == "gke" else "gcloud"
    assert live.state.state == "unknown"
    assert unanswered.message == f"{client} is not on the PATH: install it"
    assert unanswered.command.startswith(f"{client} ")
    assert calls(tmp_path) == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            Failing("WARNING: old\nERROR: (gcloud.ai) PERMISSION_DENIED: no\naccess\n"),
            "gcloud: ERROR: (gcloud.ai) PERM",
        ),
        (Failing(""), "gcloud exited with status 1"),
        ('[{"name": "x"', "gcloud printed incomplete JSON, or none"),
        ("[" * 100_000, "gcloud printed incomplete JSON, or none"),
        ("<html>proxy</html>", "gcloud printed incomplete JSON, or none"),
    ],
)
def test_a_service_that_does_not_answer_is_named(ask: Ask, answer: str, message: str) -> None:
    """An error or half a list leaves the job unknown, with the failure and the command."""
    live = ask("vertex-ai", {"custom-jobs list": answer})
    (unanswered,) = live.unanswered
    assert live.state.state == "unknown"
    assert unanswered.message.startswith(message)
    assert unanswered.command.startswith("gcloud ai custom-jobs list ")


@pytest.mark.slow
@pytest.mark.parametrize("answer", [None, "text", [[]], {"metadata": {"name": "x"}, "status": [7]}])
@pytest.mark.parametrize("target", RUNNING)
def test_answers_of_another_form_are_no_crash(ask: Ask, target: str, answer: Any) -> None:
    """A service may send any JSON: nothing is read from what has another form."""
    forms: Mapping[str, Any] = {
        key: [answer, {"state": answer, "status": answer}] for key in RUNNING[target]
    }
    assert ask(target, forms).step is None
    assert ask(target, dict.fromkeys(RUNNING[target], answer)).step is None


def test_a_failed_question_leaves_the_rest(ask: Ask) -> None:
    """If the log cannot be read, the state and the cost are known all the same."""
    live = ask(
        "vertex-ai", {**RUNNING["vertex-ai"], "logging read": Failing("ERROR: no permission")}
    )
    assert (live.state.state, live.step, live.usd) == ("running", None, Fraction(8))
    assert live.unanswered[0].message == "gcloud: ERROR: no permission"
    live = ask("gke", {**RUNNING["gke"], "get pods": Failing("Error from server (Forbidden): no")})
    assert (live.state.state, live.state.restarts, len(live.unanswered)) == ("unknown", 0, 1)


@pytest.mark.parametrize(
    ("log", "step", "message"),
    [
        (entries("loss 0.5"), None, "none of the last 200 lines of its log has a step"),
        (entries('{"step": 40, "loss": 1}', '{"step": 60, "loss": 1}'), 60, ""),
        (
            entries("step 1e99 of 5: x", "step 99999999999999999 of 5: x"),
            None,
            "none of the last 200",
        ),
        (
            '[\n  {\n    "timestamp": "2026-03-01T10:00:00Z",\n    "textPayload": "step 20 of 40: x"\n  },\n  {\n ',
            20,
            "the client printed half",
        ),
        ([], None, ""),
    ],
)
def test_a_log_shows_its_last_step_or_a_line(
    ask: Ask, log: Any, step: int | None, message: str
) -> None:
    """Lines of the included trainer and of JSON are read; a log without steps, or half of one, is named."""
    live = ask("vertex-ai", {**RUNNING["vertex-ai"], "logging read": log})
    assert live.step == step
    assert [each.message[: len(message)] for each in live.unanswered] == (
        [message] if message else []
    )


def test_a_step_of_maxtext_has_its_own_time(ask: Ask) -> None:
    """MaxText prints the time of each step; the first ones, which compile, are left out."""
    lines = [
        f"completed step: {step}, seconds: {60.0 if step < 10 else 1.25}, TFLOP/s/device: 70.1, loss: 9.2"
        for step in range(8, 30)
    ]
    training = {"tuned_on": "v6e-16", "batch_size": 16, "train_steps": 1000, "flags": "maxtext"}
    live = ask(
        "gke",
        {**RUNNING["gke"], "logs": "".join(f"2026-03-01T10:00:00Z {line}\n" for line in lines)},
        training=training,
    )
    assert (live.step, live.step_seconds) == (29, Fraction(5, 4))


def test_a_restart_begins_at_an_earlier_step(ask: Ask) -> None:
    """The last step is that of the newest line, not the highest."""
    live = ask(
        "vertex-ai",
        {**RUNNING["vertex-ai"], "logging read": entries(*STEPS, "step 80 of 1,000: loss 0.5")},
    )
    assert (live.step, live.step_seconds) == (80, Fraction(1, 2))


def test_a_client_that_hangs_is_killed_with_what_it_started(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question ends after its time limit, also if a process that the client started keeps the pipe open."""
    monkeypatch.setattr("tpucfg.results.live.TIME_LIMIT_SECONDS", 0.5)
    monkeypatch.setattr(
        "live_answers.program", lambda folder, name, _: program(folder, name, "sleep 60 & sleep 60")
    )
    started = datetime.now(UTC)
    live = ask("vertex-ai", {})
    assert [each.message for each in live.unanswered] == [
        "gcloud gave no answer within 0.5 seconds"
    ]
    assert datetime.now(UTC) - started < timedelta(seconds=20)


def test_an_answer_without_end_is_cut(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of an answer is bounded."""
    monkeypatch.setattr("tpucfg.results.live.MAX_ANSWER_BYTES", 1 << 20)
    monkeypatch.setattr(
        "live_answers.program", lambda folder, name, _: program(folder, name, "exec yes")
    )
    live = ask("gke", {})
    assert [each.message for each in live.unanswered] == ["kubectl printed more than 1 MiB"]


def test_a_missing_cluster_is_named() -> None:
    """Without a context, nothing is asked: kubectl's current one may be another cluster."""
    spec = job("gke", "v6e-16", environment={"region": "us-east5"})
    nowhere = spec._replace(environment=spec.environment._replace(kube_context=None))
    client = ServiceClient()
    state, (unanswered,) = client.ask(nowhere)
    assert state.state == "unknown"
    assert "dev has no cluster" in unanswered.message
    assert "environments.dev.cluster" in unanswered.message


def test_a_text_of_a_service_is_bounded_and_without_credentials() -> None:
    """Escape sequences are escaped, a token is blanked, and a long text is cut, also one without end."""
    assert shown("a\x1b[31m\nb  c") == "a\\u001b[31m b c"
    assert "ya29" not in shown("token ya29.a0AfH6SMBx1234567890 refused")
    assert len(shown("x" * 10**6)) == 301
