"""Entries of Cloud Logging as a log, in the forms in which people get them."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import pytest

from log_memory import kilobytes_taken
from tpucfg.results.cloud_logging import MAX_ENTRY_LENGTH
from tpucfg.results.log_metrics import LogError, last_metrics

Entry = Mapping[str, Any]
BOTH = ("examples_per_second", "accuracy")


def figures(throughput: float, **more: object) -> dict[str, object]:
    """What the trainer prints at its end."""
    return {"examples_per_second": throughput, "accuracy": 0.97, "step": 4000} | more


def at(minute: int, **payload: object) -> Entry:
    """An entry with the fields that every entry has."""
    return {
        "insertId": f"1ie943xfro8si{minute}",
        "logName": "projects/my-project-dev/logs/workerpool0-0",
        "receiveTimestamp": f"2026-03-01T12:{minute:02}:09.213654987Z",
        "resource": {"labels": {"job_id": "6712345678901234567", "project_id": "my-project-dev"}, "type": "ml_job"},
        "severity": "INFO",
        "timestamp": f"2026-03-01T12:{minute:02}:07.023451776Z",
    } | payload


def vertex(minute: int, line: object) -> Entry:
    """As Vertex AI logs a line: whole, in `message`, whether it is JSON or not."""
    text = line if isinstance(line, str) else json.dumps(line)
    payload = {"attrs": {"tag": "workerpool0-0"}, "levelname": "INFO", "message": f"{text}\n"}
    return at(minute, jsonPayload=payload, labels={"ml.googleapis.com/tpu_worker_id": ""})


def gke(minute: int, line: object) -> Entry:
    """As GKE's agent logs a line: taken apart where it is one JSON object, else as text."""
    labels = {"k8s-pod/jobset_sigs_k8s_io/jobset-name": "mnist-dev-v6e-16"}
    resource = {"labels": {"container_name": "trainer", "namespace_name": "training"}, "type": "k8s_container"}
    payload = {"textPayload": line} if isinstance(line, str) else {"jsonPayload": line}
    return at(minute, labels=labels, resource=resource, **payload)


def gcloud(entries: Sequence[Entry]) -> str:
    """As `gcloud logging read --format=json` prints entries."""
    return json.dumps(entries, indent=2, sort_keys=True) + "\n"


def compact(entries: Sequence[Entry]) -> str:
    """As `jq --compact-output` prints the same."""
    return json.dumps(entries, separators=(",", ":")) + "\n"


def sink(entries: Sequence[Entry]) -> str:
    """As a sink writes entries to Cloud Storage."""
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def found(log: str | bytes, wanted: Sequence[str] = BOTH) -> dict[str, float]:
    """What a log gives."""
    content = log if isinstance(log, bytes) else log.encode()
    return dict(last_metrics(io.BytesIO(content), "train.json", wanted).metrics)


def copied(entries: Sequence[Entry]) -> str:
    """As `jq '.[]'` prints entries, and as one is copied from the Logs Explorer."""
    return "".join(json.dumps(entry, indent=2) + "\n" for entry in entries)


EVERY_FORM = pytest.mark.parametrize("form", [gcloud, compact, sink, copied])
EVERY_SERVICE = pytest.mark.parametrize("service", [vertex, gke])
Form = Callable[[Sequence[Entry]], str]


@EVERY_FORM
@EVERY_SERVICE
@pytest.mark.parametrize("newest_first", [True, False])
def test_the_latest_measurement_counts_in_either_order(
    form: Form, service: Callable[[int, object], Entry], newest_first: bool
) -> None:
    """Entries are compared by their time, and not by where they stand."""
    printed = ["starting", figures(10), "step 2000: loss 1.93", figures(20.5), {"examples_per_second": 30}, "done"]
    entries = [service(minute, line) for minute, line in enumerate(printed)]
    assert found(form(entries[::-1] if newest_first else entries)) == {"examples_per_second": 20.5, "accuracy": 0.97}


