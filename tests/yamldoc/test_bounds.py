"""Limits on files, values and nesting apply before memory or the stack could be exhausted."""

import json
import time
from pathlib import Path
from typing import Final

import pytest

from spec_factory import CATALOG, ids, spec
from tpucfg.findings import MAX_FINDINGS
from tpucfg.infra.stack_files import document_findings as stack_findings
from tpucfg.render.pipeline import compile_project
from tpucfg.spec.parse import MAX_REPEATED_VALUES, parse_project
from tpucfg.yamldoc.parser import MAX_DEPTH, MAX_VALUES
from tpucfg.yamldoc.reader import MAX_FILE_BYTES, read_bytes, read_file, read_text

MAX_SECONDS: Final = 2
"""Processor time; more counts as a hang."""


@pytest.mark.parametrize(("depth", "expected"), [(MAX_DEPTH, []), (MAX_DEPTH + 1, ["TPU010"])])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_depth_is_bounded(depth: int, expected: list[str], brackets: str) -> None:
    """Lists and mappings may be nested up to MAX_DEPTH levels."""
    open_, close = ("[", "]") if brackets == "[]" else ("{a: ", "}")
    assert ids(read_text(open_ * depth + close * depth, "a.yaml").findings) == expected


def test_depth_is_bounded_through_aliases() -> None:
    """A chain of aliases cannot exceed the limit, because recursive code has a limited stack."""
    links = "".join(f"a{i}: &a{i} {'[' * 30}*a{i - 1}{']' * 30}\n" for i in range(1, 60))
    (finding,) = read_text(f"a0: &a0 [x]\n{links}", "a.yaml").findings
    assert finding.id == "TPU010"
    assert finding.location.line == 3
    assert (
        ids(
            read_text(f"a: &a {'[' * 20}{']' * 20}\nb: {'[' * 19}*a{']' * 19}\n", "a.yaml").findings
        )
        == []
    )
    assert ids(
        read_text(f"a: &a {'[' * 20}{']' * 20}\nb: {'[' * 20}*a{']' * 20}\n", "a.yaml").findings
    ) == ["TPU010"]


def test_the_number_of_values_is_bounded() -> None:
    """A file may have up to MAX_VALUES values; keys are not counted."""
    assert ids(read_text(f"[{'x,' * (MAX_VALUES - 1)}]", "a.yaml").findings) == []
    assert ids(read_text(f"[{'x,' * MAX_VALUES}]", "a.yaml").findings) == ["TPU010"]


def test_aliases_count_with_their_whole_value() -> None:
    """The billion laughs attack is refused at the first alias beyond the limit."""
    laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    (finding,) = read_text(laughs, "a.yaml").findings
    assert (finding.id, finding.location.line) == ("TPU010", 5)


