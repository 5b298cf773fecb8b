"""The files that `pulumi up` may read, in real repositories: in a commit and in the working tree."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from repositories import Repository, project
from tpucfg.git.repository import find_repository
from tpucfg.git.snapshots import CompareRequest, open_snapshots


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Create a git repository with a project."""
    return project(tmp_path / "p")


def versions(spec: Path) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the files of HEAD and of the working tree by path."""
    request = CompareRequest(
        "HEAD", None, spec, with_program=True, repository=find_repository(spec.parent)
    )
    with open_snapshots(request) as (before, after):
        return before.program_files, after.program_files


def test_only_files_of_the_project_are_listed(repository: Repository) -> None:
    """Project files, stack files, the program and its packages are listed; other files beside the spec are not."""
    for name in ("uv.lock", "README.md", ".gitattributes", "Pulumi.yml", "stacks/data/table.csv"):
        (repository.folder / name).parent.mkdir(exist_ok=True)
        (repository.folder / name).write_text("{}")
    repository.commit()

    before, _ = versions(repository.spec)

    assert {"Pulumi.yml", "Pulumi.yaml", "uv.lock", "stacks/data/table.csv"} <= {*before}
    assert not {"README.md", ".gitattributes", "tpucfg.yaml", "schema/stack.schema.json"} & {
        *before
    }


def test_commit_and_working_tree_are_equal(repository: Repository) -> None:
    """Without a change, a file has equal versions in the commit and in the working tree, a link to a file too."""
    (repository.folder / "shared.py").write_text("x = 1\n")
    (repository.folder / "stacks" / "linked.py").symlink_to("../shared.py")
    (repository.folder / "stacks" / "gone.py").symlink_to("nowhere")
    (repository.folder / "stacks" / "large.bin").write_bytes(b"\0" * (2 << 20))
    (repository.folder / "stacks" / "a\nb.py").write_text("")
    repository.commit()

    before, after = versions(repository.spec)

    assert before == after
    assert {version.partition(" ")[0] for version in before.values()} == {"file", "link", ""}
    assert before["stacks/linked.py"].startswith("link")
    assert before["stacks/gone.py"] == ""


def test_target_of_a_link_has_its_id(repository: Repository) -> None:
    """A link has another id when only the file that it leads to changes."""
    (repository.folder / "shared.yaml").write_text("config: {}\n")
    (repository.folder / "stacks" / "Pulumi.dev.yaml").unlink()
    (repository.folder / "stacks" / "Pulumi.dev.yaml").symlink_to("../shared.yaml")
    repository.commit()
    (repository.folder / "shared.yaml").write_text("config: {a: 1}\n")

    before, after = versions(repository.spec)

    changed = [path for path in before if before[path] != after[path]]
    assert changed == ["stacks/Pulumi.dev.yaml"]
    assert all(files[changed[0]].endswith(" ../shared.yaml") for files in (before, after))


def test_deleted_and_new_files_of_the_working_tree(repository: Repository) -> None:
    """A deleted file is missing, a new one is listed, and an ignored one or a new virtual environment is not."""
    (repository.folder / ".gitignore").write_text("*.pyc\n")
    helper = repository.folder / "stacks" / "helper.py"
    helper.write_text("")
    repository.commit()
    helper.unlink()
    for name in ("stacks/new.py", "stacks/old.pyc", ".venv/bin/python"):
        (repository.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.folder / name).write_text("")

    before, after = versions(repository.spec)

    assert {*before} - {*after} == {"stacks/helper.py"}
    assert {*after} - {*before} == {"stacks/new.py"}


def test_program_outside_the_spec_folder(tmp_path: Path) -> None:
    """A program that several projects share is listed relative to the spec, and so is a link above it."""
    mono = Repository(tmp_path / "mono")
    project(tmp_path / "one")
    shutil.copytree(tmp_path / "one", mono.folder / "vision", ignore=shutil.ignore_patterns(".git"))
    (mono.folder / "vision" / "stacks").rename(mono.folder / "infra")
    mono.edit(
        ("main: stacks", "main: ../infra"),
        ("Dir: stacks", "Dir: ../infra"),
        file="vision/Pulumi.yaml",
    )
    mono.commit()
    (mono.folder / "infra").rename(mono.folder / "other")
    (mono.folder / "infra").symlink_to("other")

    before, after = versions(mono.folder / "vision" / "tpucfg.yaml")

    assert {"../infra/__main__.py", "../infra/Pulumi.dev.yaml", "Pulumi.yaml"} <= {*before}
    assert after["../infra"] == ""
    mono.commit()
    assert versions(mono.folder / "vision" / "tpucfg.yaml")[0]["../infra"].startswith("link ")


def test_submodule_is_listed_with_its_commit(repository: Repository) -> None:
    """A submodule is a version of its own, and its files are not read."""
    Repository(repository.folder / "stacks" / "lib").commit()
    commit = Repository(repository.folder / "stacks" / "lib").git("rev-parse", "HEAD")
    repository.commit()

    before, after = versions(repository.spec)

    assert before["stacks/lib"] == after["stacks/lib"] == f"submodule {commit} "


def test_requirements_include_what_they_name(repository: Repository) -> None:
    """Files named by -r and -c, and code installed by -e, are files of the program, and so is what these name."""
    texts = {
        "requirements.txt": "-r locks/base.txt\n--constraint=locks/limits.txt\n-e ./tools/own[extra]\nother==1\n",
        "locks/base.txt": "-r ../more.txt\n-r ../../outside.txt\n-r base.txt\n",
        "locks/limits.txt": "grpcio<2\n",
        "more.txt": "x==1\n",
        "tools/own/setup.py": "",
        "tools/own/own/code.py": "",
        "tools/other.py": "",
    }
    for name, text in texts.items():
        (repository.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.folder / name).write_text(text)
    repository.commit()

    before, after = versions(repository.spec)

    assert before == after
    assert {*texts} - {"tools/other.py"} <= {*before}
    assert "tools/other.py" not in before


@pytest.mark.parametrize(
    "line",
    [
        "-r deps/one.txt",
        "-rdeps/one.txt",
        "-r \\\n  deps/one.txt",
        '-r "deps/one.txt"',
        "--req deps/one.txt",
        "--find-links ./deps",
        "-f deps/",
        "./deps",
        "own @ file:./deps  # local",
        "deps/one.txt ; python_version > '3'",
    ],
)
def test_any_form_of_a_requirement_names_its_path(repository: Repository, line: str) -> None:
    """However a requirement is written, the path in it belongs to the program."""
    (repository.folder / "deps").mkdir()
    (repository.folder / "deps/one.txt").write_text("x==1\n")
    (repository.folder / "requirements.txt").write_text(
        f"pulumi==3.200.0 \\\n    --hash=sha256:1\n{line}\n"
    )
    before, after = versions(repository.spec)
    assert "deps/one.txt" not in before
    assert "deps/one.txt" in after


@pytest.mark.parametrize(
    "line", ["deps==1.0", "# -r deps/one.txt", "x==1  # via -r deps/one.txt", "-e ."]
)
def test_names_of_packages_and_comments_are_no_paths(repository: Repository, line: str) -> None:
    """A package of the index with the name of a folder, or a comment, makes nothing a part of the program."""
    (repository.folder / "deps").mkdir()
    (repository.folder / "deps/one.txt").write_text("x==1\n")
    (repository.folder / "requirements.txt").write_text(f"{line}\n")
    _, after = versions(repository.spec)
    assert "deps/one.txt" not in after