def test_the_moments_are_compared_and_not_their_text() -> None:
    """A time has no fraction, three digits or nine, and may be of another zone; what has none is older."""
    times = [
        None,
        "yesterday",
        "2026-13-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00.5Z",
        "2026-03-01T12:00:00.500000001Z",
        "2026-03-01T11:30:01-00:30",
        "2026-03-01T12:00:02.000Z",
    ]
    for later in range(1, len(times)):
        for earlier in range(later):
            if times[later] in times[:4] and earlier < 3:
                continue
            pair = [{**at(0, jsonPayload=figures(number)), "timestamp": times[number]} for number in (later, earlier)]
            assert found(gcloud(pair))["examples_per_second"] == later, (times[earlier], times[later])


def test_of_one_moment_the_order_is_that_of_the_service() -> None:
    """Cloud Logging orders entries of the same time by their ids; without those the last in the log counts."""
    same = [{**at(0, jsonPayload=figures(number)), "insertId": id_} for number, id_ in ((1, "b"), (2, "a"))]
    assert found(gcloud(same))["examples_per_second"] == 1
    assert found(sink(same[::-1]))["examples_per_second"] == 1
    bare = [{"jsonPayload": figures(number)} for number in (1, 2)]
    assert found(gcloud(bare))["examples_per_second"] == 2


def test_an_entry_of_several_lines() -> None:
    """An agent may put lines that came at once into one entry: the last of them that has everything counts."""
    text = f"step 1\n{json.dumps(figures(1))}\n[mnist-0] {json.dumps(figures(2))}\ndone {{}}\n"
    assert found(gcloud([at(0, textPayload=text)]))["examples_per_second"] == 2
    assert found(sink([at(0, jsonPayload={"message": text})]))["examples_per_second"] == 2


def test_a_message_beside_the_figures() -> None:
    """A trainer that logs in a structured way has its figures beside the message."""
    assert found(gcloud([at(0, jsonPayload=figures(3, message="training is done"))]))["examples_per_second"] == 3


@pytest.mark.parametrize(
    "entry",
    [
        at(0, protoPayload=figures(1)),
        at(0, protoPayload={"message": json.dumps(figures(1))}),
        at(0, textPayload="", **figures(1)),
        at(0, textPayload="", labels=figures(1)),
        at(0, jsonPayload={"request": figures(1)}),
        at(0, jsonPayload={"message": figures(1)}),
        at(0, jsonPayload=[figures(1)]),
        at(0, textPayload=figures(1)),
        at(0, textPayload=None, jsonPayload=None),
    ],
)
@EVERY_FORM
def test_only_what_was_printed_is_a_measurement(form: Form, entry: Entry) -> None:
    """An audit record, a label or a request that holds such names is none."""
    with pytest.raises(LogError, match="no line of JSON with examples_per_second and accuracy"):
        found(form([entry]))


@EVERY_SERVICE
def test_a_run_that_diverged_is_not_passed_over(service: Callable[[int, object], Entry]) -> None:
    """Cloud Logging writes a number that is none as text, and the entry before is not taken instead."""
    entries = [service(1, figures(1, accuracy="NaN")), service(0, figures(2))]
    with pytest.raises(LogError, match=r"^train\.json:2: accuracy is NaN, which is no finite number") as caught:
        found(gcloud(entries))
    assert "diverged" in caught.value.help


