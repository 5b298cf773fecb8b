"""Entries of Cloud Logging as a log, in every form in which they can be exported."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import pytest

from log_memory import peak_kilobytes
from tpucfg.results.log_metrics import MAX_ENTRY_LENGTH, LogError, last_metrics

Entry = Mapping[str, Any]
BOTH = ("examples_per_second", "accuracy")


def metrics(throughput: float, **more: object) -> dict[str, object]:
    """Return the metrics that the trainer prints at its end."""
    return {"examples_per_second": throughput, "accuracy": 0.97, "step": 4000} | more


def entry_at(minute: int, **payload: object) -> Entry:
    """Return an entry with the fields that every entry has."""
    return {
        "insertId": f"1ie943xfro8si{minute}",
        "logName": "projects/my-project-dev/logs/workerpool0-0",
        "receiveTimestamp": f"2026-03-01T12:{minute:02}:09.213654987Z",
        "resource": {
            "labels": {"job_id": "6712345678901234567", "project_id": "my-project-dev"},
            "type": "ml_job",
        },
        "severity": "INFO",
        "timestamp": f"2026-03-01T12:{minute:02}:07.023451776Z",
    } | payload


def vertex(minute: int, line: object) -> Entry:
    """Return the entry of a line on Vertex AI: in `message`, whether it is JSON or not."""
    text = line if isinstance(line, str) else json.dumps(line)
    payload = {"attrs": {"tag": "workerpool0-0"}, "levelname": "INFO", "message": f"{text}\n"}
    return entry_at(minute, jsonPayload=payload, labels={"ml.googleapis.com/tpu_worker_id": ""})


def gke(minute: int, line: object) -> Entry:
    """Return the entry of a line on GKE: parsed if the line is one JSON object, else as text."""
    labels = {"k8s-pod/jobset_sigs_k8s_io/jobset-name": "mnist-dev-v6e-16"}
    resource = {
        "labels": {"container_name": "trainer", "namespace_name": "training"},
        "type": "k8s_container",
    }
    payload = {"textPayload": line} if isinstance(line, str) else {"jsonPayload": line}
    return entry_at(minute, labels=labels, resource=resource, **payload)


def compute_engine(minute: int, line: object) -> Entry:
    """Return the entry of a line on Compute Engine: as text in `message`, as Docker's log driver gcplogs sends it.

    https://github.com/moby/moby/blob/master/daemon/logger/gcplogs/gcplogging.go
    """
    payload = {
        "container": {
            "command": "python -m trainer.task --train_steps=1000",
            "created": "2026-03-01T11:58:04.204391837Z",
            "id": "7f6c0e7d0a4b",
            "imageId": "sha256:1f2e3d",
            "imageName": "us-docker.pkg.dev/my-project/train/vit:1.0",
            "metadata": {"tpucfg-job": "vit-prod-v6e-16"},
            "name": "/trainer",
        },
        "instance": {
            "id": "4027318470192837465",
            "name": "vit-prod-v6e-16-x7kq",
            "zone": "us-east5-a",
        },
        "message": line if isinstance(line, str) else json.dumps(line),
    }
    return entry_at(
        minute, jsonPayload=payload, logName="projects/my-project-prod/logs/gcplogs-docker-driver"
    )


def gcloud(entries: Sequence[Entry]) -> str:
    """Return entries as `gcloud logging read --format=json` prints them."""
    return json.dumps(entries, indent=2, sort_keys=True) + "\n"


def sink(entries: Sequence[Entry]) -> str:
    """Return entries as a sink writes them to Cloud Storage."""
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def parse(log: str | bytes, keys: Sequence[str] = BOTH) -> dict[str, float]:
    """Return the metrics of a log."""
    content = log if isinstance(log, bytes) else log.encode()
    return dict(last_metrics(io.BytesIO(content), "train.json", keys).metrics)


def copied(entries: Sequence[Entry]) -> str:
    """Return entries as `jq '.[]'` prints them, and as the Logs Explorer copies one."""
    return "".join(json.dumps(entry, indent=2) + "\n" for entry in entries)


EVERY_FORM = pytest.mark.parametrize("form", [gcloud, sink, copied])
EVERY_SERVICE = pytest.mark.parametrize("service", [vertex, gke, compute_engine])
Form = Callable[[Sequence[Entry]], str]


@EVERY_FORM
@EVERY_SERVICE
@pytest.mark.parametrize("newest_first", [True, False])
def test_the_latest_measurement_counts_in_either_order(
    form: Form, service: Callable[[int, object], Entry], newest_first: bool
) -> None:
    """Entries are ordered by their timestamps, not by their positions."""
    printed = [
        "starting",
        metrics(10),
        "step 2000: loss 1.93",
        metrics(20.5),
        {"examples_per_second": 30},
        "done",
    ]
    entries = [service(minute, line) for minute, line in enumerate(printed)]
    assert parse(form(entries[::-1] if newest_first else entries)) == {
        "examples_per_second": 20.5,
        "accuracy": 0.97,
    }


def test_timestamps_are_compared_as_moments() -> None:
    """Timestamps differ in digits and time zone; an entry without a valid timestamp is the oldest."""
    times = [
        None,
        "yesterday",
        "2026-13-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00.5Z",
        "2026-03-01T11:30:01-00:30",
        "2026-03-01T12:00:02.000Z",
    ]
    for later in range(1, len(times)):
        for earlier in range(later):
            if times[later] in times[:4] and earlier < 3:
                continue
            pair = [
                {**entry_at(0, jsonPayload=metrics(number)), "timestamp": times[number]}
                for number in (later, earlier)
            ]
            assert parse(gcloud(pair))["examples_per_second"] == later, (
                times[earlier],
                times[later],
            )


def test_entries_of_one_moment_are_ordered_by_insert_id() -> None:
    """Entries with equal timestamps are ordered by insert id, as in Cloud Logging; without ids the last one counts."""
    same = [
        {**entry_at(0, jsonPayload=metrics(number)), "insertId": id_}
        for number, id_ in ((1, "b"), (2, "a"))
    ]
    assert parse(gcloud(same))["examples_per_second"] == 1
    assert parse(sink(same[::-1]))["examples_per_second"] == 1
    bare = [{"jsonPayload": metrics(number)} for number in (1, 2)]
    assert parse(gcloud(bare))["examples_per_second"] == 2


def test_an_entry_may_have_several_lines() -> None:
    """If an agent combines lines into one entry, the last line with all metrics counts."""
    text = f"step 1\n{json.dumps(metrics(1))}\n[mnist-0] {json.dumps(metrics(2))}\ndone {{}}\n"
    assert parse(gcloud([entry_at(0, textPayload=text)]))["examples_per_second"] == 2
    assert parse(sink([entry_at(0, jsonPayload={"message": text})]))["examples_per_second"] == 2


def test_a_structured_entry_may_have_a_message() -> None:
    """Metrics next to a message in jsonPayload are found."""
    assert (
        parse(gcloud([entry_at(0, jsonPayload=metrics(3, message="training is done"))]))[
            "examples_per_second"
        ]
        == 3
    )


@pytest.mark.parametrize(
    "entry",
    [
        entry_at(0, protoPayload=metrics(1)),
        entry_at(0, protoPayload={"message": json.dumps(metrics(1))}),
        entry_at(0, textPayload="", **metrics(1)),
        entry_at(0, textPayload="", labels=metrics(1)),
        entry_at(0, jsonPayload={"request": metrics(1)}),
        entry_at(0, jsonPayload={"message": metrics(1)}),
        entry_at(0, jsonPayload=[metrics(1)]),
        entry_at(0, textPayload=metrics(1)),
        entry_at(0, textPayload=None, jsonPayload=None),
    ],
)
@EVERY_FORM
def test_only_printed_text_is_a_measurement(form: Form, entry: Entry) -> None:
    """Metrics in an audit record, a label or a request are ignored."""
    with pytest.raises(LogError, match="no line of JSON with examples_per_second and accuracy"):
        parse(form([entry]))


@EVERY_SERVICE
def test_a_diverged_run_is_an_error(service: Callable[[int, object], Entry]) -> None:
    """Cloud Logging writes NaN as text: it is an error, and an earlier entry is not used instead."""
    entries = [service(1, metrics(1, accuracy="NaN")), service(0, metrics(2))]
    with pytest.raises(
        LogError, match=r"^train\.json:2: accuracy is NaN, which is not a finite number"
    ) as excinfo:
        parse(gcloud(entries))
    assert "diverged" in excinfo.value.help


def test_the_location_is_the_first_line_of_the_entry() -> None:
    """The line number is right in a long indented list, too."""
    entries = [entry_at(9, textPayload="x" * (MAX_ENTRY_LENGTH // 3)) for _ in range(7)]
    log = gcloud(
        [*entries, entry_at(10, jsonPayload={"accuracy": "high", "examples_per_second": 1})]
    )
    line = (
        next(number for number, row in enumerate(log.split("\n"), 1) if "1ie943xfro8si10" in row)
        - 1
    )
    with pytest.raises(LogError, match=f"^train.json:{line}: accuracy is"):
        parse(log)


def test_a_truncated_list_is_an_error() -> None:
    """The missing part may contain the last measurement, so an earlier one is not used, wherever the list ends."""
    log = gcloud([vertex(0, metrics(1)), vertex(1, "done")]).rstrip()
    first = len(gcloud([vertex(0, metrics(1))]).rstrip("]\n"))
    for end in range(len(log)):
        with pytest.raises(LogError) as excinfo:
            parse(log[:end])
        assert ("truncated" in str(excinfo.value)) == (end >= first), log[:end]
    assert parse(log)["accuracy"] == 0.97


def test_an_empty_list_names_freshness() -> None:
    """The help for an empty list names --freshness, as gcloud returns entries of one day."""
    with pytest.raises(LogError, match=r"^train\.json has no line of JSON with ") as excinfo:
        parse("[]\n")
    assert "--freshness" in excinfo.value.help


def test_entries_without_the_measurement_are_an_error() -> None:
    """The measurement may be in older entries: the help names the options to fetch more."""
    with pytest.raises(LogError, match=r"^train\.json has no line of JSON with ") as excinfo:
        parse(gcloud([vertex(0, "starting")]))
    assert "--freshness" in excinfo.value.help
    assert "--limit" in excinfo.value.help


def test_the_default_format_of_gcloud_is_an_error() -> None:
    """YAML is not supported, and the help names the option for JSON."""
    with pytest.raises(LogError) as excinfo:
        parse("---\ninsertId: a\njsonPayload:\n  accuracy: 0.97\n  examples_per_second: 12.5\n")
    assert "--format=json" in excinfo.value.help


def test_a_truncated_copied_entry_is_an_error() -> None:
    """After a truncated entry, an earlier one is not used, as it may not be the last measurement."""
    log = copied([vertex(1, metrics(1)), vertex(0, metrics(2))])
    assert parse(log)["examples_per_second"] == 1
    with pytest.raises(LogError, match="truncated or malformed"):
        parse(log[:-20])


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
def test_text_may_begin_like_a_list(opening: str) -> None:
    """A log in which the program printed a list first is read line by line, with correct line numbers."""
    log = f"{opening}\n{json.dumps(metrics(1))}\n"
    assert parse(log)["examples_per_second"] == 1
    with pytest.raises(LogError, match=f"^train.json:{log.count(chr(10)) + 1}: accuracy is"):
        parse(log + json.dumps(metrics(1, accuracy="high")))


def test_text_after_a_list_is_read() -> None:
    """A file may have two outputs: two lists, or a list and text."""
    entries = gcloud([vertex(0, metrics(1))])
    assert parse(entries + json.dumps(metrics(2)) + "\n")["examples_per_second"] == 1
    assert parse(entries + sink([vertex(1, metrics(2))]))["examples_per_second"] == 2


@pytest.mark.parametrize("prefix", ["\ufeff", "\ufeff \t"])
def test_a_byte_order_mark_is_ignored(prefix: str) -> None:
    """A list after a byte order mark is recognized."""
    assert parse(prefix + gcloud([vertex(0, metrics(1))]))["examples_per_second"] == 1


@pytest.mark.slow
def test_a_large_list_takes_little_memory() -> None:
    """Reading fifty megabytes of entries, or of blanks between them, takes less than 30 megabytes."""
    for between in ("", " " * 50_000):
        entry = gcloud([vertex(1, "x" * 5_000)])[1:-2].encode() + between.encode() + b","
        assert (
            peak_kilobytes(chain([b"["], repeat(entry, 50_000_000 // len(entry)), [b"{}]"]))
            < 30_000
        )
