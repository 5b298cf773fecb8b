"""Recorded previews of the engine, read in both of their forms."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from recorded_previews import FOLDER, FORMS, read, read_text, text
from tpucfg.changes.facts import ABSENT
from tpucfg.changes.previews import Preview
from tpucfg.changes.resources import ResourceChange, count_phrases

NAMES = sorted({path.stem for path in FOLDER.glob("*.json")})
BUCKET = "data-acme-dev-mnist-dev-us-central1"


def change_of(preview: Preview, name: str) -> ResourceChange:
    """Return the change of the resource with that name."""
    return next(change for change in preview.changes if change.name == name)


def inputs(change: ResourceChange) -> dict[str, tuple[Any, Any]]:
    """Return the values before and after by path."""
    return {".".join(map(str, item.path)): (item.before, item.after) for item in change.inputs}


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_agree(name: str) -> None:
    """The document and the stream of one preview have equal changes and failures."""
    document, stream = read(name, "json"), read(name, "jsonl")
    # Without drift, which a document does not tell from the change.
    assert document.changes == stream.changes or stream.drift
    assert (document.failure and document.failure[1:]) == (stream.failure and stream.failure[1:])


def numbers(changes: Sequence[ResourceChange]) -> dict[str, int]:
    """Return the numbers of resources that are not zero."""
    return {phrase: count for count, phrase in count_phrases(changes)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nothing", {}),
        ("create", {"created": 10}),
        ("update", {"updated": 1}),
        ("region-move", {"created": 4, "deleted": 4}),
        ("other-account", {"replaced": 2, "deleted": 1, "with wider access": 2}),
        ("protection-lifted", {"updated": 1, "no longer protected": 10, "with data at risk": 1}),
        ("protection-added", {"updated": 1}),
        ("member-added", {"created": 2, "with wider access": 2}),
    ],
)
def test_each_resource_is_counted_once(name: str, expected: dict[str, int], form: str) -> None:
    """A replacement counts once; lifted protection counts although its operation is `same`."""
    preview = read(name, form)
    assert numbers(preview.changes) == expected
    assert preview.failure is None
    assert preview.warnings == ()


def test_update_shows_its_inputs_only() -> None:
    """A new label is one change: properties that the provider derives from it are not shown."""
    change = change_of(read("update"), BUCKET)
    assert inputs(change) == {"labels.team": (ABSENT, "vision")}
    assert not change.destructive


def test_move_that_keeps_data() -> None:
    """The new bucket is created, the old one retained, and grants that move with it widen no access."""
    preview = read("region-move")
    deleted, created = (
        change_of(preview, BUCKET),
        change_of(preview, "data-acme-dev-mnist-dev-europe-west4"),
    )
    assert (deleted.op, deleted.retained, deleted.loses_data) == ("delete", True, False)
    assert inputs(created)["location"] == (ABSENT, "EUROPE-WEST4")
    assert not any(
        change.destructive or any(item.opens for item in change.statements)
        for change in preview.changes
    )


def test_move_that_loses_data() -> None:
    """Without retention the objects are deleted with the old bucket."""
    deleted = change_of(read("region-move-losing-data"), BUCKET)
    assert deleted.loses_data
    assert deleted.destructive


@pytest.mark.parametrize("form", FORMS)
def test_replacement_has_its_reasons(form: str) -> None:
    """Another account replaces each of its grants, because of its own input."""
    preview = read("other-account", form)
    assert {(change.op, change.because) for change in preview.changes} == {
        ("delete", ()),
        ("replace", ("member",)),
    }


def test_lifted_protection_is_destructive() -> None:
    """Each unprotected resource is destructive, and the update of the bucket is read as well."""
    preview = read("protection-lifted")
    assert all(change.protection == "lifted" and change.destructive for change in preview.changes)
    assert inputs(change_of(preview, BUCKET)) == {
        "softDeletePolicy.retentionDurationSeconds": (2592000, 604800)
    }


@pytest.mark.parametrize("form", FORMS)
def test_protected_replacement_fails(form: str) -> None:
    """The engine refuses to move protected resources: the failure has its message and a command that can be run."""
    preview = read("protected-replacement", form)
    assert preview.failure
    assert preview.failure.location == f"dev.{form}"
    message = "\n".join(preview.failure.lines)
    assert (
        'resource "tpu-agent-on-data-acme-dev-mnist-dev-us-central1" cannot be deleted' in message
    )
    assert "`pulumi state unprotect 'urn:pulumi:dev::tpucfg::" in message
    assert change_of(preview, "tpu-agent-on-data-acme-dev-mnist-dev-us-central1").refused


def test_order_of_events_is_irrelevant() -> None:
    """The engine works in parallel, and a preview with its events in another order is equal."""
    for name in ("protected-replacement", "policy", "renamed-bucket", "member-added"):
        lines = text(name).splitlines()
        assert read_text("\n".join(reversed(lines))) == read(name)


def test_refused_spec_is_a_failure() -> None:
    """A spec that the program refuses fails the preview with the compiler's finding, once."""
    failure = read("spec-broken").failure
    assert failure
    assert failure[:2] == ("dev.jsonl", "pulumi preview did not complete")
    assert failure.lines[:2] == (
        "1 error, and nothing was changed",
        "tpucfg.yaml:9:13: error[TPU021]: v2-8 is not offered in us-west4",
    )
    assert len(failure.lines) == len(set(failure.lines)) == 8


