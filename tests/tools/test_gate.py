"""Which kinds of real parts the gate runs whole, by `tools/gate.py`."""

import re
import subprocess
from pathlib import Path

import gate
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a repository with an input of each of two kinds, whose tests have passed."""
    for name in ("tests/kinds/x", "tests/cluster/test_a.py", "stacks/program.py", "README.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setattr(gate, "ROOT", tmp_path)
    monkeypatch.setattr(
        gate, "INPUTS", {"cluster": ("tests/cluster",), "engine": ("stacks", "tests/stacks")}
    )
    assert gate.main(["record", "cluster", "engine"]) == 0
    return tmp_path


def test_a_kind_runs_whole_once_an_input_changed(project: Path) -> None:
    """A changed, a new, a renamed and a deleted input count; another file, and what git ignores, do not."""
    (project / "README.md").write_text("2\n")
    (project / ".gitignore").write_text("*.pyc\n")
    (project / "stacks/cached.pyc").write_text("2\n")
    assert gate.changed_kinds() == []

    (project / "tests/cluster/test_a.py").write_text("2\n")
    assert gate.changed_kinds() == ["cluster"]
    gate.record("cluster")
    (project / "stacks/program.py").rename(project / "stacks/renamed.py")
    assert gate.changed_kinds() == ["engine"]
    gate.record("engine")
    (project / "stacks/renamed.py").unlink()
    assert gate.changed_kinds() == ["engine"]


def test_nothing_is_printed_if_nothing_changed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`.ci/run` records each line as a kind, so that an empty one would end it."""
    assert gate.main(["changed"]) == 0
    assert capsys.readouterr().out == ""
    (project / "tests/cluster/test_a.py").write_text("2\n")
    assert gate.main(["changed"]) == 0
    assert capsys.readouterr().out == "cluster\n"


def test_the_selection_has_the_changed_kinds_whole() -> None:
    """Of an unchanged kind only the telling tests run; tests of no kind always run."""
    unchanged = gate.INPUTS.keys() - {"cluster"}
    assert gate.selection(["cluster"]) == (
        f"telling or cluster or not ({' or '.join(sorted(unchanged))})"
    )
    assert gate.selection(gate.INPUTS) == ""


@pytest.mark.parametrize("kind", gate.INPUTS)
def test_each_kind_has_telling_tests_and_inputs(kind: str) -> None:
    """The gate runs some tests of each kind, and a renamed input does not turn into one that never changes."""
    command = ["git", "ls-files", "--", "*"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for path in gate.INPUTS[kind]:
        assert re.search(rf"^{path}(/|$)", files, re.MULTILINE), path
    inputs = [ROOT / name for name in gate.INPUTS[kind]]
    tests = [path for name in inputs for path in (name, *name.rglob("test_*.py")) if path.is_file()]
    assert any("mark.telling" in path.read_text(encoding="utf-8") for path in tests)


def test_an_unknown_kind_is_not_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt kind writes no file that nothing reads."""
    assert gate.main(["record", "clusters"]) == 2
    assert "record KIND" in capsys.readouterr().err
    assert not (ROOT / gate.RECORDS / "clusters").exists()
