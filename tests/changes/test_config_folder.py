"""Two folders of configs: which files are parsed, and how they are matched."""

import os
from pathlib import Path

import pytest

from tpucfg.changes.config_diff import config_difference, read_folders
from tpucfg.changes.facts import Scope
from tpucfg.yamldoc import reader
from tpucfg.yamldoc.document import KeyPath


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Create two empty folders."""
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    return tmp_path / "before", tmp_path / "after"


def write(folder: Path, **texts: str) -> None:
    """Write files; a double underscore in a name separates folders, and `_yaml` is the suffix."""
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_equal_files_are_not_parsed(folders: tuple[Path, Path]) -> None:
    """Files with equal bytes are no difference, even if they are not valid YAML or have several documents."""
    for folder in folders:
        write(folder, same_yaml="a: 1\n---\nb: 2\n", bad_yaml="[")
    read = read_folders(*folders)
    assert read.equal == {Scope("", "same.yaml"), Scope("", "bad.yaml")}
    assert (read.before, read.after, read.findings) == ({}, {}, ())


@pytest.mark.parametrize("other", ["[]", "[ ", None])
def test_invalid_file_that_differs_is_reported(
    folders: tuple[Path, Path], other: str | None
) -> None:
    """A file that is invalid on one side only, invalid in two ways, or missing on one side is an error."""
    write(folders[0], bad_yaml="[")
    if other:
        write(folders[1], bad_yaml=other)
    findings = read_folders(*folders).findings
    assert str(folders[0] / "bad.yaml") in {finding.location.file for finding in findings}


def test_equal_files_beyond_the_limits_are_reported(folders: tuple[Path, Path]) -> None:
    """Files larger than is read are never called equal."""
    for folder in folders:
        write(folder, large_yaml="# " + "x" * (1 << 20))
    assert {finding.id for finding in read_folders(*folders).findings} == {"TPU010"}


def test_pipe_is_not_waited_for(folders: tuple[Path, Path]) -> None:
    """A pipe on both sides is an error and not equal."""
    for folder in folders:
        os.mkfifo(folder / "pipe.yaml")
    assert {finding.id for finding in read_folders(*folders).findings} == {"TPU001"}


def test_rendered_configs_are_known_by_environment_and_size(folders: tuple[Path, Path]) -> None:
    """A second config file of one folder keeps its path as its key and is not dropped."""
    write(
        folders[0],
        dev__v2__config_yaml="1",
        dev__v2__config_json="1",
        v2__config_yaml="2",
        dev__v2__job_yaml="3",
    )
    read = read_folders(*folders)
    assert read.before == {
        Scope("dev", "v2"): 1,
        Scope("", "dev/v2/config.yaml"): 1,
        Scope("", "v2"): 2,
        Scope("dev/v2", "job.yaml"): 3,
    }


def test_more_files_than_the_limit_are_an_error(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files beyond the limit are not silently left out of a comparison."""
    monkeypatch.setattr(reader, "MAX_FILES", 2)
    write(folders[0], a_yaml="1", b_yaml="1", c_yaml="1")
    (finding,) = read_folders(*folders).findings
    assert (finding.id, finding.message) == (
        "TPU010",
        f"{folders[0]} has more than 2 YAML and JSON files",
    )


def test_unreadable_folder_is_an_error(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Configs of a folder that cannot be listed are not called removed."""
    write(folders[0], dev__v2__config_yaml="1")
    write(folders[1], dev__v2__config_yaml="1")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("before/dev/"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    (finding,) = read_folders(*folders).findings
    assert (finding.id, finding.message) == (
        "TPU001",
        f"{folders[0]}/dev cannot be read: Permission denied",
    )


_POLICY = "kind: compute#resourcePolicy\nname: a\n"
_TEMPLATE = "---\nkind: compute#instanceTemplate\nname: a\n"
_GROUP = "---\nkind: compute#instanceGroupManager\nname: a\n"


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (f"{_POLICY}---\n{_POLICY}", {("resourcePolicy 2", "kind"), ("resourcePolicy 2", "name")}),
        ("name: a\n", {("resourcePolicy", "kind"), ("resourcePolicy", "name"), ("object", "name")}),
    ],
)
def test_objects_of_compute_engine_are_compared_by_kind(
    folders: tuple[Path, Path], edited: str, expected: set[KeyPath]
) -> None:
    """An object that a file has twice, or whose kind is missing, does not hide that the others are equal."""
    for folder, policy in zip(folders, (_POLICY, edited), strict=True):
        write(folder, a_yaml=policy + _TEMPLATE + _GROUP)
    read = read_folders(*folders)
    (group,) = config_difference(read.before, read.after).groups
    assert {change.path for change in group.changes} == expected
