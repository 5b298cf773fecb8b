"""Drift in recorded previews with `--refresh`, apart from the change."""

import json
from typing import Any

import pytest

from recorded_previews import read, read_text, text
from tpucfg.changes.previews import Preview

BUCKET = "data-acme-dev-mnist-dev-us-central1"
URN = f"urn:pulumi:dev::tpucfg::tpucfg:index:Environment$gcp:storage/bucket:Bucket::{BUCKET}"


def refreshed(
    recorded: dict[str, Any], current: dict[str, Any] | None, op: str, new: dict[str, Any] | None
) -> Preview:
    """Return the preview of a bucket's refresh and of the step after it; each state is its inputs."""

    def state(inputs: dict[str, Any] | None) -> dict[str, Any] | None:
        return (
            None
            if inputs is None
            else {"custom": True, "inputs": inputs, "outputs": {**inputs, "etag": "x"}}
        )

    old = state(recorded)
    events = [
        {"resourcePreEvent": {"metadata": {"op": "refresh", "urn": URN, "old": old, "new": old}}},
        {
            "resOutputsEvent": {
                "metadata": {"op": "refresh", "urn": URN, "old": old, "new": state(current)}
            }
        },
        {
            "resourcePreEvent": {
                "metadata": {"op": op, "urn": URN, "old": state(current), "new": state(new)}
            }
        },
        {"summaryEvent": {}},
    ]
    return read_text("\n".join(map(json.dumps, events)))


def test_update_that_reverts_drift_is_no_change() -> None:
    """The resource whose properties differ is named; the change has nothing of it."""
    preview = read("drift")
    assert preview.changes == ()
    assert preview.drift == (f"storage.Bucket {BUCKET}",)


def test_change_and_drift_of_one_resource_are_apart() -> None:
    """The change has the new label only, and neither an opened bucket nor a grant that returns."""
    preview = read("drift-and-update")
    [change] = preview.changes
    assert [item.path for item in change.inputs] == [("labels", "team")]
    assert not any(statement.opens for statement in change.statements)
    assert preview.drift == (
        f"storage.Bucket {BUCKET}",
        f"storage.BucketIAMMember workload-on-{BUCKET}",
        f"storage.BucketIAMMember workload-on-properties-of-{BUCKET}",
    )


def test_deleted_bucket_is_drift() -> None:
    """A bucket deleted in the cloud is no creation by the change; its grants are given again."""
    preview = read("drift-deleted")
    assert preview.changes == ()
    assert preview.drift[0] == f"storage.Bucket {BUCKET}"
    assert len(preview.drift) == 4


def test_scope_of_the_refresh_is_known() -> None:
    """Only a stream shows drift, and a preview without `--refresh` shows none."""
    assert [read("refreshed", form).is_refreshed for form in ("jsonl", "json")] == [True, False]
    assert not read("update", "jsonl").is_refreshed
    assert read("refreshed").drift == ()


def test_order_of_events_is_irrelevant() -> None:
    """The engine works in parallel."""
    for name in ("drift", "drift-and-update", "drift-deleted"):
        assert read_text("\n".join(reversed(text(name).splitlines()))) == read(name)


@pytest.mark.parametrize("op", ["update", "same"])
def test_drift_is_known_whatever_the_update_does(op: str) -> None:
    """Drift that the update reverts, and drift that stays."""
    recorded, current = {"a": 1, "labels": {"x": "1"}}, {"a": 1, "labels": {"x": "1", "y": "2"}}
    preview = refreshed(recorded, current, op, recorded)
    assert preview.drift == (f"storage.Bucket {BUCKET}",)
    assert preview.changes == ()


def test_what_no_program_sets_is_no_drift() -> None:
    """Google and other tools add properties of their own."""
    assert refreshed({"a": 1}, {"a": 1, "b": 2}, "same", {"a": 1}).drift == ()


def test_change_begins_at_the_recorded_value() -> None:
    """A property that drifted and that the change sets too is a change from the recorded value."""
    [change] = refreshed({"a": 1}, {"a": 2}, "update", {"a": 3}).changes
    assert [(item.before, item.after) for item in change.inputs] == [(1, 3)]


def test_replacement_because_of_drift_stays_a_change() -> None:
    """A bucket that was created anew elsewhere is replaced with its data, which no drift may hide."""
    [change] = refreshed({"location": "A"}, {"location": "B"}, "replace", {"location": "A"}).changes
    assert (change.op, change.destructive) == ("replace", True)


@pytest.mark.parametrize(
    "current",
    [{"a": 1, "labels": {}}, {"a": 1, "x": ""}, {"a": 1}],
    ids=["empty-mapping", "empty-text", "equal"],
)
def test_empty_values_are_no_drift(current: dict[str, Any]) -> None:
    """Providers add and drop empty values."""
    assert refreshed({"a": 1}, current, "same", {"a": 1}).drift == ()


def test_location_in_another_case_is_no_drift() -> None:
    """Google returns locations in upper case."""
    assert (
        refreshed(
            {"location": "us-west4"}, {"location": "US-WEST4"}, "same", {"location": "us-west4"}
        ).drift
        == ()
    )
