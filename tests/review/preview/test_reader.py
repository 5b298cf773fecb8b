"""What a preview is read as, in both of its forms, on recordings of the real engine."""

import json
from typing import Any

import pytest

from recorded_previews import FOLDER, FORMS, read, read_text, text
from tpucfg.diff.change import ABSENT
from tpucfg.review.changes.resource_change import Counts, ResourceChange, count_resources
from tpucfg.review.preview.reader import Preview

NAMES = sorted({path.stem for path in FOLDER.glob("*.json")})
BUCKET = "data-us-central1"


def the(preview: Preview, name: str) -> ResourceChange:
    """The change of the resource of that name."""
    return next(change for change in preview.changes if change.name == name)


def inputs(change: ResourceChange) -> dict[str, tuple[Any, Any]]:
    """What changes, by path."""
    return {".".join(map(str, it.path)): (it.before, it.after) for it in change.inputs}


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_say_the_same(name: str) -> None:
    """The document and the stream of one preview are read alike."""
    whole, stream = read(name, "json"), read(name, "jsonl")
    assert whole.changes == stream.changes
    assert (whole.failure and whole.failure[1:]) == (stream.failure and stream.failure[1:])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nothing", Counts()),
        ("create", Counts(create=9, widened=2)),
        ("update", Counts(update=1)),
        ("region-move", Counts(create=3, delete=3)),
        ("renamed-bucket", Counts(replace=3)),
        ("protection-lifted", Counts(update=1, lifted=9)),
        ("protection-added", Counts(update=1)),
        ("member-added", Counts(create=2, widened=2)),
    ],
)
def test_counts(name: str, expected: Counts, form: str) -> None:
    """Each resource is counted once, a replacement as one; lifted protection counts although its step is `same`."""
    preview = read(name, form)
    assert count_resources(preview.changes) == expected
    assert preview.failure is None
    assert preview.warnings == ()


def test_update_is_its_inputs_alone() -> None:
    """A new label is one change: nothing of what the provider works out of it is shown."""
    change = the(read("update"), BUCKET)
    assert inputs(change) == {"labels.team": (ABSENT, "vision")}
    assert not change.destructive


def test_move_that_keeps_data() -> None:
    """The new bucket is created, the old one retained, and grants that move with it open nothing."""
    preview = read("region-move")
    gone, made = the(preview, BUCKET), the(preview, "data-europe-west4")
    assert (gone.op, gone.retained, gone.loses_data) == ("delete", True, False)
    assert inputs(made)["location"] == (ABSENT, "EUROPE-WEST4")
    assert not any(change.destructive or change.widened for change in preview.changes)


def test_move_that_loses_data() -> None:
    """Without retention the old bucket's end is the end of its objects."""
    gone = the(read("region-move-losing-data"), BUCKET)
    assert gone.loses_data
    assert gone.destructive


@pytest.mark.parametrize("form", FORMS)
def test_replacement_names_what_forces_it(form: str) -> None:
    """A new name replaces the bucket and each grant on it; only the engine's stream says why the grants are."""
    preview = read("renamed-bucket", form)
    assert {(change.op, change.because) for change in preview.changes} == {
        ("replace", ("name",)),
        ("replace", ("bucket",)),
    }
    assert the(preview, BUCKET).destructive


def test_lifted_protection_is_destructive() -> None:
    """What keeps the data from being lost goes, on every resource; the update beside it is read as well."""
    preview = read("protection-lifted")
    assert all(change.protection == "lifted" and change.destructive for change in preview.changes)
    assert inputs(the(preview, BUCKET)) == {"softDeletePolicy.retentionDurationSeconds": (2592000, 604800)}


@pytest.mark.parametrize("form", FORMS)
def test_protected_replacement_fails(form: str) -> None:
    """The engine refuses to move what is protected: the failure has its words and a command that can be typed."""
    preview = read("protected-replacement", form)
    assert preview.failure
    assert preview.failure.location == f"dev.{form}"
    said = "\n".join(preview.failure.lines)
    assert 'resource "tpu-agent-on-data-us-central1" cannot be deleted' in said
    assert "`pulumi state unprotect 'urn:pulumi:dev::tpucfg::" in said
    assert "preview failed" not in said.lower()
    assert the(preview, "tpu-agent-on-data-us-central1").refused


