"""The specs that a change affects, in real repositories."""

from pathlib import Path, PurePosixPath

import pytest

from repositories import Repository
from tpucfg.git.changed_files import find_affected_specs, other_paths, read_tree_change
from tpucfg.git.repository import find_repository

SPEC = "version: 1\n"


def write(repository: Repository, *files: str, text: str = SPEC) -> None:
    """Write files of equal content."""
    for file in files:
        path = repository.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Create a repository with four specs, of which b and d share a program, and c has a package outside its folder."""
    repository = Repository(tmp_path)
    write(repository, *(f"{folder}/tpucfg.yaml" for folder in ("a", "b", "c", "d", "a/nested")))
    write(repository, "b/Pulumi.yaml", "d/Pulumi.yaml", text="name: x\nmain: ../shared/stacks\n")
    write(repository, "c/tpucfg.yaml", text="trainer: {package: ../trainer}\n")
    write(repository, "shared/stacks/__main__.py", "trainer/setup.py", "README.md", text="")
    repository.commit()
    return repository


@pytest.mark.parametrize(
    ("changed", "affected"),
    [
        ("a/tpucfg.yaml", "a"),
        ("a/results/dev.jsonl", "a"),
        ("a/nested/stacks/helper.py", "a/nested"),
        ("shared/stacks/helper.py", "b d"),
        ("trainer/setup.py", "c"),
        ("README.md", ""),
        ("e/tpucfg.yaml", "e"),
    ],
)
@pytest.mark.parametrize("is_committed", [True, False], ids=["commit", "working-tree"])
def test_change_affects_specs(
    repository: Repository, changed: str, affected: str, is_committed: bool
) -> None:
    """A change affects the nearest spec above it, and those that name its folder as program or package."""
    base = repository.git("rev-parse", "HEAD")
    write(repository, changed, text="version: 2\n")
    head = repository.commit() if is_committed else None

    scope = find_affected_specs(
        read_tree_change(find_repository(repository.folder / "a"), base, head)
    )

    assert [str(path.parent) for path in scope.affected] == affected.split()
    every = {"a", "b", "c", "d", "a/nested"} | ({"e"} if changed.startswith("e/") else set())
    assert {str(path.parent) for path in (*scope.affected, *scope.others)} == every


def test_a_program_that_is_no_longer_named_affects_its_spec(repository: Repository) -> None:
    """The folders that base names count too, so a program cannot be swapped unseen."""
    base = repository.git("rev-parse", "HEAD")
    (repository.folder / "shared/stacks/__main__.py").unlink()
    head = repository.commit()

    scope = find_affected_specs(read_tree_change(find_repository(repository.folder), base, head))

    assert [str(path.parent) for path in scope.affected] == ["b", "d"]


def test_a_spec_of_another_name_is_that_of_a_stack(repository: Repository) -> None:
    """A file that a stack reads as its spec is one, wherever the stack's file stands."""
    write(repository, "a/prod.yaml", "a/other.yaml")
    write(repository, "a/Pulumi.yaml", text="name: x\nstackConfigDir: stacks\n")
    write(
        repository,
        "a/stacks/Pulumi.prod.yaml",
        text="config:\n  x:spec: ./prod.yaml # of prod\n" + "\n" * 100_000,
    )
    base = repository.commit()
    write(repository, "a/prod.yaml", text="version: 2\n")

    scope = find_affected_specs(read_tree_change(find_repository(repository.folder), base, None))

    assert [str(path) for path in scope.affected] == ["a/prod.yaml", "a/tpucfg.yaml"]


def test_files_of_specs_and_their_stacks_have_rules(repository: Repository) -> None:
    """A file that is neither a spec, a result nor below a folder of a Pulumi project is listed for the reader."""
    base = repository.git("rev-parse", "HEAD")
    known = (
        "a/tpucfg.yaml",
        "a/results/dev.jsonl",
        "b/Pulumi.yaml",
        "shared/stacks/data.json",
        "d/requirements.txt",
    )
    write(repository, *known, "README.md", "a/results.md", "shared/main.tf", text="name: y\n")
    tree = read_tree_change(find_repository(repository.folder), base, None)

    specs = find_affected_specs(tree)

    all_specs = (*specs.affected, *specs.others)
    assert sorted(map(str, other_paths(tree, all_specs, ()))) == [
        "README.md",
        "a/results.md",
        "shared/main.tf",
    ]
    judged = [PurePosixPath("README.md")]
    assert sorted(map(str, other_paths(tree, all_specs, judged))) == [
        "a/results.md",
        "shared/main.tf",
    ]


def test_the_only_spec_is_always_affected(tmp_path: Path) -> None:
    """A repository with one spec has a review of every change."""
    repository = Repository(tmp_path)
    write(repository, "tpucfg.yaml")
    commit = repository.commit()

    scope = find_affected_specs(read_tree_change(find_repository(tmp_path), commit, commit))

    assert scope == ((PurePosixPath("tpucfg.yaml"),), ())


def test_deleted_and_moved_specs_are_affected(repository: Repository) -> None:
    """A spec that one revision lacks is affected."""
    base = repository.git("rev-parse", "HEAD")
    repository.git("mv", "a/tpucfg.yaml", "moved.yaml")
    repository.git("mv", "c", "f")
    repository.commit()

    scope = find_affected_specs(read_tree_change(find_repository(repository.folder), base, None))

    assert [str(path) for path in scope.affected] == [
        "a/tpucfg.yaml",
        "c/tpucfg.yaml",
        "f/tpucfg.yaml",
    ]
