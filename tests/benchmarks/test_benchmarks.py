"""The benchmarks measure what they say they do."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import cold_start, peers, throughput, timing
from benchmarks.environments import ROOT
from benchmarks.timing import Cost
from tpucfg import schemas
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
    """The peak holds what the command allocates, in bytes; measured from a small process, as the benchmarks are."""
    measuring = f"""
import sys
from pathlib import Path
from benchmarks.timing import run
print(run([sys.executable, "-c", "b'x' * 400_000_000"], Path({str(tmp_path)!r})).peak_bytes)
"""
    ended = subprocess.run([sys.executable, "-c", measuring], cwd=ROOT, check=True, capture_output=True, text=True)

    assert 400e6 < int(ended.stdout) < 450e6


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


@pytest.fixture
def variants(tmp_path: Path) -> Path:
    """A folder with what ten configs are made of."""
    list(throughput.write_specs(tmp_path))
    (tmp_path / "variants.json").write_text(json.dumps({"variants": list(peers.variants(10))}))
    return tmp_path


def made(tool: peers.Tool, here: Path) -> list[Any]:
    """The configs that a tool makes, wherever it puts them."""
    own = {"tpucfg": Path(sys.executable).with_name("tpucfg"), "script": Path(sys.executable)}
    program = own.get(tool.name.partition(" ")[0]) or shutil.which(tool.name)
    if program is None:
        pytest.skip(f"{tool.name} is not on the PATH")
    ended = subprocess.run(tool.command(str(program), 10), cwd=here, check=True, capture_output=True, text=True)
    texts = [path.read_text() for path in sorted((here / "out").rglob("*.*")) if path.is_file()] or [ended.stdout]
    documents = [document for text in texts for document in yaml.safe_load_all(text)]
    return documents[0] if tool.name == "cue" else documents


@pytest.mark.parametrize("tool", peers.TOOLS, ids=lambda tool: tool.name)
def test_each_tool_makes_ten_configs_that_the_service_takes(tool: peers.Tool, variants: Path) -> None:
    """Nobody is measured who makes fewer, or something else."""
    configs = made(tool, variants)
    assert len(configs) == 10
    assert all(schemas.is_valid("vertex-ai", config) for config in configs)


def _sorted(config: Any) -> str:
    return json.dumps(config, sort_keys=True)


def named(name: str) -> peers.Tool:
    """The tool of that name."""
    return next(tool for tool in peers.TOOLS if tool.name == name)


def test_tpucfg_prints_what_it_writes(variants: Path) -> None:
    """Both of its rows are about the same configs."""
    printed = made(named("tpucfg (printed)"), variants)
    assert sorted(map(_sorted, printed)) == sorted(map(_sorted, made(named("tpucfg"), variants)))


@pytest.mark.parametrize("tool", ["cue", "helm", "jsonnet"])
def test_peers_make_what_the_script_makes(tool: str, variants: Path) -> None:
    """One task for all of them: their configs are equal."""
    of_the_script = made(named("script"), variants)
    shutil.rmtree(variants / "out")
    assert sorted(map(_sorted, made(named(tool), variants))) == sorted(map(_sorted, of_the_script))


def test_the_goal_beside_others_is_about_what_prints_and_checks() -> None:
    """The time of cue is held against that of printing; where it was not measured, the script's is."""
    costs = {name: {5_000: Cost(seconds, 1, 1)} for name, seconds in (("tpucfg (printed)", 1.0), ("script", 2.0))}
    assert peers.missed(costs) == []
    assert peers.missed(costs | {"cue": {5_000: Cost(1.0, 1, 1)}}) == ["sooner than cue"]


def test_growth_of_a_peer_is_between_its_two_largest() -> None:
    """Where a slow one was not asked for all, its own two largest count."""
    costs = {"jsonnet": {count: Cost(0.5 + 0.01 * count, 1, int(50e6)) for count in (10, 100, 1_000)}}
    *_, row, _, missing = peers.report(costs)
    assert row == "| jsonnet | 0.60 | 1.50 | 10.50 | – | 10.00 | 50 | files | nothing |"
    assert missing == "Not on the PATH, and so not measured: tpucfg, tpucfg (printed), script, cue, helm."
