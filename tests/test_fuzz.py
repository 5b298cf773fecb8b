"""Fuzzing with a few thousand inputs; `make fuzz` runs a hundred thousand.

The seed is fixed, so that a failure can be repeated.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from benchmarks.fit import FUZZ
from fuzz.cases import Case, Entry
from fuzz.kinds import KINDS, make
from fuzz.report import HEADING, RESULTS
from fuzz.shell import Completed, check_exit
from fuzz.tally import Tally, cases_of, merge, run_all
from spec_factory import ROOT

COUNT: Final = 2_500
BATCHES: Final = 50


@pytest.mark.fuzz
@pytest.mark.parametrize(
    "batch",
    [*(pytest.param(batch, marks=pytest.mark.telling) for batch in range(4)), *range(4, BATCHES)],
)
def test_every_input_is_handled(batch: int) -> None:
    """No input causes an exception, a hang, or an error without location and id; valid inputs render.

    Four batches have each kind of input many times, so that they catch a crash that most inputs of a kind meet.
    """
    tally = run_all(cases_of(1, range(batch * COUNT // BATCHES, (batch + 1) * COUNT // BATCHES)))
    assert tally.inputs.total() == COUNT // BATCHES
    assert not tally.failures, "\n\n".join(
        f"{why}\n{case.to_json()}" for case, why in tally.failures[:3]
    )


def test_input_depends_only_on_seed_and_number() -> None:
    """Made a second time, or read back from its file, an input of any kind is identical."""
    for number, kind in enumerate(KINDS):
        case = make(3, number, kind)
        assert case == make(3, number, kind)
        assert Case.from_json(case.to_json()) == case
        assert case.kind == kind


def test_input_creates_no_file_outside_its_folder(tmp_path: Path) -> None:
    """No file is created behind a link out of the folder, to a neighbour or to the root."""
    (tmp_path / "base").mkdir()
    (tmp_path / "neighbour").mkdir()
    links = [
        Entry("far", "link", os.fsencode(tmp_path / "neighbour")),
        Entry("up", "link", b"../" * 6 + b"neighbour"),
    ]
    behind = [
        Entry(f"{link.path}/made", sort)
        for link in links
        for sort in ("file", "folder", "link", "pipe")
    ]
    folder = Case("tree", 0, (*links, *behind, Entry("made", "file")), ()).lay_out(
        tmp_path / "base"
    )
    assert sorted(path.name for path in folder.iterdir()) == ["far", "made", "up"]
    assert list((tmp_path / "neighbour").iterdir()) == []


@pytest.mark.parametrize(
    "completed",
    [
        Completed(("check",), 1, "", ""),
        Completed(("check",), 1, "something is wrong\n", ""),
        Completed(("render",), 1, "", "tpucfg: no\n"),
        Completed(("render",), 2, "", ""),
        Completed(("render",), 5, "a: 1\n", ""),
        Completed(("render",), 0, "a: \x1b[2J\n", ""),
        Completed(("render",), 0, "", "tpucfg.yaml:1:1: error[TPU002]: the text is not YAML\n"),
        Completed(
            ("render",),
            1,
            "",
            "tpucfg: internal error (ValueError: x); no partial file was written\nhelp: x\n",
        ),
        Completed(("render",), 1, "", "Traceback (most recent call last):\nhelp: x\ntpucfg: x\n"),
    ],
    ids=repr,
)
def test_invalid_result_is_rejected(completed: Completed) -> None:
    """Errors without location or help, errors beside success, and control characters are rejected."""
    with pytest.raises(AssertionError):
        check_exit(completed)


@pytest.mark.slow
def test_program_runs_inputs_in_subprocesses(tmp_path: Path) -> None:
    """`make fuzz` adds up the results of all subprocesses and prints them as Markdown."""
    command = [sys.executable, "-m", "fuzz", "--inputs", "30", "--seed", "9", "--processes", "2"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'compiler'}"}
    completed = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    assert "| inputs | 30 |" in completed.stdout
    assert "30 of 30 inputs, 0 failed" in completed.stderr


def test_results_are_kept_by_the_benchmarks() -> None:
    """The benchmarks keep the section of the fuzzer: both use the same heading."""
    assert HEADING == FUZZ
    assert RESULTS.read_text().count(f"\n{HEADING}\n") <= 1


def test_tallies_add_up() -> None:
    """The sum of two tallies counts each input once, also after a round trip through JSON."""
    first, second = run_all(cases_of(5, range(3))), run_all(cases_of(5, range(3, 6)))
    total = merge([first, Tally.from_json(second.to_json())])
    assert total.inputs.total() == 6
    assert total.commands == first.commands + second.commands
    assert total.statuses == first.statuses + second.statuses
