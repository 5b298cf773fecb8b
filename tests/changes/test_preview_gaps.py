"""Changes that the stack programs declare and a preview leaves out."""

import time
from collections.abc import Mapping
from typing import Any

import pytest

from recorded_previews import read
from tpucfg.changes.facts import ABSENT, Change, Risk
from tpucfg.changes.resource_diff import complete_preview
from tpucfg.changes.resources import UNKNOWN, ResourceChange
from tpucfg.changes.statements import Statement

BUCKET, GRANT = "gcp:storage/bucket:Bucket", "gcp:storage/bucketIAMMember:BucketIAMMember"


def change(
    op: Any = "update", kind: str = BUCKET, name: str = "data", **more: Any
) -> ResourceChange:
    """Return a change of a resource of dev."""
    return ResourceChange("dev", op, kind, name, **more)


def _granted(*values: str) -> Statement:
    return Statement("grants {} on the bucket {} to {}", values, Risk.ACCESS)


def created(inputs: Mapping[str, Any], kind: str = GRANT) -> ResourceChange:
    """Return the creation of a resource."""
    return change(
        "create", kind, inputs=tuple(Change((key,), ABSENT, value) for key, value in inputs.items())
    )


@pytest.mark.parametrize(
    "name",
    ["create", "update", "region-move", "renamed-bucket", "protection-lifted", "member-added"],
)
def test_change_in_the_preview_is_not_added(name: str) -> None:
    """A preview contains its own changes: it stays as it is."""
    previewed = read(name).changes
    assert previewed
    assert complete_preview(previewed, previewed) == previewed


def test_missing_resource_is_added() -> None:
    """A preview without any change is completed by all that the programs declare."""
    lifted = change("same", protection="lifted")
    assert complete_preview((), [lifted]) == (lifted._replace(only_declared=True),)


def test_options_of_the_program_are_added() -> None:
    """A preview shows no options such as `ignoreChanges`: that it has none of them is no gap."""
    ignoring = change(
        "same", statements=(Statement("ignores changes of {}", ("labels",), Risk.DESTRUCTIVE),)
    )
    updated = change(inputs=(Change(("labels", "team"), "a", "b"),))

    assert complete_preview((), [ignoring]) == (ignoring,)
    assert complete_preview([updated], [ignoring]) == (
        updated._replace(statements=ignoring.statements),
    )


@pytest.mark.parametrize(
    ("previewed", "declared"),
    [
        (change(protection="added"), change("same", protection="lifted")),
        (change(), change("delete")),
        (change(), change("replace")),
        (change("delete", retained=True), change("delete")),
    ],
)
def test_milder_change_hides_nothing(previewed: ResourceChange, declared: ResourceChange) -> None:
    """A preview of the same resource with a milder change is completed."""
    (merged,) = complete_preview([previewed], [declared])
    assert merged.only_declared
    assert merged.destructive >= declared.destructive


@pytest.mark.parametrize(
    ("previewed", "declared"),
    [
        ({"location": "EUROPE-WEST4"}, {"location": "europe-west4"}),
        ({"versioning": {"enabled": True, "extra": "default"}}, {"versioning": {"enabled": True}}),
        ({"member": UNKNOWN}, {"member": "serviceAccount:x"}),
        (
            {"member": "serviceAccount:service-123@x"},
            {"member": "serviceAccount:service-[number of acme-dev]@x"},
        ),
        ({"role": "r", "provider_default": 1}, {"role": "r"}),
    ],
)
def test_values_that_only_google_knows_are_no_gap(
    previewed: Mapping[str, Any], declared: Mapping[str, Any]
) -> None:
    """The provider's defaults and spelling, and values that the mocks cannot know, are no difference."""
    real = created(previewed)
    assert complete_preview([real], [created(declared)]) == (real,)


def test_forged_state_hides_no_meaning() -> None:
    """Widened access and cautions of the programs are kept if the preview's earlier values are others."""
    role = Change(("role",), "roles/storage.admin", "roles/storage.objectAdmin")
    granted = _granted("roles/storage.objectAdmin", "b", "group:a@b.c")
    shortened = Statement("deletes after {}", ("1 day",), Risk.DESTRUCTIVE)
    declared = change(kind=GRANT, inputs=(role._replace(before="roles/storage.objectViewer"),))

    (merged,) = complete_preview(
        [change(kind=GRANT, inputs=(role,))], [declared._replace(statements=(granted, shortened))]
    )

    assert (merged.statements, merged.only_declared) == ((granted, shortened), True)


def test_equal_meaning_is_kept_once() -> None:
    """Neither a project's number, which the mocks do not know, nor a name of the update makes a second grant."""
    known = _granted("roles/viewer", UNKNOWN, "serviceAccount:service-123@x")
    mocked = _granted("roles/viewer", "b", "serviceAccount:service-[number of acme-dev]@x")
    (merged,) = complete_preview([change(statements=(known,))], [change(statements=(mocked,))])
    assert merged.statements == (known,)


def test_many_resources_are_compared_in_linear_time() -> None:
    """Twenty thousand resources of a hostile preview and program take no minutes, nor as many inputs of one."""
    declared = [change(name=f"data-{number}", protection="lifted") for number in range(20_000)]
    start = time.process_time()
    assert len(
        complete_preview([one._replace(protection="") for one in declared], declared)
    ) == len(declared)
    inputs = tuple(Change(("labels", f"key-{number}"), "a", "b") for number in range(20_000))
    assert not complete_preview([change(inputs=inputs)], [change(inputs=inputs[::-1])])[
        0
    ].only_declared
    assert time.process_time() - start < 5


def test_resources_of_equal_name_are_kept() -> None:
    """Two resources of a preview with the same type and name, in different components, are both kept."""
    both = (change(because=("a",)), change(because=("b",)))
    lifted = change("same", protection="lifted")
    assert {*complete_preview(both, [lifted])} == {*both, lifted._replace(only_declared=True)}
