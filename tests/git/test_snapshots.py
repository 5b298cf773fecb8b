"""The two sides of a comparison, out of real repositories."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from repositories import Repository, project
from tpucfg.git.repository import RevisionError
from tpucfg.git.snapshots import CompareRequest, Snapshot, open_snapshots


@contextmanager
def sides(
    base: str, head: str | None, spec: Path, *, whole: bool = False, since_parting: bool = False
) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Both sides."""
    with open_snapshots(CompareRequest(base, head, spec, whole, since_parting)) as both:
        yield both


def refusal(base: str, head: str | None, spec: Path) -> str:
    """Why they cannot be had, with the help."""
    with pytest.raises(RevisionError) as caught, sides(base, head, spec):
        pass
    return f"{caught.value}\n{caught.value.help}"


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    """A project in a repository."""
    return project(tmp_path / "p")


def test_revision_is_copied_and_taken_away(made: Repository) -> None:
    """A revision's spec can be read as it was, and nothing of it is left afterwards."""
    made.edit((":1.0", ":1.1"))

    with sides("HEAD", None, made.spec) as (before, after):
        assert ":1.0" in before.spec.read_text()
        assert ":1.1" in after.spec.read_text()
        assert (before.title, after.title) == ("HEAD", "the working tree")
        assert before.shown == after.shown == str(made.spec)
        copied = before.exported_to
    assert copied is not None
    assert not copied.exists()


def test_whole_side_has_the_stack_program(made: Repository) -> None:
    """What lies beside the spec comes along where it is asked for, and only then."""
    with sides("HEAD", "HEAD", made.spec, whole=True) as (before, _):
        assert {path.name for path in before.spec.parent.iterdir()} >= {"Pulumi.yaml", "stacks", "schema"}
        assert (before.spec.parent / "stacks" / "__main__.py").is_file()
    with sides("HEAD", "HEAD", made.spec) as (before, _):
        assert [path.name for path in before.spec.parent.iterdir()] == ["tpucfg.yaml"]


def test_spec_in_a_folder_of_a_monorepo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the spec's own folder is copied, and a program outside it that its Pulumi.yaml names; from any folder."""
    mono = Repository(tmp_path / "mono")
    project(tmp_path / "one")
    shutil.copytree(tmp_path / "one", mono.folder / "teams" / "vision", ignore=shutil.ignore_patterns(".git"))
    (mono.folder / "teams" / "vision" / "stacks").rename(mono.folder / "infra")
    mono.edit(("main: stacks", "main: ../../infra"), file="teams/vision/Pulumi.yaml")
    (mono.folder / "large").mkdir()
    (mono.folder / "large" / "other.txt").write_text("x")
    mono.commit()
    monkeypatch.chdir(mono.folder / "teams")

    with sides("HEAD", None, Path("vision/tpucfg.yaml"), whole=True) as (before, after):
        assert before.shown == after.shown == "vision/tpucfg.yaml"
        assert before.exported_to is not None
        assert {path.name for path in before.exported_to.iterdir()} == {"teams", "infra"}
        assert (before.exported_to / "infra" / "__main__.py").is_file()


