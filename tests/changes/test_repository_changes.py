"""Changes to the files by which continuous integration runs."""

from pathlib import PurePosixPath

from tpucfg.changes.repository_changes import CI_PATHS, ci_statements
from tpucfg.changes.statements import Risk


def test_changed_files_are_one_caution() -> None:
    """Whatever a file contains, and however it is written, a reader has to look at it."""
    (located,) = ci_statements([PurePosixPath(".github/workflows/a.yml"), PurePosixPath("Jenkinsfile")])
    assert located.statement.risk is Risk.UNKNOWN
    assert located.plain.startswith(".github/workflows/a.yml, Jenkinsfile changed: continuous integration reads it")
    assert [*ci_statements([])] == []
    assert PurePosixPath(".github") in CI_PATHS
