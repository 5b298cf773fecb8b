"""Changes to the committed records."""

import json
from pathlib import Path

import pytest

from fit_results import write_spec
from spec_changes import compiled_revision
from spec_factory import spec
from tpucfg.changes.facts import Risk
from tpucfg.changes.records import RevisionRecords, read_revision_records, result_statements

_GATED = spec(sizes=["v2-8", "v2-32", "v2-128"], gate={"min_scaling_efficiency": 0.8})
_LINE = '{"metrics": {"examples_per_second": %s}, "name": "mnist", "size": "%s"}\n'
_CLOSED = "dev: results: v2-128 may no longer run, as the rung below does not pass the gate"
_OPENED = "dev: results: the gate lets %s start, and did not before: the records below pass it, as committed"
_ADDED = "dev: results: 1 record added to results/dev.jsonl"
V2_8 = _LINE % (1000, "v2-8")
V2_32 = _LINE % (4000, "v2-32")
SLOW = _LINE % (10, "v2-32")


def changes(
    folder: Path, before: str, after: str, data: object = _GATED, base: object = None
) -> list[str]:
    """Return the statements about two versions of the records of `dev`, and maybe of the spec."""
    return [
        located.plain
        for located in result_statements(*both_records(folder, before, after, data, base))
    ]


def both_records(
    folder: Path, before: str, after: str, data: object = _GATED, base: object = None
) -> tuple[RevisionRecords, RevisionRecords]:
    """Return two versions of the records of `dev`, and maybe of the spec."""
    revisions = []
    for name, text, source in (("before", before, base or data), ("after", after, data)):
        path = folder / name / "results" / "dev.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        revision = compiled_revision(source)
        revisions.append(
            revision._replace(
                snapshot=revision.snapshot._replace(spec=folder / name / "tpucfg.yaml")
            )
        )
    old, new = map(read_revision_records, revisions)
    return old, new


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", []),
        (V2_8, V2_8, []),
        (
            "",
            V2_8,
            [
                _OPENED % "v2-32",
                f"{_ADDED} (v2-8: examples_per_second 1000)",
            ],
        ),
        (V2_8, V2_8 + SLOW, [f"{_ADDED} (v2-32: examples_per_second 10)"]),
        (V2_8 + V2_32, V2_32 + V2_8, []),
        (
            V2_8 + V2_32,
            V2_8,
            [
                _CLOSED,
                "dev: results: 1 record of results/dev.jsonl removed or rewritten: records are only ever appended",
            ],
        ),
        (
            V2_8,
            V2_8 + "x\n",
            [
                "dev: results: results/dev.jsonl has invalid lines: the gate stays closed until it can be read"
            ],
        ),
    ],
)
def test_records_that_open_the_gate_are_reported(
    tmp_path: Path, before: str, after: str, expected: list[str]
) -> None:
    """A record that lets another rung run is named with its figures; records are counted."""
    assert changes(tmp_path, before, after) == expected


def test_record_opens_the_gate_below_a_rung_without_fit(tmp_path: Path) -> None:
    """The sentence about the rung's own fit is another one."""
    gated = spec(
        target="cloud-tpu",
        sizes=["v2-8", "v2-32"],
        trainer__fit={"step": "trainer.fit:abstract_step"},
        gate={"min_scaling_efficiency": 0.8, "fit": True},
    )
    assert changes(tmp_path, "", V2_8, gated)[0] == _OPENED % "v2-32"


def test_record_of_another_program_opens_no_rung(tmp_path: Path) -> None:
    """A record with another batch than the spec's does not count for the gate."""
    line = json.dumps({**json.loads(V2_8), "figures": {"batch_size": 8}})

    assert changes(tmp_path, "", f"{line}\n") == [f"{_ADDED} (v2-8: examples_per_second 1000)"]


def test_program_that_the_records_do_not_have_closes_the_gate(tmp_path: Path) -> None:
    """The costs still follow from the record, and the rung above may not run; nothing of it is news a second time."""
    figures = {"batch_size": 1024, "grad_accum": 1, "model_parallel": 1}
    line = json.dumps({**json.loads(V2_8), "figures": figures}) + "\n"
    changed = {**_GATED, "training": {**_GATED["training"], "batch_size": 2048}}
    of_program = "the program of v2-8 is another one than was recorded: hours and costs by records are an estimate"

    assert changes(tmp_path / "gated", line, line, changed, _GATED) == [
        f"dev: results: {of_program}",
        "dev: results: v2-32 may no longer run, as the rung below does not pass the gate",
    ]
    assert changes(tmp_path / "same", line, line, changed, changed) == []
    assert changes(tmp_path / "open", line, line, spec(training=changed["training"]), spec()) == [
        f"dev: results: {of_program}"
    ]


