"""The gate before a merge, `.ci/run`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """A reader of the README can run the tests that CI runs."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()

    assert "`make test`" in readme
    assert "make test" in commands