def test_the_place_is_the_line_where_the_entry_begins() -> None:
    """Also in a list that was written over many lines, whatever was read before it."""
    entries = [at(9, textPayload="x" * (MAX_ENTRY_LENGTH // 3)) for _ in range(7)]
    log = gcloud([*entries, at(10, jsonPayload={"accuracy": "high", "examples_per_second": 1})])
    line = next(number for number, row in enumerate(log.split("\n"), 1) if "1ie943xfro8si10" in row) - 1
    with pytest.raises(LogError, match=f"^train.json:{line}: accuracy is"):
        found(log)


@pytest.mark.parametrize("form", [gcloud, compact])
def test_a_list_that_is_cut_off_is_refused(form: Form) -> None:
    """What is missing may hold the last measurement, so an earlier one is not taken; wherever the list ends."""
    log = form([vertex(0, figures(1)), vertex(1, "done")]).rstrip()
    first = len(form([vertex(0, figures(1))]).rstrip("]\n"))
    for end in range(len(log)):
        with pytest.raises(LogError) as caught:
            found(log[:end])
        assert ("cut off" in str(caught.value)) == (end >= first), log[:end]
    assert found(log)["accuracy"] == 0.97


@pytest.mark.parametrize("broken", ["1,", "null,", "[],", "]", '{"a": }', "{" * 3000])
def test_a_broken_list_is_refused(broken: str) -> None:
    """What is no list of entries all through is not believed in part."""
    log = f"[{json.dumps(gke(0, figures(1)))},{broken}{json.dumps(gke(1, figures(2)))}]"
    if broken == "]":
        assert found(log)["examples_per_second"] == 1
        return
    with pytest.raises(LogError, match="cut off, or broken"):
        found(log)


def test_no_entries() -> None:
    """The most likely reason is that gcloud looks back for a day only."""
    with pytest.raises(LogError, match=r"^train\.json has no log entries") as caught:
        found("[]\n")
    assert "--freshness" in caught.value.help


@pytest.mark.parametrize("form", [gcloud, compact])
def test_entries_without_the_measurement(form: Form) -> None:
    """It may be older than what was fetched: the help says how to fetch more."""
    with pytest.raises(LogError, match=r"^train\.json has no line of JSON with ") as caught:
        found(form([vertex(0, "starting")]))
    assert "--freshness" in caught.value.help
    assert "--limit" in caught.value.help


def test_the_default_format_of_gcloud() -> None:
    """YAML is not read, and the help says what is."""
    with pytest.raises(LogError) as caught:
        found("---\ninsertId: a\njsonPayload:\n  accuracy: 0.97\n  examples_per_second: 12.5\n")
    assert "--format=json" in caught.value.help


def test_a_copied_entry_that_is_cut_off_is_refused() -> None:
    """The one before it may not be the last measurement."""
    log = copied([vertex(1, figures(1)), vertex(0, figures(2))])
    assert found(log)["examples_per_second"] == 1
    with pytest.raises(LogError, match="cut off, or broken"):
        found(log[:-20])


@pytest.mark.parametrize(
    "opening",
    [
        "{\n",
        '{\n  "lr": 0.1\n}\n',
        "[\n",
        "[{\n",
        '[{"loss": 5}]\n',
        "[{'loss': 5}]\n",
        "[]\n",
        "[\n  1,\n  2\n]\n",
        "[ \n\n\n",
        "[{" * 9,
    ],
)
def test_text_that_begins_like_a_list(opening: str) -> None:
    """A log whose program printed a list first is read line by line, with its own line numbers."""
    log = f"{opening}\n{json.dumps(figures(1))}\n"
    assert found(log)["examples_per_second"] == 1
    with pytest.raises(LogError, match=f"^train.json:{log.count(chr(10)) + 1}: accuracy is"):
        found(log + json.dumps(figures(1, accuracy="high")))


def test_what_follows_a_list_is_read_too() -> None:
    """Two outputs in one file are two lists, or a list and text."""
    entries = gcloud([vertex(0, figures(1))])
    assert found(entries + json.dumps(figures(2)) + "\n")["examples_per_second"] == 1
    assert found(entries + sink([vertex(1, figures(2))]))["examples_per_second"] == 2


@pytest.mark.parametrize("prefix", ["\ufeff", "\ufeff \t"])
def test_a_byte_order_mark_is_no_text(prefix: str) -> None:
    """What an editor puts there hides no list."""
    assert found(prefix + gcloud([vertex(0, figures(1))]))["examples_per_second"] == 1


def test_a_large_list_takes_little_memory() -> None:
    """A hundred megabytes of entries, and as much blank between two, are read in the space of a few."""
    for between in ("", " " * 50_000):
        entry = gcloud([vertex(1, "x" * 5_000)])[1:-2].encode() + between.encode() + b","
        assert kilobytes_taken(chain([b"["], repeat(entry, 100_000_000 // len(entry)), [b"{}]"])) < 30_000
