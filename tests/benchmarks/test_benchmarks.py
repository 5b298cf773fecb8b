"""The benchmarks measure what they say they do."""

import sys
from pathlib import Path

import pytest

from benchmarks import cold_start, throughput, timing
from benchmarks.timing import Cost
from tpucfg.cli.app import run


def test_specs_of_the_throughput_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They have no finding beyond a note, so that nothing but the work itself is measured."""
    specs = list(throughput.write_specs(tmp_path))[::100]
    status = run(["check", *(word for spec in specs for word in ("--spec", str(tmp_path / spec)))])

    said = capsys.readouterr().out
    assert status == 0
    assert f"{len(specs) * len(throughput.SIZES)} configs: {len(specs)} notes" in said


def test_a_command_that_fails_is_not_measured(tmp_path: Path) -> None:
    """A command that ends early would look fast."""
    with pytest.raises(timing.CommandError, match="status 3"):
        timing.run([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_pythons_own_switches_are_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that makes Python compile its modules at each start does not reach what is measured."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    timing.run([sys.executable, "-c", "import sys; sys.exit(sys.dont_write_bytecode)"], tmp_path)


def test_memory_is_that_of_the_command(tmp_path: Path) -> None:
    """The peak holds what the command allocates, in bytes."""
    cost = timing.run([sys.executable, "-c", "b'x' * 400_000_000"], tmp_path)

    assert 400e6 < cost.peak_bytes < 450e6


def test_a_goal_is_missed_where_the_ratio_is_above_it() -> None:
    """The ratio is of wall times, and the goal itself still holds."""
    goal = cold_start.GOALS[0]
    costs = {name: Cost(1.0, 1.0, 1) for it in cold_start.GOALS for name in (it.command, it.than)}
    halves = [it for it in cold_start.GOALS if it.at_most < 1]
    assert cold_start.missed(costs) == halves

    costs[goal.command] = Cost(goal.at_most, 1.0, 1)
    assert cold_start.missed(costs) == halves
    costs[goal.command] = Cost(goal.at_most + 0.01, 1.0, 1)
    assert cold_start.missed(costs) == [goal, *halves]


def test_growth_is_what_a_further_config_costs() -> None:
    """What the start costs is no growth; a config that costs more the more there are is."""
    linear = {count: Cost(1, 0.1 + 0.0003 * 5 * count, 1) for count in throughput.COUNTS}
    assert throughput.missed(linear) == []

    steeper = linear | {1000: Cost(1, linear[1000].cpu_seconds * 1.2, 1)}
    assert throughput.missed(steeper) == ["linear growth"]
    slow = {count: Cost(1, 0.001 * 5 * count, int(300e6)) for count in throughput.COUNTS}
    assert throughput.missed(slow) == ["configs a second", "memory"]
