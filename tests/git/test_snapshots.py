"""Snapshots of revisions in real repositories."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from repositories import Repository, project
from tpucfg.git.repository import RevisionError, find_repository
from tpucfg.git.snapshots import CompareRequest, Snapshot, open_snapshots


@contextmanager
def snapshots(
    base: str,
    head: str | None,
    spec: Path,
    *,
    with_program: bool = False,
    from_merge_base: bool = False,
) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Open the snapshots of both revisions."""
    request = CompareRequest(
        base, head, spec, with_program, from_merge_base, find_repository(spec.parent)
    )
    with open_snapshots(request) as opened:
        yield opened


def refusal(base: str, head: str | None, spec: Path) -> str:
    """Return the error and the help for revisions that cannot be opened."""
    with pytest.raises(RevisionError) as excinfo, snapshots(base, head, spec):
        pass
    return f"{excinfo.value}\n{excinfo.value.help}"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Create a git repository with a project."""
    return project(tmp_path / "p")


def test_export_is_deleted_afterwards(repository: Repository) -> None:
    """The spec of a revision can be read as it was, and the temporary folder is deleted afterwards."""
    repository.edit((":1.0", ":1.1"))

    with snapshots("HEAD", None, repository.spec) as (before, after):
        assert ":1.0" in before.spec.read_text()
        assert ":1.1" in after.spec.read_text()
        assert (before.title, after.title) == ("HEAD", "the working tree")
        assert before.display_path == after.display_path == str(repository.spec)
        exported_to = before.exported_to
    assert exported_to is not None
    assert not exported_to.exists()


def test_stack_program_is_exported_on_request(repository: Repository) -> None:
    """The files beside the spec are exported only with the stack program."""
    with snapshots("HEAD", "HEAD", repository.spec, with_program=True) as (before, _):
        assert {path.name for path in before.spec.parent.iterdir()} >= {
            "Pulumi.yaml",
            "stacks",
            "schema",
        }
        assert (before.spec.parent / "stacks" / "__main__.py").is_file()
    with snapshots("HEAD", "HEAD", repository.spec) as (before, _):
        assert [path.name for path in before.spec.parent.iterdir()] == ["tpucfg.yaml"]


def test_monorepo_exports_only_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the spec's folder and the program that its Pulumi.yaml names are exported, from any current folder."""
    mono = Repository(tmp_path / "mono")
    project(tmp_path / "one")
    shutil.copytree(
        tmp_path / "one", mono.folder / "teams" / "vision", ignore=shutil.ignore_patterns(".git")
    )
    (mono.folder / "teams" / "vision" / "stacks").rename(mono.folder / "infra")
    mono.edit(("main: stacks", "main: ../../infra"), file="teams/vision/Pulumi.yaml")
    (mono.folder / "large").mkdir()
    (mono.folder / "large" / "other.txt").write_text("x")
    mono.commit()
    monkeypatch.chdir(mono.folder / "teams")

    with snapshots("HEAD", None, Path("vision/tpucfg.yaml"), with_program=True) as (before, after):
        assert before.display_path == after.display_path == "vision/tpucfg.yaml"
        assert before.exported_to is not None
        assert {path.name for path in before.exported_to.iterdir()} == {"teams", "infra"}
        assert (before.exported_to / "infra" / "__main__.py").is_file()


