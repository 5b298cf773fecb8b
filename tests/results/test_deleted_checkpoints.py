"""The note about deleted checkpoints that the bucket keeps, with their size by the compiled step."""

from pathlib import Path
from typing import Any

import pytest

from fit_results import write_spec
from spec_factory import planned, project, spec
from tpucfg.cli.load_spec import load_fits
from tpucfg.findings import Finding
from tpucfg.results.fit_notes import MIN_DELETED_BYTES, deleted_checkpoints

COUNT = 4000 // 80
"""Checkpoints of a run of the spec."""
TRAINER = {"image": "us-docker.pkg.dev/p/r/i:1.0", "fit": {"step": "trainer.fit:abstract_step"}}


def notes(
    folder: Path, environment: dict[str, Any], state_bytes: int | None, **steps: int
) -> list[Finding]:
    """Return the notes about one rung with a compiled step."""
    data = spec(
        sizes=["v5litepod-16"], target="gke", trainer=TRAINER, training__tuned_on="v5litepod-16"
    )
    data["environments"]["dev"] |= {"region": "us-west4", **environment}
    data["training"]["steps"] = steps
    path = write_spec(folder, data, {"v5litepod-16": 4}, state_bytes=state_bytes)
    jobs = planned(data).jobs
    fits = load_fits(project(data), jobs, path)
    assert fits
    return list(deleted_checkpoints(project(data), jobs, fits))


@pytest.mark.parametrize(
    ("environment", "days"),
    [
        ({}, 7),
        ({"protect": True}, 30),
        ({"soft_delete_days": 90}, 90),
        ({"soft_delete_days": 0}, 0),
    ],
)
def test_the_days_are_those_of_the_stack(
    tmp_path: Path, environment: dict[str, Any], days: int
) -> None:
    """Each way to set the days is in the note, and without days there is none."""
    all_notes = notes(tmp_path, environment, 10**11, save_checkpoints_steps=80)
    assert [
        f"is billed for {days} days more: up to 5,000 GB" in note.message for note in all_notes
    ] == [True] * bool(days)
    assert all(note.level == "note" for note in all_notes)


@pytest.mark.parametrize(
    ("environment", "state_bytes", "steps"),
    [
        ({}, None, {"save_checkpoints_steps": 80}),
        ({}, MIN_DELETED_BYTES // COUNT - 1, {"save_checkpoints_steps": 80}),
        ({}, 10**12, {"warmup_steps": 80}),
        ({"bucket": {"name": "shared", "create": False}}, 10**12, {"save_checkpoints_steps": 80}),
    ],
    ids=["unknown size", "little", "no interval", "bucket of others"],
)
def test_what_is_small_or_not_known_has_no_note(
    tmp_path: Path, environment: dict[str, Any], state_bytes: int | None, steps: dict[str, int]
) -> None:
    """Nothing is said without a size, an interval and a bucket of the stack's own, or below the threshold."""
    assert notes(tmp_path, environment, state_bytes, **steps) == []