def test_costs_follow_from_the_tokens_of_a_record(tmp_path: Path) -> None:
    """A record counts by the length of its own examples; one that states none, by that of the spec."""
    training = {
        "tuned_on": "v2-8",
        "batch_size": 256,
        "sequence_length": 512,
        "train_tokens": 10**9,
    }
    line = json.dumps({**json.loads(V2_8), "figures": {"sequence_length": 2048}})
    base, head = both_records(
        tmp_path, f"{line}\n", V2_8, spec(training=training), spec(training=training)
    )
    assert [records.tokens["dev"]["v2-8"] for records in (base, head)] == [1000 * 2048, 1000 * 512]


def test_record_that_a_rename_hides_is_not_removed(tmp_path: Path) -> None:
    """The file still has the line, so that it is no caution; one that the change takes away still is."""
    removed = "dev: results: 1 record of results/dev.jsonl removed or rewritten: records are only ever appended"
    assert changes(tmp_path / "kept", V2_8, V2_8, spec(name="digits"), spec()) == []
    assert changes(tmp_path / "removed", V2_8, "", spec(name="digits"), spec()) == [removed]


def test_without_a_gate_no_rung_is_opened(tmp_path: Path) -> None:
    """Without a gate every rung may run."""
    assert changes(tmp_path, "", V2_8, spec()) == [f"{_ADDED} (v2-8: examples_per_second 1000)"]


def test_gate_that_is_less_strict_opens_a_rung(tmp_path: Path) -> None:
    """A record can pass a lower threshold; a stricter gate closes a rung, and one that is added opens none."""
    records = V2_8 + _LINE % (2000, "v2-32")
    loose = {**_GATED, "gate": {"min_scaling_efficiency": 0.5}}

    assert changes(tmp_path / "looser", records, records, loose, _GATED) == [_OPENED % "v2-128"]
    assert changes(tmp_path / "stricter", records, records, _GATED, loose) == [_CLOSED]
    assert (
        changes(
            tmp_path / "added", records, records, loose, spec(sizes=["v2-8", "v2-32", "v2-128"])
        )
        == []
    )


@pytest.mark.parametrize(("goal", "weaker"), [("max", "0.1"), ("min", "0.95")])
def test_a_worse_record_that_the_gate_compares_with_is_a_caution(
    tmp_path: Path, goal: str, weaker: str
) -> None:
    """The last record counts, so an appended line is enough; another figure is named, whatever it passes."""
    gated = spec(
        sizes=["v2-8", "v2-32"], gate={"metric": "accuracy", "goal": goal, "max_drop": 0.1}
    )
    line = '{"metrics": {"accuracy": %s, "examples_per_second": 1000}, "name": "mnist", "size": "v2-8"}\n'
    before = line % 0.9
    words = (
        f"v2-8 recorded with accuracy {weaker}, examples_per_second 1000, previously accuracy 0.9, "
    )
    texts = changes(tmp_path, before, before + line % weaker, gated)
    assert any(text.startswith(f"dev: results: {words}") for text in texts)


def test_a_record_of_another_program_takes_the_place_of_none(tmp_path: Path) -> None:
    """Measuring a changed program is ordinary work, and measuring the same one again has other figures."""
    line = json.dumps({**json.loads(V2_8), "figures": {"batch_size": 8}}) + "\n"
    assert changes(tmp_path / "other", V2_8, V2_8 + line, spec()) == [
        f"{_ADDED} (v2-8: examples_per_second 1000)"
    ]
    again = _LINE % (1010, "v2-8")
    text = "dev: results: v2-8 recorded with examples_per_second 1010, previously examples_per_second 1000"
    assert changes(tmp_path / "same", V2_8, V2_8 + again, spec()) == [text, _ADDED]


def test_a_new_rung_above_one_that_had_passed_is_no_news(tmp_path: Path) -> None:
    """A rung that a change adds is opened by the change only if the base lacks the record of the rung below."""
    shorter = spec(sizes=["v2-8", "v2-32"], gate={"min_scaling_efficiency": 0.8})
    records = V2_8 + V2_32

    assert changes(tmp_path / "kept", records, records, _GATED, shorter) == []
    assert changes(tmp_path / "new", V2_8, records, _GATED, shorter)[0] == _OPENED % "v2-128"


def test_a_record_beyond_the_bound_is_a_caution(tmp_path: Path) -> None:
    """A record that `status` calls impossible is a caution, once, unless the spec allows it."""
    fast = _LINE % (5000, "v2-8")
    compiled = spec(sizes=["v2-8"], trainer__fit={"step": "trainer.fit:abstract_step"})
    for name in ("before", "after"):
        write_spec(tmp_path / name, compiled, {"v2-8": 3})
    old, new = both_records(tmp_path, V2_8, V2_8 + fast, compiled)
    caution, *_ = result_statements(old, new)
    assert caution.plain.startswith(
        "dev: results: TPU108: the record of v2-8 is faster than the TPU can be"
    )
    assert caution.statement.risk is Risk.CAUTION
    assert [*result_statements(new, new)] == []