def test_order_of_events_is_no_matter() -> None:
    """The engine works at many things at once; the same preview in another order is read to the same."""
    for name in ("protected-replacement", "policy", "renamed-bucket", "member-added"):
        lines = text(name).splitlines()
        assert read_text("\n".join(reversed(lines))) == read(name)


def test_program_that_refuses() -> None:
    """A spec that the program refuses is a failed preview with the compiler's finding, once."""
    failure = read("spec-broken").failure
    assert failure
    assert failure[:2] == ("dev.jsonl", "pulumi preview failed")
    assert failure.lines[:2] == (
        "1 error, and nothing was changed",
        "tpucfg.yaml:9:13: error[TPU021]: v2-8 is not offered in us-west4",
    )
    assert len(failure.lines) == len(set(failure.lines)) == 8


@pytest.mark.parametrize("form", FORMS)
def test_preview_that_never_began(form: str) -> None:
    """A wrong stack file ends Pulumi before it prints any JSON: what it printed is the failure."""
    failure = read("config-error", form).failure
    assert failure
    assert failure[:2] == (f"dev.{form}:1", "pulumi preview failed before it had begun")
    assert "'bucketMembers' must be of type 'array<string>'" in failure.lines[0]


def test_people_are_redacted() -> None:
    """Nobody's address is in what is read, neither as a member nor in a resource's name; a group's is."""
    told = repr(read("member-added"))
    assert "ada" not in told
    assert "user:[redacted]@example.com" in told
    assert "group:team@example.com" in told


def test_policies() -> None:
    """What a policy pack says is read without its colours, and a mandatory one is a failure."""
    preview = read("policy")
    assert [tuple(it) for it in preview.violations] == [
        ("acme/owners", "mandatory", BUCKET, "ask user:[redacted]@example.com"),
        ("acme/versions", "warning", BUCKET, "Buckets keep  versions."),
    ]
    assert preview.failure == ("dev.jsonl", "a mandatory policy forbids it", ())


def step(op: str, old: dict[str, Any] | None, new: dict[str, Any] | None, **more: Any) -> str:
    """One step of a stream, of a bucket, and the summary after it."""
    urn = "urn:pulumi:dev::tpucfg::gcp:storage/bucket:Bucket::data"
    sides = {key: {"custom": True, **side} if side else None for key, side in (("old", old), ("new", new))}
    events: list[Any] = [
        {"resourcePreEvent": {"metadata": {"op": op, "urn": urn, **sides, **more}}},
        {"summaryEvent": {}},
    ]
    return "\n".join(map(json.dumps, events))


def test_noise_of_the_bridge_is_left_out() -> None:
    """What the provider's bridge keeps for itself is no change; what only the update knows is said so."""
    old = {"inputs": {"__defaults": [], "__meta": "1", "url": "gs://a", "rules": [{"__defaults": [], "age": 14}]}}
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


def test_secret_that_changes_is_not_silent() -> None:
    """Two secrets look alike; the update is read all the same, with the property that the engine names."""
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc"}
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
    """The wrong file is not taken for this environment's."""
    other = text("create").replace("urn:pulumi:dev::", "urn:pulumi:prod::")
    preview = read_text(other)
    assert preview.changes == ()
    assert preview.failure == ("dev.jsonl:1", "this is a preview of the stack prod, and not of dev", ())


def test_replacement_that_is_told_in_parts_is_one() -> None:
    """Where the stream ends between the parts of a replacement, it is one all the same."""
    parts = [line for line in text("renamed-bucket").splitlines() if '"op": "replace"' not in line]
    assert count_resources(read_text("\n".join(parts)).changes) == Counts(replace=3)


def test_unknown_step_is_told() -> None:
    """A step that a newer engine may have is not passed over in silence."""
    preview = read_text(step("transmogrify", {"inputs": {}}, {"inputs": {}}))
    assert preview.warnings == ('the preview has a step "transmogrify" of data, which is not known here',)


def test_import_and_reads() -> None:
    """What is taken into the stack is told; what is only read is nothing."""
    assert [change.op for change in read_text(step("import", None, {"inputs": {"name": "a"}})).changes] == ["import"]
    assert read_text(step("read", None, {"inputs": {"name": "a"}})).changes == ()
