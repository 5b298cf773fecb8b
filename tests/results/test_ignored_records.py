"""Notes about records in `results/` that are not counted."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spec_factory import planned, spec
from tpucfg.findings import Finding
from tpucfg.results.records import ignored_records, parse_records, record_findings

FILE = "results/dev.jsonl"


def line(name: str = "mnist", size: str = "v2-8") -> str:
    """Return a record's line."""
    return json.dumps({"metrics": {"accuracy": 0.97}, "name": name, "size": size}) + "\n"


def notes(folder: Path, *environments: str, **changes: Any) -> list[Finding]:
    """Return the findings about the results in a folder, next to the small spec with these changes."""
    return record_findings(folder, planned(spec(**changes)).project, environments)[0]


def write_results(folder: Path, **texts: str) -> Path:
    """Write these results files, and return the folder."""
    (folder / "results").mkdir()
    for name, text in texts.items():
        (folder / "results" / f"{name}.jsonl").write_text(text)
    return folder


def messages(text: str, **changes: Any) -> list[str]:
    """Return the messages about the records in a text."""
    project = planned(spec(**changes)).project
    parsed = parse_records(text, FILE)
    return [
        ignored.message
        for ignored in ignored_records(parsed, project.environments["dev"], project.name)
    ]


def test_counted_records_have_no_note(tmp_path: Path) -> None:
    """Records with the spec's name and a size of its ladder have no note; neither has a missing folder."""
    assert messages((line() + line(size="v2-32")) * 3) == []
    assert notes(tmp_path) == []
    assert notes(write_results(tmp_path, dev=line())) == []


def test_each_reason_is_one_note() -> None:
    """Records with one reason are counted in one note, located at the last of them."""
    text = (
        line("b")
        + line("a") * 2
        + line(size="v2-128")
        + line(size="v3-8")
        + line(size="v2-128")
        + line()
    )
    assert messages(text) == [
        "3 records with another name (a and b) are not counted: the spec's name is mnist",
        "3 records of a size outside the ladder (v2-128 and v3-8) are not counted: dev has v2-8 and v2-32",
    ]
    project = planned(spec()).project
    parsed = parse_records(text, FILE)
    line_numbers = [
        ignored.location.line
        for ignored in ignored_records(parsed, project.environments["dev"], "mnist")
    ]
    assert line_numbers == [3, 6]


def test_a_list_of_names_is_limited() -> None:
    """The message stays short, however many names there are."""
    (sentence,) = messages("".join(line(f"other-{number}") for number in range(500)))
    assert sentence.startswith("500 records with another name (other-0, other-1, ")
    assert "and 492 more) are not counted" in sentence


def test_files_named_after_no_environment_have_a_note(tmp_path: Path) -> None:
    """Such a file is a note with the most similar environment; files with another extension are ignored."""
    write_results(tmp_path, dev=line(), prd=line())
    (tmp_path / "results" / "notes.txt").write_text("mine")
    environments = {
        name: {"project": "my-project", "region": "us-central1"} for name in ("dev", "prod")
    }
    environments["prod"]["bucket"] = "another"
    (finding,) = notes(tmp_path, environments=environments)
    assert finding.level == "note"
    assert str(finding.location) == f"{tmp_path}/results/prd.jsonl:1:1"
    assert "prd.jsonl is named after no environment" in finding.message
    assert finding.message.endswith("the spec has dev and prod")
    assert finding.help.startswith("rename it to prod.jsonl")


def test_a_selected_environment_limits_the_notes(tmp_path: Path) -> None:
    """With a selected environment, other environments and unknown files are not checked."""
    write_results(tmp_path, dev=line("other"), prod=line("other"), old=line())
    environments = {
        name: {"project": "my-project", "region": "us-central1"} for name in ("dev", "prod")
    }
    environments["prod"]["bucket"] = "another"
    assert [note.location.file for note in notes(tmp_path, "dev", environments=environments)] == [
        f"{tmp_path}/{FILE}"
    ]
    assert len(notes(tmp_path, environments=environments)) == 3


@pytest.mark.parametrize(
    "name", ["\x1b[31m", "a\nb", "\udcff", "é", "-rf", "a b", "$(id)", "..", "", "x" * 200]
)
def test_hostile_file_names_are_escaped(tmp_path: Path, name: str) -> None:
    """Control characters in a file name are escaped."""
    write_results(tmp_path)
    Path(
        os.fsdecode(os.fsencode(tmp_path / "results") + b"/" + os.fsencode(f"{name}.jsonl"))
    ).touch()
    (finding,) = notes(tmp_path)
    assert finding.message.isprintable()
    assert finding.help.isprintable()


def test_notes_about_files_are_limited(tmp_path: Path) -> None:
    """A folder of many unknown files has ten notes."""
    write_results(tmp_path, **{f"run{number}": "" for number in range(1_500)})
    assert len(notes(tmp_path)) == 10


def test_a_linked_folder_is_not_listed(tmp_path: Path) -> None:
    """A linked folder is not followed or listed, and is an error."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old.jsonl").write_text(line())
    (tmp_path / "results").symlink_to(outside)
    assert [note.id for note in notes(tmp_path)] == ["TPU100"]


def test_notes_stop_nothing(tmp_path: Path) -> None:
    """Ignored records are valid, so they do not close the gate, and the notes are not errors."""
    assert parse_records(line("other") + line(size="v2-128"), FILE).findings == ()
    assert {
        note.level
        for note in notes(write_results(tmp_path, dev=line("other") + line(size="v2-128"), old=""))
    } == {"note"}