def test_renamed_spec_is_found_again(made: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec that git holds for renamed is compared with what it was called before."""
    (made.folder / "ml").mkdir()
    made.git("mv", "tpucfg.yaml", "ml/spec.yaml")
    made.edit((":1.0", ":1.1"), file="ml/spec.yaml")
    made.commit()
    monkeypatch.chdir(made.folder / "ml")

    with sides("HEAD~1", "HEAD", Path("spec.yaml")) as (before, after):
        assert before.exists
        assert after.exists
        assert before.shown == "../tpucfg.yaml"


def test_renamed_in_the_working_tree(made: Repository) -> None:
    """A rename that git knows of before it is committed is found too, and no filter of the repository runs for it."""
    made.git("config", "filter.spy.clean", f"touch {made.folder}/ran; cat")
    made.git("mv", "tpucfg.yaml", "jobs.yaml")
    (made.folder / ".gitattributes").write_text("*.yaml filter=spy\n")
    made.edit((":1.0", ":1.1"), file="jobs.yaml")

    with sides("HEAD", None, made.folder / "jobs.yaml", whole=True) as (before, after):
        assert before.exists
        assert after.exists
        assert before.shown == str(made.spec)
        assert ":1.0" in before.spec.read_text()
    assert not (made.folder / "ran").exists()


@pytest.mark.parametrize("head", ["HEAD", None])
def test_missing_spec_is_an_empty_side(tmp_path: Path, head: str | None) -> None:
    """Before the commit that brought the spec, or before any commit, there is none, and that is no error."""
    made = Repository(tmp_path)
    if head:
        made.commit()
        made.spec.write_text("version: 1\n")
        made.commit()
    else:
        made.spec.write_text("version: 1\n")

    with sides("HEAD~1" if head else "HEAD", head, made.spec) as (before, after):
        assert not before.exists
        assert after.exists


def test_removed_spec_is_an_empty_side(made: Repository) -> None:
    """So is the working tree after the spec was deleted; without a spec on either side there is nothing to compare."""
    made.spec.unlink()

    with sides("HEAD", None, made.spec) as (before, after):
        assert before.exists
        assert not after.exists
    made.commit()
    assert "there is no" in refusal("HEAD", None, made.spec)


@pytest.mark.parametrize("revision", ["", "-x", "--output=x", "--help", "a\nb", "a\0b", "\x1b[2J"])
def test_revision_is_no_option(made: Repository, revision: str) -> None:
    """What begins with a dash or holds what no name holds never reaches git."""
    said = refusal(revision, None, made.spec)

    assert "is no revision" in said
    assert "\x1b" not in said
    assert not list(made.folder.glob("*x"))


@pytest.mark.parametrize("revision", ["nowhere", "HEAD:tpucfg.yaml", "HEAD~7", "$(id)", "main..main", "@{u}"])
def test_unknown_revision_names_those_there_are(made: Repository, revision: str) -> None:
    """What names no commit is refused, with the branches and tags."""
    made.git("tag", "v1")

    assert "main, v1" in refusal(revision, None, made.spec)


def test_nearest_name_is_offered(made: Repository, tmp_path: Path) -> None:
    """A slip is answered with the branch that was meant, and a branch of the server by its whole name."""
    made.git("branch", "feature")
    assert "did you mean feature?" in refusal("feture", None, made.spec)

    subprocess.run(["git", "clone", "--quiet", made.folder, tmp_path / "clone"], check=True, capture_output=True)
    assert "did you mean origin/feature?" in refusal("feature", None, tmp_path / "clone" / "tpucfg.yaml")


def test_shallow_clone_says_how_to_fetch(made: Repository, tmp_path: Path) -> None:
    """In a clone without history the help is the command that fetches it, and the setting in a workflow."""
    first = made.git("rev-parse", "HEAD")
    made.commit()
    address = f"file://{made.folder}"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", address, tmp_path / "c"], check=True, capture_output=True)

    said = refusal(first, None, tmp_path / "c" / "tpucfg.yaml")

    assert f"git fetch --depth=1 origin {first}" in said
    assert "fetch-depth: 0" in said


def test_partial_clone_fetches_nothing(made: Repository, tmp_path: Path) -> None:
    """A clone without the files of its history is not completed behind its owner's back: the command is given."""
    made.edit((":1.0", ":1.1"))
    made.commit()
    made.git("config", "uploadpack.allowFilter", "true")
    clone = ["git", "clone", "--quiet", "--filter=blob:none", f"file://{made.folder}", str(tmp_path / "c")]
    subprocess.run(clone, check=True, capture_output=True)

    assert "git fetch --refetch" in refusal("HEAD~1", None, tmp_path / "c" / "tpucfg.yaml")
    subprocess.run(
        ["git", "fetch", "--refetch", "--no-filter", "origin"], cwd=tmp_path / "c", check=True, capture_output=True
    )
    with sides("HEAD~1", None, tmp_path / "c" / "tpucfg.yaml") as (before, _):
        assert ":1.0" in before.spec.read_text()


def test_no_repository_and_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is said in a sentence."""
    said = refusal("HEAD", None, tmp_path / "tpucfg.yaml")
    assert "is not in a git repository" in said
    assert "two folders of configs are compared by: tpucfg diff" in said  # which review, too, can say
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git is not installed" in refusal("HEAD", None, tmp_path / "tpucfg.yaml")


def test_hook_of_another_repository(made: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a hook git points everywhere at its own repository; the spec's own is read all the same."""
    other = Repository(tmp_path / "other")
    other.commit()
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))

    with sides("HEAD", None, made.spec) as (before, _):
        assert before.exists


