"""Sentences about what changes in stack programs besides the resources that they declare."""

from pathlib import Path

import pytest

from tpucfg.changes.facts import Risk
from tpucfg.changes.programs import program_statements
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.git.snapshots import Snapshot


def revision(folder: Path, files: dict[str, str], project: str = "") -> CompiledRevision:
    """Return a revision with files that `pulumi up` reads, and with the name of a Pulumi project."""
    folder.mkdir()
    if project:
        (folder / "Pulumi.yaml").write_text(f"name: {project}\nruntime: python\n")
    snapshot = Snapshot(
        "HEAD", folder / "tpucfg.yaml", "tpucfg.yaml", exists=True, program_files=files
    )
    return CompiledRevision(snapshot, None, (), (), "")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"stacks/a.py": "file 1"}, "stacks/a.py"),
        ({"stacks/a.py": "file 1"}, {}, "stacks/a.py"),
        ({"stacks/a.py": "file 1"}, {"stacks/a.py": "file 1"}, ""),
        (
            {"Pulumi.yaml": "file 1", "a": "file 1"},
            {"Pulumi.yaml": "file 2", "a": "link 1 b"},
            "Pulumi.yaml, a",
        ),
        ({"a": "link 1 b"}, {"a": "link 2 b"}, "a"),
        ({"a": ""}, {"a": ""}, "a"),
        ({"a": ""}, {}, "a"),
    ],
)
def test_changed_files_are_one_caution(
    tmp_path: Path, old: dict[str, str], new: dict[str, str], expected: str
) -> None:
    """Any file that `pulumi up` reads is in it, and always one whose content is not known."""
    statements = [*program_statements(revision(tmp_path / "a", old), revision(tmp_path / "b", new))]
    assert [(item.statement.values, item.statement.risk) for item in statements] == (
        [((expected,), Risk.UNKNOWN)] if expected else []
    )


def test_thousands_of_files_are_one_sentence(tmp_path: Path) -> None:
    """The sentence has their number and the first ones."""
    files = {f"l{index:04}": "file 1" for index in range(3000)}
    (located,) = program_statements(revision(tmp_path / "a", {}), revision(tmp_path / "b", files))
    assert "and 2994 more" in located.plain


@pytest.mark.parametrize(
    ("old", "new", "is_renamed"),
    [("mnist", "digits", True), ("mnist", "mnist", False), ("", "mnist", False)],
)
def test_renamed_project_leaves_its_resources_behind(
    tmp_path: Path, old: str, new: str, *, is_renamed: bool
) -> None:
    """Another name means another stack, which is empty."""
    statements = program_statements(
        revision(tmp_path / "a", {}, old), revision(tmp_path / "b", {}, new)
    )
    expected = (
        [("Pulumi project renamed from mnist to digits", Risk.DESTRUCTIVE)] if is_renamed else []
    )
    assert [(item.plain.partition(":")[0], item.statement.risk) for item in statements] == expected


def test_an_upgrade_is_one_caution(tmp_path: Path) -> None:
    """Without a program of each revision, the resources are those of the installed package, which the caution names."""
    revisions = []
    for name, commit in (("a", "1"), ("b", "2")):
        item = revision(tmp_path / name, {"stacks/requirements.txt": f"file {commit}"})
        (tmp_path / name / "stacks").mkdir()
        requirement = f"# pinned\ntpucfg[infra] @ git+https://example.com/tpucfg@{commit * 40}\n"
        (tmp_path / name / "stacks" / "requirements.txt").write_text(requirement)
        revisions.append(item)

    (located,) = program_statements(*revisions)

    assert "resources are those of the installed tpucfg" in located.plain
    assert located.plain.endswith(f"tpucfg[infra] @ git+https://example.com/tpucfg@{'2' * 40}")
