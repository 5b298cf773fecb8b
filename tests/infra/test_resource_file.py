"""Files of declared resources, which a stack program can forge."""

import json
from typing import Any

import pytest

from tpucfg.changes.programs import declaration_statements
from tpucfg.changes.resource_diff import program_changes
from tpucfg.infra.resources import (
    MAX_FILE_BYTES,
    EnvironmentResources,
    ProgramFailure,
    Resource,
    Unseen,
    document_data,
    read_resource_file,
)

BUCKET = {
    **Resource("gcp:storage/bucket:Bucket", "b", {"location": "EU"})._asdict(),
    "secrets": {"location": "f00d"},
}
RESULT: dict[str, Any] = {
    "name": "dev",
    "resources": [BUCKET],
    "outputs": {"a": 1},
    "providers": [BUCKET | {"type": "pulumi:providers:gcp"}],
    "unseen": [["read", "x"]],
}


class _Dev:
    name = "dev"


MALFORMED = "f cannot be read: it is not the output of tpucfg infra --format json"


def document(*environments: Any, spec: Any = "a/tpucfg.yaml") -> bytes:
    """Return the document of one spec."""
    return json.dumps({"spec": spec, "environments": [*environments], "findings": []}).encode()


def parse(result: Any) -> Any:
    """Parse a result for the environment dev."""
    file = read_resource_file("f", document(result))
    return file.declared("a/tpucfg.yaml", [_Dev()])["dev"]  # type: ignore[list-item] # only its name


def test_result_is_parsed() -> None:
    """Resources, providers and features come back as values, with tuples where they had lists."""
    declared = parse(RESULT)

    assert isinstance(declared, EnvironmentResources)
    assert declared.resources[0].secrets == {"location": "f00d"}
    assert declared.providers[0].type == "pulumi:providers:gcp"
    assert declared.unseen == (Unseen("read", "x"),)


@pytest.mark.parametrize(
    "changed",
    [
        {"outputs": []},
        {"resources": [{}]},
        {"resources": [BUCKET | {"protect": 1}]},
        {"resources": [BUCKET | {"options": []}]},
        {"resources": [BUCKET | {"secrets": {"location": 1}}]},
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
    names = (
        "aliases",
        "ignoreChanges",
        "hooks",
        "provider",
        "parent",
        "parentAliases",
        "version",
        "deletedWith",
    )
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
        statements = declaration_statements({"dev": old} if old else {}, {"dev": new})
        assert all(located.plain for located in statements)


def test_file_has_what_was_written() -> None:
    """A written file is read again, failures too, and documents of several specs can be joined."""
    dev: Any = _Dev()
    declared = parse(RESULT)
    written = [
        json.dumps(document_data(spec, {"dev": result}, ())).encode()
        for spec, result in (
            ("tpucfg.yaml", declared),
            ("b/tpucfg.yaml", ProgramFailure("no\nquota")),
        )
    ]
    file = read_resource_file("head.json", b" \n".join(written))

    assert file.declared("tpucfg.yaml", [dev]) == {"dev": declared._replace(environment=dev)}
    assert file.declared("b/tpucfg.yaml", [dev]) == {"dev": ProgramFailure("no\nquota")}
    missing = file.declared("c/tpucfg.yaml", [dev])["dev"]
    assert missing == ProgramFailure("head.json has no resources of dev in c/tpucfg.yaml")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[]", "not the output of tpucfg infra"),
        (b"{", "Expecting property name"),
        (b"\xff", "codec can't decode"),
        (b'{"a": NaN}', "not a finite number"),
        (b'{"spec": 1, "spec": 2}', "occurs twice"),
        (b"[" * 100_000, "recursion"),
        (document(spec=None), "not the output of tpucfg infra"),
        (document(RESULT, RESULT), "dev of a/tpucfg.yaml occurs twice"),
        (document({"name": ["dev"]}), "not the output of tpucfg infra"),
        (document(RESULT) + document(RESULT), "dev of a/tpucfg.yaml occurs twice"),
        (b" " * (MAX_FILE_BYTES + 1), "larger than 64 MiB"),
    ],
    ids=range(11),
)
def test_hostile_file_makes_everything_unknown(content: bytes, problem: str) -> None:
    """A file that is not exactly of the form has no resources at all, and has the reason."""
    file = read_resource_file("head.json", content)
    (failure,) = file.declared("a/tpucfg.yaml", [_Dev()]).values()  # type: ignore[list-item] # only its name

    assert isinstance(failure, ProgramFailure)
    assert failure.reason.startswith("head.json cannot be read: ")
    assert problem in failure.reason


def test_problem_is_bounded() -> None:
    """A failure is shown in a comment, so its text is cut."""
    failure = parse({"name": "dev", "problem": "\n".join(["x" * 10_000] * 1000)})

    assert len(failure.reason) < 100_000


def test_texts_that_cannot_be_printed_are_malformed() -> None:
    """Half a character, as JSON can escape it, would end the command that prints it."""
    assert parse(RESULT | {"resources": [BUCKET | {"name": "\ud800"}]}).reason.endswith(
        "surrogates not allowed"
    )