@pytest.mark.parametrize("form", FORMS)
def test_preview_that_never_started_is_a_failure(form: str) -> None:
    """An invalid stack file stops Pulumi before it prints any JSON, and the failure has its message."""
    failure = read("config-error", form).failure
    assert failure
    assert failure[:2] == (f"dev.{form}:1", "pulumi preview did not complete")
    assert "'bucketMembers' must be of type 'array<string>'" in failure.lines[0]


def test_people_are_redacted() -> None:
    """A person's address is neither in a member nor in a resource's name; a group's address stays."""
    content = repr(read("member-added").changes)
    assert "ada" not in content
    assert "user:[redacted]@example.com" in content
    assert "group:team@example.com" in content


def test_policy_violations_are_read() -> None:
    """Messages of a policy pack have no color tags, and the violation of a mandatory policy is a failure."""
    preview = read("policy")
    assert [tuple(violation) for violation in preview.violations] == [
        ("acme/owners", "mandatory", BUCKET, "ask user:[redacted]@example.com"),
        ("acme/versions", "warning", BUCKET, "Buckets keep  versions."),
    ]
    assert preview.failure == ("dev.jsonl", "pulumi preview did not complete", ())


def step(op: str, old: dict[str, Any] | None, new: dict[str, Any] | None, **more: Any) -> str:
    """Return a stream of one step, about a bucket, and the summary."""
    urn = "urn:pulumi:dev::tpucfg::gcp:storage/bucket:Bucket::data"
    states = {
        key: {"custom": True, **state} if state else None
        for key, state in (("old", old), ("new", new))
    }
    events: list[Any] = [
        {"resourcePreEvent": {"metadata": {"op": op, "urn": urn, **states, **more}}},
        {"summaryEvent": {}},
    ]
    return "\n".join(map(json.dumps, events))


def test_internal_properties_are_no_change() -> None:
    """Internal properties of the provider's bridge are ignored; unknown values have a placeholder."""
    old = {
        "inputs": {
            "__defaults": [],
            "__meta": "1",
            "url": "gs://a",
            "rules": [{"__defaults": [], "age": 14}],
        }
    }
    new = {
        "inputs": {
            "__defaults": ["x"],
            "__pulumi_raw_state_delta": {},
            "url": "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
            "rules": [{"__defaults": ["y"], "age": 30}],
        }
    }
    [change] = read_text(step("update", old, new)).changes
    assert inputs(change) == {"url": ("gs://a", "[known after apply]"), "rules.0.age": (14, 30)}


def test_changed_secret_is_reported() -> None:
    """Two secrets look equal, but the update is reported with the property that the engine names."""
    secret = {
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
        "ciphertext": "v1:abc",
    }
    [change] = read_text(
        step(
            "update",
            {"inputs": {"key": secret}},
            {"inputs": {"key": {**secret, "ciphertext": "v1:def"}}},
            diffs=["key"],
        )
    ).changes
    assert (change.inputs, change.hidden) == ((), ("key",))


def test_preview_of_another_stack_is_refused() -> None:
    """A file of another environment is not accepted."""
    other = text("create").replace("urn:pulumi:dev::", "urn:pulumi:prod::")
    preview = read_text(other)
    assert preview.changes == ()
    assert preview.failure == ("dev.jsonl:1", "the preview is of the stack prod instead of dev", ())


def test_parts_of_a_replacement_are_one_change() -> None:
    """A stream that has only the parts of a replacement has one change."""
    parts = [line for line in text("other-account").splitlines() if '"op": "replace"' not in line]
    assert numbers(read_text("\n".join(parts)).changes)["replaced"] == 2


def test_unknown_operation_is_what_its_states_are() -> None:
    """An operation of a newer engine is not ignored silently."""
    states = {"inputs": {"name": "a"}}
    pairs: list[tuple[Any, Any]] = [
        (states, {"inputs": {"name": "b"}}),
        (states, None),
        (None, states),
    ]
    operations = [
        [change.op for change in read_text(step("transmogrify", *pair)).changes] for pair in pairs
    ]
    assert operations == [["update"], ["delete"], ["create"]]


def test_import_is_a_change_and_a_read_is_none() -> None:
    """A resource imported into the stack is a change; one that is only read is none."""
    assert [
        change.op for change in read_text(step("import", None, {"inputs": {"name": "a"}})).changes
    ] == ["import"]
    assert read_text(step("read", None, {"inputs": {"name": "a"}})).changes == ()
