"""Records in `results/` that are not counted, and what is said of them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spec_factory import planned, spec
from tpucfg.findings import Finding
from tpucfg.results import ExampleRecord
from tpucfg.results.ignored_records import ignored_records, record_findings
from tpucfg.results.record_file import parse_records

EXAMPLE = ExampleRecord("mnist", "v2-8")
FILE = "results/dev.jsonl"


def line(name: str = "mnist", size: str = "v2-8") -> str:
    """A record."""
    return json.dumps({"metrics": {"accuracy": 0.97}, "name": name, "size": size}) + "\n"


def found(folder: Path, *environments: str, **changes: Any) -> list[Finding]:
    """What is said of the results in a folder, beside the small spec with these changes."""
    return record_findings(folder, planned(spec(**changes)).project, environments)[0]


def results(folder: Path, **texts: str) -> Path:
    """The folder with these files of results."""
    (folder / "results").mkdir()
    for name, text in texts.items():
        (folder / "results" / f"{name}.jsonl").write_text(text)
    return folder


def said(text: str, **changes: Any) -> list[str]:
    """What is said of the records in a text."""
    project = planned(spec(**changes)).project
    made = parse_records(text, FILE, ExampleRecord(project.name, "v2-8"))
    return [it.said for it in ignored_records(made, project.environments["dev"], project.name)]


def test_what_counts_is_not_mentioned(tmp_path: Path) -> None:
    """Records of the spec's name on rungs of its ladder, however many, and no folder at all."""
    assert said((line() + line(size="v2-32")) * 3) == []
    assert found(tmp_path) == []
    assert found(results(tmp_path, dev=line())) == []


def test_each_reason_is_said_once_and_counted() -> None:
    """Of many records with the same reason one sentence says how many; the last of them is its place."""
    text = line("b") + line("a") * 2 + line(size="v2-128") + line(size="v3-8") + line(size="v2-128") + line()
    assert said(text) == [
        "3 records of another name (a and b) are not counted: the spec's name is mnist",
        "3 records of a size outside the ladder (v2-128 and v3-8) are not counted: dev has v2-8 and v2-32",
    ]
    project = planned(spec()).project
    made = parse_records(text, FILE, EXAMPLE)
    places = [it.location and it.location.line for it in ignored_records(made, project.environments["dev"], "mnist")]
    assert places == [3, 6]


def test_a_list_of_names_is_cut() -> None:
    """However many there are, the sentence stays one that is read."""
    (sentence,) = said("".join(line(f"other-{at}") for at in range(500)))
    assert sentence.startswith("500 records of another name (other-0, other-1, ")
    assert "and 492 more) are not counted" in sentence


def test_files_of_no_environment(tmp_path: Path) -> None:
    """They are named, with the environment that was most likely meant; other files and folders are nobody's matter."""
    results(tmp_path, dev=line(), prd=line())
    (tmp_path / "results" / "notes.txt").write_text("mine")
    environments = {name: {"project": "my-project", "region": "us-central1"} for name in ("dev", "prod")}
    environments["prod"]["bucket"] = "another"
    (finding,) = found(tmp_path, environments=environments)
    assert finding.level == "note"
    assert str(finding.location) == f"{tmp_path}/results/prd.jsonl:1:1"
    assert "prd.jsonl belongs to no environment" in finding.message
    assert finding.message.endswith("the spec has dev and prod")
    assert finding.help.startswith("did you mean prod.jsonl? Rename it")


def test_who_asks_about_one_environment_hears_of_one(tmp_path: Path) -> None:
    """Files of none, and records of the others, are not its matter."""
    results(tmp_path, dev=line("other"), prod=line("other"), old=line())
    environments = {name: {"project": "my-project", "region": "us-central1"} for name in ("dev", "prod")}
    environments["prod"]["bucket"] = "another"
    assert [it.location.file for it in found(tmp_path, "dev", environments=environments)] == [f"{tmp_path}/{FILE}"]
    assert len(found(tmp_path, environments=environments)) == 3


@pytest.mark.parametrize("name", ["\x1b[31m", "a\nb", "\udcff", "é", "-rf", "a b", "$(id)", "..", "", "x" * 200])
def test_hostile_names_of_files(tmp_path: Path, name: str) -> None:
    """What a terminal would act on is escaped."""
    results(tmp_path)
    Path(os.fsdecode(os.fsencode(tmp_path / "results") + b"/" + os.fsencode(f"{name}.jsonl"))).touch()
    (finding,) = found(tmp_path)
    assert finding.message.isprintable()
    assert finding.help.isprintable()


def test_a_folder_of_many_files(tmp_path: Path) -> None:
    """Ten are named, and nobody reads on."""
    results(tmp_path, **{f"run{at}": "" for at in range(1_500)})
    assert len(found(tmp_path)) == 10


def test_what_is_no_folder_of_results(tmp_path: Path) -> None:
    """A link is not followed, and what it leads to is not listed; the file that is not there is said as before."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "old.jsonl").write_text(line())
    (tmp_path / "results").symlink_to(elsewhere)
    assert [it.id for it in found(tmp_path)] == ["TPU100"]


def test_nothing_is_stopped_by_it(tmp_path: Path) -> None:
    """The records themselves are sound: what is read of them has no finding, so that the gate goes by them."""
    assert parse_records(line("other") + line(size="v2-128"), FILE, EXAMPLE).findings == ()
    assert {it.level for it in found(results(tmp_path, dev=line("other") + line(size="v2-128"), old=""))} == {"note"}
