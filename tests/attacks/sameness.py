"""Attacks that make a change look like none: equal beginnings, equal letters, redaction, layout, and records."""

import json
from typing import Any, Final

from attacks.attack import Attack, Edit, together, write
from attacks.jobs import GKE, attack, credentials, options, spec

_RECORDS: Final = "results/dev.jsonl"
_GATE: Final = spec(("# gate:", "gate:"))


def argument(value: str) -> Edit:
    """Set an argument of the program."""
    line = "    data_dir: ${bucket}/data\n"
    return spec((line, f"{line}    title: {json.dumps(value)}\n"))


def other_argument(before: str, after: str) -> Edit:
    """Replace the value of that argument."""
    return spec((json.dumps(before), json.dumps(after)))


def records(*throughputs: tuple[str, float], padding: int = 0) -> Edit:
    """Write the records of `dev`."""
    lines = [
        {"metrics": {"examples_per_second": rate}, "name": "mnist", "size": size}
        for size, rate in throughputs
    ]
    return write(_RECORDS, "".join(f"{json.dumps(line)}\n" for line in lines) + "\n" * padding)


def changed(id: str, before: str, after: str, *cautions: str) -> Attack:
    """Return an attack that changes the value of an argument."""
    return attack(id, other_argument(before, after), *cautions, base=argument(before))


_MEASURED: Final[Any] = (("v2-8", 1000.0),)

ATTACKS: Final = (
    changed(
        "end-of-a-long-value",
        "x" * 1043 + "a",
        "x" * 1043 + "b",
        "argument `--title` changed",
        "(they differ from character 1,044 on)",
    ),
    changed("trailing-space", "a", "a ", '`"a"` to `"a "` (only spaces differ)'),
    changed(
        "other-letters-that-look-alike",
        "admin",
        "\u0430dmin",
        r"`admin` to `\u0430dmin` (characters that look",
    ),
    changed(
        "other-form-of-a-letter",
        "caf\u00e9",
        "cafe\u0301",
        r"`caf\u00e9` to `cafe\u0301` (characters that look",
    ),
    changed(
        "another-person",
        "jane@example.com",
        "john@example.com",
        "to `[redacted]@example.com (another person)`",
    ),
    changed("placeholder-as-text", "a", "<env>", "argument `--title` changed from `a` to `<env>`"),
    attack(
        "another-secret",
        spec(("hunter2", "hunter3")),
        "variable `API_KEY` changed from `[secret]` to `[secret] (another value)`",
        base=credentials(API_KEY="hunter2"),
        absent=("hunter",),
    ),
    attack(
        "bare-flag-with-a-value",
        spec(("    fast: null\n", "    fast: given\n")),
        'argument `--fast` changed from `given` to `"given"`',
        base=spec(
            ("    data_dir: ${bucket}/data\n", "    data_dir: ${bucket}/data\n    fast: null\n")
        ),
    ),
    attack(
        "order-of-arguments",
        spec(
            (
                "    data_dir: ${bucket}/data\n    model_dir: ${run_dir}\n",
                "    model_dir: ${run_dir}\n    data_dir: ${bucket}/data\n",
            )
        ),
        "the config changes in a way that no setting explains",
    ),
    attack(
        "record-that-opens-the-gate",
        records(*_MEASURED, ("v2-32", 4000.0)),
        "**dev**: results: the gate lets `v2-128` start, and did not before",
        base=together(_GATE, records(*_MEASURED)),
    ),
    attack(
        "record-rewritten",
        records(("v2-8", 1000.0), ("v2-32", 4000.0)),
        "the gate lets `v2-128` start",
        "1 record of `results/dev.jsonl` removed or rewritten: records are only ever appended",
        base=together(_GATE, records(*_MEASURED, ("v2-32", 100.0))),
    ),
    attack(
        "record-in-a-padded-file",
        records(*_MEASURED, ("v2-32", 4000.0), padding=2 << 20),
        "the gate lets `v2-128` start",
        base=together(_GATE, records(*_MEASURED)),
    ),
    attack(
        "record-of-a-new-environment",
        together(
            spec(
                (
                    "  prod:\n",
                    "  test:\n    project: my-project-test\n    region: us-central1\n  prod:\n",
                )
            ),
            write(
                "results/test.jsonl",
                '{"metrics": {"examples_per_second": 9}, "name": "mnist", "size": "v2-8"}\n',
            ),
        ),
        "**test**: results: the gate lets `v2-32` start",
        base=_GATE,
    ),
    attack(
        "label-of-an-environment",
        spec(("    protect: true", "    labels: {team: theirs}\n    protect: true")),
        "**prod**: label `team` changed from `mine` to `theirs`",
        base=spec(("    protect: true", "    labels: {team: mine}\n    protect: true")),
    )._replace(edit=spec(("{team: mine}", "{team: theirs}"))),
    attack(
        "account-of-the-pods",
        options("gke", service_account="default"),
        "setting `service_account` added (`default`): jobs run as an account that the stack does not",
        base=GKE,
    ),
)
