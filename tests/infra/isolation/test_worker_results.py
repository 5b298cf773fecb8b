"""Results of a worker process, which a stack program can forge."""

import json
from typing import Any

import pytest

from tpucfg.infra.isolation.worker_results import complete_lines, parse_result
from tpucfg.infra.resources import EnvironmentResources, Resource, Unseen
from tpucfg.review.changes.program.provider_changes import provider_statements
from tpucfg.review.changes.program.unseen_changes import unseen_statements
from tpucfg.review.changes.resources.program_diff import program_changes

MALFORMED = "the result of the stack program's process is malformed"
BUCKET = {**Resource("gcp:storage/bucket:Bucket", "b", {"location": "EU"})._asdict(), "secrets": ["location"]}
RESULT: dict[str, Any] = {
    "environment": "dev",
    "resources": [BUCKET],
    "outputs": {"a": 1},
    "providers": [BUCKET | {"type": "pulumi:providers:gcp"}],
    "unseen": [["read", "x"]],
}


class _Dev:
    name = "dev"


def parse(result: Any) -> Any:
    """Parse a result for the environment dev."""
    return parse_result(_Dev(), json.dumps(result).encode())  # type: ignore[arg-type] # only its name


def test_result_is_parsed() -> None:
    """Resources, providers and features come back as values, with tuples where they had lists."""
    declared = parse(RESULT)

    assert isinstance(declared, EnvironmentResources)
    assert declared.resources[0].secrets == ("location",)
    assert declared.providers[0].type == "pulumi:providers:gcp"
    assert declared.unseen == (Unseen("read", "x"),)


@pytest.mark.parametrize(
    "changed",
    [
        {"environment": "prod"},
        {"outputs": []},
        {"resources": [{}]},
        {"resources": [BUCKET | {"protect": 1}]},
        {"resources": [BUCKET | {"options": []}]},
        {"resources": [BUCKET | {"secrets": [1]}]},
        {"resources": [BUCKET | {"secrets": "location"}]},
        {"resources": [BUCKET | {"name": None}]},
        {"providers": None},
        {"unseen": [["a", "b", "c"]]},
        {"unseen": [[{}]]},
        {"unseen": "ab"},
        {"more": 1},
        {"missing": "pulumi"},
    ],
    ids=str,
)
def test_malformed_result_is_a_failure(changed: dict[str, Any]) -> None:
    """Fields of another type, or other fields, make the environment unknown and raise nothing."""
    assert parse(RESULT | changed).reason == MALFORMED


def test_deep_values_are_a_failure() -> None:
    """Options are bounded in depth, as inputs are."""
    deep: Any = []
    for _ in range(100):
        deep = [deep]

    assert parse(RESULT | {"resources": [BUCKET | {"options": {"a": deep}}]}).reason == MALFORMED


@pytest.mark.parametrize("value", [1, "x", [1, [2]], {"a": {"b": 1}}, True, 1.5], ids=str)
def test_options_of_any_form_are_compared(value: Any) -> None:
    """A program that forges its result can give an option any form: the comparison raises nothing."""
    names = ("aliases", "ignoreChanges", "hooks", "provider", "parent", "parentAliases", "version", "deletedWith")
    options = dict.fromkeys(names, value)
    before = parse(RESULT)
    after = parse(
        RESULT
        | {"resources": [BUCKET | {"options": options}]}
        | {"providers": [BUCKET | {"type": "pulumi:providers:gcp", "options": options}]}
    )

    for old, new in ((before, after), (after, before), (None, after)):
        changes = program_changes(old, new)
        assert all(isinstance(change.name, str) for change in changes)
        assert all(statement.plain for statement in (*provider_statements(old, new), *unseen_statements(old, new)))


def test_line_that_was_cut_off_is_no_result() -> None:
    """Only lines with a line break count."""
    assert [*complete_lines(b"a\nb")] == [b"a\n"]
