"""Changes to the files by which continuous integration runs."""

from pathlib import PurePosixPath

from tpucfg.changes.repository_changes import ci_paths, ci_statements
from tpucfg.changes.statements import Risk


def test_changed_files_are_one_caution() -> None:
    """Whatever a file contains, and however it is written, a reader has to look at it."""
    (located,) = ci_statements([PurePosixPath(".github/workflows/a.yml"), PurePosixPath("Jenkinsfile")])
    assert located.statement.risk is Risk.UNKNOWN
    assert located.plain.startswith(".github/workflows/a.yml, Jenkinsfile changed: continuous integration or ")
    assert [*ci_statements([])] == []


def test_what_is_hidden_at_the_root_counts_unless_it_is_harmless() -> None:
    """No list of services is complete, so each hidden file counts; other names only where a service reads them."""
    counted = [".github", ".azuredevops", ".teamcity", ".pre-commit-config.yaml", ".gitmodules", ".vscode", ".envrc"]
    named = ["Jenkinsfile", "ci/azure-pipelines.yml", "appveyor.yml", "docs/CODEOWNERS", "tools/x/action.yml"]
    files = [f"{name}/a/b" if "." not in name[1:] else name for name in counted] + named
    assert {*map(str, ci_paths([*map(PurePosixPath, files)]))} == {*counted, *named}

    others = [
        ".gitignore",
        ".editorconfig",
        "README.md",
        "trainer/model.py",
        "trainer/.gitkeep",
        "docs/actions.md",
        "data/pipeline.yaml",
    ]
    assert ci_paths([*map(PurePosixPath, others)]) == ()
