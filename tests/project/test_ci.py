"""The gate before a merge, `.ci/run`."""

import tomllib
from pathlib import Path

import gate

ROOT = Path(__file__).resolve().parents[2]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """A reader of the README can run the tests that CI runs, and its selection is the one of `make test`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [line.strip() for line in (ROOT / ".ci/run").read_text("utf-8").splitlines()]

    assert "`make test`" in readme
    assert "step 'make test' make test" in commands


def test_each_kind_is_a_mark() -> None:
    """A misspelt kind would deselect no test, and its tests would run whole each time."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    marks = {
        line.partition(":")[0] for line in settings["tool"]["pytest"]["ini_options"]["markers"]
    }

    assert {*gate.INPUTS, "telling"} <= marks