def test_the_size_of_a_file_is_bounded(tmp_path: Path) -> None:
    """A file of MAX_FILE_BYTES is read, and one byte more is refused."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\n".ljust(MAX_FILE_BYTES, b"#"))
    assert ids(read_file(path).findings) == []
    path.write_bytes(b"a: 1\n".ljust(MAX_FILE_BYTES + 1, b"#"))
    assert ids(read_file(path).findings) == ["TPU010"]


LONG_TEXTS: Final = {
    "no comma": "{a: '1'," + "9" * 500_000 + " b: c}",
    "dashes and a colon": "a: b\n  " + "- " * 400_000 + "x: y\n",
    "open placeholders": json.dumps(
        spec(trainer__args={f"a{number}": "${" * 4_000 for number in range(100)})
    ),
    "open placeholders in extra": json.dumps(
        spec(targets={"vertex-ai": {"extra": {"a": "${" * 400_000}}})
    ),
    "dollars": json.dumps(
        spec(trainer__args={f"a{number}": "$" * 8_000 + "{" for number in range(100)})
    ),
    "closed placeholders": json.dumps(
        spec(trainer__args={f"a{number}": "${}" * 2_500 for number in range(100)})
    ),
    "a long word": json.dumps(spec(name="a-" * 450_000)),
    "a long key": json.dumps(spec(**{"a " * 400_000: 1})),
    "a long path": json.dumps(spec(environments__dev__region="a-b" * 300_000)),
    "10 MB in one line": "a: " + "x" * 10_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_no_regular_expression_takes_quadratic_time(text: str) -> None:
    """A long text that nearly matches a pattern is answered within the time limit."""
    start = time.process_time()
    document = read_bytes(text.encode(), "tpucfg.yaml")
    project, findings = parse_project(document)
    assert findings or project
    if project and not project.broken:
        compile_project(project, CATALOG, earlier_findings=findings)
    assert time.process_time() - start < MAX_SECONDS


@pytest.mark.parametrize(
    "unfinished",
    [
        '{"' + '\\"' * 200_000,
        '{"a": "' + "x" * 400_000,
        "{" + '"' * 100_001,
        "[" * 500_000,
        '{"a":' * 200_000,
    ],
)
def test_a_long_unclosed_text_is_refused_quickly(unfinished: str) -> None:
    """No unclosed text of the allowed size makes the reader scan it repeatedly."""
    assert read_text(unfinished, "a.json").findings


MANY_MISTAKES: Final = {
    "keys twice": "a: 1\n" * 20_000,
    "tags": "".join(f"a{number}: !x 1\n" for number in range(20_000)),
    "escapes": "".join(f'a{number}: "\\x07"\n' for number in range(20_000)),
    "long numbers": "".join(f"a{number}: {'9' * 50}\n" for number in range(15_000)),
    "unknown keys": json.dumps(spec(**{f"k{number}": 1 for number in range(40_000)})),
    "keys without a value": "{"
    + ",".join(f"a{number}: {{b: c}}" for number in range(20_000))
    + "}",
    "sizes": json.dumps(spec(sizes=[1] * 40_000)),
    "flags": json.dumps(spec(trainer__args={f"a {number}": 1 for number in range(40_000)})),
    "environments": json.dumps(
        spec(environments={f"e{number}": {"project": "p"} for number in range(15_000)})
    ),
    "fields of extra": json.dumps(
        spec(targets={"vertex-ai": {"extra": {f"k{number}": 1 for number in range(1_500)}}})
    ),
    "entries of extra": json.dumps(
        spec(targets={"vertex-ai": {"extra": {"workerPoolSpecs": [{"machineSpec": {}}] * 700}}})
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", MANY_MISTAKES.values(), ids=MANY_MISTAKES)
def test_of_many_mistakes_the_first_are_listed(text: str) -> None:
    """The number of findings is limited, so that explaining and listing them stays fast."""
    project, findings = parse_project(read_text(text, "tpucfg.yaml"))
    if project:
        findings = compile_project(project, CATALOG, earlier_findings=findings).findings
    assert ids(findings).count("TPU010") == 1
    assert MAX_FINDINGS < len(findings) <= MAX_FINDINGS + 5


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(spec(trainer__args={f"b{number}": ["x"] * 200 for number in range(20)})),
        json.dumps(
            spec(
                targets={
                    "vertex-ai": {
                        "extra": {"labels": {f"k{number}": "x" for number in range(2_000)}}
                    }
                }
            )
        ),
        json.dumps(spec(targets={"gke": {"extra": {"spec": [[[{}] * 10] * 10] * 20}}})),
    ],
)
def test_values_repeated_in_every_config_are_bounded(text: str) -> None:
    """The program's args and a target's `extra` have a maximum number of values."""
    _, findings = parse_project(read_text(text, "tpucfg.yaml"))
    assert ids(findings) == ["TPU010"]
    assert f"the maximum is {MAX_REPEATED_VALUES:,}" in findings[0].message


def test_unique_items_are_checked_in_linear_time() -> None:
    """Only texts are compared for `uniqueItems`: 10,000 objects are refused for their type, without comparing pairs."""
    members = [{"a": number} for number in range(10_000)]
    document = read_text(json.dumps({"config": {"a:bucketMembers": members}}), "Pulumi.dev.yaml")
    assert set(ids(stack_findings(document, "a"))) == {"TPU010", "TPU081"}
    for twice in (["user:a@b.c"] * 2, ["user:a@b.c", "group:a@b.c", "user:a@b.c"]):
        document = read_text(json.dumps({"config": {"a:bucketMembers": twice}}), "Pulumi.dev.yaml")
        assert ids(stack_findings(document, "a")) == ["TPU081"]
