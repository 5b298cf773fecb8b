"""Benchmarks: valid inputs, comparable outputs and correct goals."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import cold_start, fit, fit_runs, large_repositories, peers, throughput, timing
from benchmarks.__main__ import kept_sections
from benchmarks.environments import ROOT
from benchmarks.timing import Cost
from tpucfg import schemas
from tpucfg.cli.app import run
from tpucfg.spec.parse import load_project

pytestmark = pytest.mark.slow


def test_throughput_specs_are_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The specs have only notes, so that the benchmark measures no error handling."""
    specs = list(throughput.write_specs(tmp_path))[::100]
    status = run(
        ["check", *(argument for spec in specs for argument in ("--spec", str(tmp_path / spec)))]
    )

    output = capsys.readouterr().out
    assert status == 0
    assert f"{len(specs) * len(throughput.SIZES)} configs: {len(specs)} notes" in output


def test_failing_command_is_not_measured(tmp_path: Path) -> None:
    """A command that fails early would look fast, so it raises an error."""
    with pytest.raises(timing.CommandError, match="status 3"):
        timing.run([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_python_variables_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that makes Python compile its modules at each start is not passed to measured commands."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    timing.run([sys.executable, "-c", "import sys; sys.exit(sys.dont_write_bytecode)"], tmp_path)


def test_peak_memory_is_that_of_the_command(tmp_path: Path) -> None:
    """The peak includes the command's allocations, in bytes, if the measuring process is small."""
    script = f"""
import sys
from pathlib import Path
from benchmarks.timing import run
print(run([sys.executable, "-c", "b'x' * 400_000_000"], Path({str(tmp_path)!r})).peak_bytes)
"""
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
    )

    assert 400e6 < int(process.stdout) < 450e6


def test_goal_is_missed_above_its_ratio() -> None:
    """The ratio compares wall times, and a ratio equal to the goal is not missed."""
    goal = cold_start.GOALS[0]
    costs = {
        name: Cost(1.0, 1.0, 1)
        for each in cold_start.GOALS
        for name in (each.command, each.reference)
    }
    halves = [each for each in cold_start.GOALS if each.max_ratio < 1]
    assert cold_start.missed(costs) == halves

    costs[goal.command] = Cost(goal.max_ratio, 1.0, 1)
    assert cold_start.missed(costs) == halves
    costs[goal.command] = Cost(goal.max_ratio + 0.01, 1.0, 1)
    assert cold_start.missed(costs) == [goal, *halves]


def test_growth_is_the_cost_of_an_additional_config() -> None:
    """Start-up is not part of the growth; a rising cost per config is."""
    linear = {count: Cost(1, 0.1 + 0.0003 * 5 * count, 1) for count in throughput.COUNTS}
    assert throughput.missed(linear) == []

    steeper = linear | {1000: Cost(1, linear[1000].cpu_seconds * 1.2, 1)}
    assert throughput.missed(steeper) == ["linear growth"]
    slow = {count: Cost(1, 0.001 * 5 * count, int(300e6)) for count in throughput.COUNTS}
    assert throughput.missed(slow) == ["configs per second", "memory"]


@pytest.fixture
def variants(tmp_path: Path) -> Path:
    """Create a folder with the inputs of ten configs."""
    list(throughput.write_specs(tmp_path))
    (tmp_path / "variants.json").write_text(json.dumps({"variants": list(peers.variants(10))}))
    return tmp_path


def configs_of(tool: peers.Tool, folder: Path) -> list[Any]:
    """Return the configs that a tool generates, from files or stdout."""
    own = {"tpucfg": Path(sys.executable).with_name("tpucfg"), "script": Path(sys.executable)}
    program = own.get(tool.name.partition(" ")[0]) or shutil.which(tool.name)
    if program is None:
        pytest.skip(f"{tool.name} is not on the PATH")
    process = subprocess.run(
        tool.command(str(program), 10), cwd=folder, check=True, capture_output=True, text=True
    )
    texts = [
        path.read_text() for path in sorted((folder / "out").rglob("*.*")) if path.is_file()
    ] or [process.stdout]
    documents = [document for text in texts for document in yaml.safe_load_all(text)]
    return documents[0] if tool.name == "cue" else documents


@pytest.mark.parametrize("tool", peers.TOOLS, ids=lambda tool: tool.name)
def test_each_tool_generates_ten_valid_configs(tool: peers.Tool, variants: Path) -> None:
    """Every measured tool generates ten configs that are valid for the service."""
    configs = configs_of(tool, variants)
    assert len(configs) == 10
    assert all(schemas.is_valid("vertex-ai", config) for config in configs)


def _sorted(config: Any) -> str:
    return json.dumps(config, sort_keys=True)


def tool_named(name: str) -> peers.Tool:
    """Return the tool with that name."""
    return next(tool for tool in peers.TOOLS if tool.name == name)


def test_tpucfg_prints_the_configs_that_it_writes(variants: Path) -> None:
    """Both rows of tpucfg in the table measure equal configs."""
    printed = configs_of(tool_named("tpucfg (printed)"), variants)
    assert sorted(map(_sorted, printed)) == sorted(
        map(_sorted, configs_of(tool_named("tpucfg"), variants))
    )


@pytest.mark.parametrize("tool", ["cue", "helm", "jsonnet"])
def test_tools_and_script_generate_equal_configs(tool: str, variants: Path) -> None:
    """All tools have the same task: their configs are equal."""
    script_configs = configs_of(tool_named("script"), variants)
    shutil.rmtree(variants / "out")
    assert sorted(map(_sorted, configs_of(tool_named(tool), variants))) == sorted(
        map(_sorted, script_configs)
    )


def test_goals_compare_files_with_the_script_and_printing_with_cue() -> None:
    """Writing files is compared with the script, and printing with CUE if it is installed."""
    seconds = {"tpucfg": 1.0, "tpucfg (printed)": 1.0, "script": 2.0}
    costs = {name: {5_000: Cost(seconds, 1, 1)} for name, seconds in seconds.items()}
    assert peers.missed(costs) == []
    assert peers.missed(costs | {"cue": {5_000: Cost(1.0, 1, 1)}}) == ["faster than cue"]
    assert peers.missed(costs | {"script": {5_000: Cost(1.0, 1, 1)}}) == ["faster than script"]


def test_growth_uses_the_two_largest_measured_counts() -> None:
    """For a slow tool without all measurements, growth uses its own two largest counts."""
    costs = {
        "jsonnet": {count: Cost(0.5 + 0.01 * count, 1, int(50e6)) for count in (10, 100, 1_000)}
    }
    *_, row, _, missing = peers.report(costs)
    assert row == "| jsonnet | 0.60 | 1.50 | 10.50 | – | 10.00 | 50 | files | nothing |"
    assert (
        missing
        == "Not measured, as they are not on the PATH: tpucfg, tpucfg (printed), script, cue, helm."
    )


@pytest.mark.parametrize(
    ("edit", "counts"),
    [
        (large_repositories.ALL_CONFIGS, "300 configs change\n"),
        (large_repositories.ONE_CONFIG, "1 config changes, 299 stay as they are\n"),
    ],
    ids=["all", "one"],
)
def test_large_repository_is_valid(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    edit: tuple[str, str],
    counts: str,
) -> None:
    """The edits of the measured repository change all configs, and one."""
    large_repositories.write_repository(tmp_path, edit)
    monkeypatch.chdir(tmp_path)
    assert run(["diff", "HEAD"]) == 0
    assert counts in capsys.readouterr().out


def test_goals_of_large_repositories() -> None:
    """A comparison of trees is bounded by a ratio, the check by the script's time, the review by processor time."""
    names = {name for comparison in large_repositories.COMPARISONS for name in comparison[:2]}
    equal = {name: Cost(1.0, 1.0, 1) for name in names}
    assert large_repositories.missed(equal) == ["check of many configs"]
    diff, _, review = (comparison.command for comparison in large_repositories.COMPARISONS)
    slow = equal | {diff: Cost(3.1, 1.0, 1), review: Cost(1.0, 2.1, 1)}
    assert large_repositories.missed(slow) == [
        f"{name} of many configs" for name in ("diff", "check", "review")
    ]


@pytest.mark.parametrize("published", fit_runs.RUNS, ids=lambda published: published.name)
def test_the_spec_of_a_published_run_is_valid(
    published: fit_runs.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its only rung has the published batch, and is one of the catalog's sizes in a region that offers it."""
    shutil.copytree(ROOT / "examples" / published.program, tmp_path / "program")
    spec = tmp_path / "program" / "tpucfg.yaml"
    spec.write_text(fit_runs.spec_text(published), encoding="utf-8")
    shutil.rmtree(spec.parent / "results", ignore_errors=True)

    assert run(["check", "--spec", str(spec)]) == 0
    assert run(["ladder", "--spec", str(spec), "--format", "json"]) == 0
    assert f'"batch_size": {published.batch_size}' in capsys.readouterr().out


def test_a_published_run_has_its_source_and_what_differs() -> None:
    """A comparison without its source could not be checked, and no program is exactly the published one."""
    compared = [published for published in fit_runs.RUNS if published.fits is not None]
    assert len(compared) >= 3
    assert {published.fits for published in compared} == {True, False}
    assert all(
        published.url.startswith("https://") and published.outcome and published.differs
        for published in compared
    )


def test_twenty_rungs_of_six_generations_are_measured() -> None:
    """They are of at least five programs."""
    folders = [(ROOT / "examples" / name, environment) for name, environment in fit.EXAMPLES]
    projects = [
        (load_project(folder / "tpucfg.yaml")[0], environment) for folder, environment in folders
    ]
    sizes = [
        size
        for project, environment in projects
        if project
        for size in project.environments[environment].sizes
    ]
    sizes += [published.size for published in fit_runs.RUNS]
    assert len(fit.EXAMPLES) >= 5
    assert len(sizes) >= 20
    assert len({fit_runs.slice_of(size).generation for size in sizes}) >= 6


def test_no_measured_rung_contradicts_a_published_run() -> None:
    """The table has both outcomes: a program that trained on real TPUs fits, and one that did not is refused."""
    table = fit.RESULTS.read_text(encoding="utf-8").partition(fit.HEADING)[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if line.startswith("| ")
    ][1:]
    assert len({fit_runs.slice_of(row[1]).generation for row in rows}) >= 6
    outcomes = {
        published.outcome: published.fits
        for published in fit_runs.RUNS
        if published.fits is not None
    }
    published_rows = [
        (row[-1].partition("): ")[2], row[6] != "does not fit") for row in rows if row[-1]
    ]
    compared = [
        (outcomes[outcome], fits) for outcome, fits in published_rows if outcome in outcomes
    ]
    assert len(compared) >= 3
    assert {published for published, _ in compared} == {True, False}
    assert all(published == compiled for published, compiled in compared)


def test_each_section_of_the_results_is_kept() -> None:
    """Writing one section leaves the others as they are."""
    page = "# Benchmarks\n\n## Cold start\n\na\n\n## Fuzzing\n\nz\n"
    with_fits = fit.replaced(page, f"{fit.HEADING}\n\nb\n")
    assert (
        with_fits
        == f"# Benchmarks\n\n## Cold start\n\na\n\n{fit.HEADING}\n\nb\n\n## Fuzzing\n\nz\n"
    )
    assert fit.replaced(with_fits, f"{fit.HEADING}\n\nc\n") == with_fits.replace("b\n", "c\n")
    assert kept_sections(with_fits) == f"\n{fit.HEADING}\n\nb\n\n## Fuzzing\n\nz\n"
