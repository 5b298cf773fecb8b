"""Changes to the files by which continuous integration runs, and of those that images are built from."""

from pathlib import PurePosixPath

from tpucfg.changes.facts import Risk
from tpucfg.changes.repository_changes import build_paths, build_statements, ci_paths, ci_statements


def test_changed_files_are_one_caution() -> None:
    """Whatever a file contains, and however it is written, a reader has to look at it."""
    (located,) = ci_statements(
        [PurePosixPath(".github/workflows/a.yml"), PurePosixPath("Jenkinsfile")]
    )
    assert located.statement.risk is Risk.UNKNOWN
    assert located.plain.startswith(
        ".github/workflows/a.yml, Jenkinsfile changed: continuous integration or "
    )
    assert [*ci_statements([])] == []


def test_what_is_hidden_at_the_root_counts_unless_it_is_harmless() -> None:
    """No list of services is complete, so each hidden file counts; other names only where a service reads them."""
    counted = [
        ".github",
        ".azuredevops",
        ".teamcity",
        ".pre-commit-config.yaml",
        ".gitmodules",
        ".vscode",
        ".envrc",
    ]
    named = [
        "Jenkinsfile",
        "ci/azure-pipelines.yml",
        "appveyor.yml",
        "docs/CODEOWNERS",
        "tools/x/action.yml",
        "a/.gitattributes",
    ]
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


def test_those_who_approve_have_a_caution_of_their_own() -> None:
    """CODEOWNERS runs nothing."""
    (located,) = ci_statements([PurePosixPath(".github/CODEOWNERS")])
    assert located.plain == ".github/CODEOWNERS changed: it decides who has to approve a change"
    assert located.statement.risk is Risk.UNKNOWN


def test_files_of_images_are_found_by_name() -> None:
    """Files that `docker build` and installers of packages read count, and scripts, in any folder."""
    built = (
        *(
            "trainer/Dockerfile",
            "gpu.Dockerfile",
            "Dockerfile.dev",
            "a/requirements.txt",
            "requirements/base.in",
            "b.sh",
        ),
        *(
            "pyproject.toml",
            "uv.lock",
            "compose.yaml",
            "dev-requirements.txt",
            "constraints.txt",
            "Makefile",
            "justfile",
        ),
    )
    others = ("README.md", "trainer/train.py", "tpucfg.yaml", "data/words.txt")
    assert {*map(str, build_paths(map(PurePosixPath, (*built, *others))))} == {*built}


def test_changed_files_of_images_are_one_caution() -> None:
    """Their lines are not judged: whatever differs, its code is in the image."""
    (located,) = build_statements([PurePosixPath("Dockerfile"), PurePosixPath("a.sh")])
    assert located.plain == (
        "Dockerfile, a.sh changed: what is built or run with it differs from now on"
    )
    assert located.statement.risk is Risk.CAUTION
    assert [*build_statements([])] == []