def test_renamed_spec_is_found(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec that git recognizes as renamed is compared with its old path."""
    (repository.folder / "ml").mkdir()
    repository.git("mv", "tpucfg.yaml", "ml/spec.yaml")
    repository.edit((":1.0", ":1.1"), file="ml/spec.yaml")
    repository.commit()
    monkeypatch.chdir(repository.folder / "ml")

    with snapshots("HEAD~1", "HEAD", Path("spec.yaml")) as (before, after):
        assert before.exists
        assert after.exists
        assert before.display_path == "../tpucfg.yaml"


def test_rename_in_the_index_is_found_without_filters(repository: Repository) -> None:
    """A rename in the index is found before it is committed, and no filter of the repository runs."""
    repository.git("config", "filter.spy.clean", f"touch {repository.folder}/ran; cat")
    repository.git("mv", "tpucfg.yaml", "jobs.yaml")
    (repository.folder / ".gitattributes").write_text("*.yaml filter=spy\n")
    repository.edit((":1.0", ":1.1"), file="jobs.yaml")

    with snapshots("HEAD", None, repository.folder / "jobs.yaml", with_program=True) as (
        before,
        after,
    ):
        assert before.exists
        assert after.exists
        assert before.display_path == str(repository.spec)
        assert ":1.0" in before.spec.read_text()
    assert not (repository.folder / "ran").exists()


@pytest.mark.parametrize("head", ["HEAD", None])
def test_revision_without_a_spec_is_empty(tmp_path: Path, head: str | None) -> None:
    """Before the commit that adds the spec, or before any commit, the snapshot is empty, without an error."""
    repository = Repository(tmp_path)
    if head:
        repository.commit()
        repository.spec.write_text("version: 1\n")
        repository.commit()
    else:
        repository.spec.write_text("version: 1\n")

    with snapshots("HEAD~1" if head else "HEAD", head, repository.spec) as (before, after):
        assert not before.exists
        assert after.exists


def test_deleted_spec_is_an_empty_snapshot(repository: Repository) -> None:
    """A working tree without the spec is empty; if no revision has a spec, that is an error."""
    repository.spec.unlink()

    with snapshots("HEAD", None, repository.spec) as (before, after):
        assert before.exists
        assert not after.exists
    repository.commit()
    assert "there is no" in refusal("HEAD", None, repository.spec)


@pytest.mark.parametrize("revision", ["", "-x", "--output=x", "--help", "a\nb", "a\0b", "\x1b[2J"])
def test_revision_is_never_an_option_of_git(repository: Repository, revision: str) -> None:
    """A revision with a leading dash or with characters that no name has never reaches git."""
    message = refusal(revision, None, repository.spec)

    assert "is not a revision" in message
    assert "\x1b" not in message
    assert not list(repository.folder.glob("*x"))


@pytest.mark.parametrize(
    "revision", ["nowhere", "HEAD:tpucfg.yaml", "HEAD~7", "$(id)", "main..main", "@{u}"]
)
def test_unknown_revision_lists_known_ones(repository: Repository, revision: str) -> None:
    """A revision that names no commit is refused with the branches and tags."""
    repository.git("tag", "v1")

    assert "main, v1" in refusal(revision, None, repository.spec)


def test_similar_revision_is_suggested(repository: Repository, tmp_path: Path) -> None:
    """A typing error is answered with the similar branch, and a remote branch with its full name."""
    repository.git("branch", "feature")
    assert "did you mean feature?" in refusal("feture", None, repository.spec)

    subprocess.run(
        ["git", "clone", "--quiet", repository.folder, tmp_path / "clone"],
        check=True,
        capture_output=True,
    )
    assert "did you mean origin/feature?" in refusal(
        "feature", None, tmp_path / "clone" / "tpucfg.yaml"
    )


def test_shallow_clone_has_help_to_fetch(repository: Repository, tmp_path: Path) -> None:
    """In a shallow clone the help is the fetch command, and the setting in a workflow."""
    first = repository.git("rev-parse", "HEAD")
    repository.commit()
    address = f"file://{repository.folder}"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", address, tmp_path / "c"],
        check=True,
        capture_output=True,
    )

    message = refusal(first, None, tmp_path / "c" / "tpucfg.yaml")

    assert f"git fetch origin {first}" in message
    assert "fetch-depth: 0" in message


def test_partial_clone_is_not_completed(repository: Repository, tmp_path: Path) -> None:
    """Missing files of a partial clone are not fetched; the help is the command that does it."""
    repository.edit((":1.0", ":1.1"))
    repository.commit()
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = [
        "git",
        "clone",
        "--quiet",
        "--filter=blob:none",
        f"file://{repository.folder}",
        str(tmp_path / "c"),
    ]
    subprocess.run(clone, check=True, capture_output=True)

    assert "git fetch --refetch" in refusal("HEAD~1", None, tmp_path / "c" / "tpucfg.yaml")
    subprocess.run(
        ["git", "fetch", "--refetch", "--no-filter", "origin"],
        cwd=tmp_path / "c",
        check=True,
        capture_output=True,
    )
    with snapshots("HEAD~1", None, tmp_path / "c" / "tpucfg.yaml") as (before, _):
        assert ":1.0" in before.spec.read_text()


def test_missing_repository_and_missing_git_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its own message and help."""
    message = refusal("HEAD", None, tmp_path / "tpucfg.yaml")
    assert "is not in a git repository" in message
    assert "compare two folders of configs without git: tpucfg diff" in message
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git is not installed" in refusal("HEAD", None, tmp_path / "tpucfg.yaml")


def test_variables_of_a_git_hook_are_ignored(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a hook of another repository, the repository of the spec is still the one that is read."""
    other = Repository(tmp_path / "other")
    other.commit()
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))

    with snapshots("HEAD", None, repository.spec) as (before, _):
        assert before.exists


def test_links_are_not_followed(repository: Repository, tmp_path: Path) -> None:
    """A link out of the project is skipped, and a spec that is a link is refused."""
    (tmp_path / "secret").write_text("s")
    (repository.folder / "out").symlink_to(tmp_path / "secret")
    (repository.folder / "up").symlink_to("..")
    (repository.folder / "other.yaml").symlink_to("tpucfg.yaml")
    repository.commit()

    with snapshots("HEAD", None, repository.spec, with_program=True) as (before, _):
        assert not [path for path in before.spec.parent.rglob("*") if path.is_symlink()]
        assert not (before.spec.parent / "out").exists()
    assert "symbolic link" in refusal("HEAD", None, repository.folder / "other.yaml")
    (repository.folder / "tpucfg.yaml").rename(tmp_path / "outside.yaml")
    repository.spec.symlink_to(tmp_path / "outside.yaml")
    assert "symbolic link in the working tree" in refusal("HEAD", None, repository.spec)


def test_large_files_are_skipped(repository: Repository) -> None:
    """A file larger than any source file is not exported, and is counted."""
    (repository.folder / "data.bin").write_bytes(b"\0" * (2 << 20))
    repository.commit()

    with snapshots("HEAD", None, repository.spec, with_program=True) as (before, _):
        assert before.skipped_files == 1
        assert not (before.spec.parent / "data.bin").exists()


def test_path_outside_the_folder_is_not_exported(repository: Repository) -> None:
    """A tree that git refuses to check out writes nothing outside the temporary folder."""
    blob = repository.git("hash-object", "-w", "tpucfg.yaml")
    raw = (
        b"100644 tpucfg.yaml\0"
        + bytes.fromhex(blob)
        + b"100644 ../../escaped\0"
        + bytes.fromhex(blob)
    )
    written = subprocess.run(
        [
            "git",
            "-C",
            repository.folder,
            "hash-object",
            "-w",
            "-t",
            "tree",
            "--literally",
            "--stdin",
        ],
        input=raw,
        check=True,
        capture_output=True,
    )
    repository.git(
        "tag", "evil", repository.git("commit-tree", "-m", "x", written.stdout.decode().strip())
    )

    with snapshots("evil", None, repository.spec, with_program=True) as (before, _):
        assert before.exported_to is not None
        assert not (before.exported_to.parent / "escaped").exists()
        assert [path.name for path in before.exported_to.rglob("*")] == ["tpucfg.yaml"]


def test_folder_names_are_no_options_or_patterns(tmp_path: Path) -> None:
    """A folder's name is never an option or a pattern of git."""
    repository = Repository(tmp_path / "r")
    for name in ("--help", ":(top)", "a*b", "ä ö", "-rf"):
        (repository.folder / name).mkdir()
        (repository.folder / name / "tpucfg.yaml").write_text(f"# {name}\n")
    repository.commit()

    for name in ("--help", ":(top)", "a*b", "ä ö", "-rf"):
        with snapshots(
            "HEAD", None, repository.folder / name / "tpucfg.yaml", with_program=True
        ) as (before, _):
            assert before.spec.read_text() == f"# {name}\n"


def test_local_package_exists_in_the_export(tmp_path: Path) -> None:
    """A check of the export finds the package folder and its build file."""
    repository = Repository(tmp_path / "r")
    for name in ("trainer", "ml"):
        (repository.folder / name).mkdir()
    (repository.folder / "trainer" / "task.py").write_text("")
    (repository.folder / "setup.py").write_text("")
    (repository.folder / "ml" / "tpucfg.yaml").write_text("trainer: {package: ../trainer}\n")
    repository.commit()

    with snapshots("HEAD", None, repository.folder / "ml" / "tpucfg.yaml") as (before, _):
        assert (before.spec.parent / "../trainer").is_dir()
        assert (before.spec.parent / "../setup.py").is_file()


def test_later_commits_on_base_are_ignored(repository: Repository) -> None:
    """With the merge base, commits on base after the branch point do not count."""
    repository.git("switch", "--quiet", "--create", "topic")
    repository.edit((":1.0", ":2.0"))
    repository.commit()
    repository.git("switch", "--quiet", "main")
    repository.edit(("batch_size: 1024", "batch_size: 512"))
    repository.commit()

    with snapshots("main", "topic", repository.spec, from_merge_base=True) as (before, _):
        assert "batch_size: 1024" in before.spec.read_text()
    with snapshots("main", "topic", repository.spec) as (before, _):
        assert "batch_size: 512" in before.spec.read_text()


def test_repository_is_not_changed(repository: Repository) -> None:
    """Reading a revision writes nothing to the repository or the working tree."""
    repository.edit((":1.0", ":1.1"))
    before = _state(repository.folder)

    with snapshots("HEAD", None, repository.spec, with_program=True):
        pass

    assert _state(repository.folder) == before


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        os.path.relpath(path, folder): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file()
    }