def test_links_and_submodules_are_not_followed(made: Repository, tmp_path: Path) -> None:
    """A link that leads out of the project is left out, and a spec that is one is refused."""
    (tmp_path / "secret").write_text("s")
    (made.folder / "out").symlink_to(tmp_path / "secret")
    (made.folder / "up").symlink_to("..")
    (made.folder / "other.yaml").symlink_to("tpucfg.yaml")
    made.commit()

    with sides("HEAD", None, made.spec, whole=True) as (before, _):
        assert not [path for path in before.spec.parent.rglob("*") if path.is_symlink()]
        assert not (before.spec.parent / "out").exists()
    assert "symbolic link" in refusal("HEAD", None, made.folder / "other.yaml")


def test_large_files_stay_behind(made: Repository) -> None:
    """A file that no program is as large as is not copied, and the side says how many there were."""
    (made.folder / "data.bin").write_bytes(b"\0" * (2 << 20))
    made.commit()

    with sides("HEAD", None, made.spec, whole=True) as (before, _):
        assert before.left_out == 1
        assert not (before.spec.parent / "data.bin").exists()


def test_hostile_names_stay_inside(made: Repository) -> None:
    """A tree that git would refuse to check out writes nothing outside the temporary folder."""
    blob = made.git("hash-object", "-w", "tpucfg.yaml")
    raw = b"100644 tpucfg.yaml\0" + bytes.fromhex(blob) + b"100644 ../../escaped\0" + bytes.fromhex(blob)
    written = subprocess.run(
        ["git", "-C", made.folder, "hash-object", "-w", "-t", "tree", "--literally", "--stdin"],
        input=raw,
        check=True,
        capture_output=True,
    )
    made.git("tag", "evil", made.git("commit-tree", "-m", "x", written.stdout.decode().strip()))

    with sides("evil", None, made.spec, whole=True) as (before, _):
        assert before.exported_to is not None
        assert not (before.exported_to.parent / "escaped").exists()
        assert [path.name for path in before.exported_to.rglob("*")] == ["tpucfg.yaml"]


def test_strange_folders_are_paths(tmp_path: Path) -> None:
    """A folder's name is neither an option nor a pattern."""
    made = Repository(tmp_path / "r")
    for name in ("--help", ":(top)", "a*b", "ä ö", "-rf"):
        (made.folder / name).mkdir()
        (made.folder / name / "tpucfg.yaml").write_text(f"# {name}\n")
    made.commit()

    for name in ("--help", ":(top)", "a*b", "ä ö", "-rf"):
        with sides("HEAD", None, made.folder / name / "tpucfg.yaml", whole=True) as (before, _):
            assert before.spec.read_text() == f"# {name}\n"


def test_local_package_is_seen(tmp_path: Path) -> None:
    """A check of a revision finds the package and its build file beside the spec, or above it."""
    made = Repository(tmp_path / "r")
    for name in ("trainer", "ml"):
        (made.folder / name).mkdir()
    (made.folder / "trainer" / "task.py").write_text("")
    (made.folder / "setup.py").write_text("")
    (made.folder / "ml" / "tpucfg.yaml").write_text("trainer: {package: ../trainer}\n")
    made.commit()

    with sides("HEAD", None, made.folder / "ml" / "tpucfg.yaml") as (before, _):
        assert (before.spec.parent / "../trainer").is_dir()
        assert (before.spec.parent / "../setup.py").is_file()


def test_merge_base(made: Repository) -> None:
    """What came to base after head left it does not count as taken back."""
    made.git("switch", "--quiet", "--create", "topic")
    made.edit((":1.0", ":2.0"))
    made.commit()
    made.git("switch", "--quiet", "main")
    made.edit(("batch_size: 1024", "batch_size: 512"))
    made.commit()

    with sides("main", "topic", made.spec, since_parting=True) as (before, _):
        assert "batch_size: 1024" in before.spec.read_text()
    with sides("main", "topic", made.spec) as (before, _):
        assert "batch_size: 512" in before.spec.read_text()


def test_repository_is_left_as_it_was(made: Repository) -> None:
    """Reading a revision writes nothing to the repository or the working tree."""
    made.edit((":1.0", ":1.1"))
    before = _state(made.folder)

    with sides("HEAD", None, made.spec, whole=True):
        pass

    assert _state(made.folder) == before


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        os.path.relpath(path, folder): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file()
    }
