"""Inputs that nobody wrote, a few thousand of those that `make fuzz` takes a hundred thousand of.

The seed is fixed, so that a failure can be repeated.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from benchmarks.__main__ import FUZZ
from fuzz.cases import Case, Entry
from fuzz.kinds import KINDS, make
from fuzz.report import HEADING, RESULTS
from fuzz.running import Tally, merged, numbered, run_all
from fuzz.trying import Ended, assert_ended_well
from spec_factory import ROOT

COUNT: Final = 5_000
BATCHES: Final = 20


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_input_is_answered(batch: int) -> None:
    """No exception, no hang, each refusal with its place and id; what is accepted is rendered, and read back."""
    tally = run_all(numbered(1, range(batch * COUNT // BATCHES, (batch + 1) * COUNT // BATCHES)))
    assert tally.inputs.total() == COUNT // BATCHES
    assert not tally.failures, "\n\n".join(f"{why}\n{case.to_json()}" for case, why in tally.failures[:3])


def test_an_input_is_named_by_its_number() -> None:
    """Made again, of any kind, and read back from its file, it is the same to the byte."""
    for number, kind in enumerate(KINDS):
        made = make(3, number, kind)
        assert made == make(3, number, kind)
        assert Case.from_json(made.to_json()) == made
        assert made.kind == kind


def test_an_input_makes_nothing_elsewhere(tmp_path: Path) -> None:
    """Behind a link that leads out of its folder nothing is made, be it to a neighbour or to the root of all."""
    (tmp_path / "base").mkdir()
    (tmp_path / "neighbour").mkdir()
    links = [Entry("far", "link", os.fsencode(tmp_path / "neighbour")), Entry("up", "link", b"../" * 6 + b"neighbour")]
    behind = [Entry(f"{link.path}/made", sort) for link in links for sort in ("file", "folder", "link", "pipe")]
    folder = Case("tree", 0, (*links, *behind, Entry("made", "file")), ()).lay_out(tmp_path / "base")
    assert sorted(path.name for path in folder.iterdir()) == ["far", "made", "up"]
    assert list((tmp_path / "neighbour").iterdir()) == []


@pytest.mark.parametrize(
    "ended",
    [
        Ended(("check",), 1, "", ""),
        Ended(("check",), 1, "something is wrong\n", ""),
        Ended(("render",), 1, "", "tpucfg: no\n"),
        Ended(("render",), 2, "", ""),
        Ended(("render",), 5, "a: 1\n", ""),
        Ended(("render",), 0, "a: \x1b[2J\n", ""),
        Ended(("render",), 0, "", "tpucfg.yaml:1:1: error[TPU002]: the text is not YAML\n"),
        Ended(("render",), 1, "", "tpucfg: internal error (ValueError: x); no partial file was written\nhelp: x\n"),
        Ended(("render",), 1, "", "Traceback (most recent call last):\nhelp: x\ntpucfg: x\n"),
    ],
    ids=repr,
)
def test_a_bad_end_is_noticed(ended: Ended) -> None:
    """An end that tells nobody where and why, that says so beside success, or that a terminal would act on."""
    with pytest.raises(AssertionError):
        assert_ended_well(ended)


def test_the_program_takes_them_in_processes_of_their_own(tmp_path: Path) -> None:
    """`make fuzz` counts what came of all of them, and prints it as Markdown."""
    command = [sys.executable, "-m", "fuzz", "--inputs", "30", "--seed", "9", "--processes", "2"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'compiler'}"}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "| inputs | 30 |" in ended.stdout
    assert "30 of 30 inputs, 0 failed" in ended.stderr


def test_the_figures_stand_beside_the_others() -> None:
    """What measures the speed keeps the section of the fuzzer, whose heading both know."""
    assert HEADING == FUZZ
    assert RESULTS.read_text().count(f"\n{HEADING}\n") <= 1


def test_tallies_add_up() -> None:
    """What two processes counted is counted once, also after it went through JSON."""
    one, other = run_all(numbered(5, range(3))), run_all(numbered(5, range(3, 6)))
    both = merged([one, Tally.from_json(other.to_json())])
    assert both.inputs.total() == 6
    assert both.commands == one.commands + other.commands
    assert both.statuses == one.statuses + other.statuses
