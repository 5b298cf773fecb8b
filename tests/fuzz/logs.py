"""Mutated logs of a run, for `tpucfg record --from`: text, or entries of Cloud Logging."""

import json
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any, Final

from fuzz import corpus
from fuzz.cases import Case, Entry
from fuzz.mutations import mutate, mutate_lines
from fuzz.shell import Shell
from fuzz.texts import SPEC, Parts

_METRICS: Final = ("examples_per_second", "accuracy")
_BASE: Final = corpus.BAD / "TPU084-other-bucket" / SPEC
_RECORD: Final = (
    "record",
    "--size",
    "v2-8",
    *(word for name in _METRICS for word in ("--metric", name)),
    "--from",
    "log",
)

_PAYLOADS: Final[tuple[Callable[[str], dict[str, Any]], ...]] = (
    lambda line: {"textPayload": line},
    lambda line: {"jsonPayload": {"message": line, "levelname": "INFO"}},
    lambda line: (
        {"jsonPayload": json.loads(line)} if line.startswith("{") else {"textPayload": line}
    ),
    lambda line: {"protoPayload": {"message": line}},
)
_FORMATS: Final[tuple[Callable[[list[dict[str, Any]]], str], ...]] = (
    lambda entries: json.dumps(entries, indent=2),
    json.dumps,
    lambda entries: "".join(json.dumps(entry, indent=2) + "\n" for entry in entries),
    lambda entries: "".join(json.dumps(entry) + "\n" for entry in entries),
    lambda entries: "".join(str(entry.get("textPayload", entry)) + "\n" for entry in entries),
)


def make_log(rng: Random) -> Parts:
    """Return a valid spec, and a mutated log with the metrics of several steps in one of the formats."""
    lines = [
        "starting",
        *(
            json.dumps({"examples_per_second": number, "accuracy": 0.9, "step": number})
            for number in range(5)
        ),
    ]
    payload = rng.choice(_PAYLOADS)
    entries = [
        {"insertId": f"i{number}", "timestamp": f"2026-03-01T12:00:{number:02}.{number}Z"}
        | payload(line)
        for number, line in enumerate(lines)
    ]
    log = rng.choice(_FORMATS)(entries[:: rng.choice([1, -1])]).encode()
    broken = rng.choice([mutate, mutate_lines])(rng, log) if rng.random() < 0.9 else log
    return (Entry(SPEC, "file", _BASE.read_bytes()), Entry("log", "file", broken)), ()


def check_log(_: Case, __: Random, tpucfg: Shell) -> None:
    """Check that a recorded line has every requested metric as a number, and that a rejected log leaves no file."""
    completed = tpucfg(*_RECORD)
    written = Path("results/dev.jsonl")
    assert (completed.status == 0) == written.exists(), completed
    if completed.status == 0:
        (row,) = written.read_text().splitlines()
        metrics = json.loads(row)["metrics"]
        assert sorted(metrics) == sorted(_METRICS), row
        assert all(isfinite(value) for value in metrics.values()), row
