"""The output folder: files are compared, written whole or not at all, and never through a symbolic link."""

import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from tpucfg.render.output_dir import (
    FileChange,
    OutputError,
    apply_changes,
    compare_files,
    stale_files,
)

FILES = {"dev/v2-8/config.yaml": "a: 1\n", "dev/v2-32/config.yaml": "a: 2\n"}
FIRST, SECOND = sorted(FILES)


def written(out: Path) -> dict[str, str]:
    """Return every file below the folder, including hidden ones."""
    return {
        path.relative_to(out).as_posix(): path.read_text()
        for path in out.rglob("*")
        if path.is_file()
    }


def render(out: Path, files: dict[str, str]) -> tuple[FileChange, ...]:
    """Compare and write files as `tpucfg render --out` does."""
    changes = compare_files(out, files)
    apply_changes(out, changes, files)
    return changes


def test_only_changed_files_are_written(tmp_path: Path) -> None:
    """Changes are sorted by path and have a kind; an unchanged file keeps its modification time."""
    assert render(tmp_path, FILES) == (FileChange(FIRST, "create"), FileChange(SECOND, "create"))
    assert written(tmp_path) == FILES
    assert render(tmp_path, FILES) == ()
    before = (tmp_path / FIRST).stat().st_mtime_ns
    assert render(tmp_path, {**FILES, SECOND: "a: 3\n"}) == (FileChange(SECOND, "update"),)
    assert (tmp_path / FIRST).stat().st_mtime_ns == before
    assert (tmp_path / SECOND).read_text() == "a: 3\n"


def test_comparing_writes_nothing(tmp_path: Path) -> None:
    """Comparing with a missing folder does not create it."""
    assert len(compare_files(tmp_path / "made", FILES)) == 2
    assert list(tmp_path.iterdir()) == []


def test_texts_are_written_as_utf_8_with_line_feeds(tmp_path: Path) -> None:
    """Files have the same bytes on every machine, and a file with other line ends is updated."""
    render(tmp_path, {FIRST: "é: 日\n"})
    assert (tmp_path / FIRST).read_bytes() == "é: 日\n".encode()
    (tmp_path / FIRST).write_bytes("é: 日\r\n".encode())
    assert compare_files(tmp_path, {FIRST: "é: 日\n"}) == (FileChange(FIRST, "update"),)


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    """A reader of a file that is being written gets the old text or the new one."""
    texts = ["a" * 200_000, "b" * 200_000]
    render(tmp_path, {FIRST: texts[0]})
    texts_read, done = set(), threading.Event()

    def read() -> None:
        while not done.is_set():
            texts_read.add((tmp_path / FIRST).read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(40):
        render(tmp_path, {FIRST: texts[number % 2]})
    done.set()
    reader.join()
    assert texts_read <= set(texts)


def test_no_file_is_written_if_one_cannot_be_staged(tmp_path: Path) -> None:
    """A path that cannot be written leaves all files unchanged, and no staged file."""
    render(tmp_path, FILES)
    (tmp_path / "prod").write_text("in the way\n")
    before = written(tmp_path)
    files = dict.fromkeys((*FILES, "prod/v2-8/config.yaml"), "new\n")
    changes = tuple(FileChange(path, "update") for path in files)
    with pytest.raises(OutputError, match=r"prod.*expected a folder, found a file") as excinfo:
        apply_changes(tmp_path, changes, files)
    assert excinfo.value.help
    assert written(tmp_path) == before


@pytest.mark.parametrize("link", ["dev", "dev/v2-8"])
def test_a_linked_folder_is_refused(tmp_path: Path, link: str) -> None:
    """A symbolic link to a folder outside the output folder is an error that names the link."""
    (tmp_path / "elsewhere").mkdir()
    out = tmp_path / "out"
    (out / link).parent.mkdir(parents=True)
    (out / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=f"{link} is a symbolic link"):
        compare_files(out, FILES)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_linked_file_is_replaced(tmp_path: Path) -> None:
    """A link in the place of a config is replaced, and its target stays unchanged."""
    target = tmp_path / "mine.yaml"
    target.write_text(FILES[FIRST])
    (tmp_path / "out" / FIRST).parent.mkdir(parents=True)
    (tmp_path / "out" / FIRST).symlink_to(target)
    assert render(tmp_path / "out", {FIRST: FILES[FIRST]}) == (FileChange(FIRST, "update"),)
    assert not (tmp_path / "out" / FIRST).is_symlink()
    assert target.read_text() == FILES[FIRST]


def test_the_output_folder_may_be_a_link(tmp_path: Path) -> None:
    """A link given as the output folder itself is followed."""
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    render(tmp_path / "out", FILES)
    assert len(written(tmp_path / "real")) == 2


def test_stale_configs_are_found_and_removed(tmp_path: Path) -> None:
    """Only files that tpucfg wrote, at the path of a config, are stale; files of others are never removed."""
    other_files = [
        "dev/v2-8/notes.txt",
        "dev/config.yaml",
        "dev/v2-8/deeper/config.yaml",
        "config.yaml",
        "dev/v2-8/my-config.yaml",
        "dev/v2-8/config.json",
        "apps/api/config.yaml",
        "helm/prod/config.json",
        "hand/v2-8/config.yaml",
    ]
    own_files = {
        "old/v2-8/config.yaml": "# Made by tpucfg 0.1.0\n",
        "old/v3-32/config.json": "{}\n",
        "old/v6e-8x2/config.yaml": "# Made by tpucfg 0.1.0\n",
    }
    render(
        tmp_path, {path: own_files.get(path, "x\n") for path in (*own_files, *other_files, *FILES)}
    )
    (tmp_path / "linked").symlink_to(tmp_path / "dev")
    changes = stale_files(tmp_path, [""], FILES)
    assert [change.path for change in changes] == [*own_files]
    apply_changes(tmp_path, changes, {})
    assert set(written(tmp_path)) == {*other_files, *FILES}
    assert not (tmp_path / "old").exists(), "an empty folder is removed"


def test_stale_files_are_searched_in_the_given_folders(tmp_path: Path) -> None:
    """With a folder for each project, the files of other projects are not stale."""
    header = "# Made by tpucfg 0.1.0\n"
    render(tmp_path, {"a/dev/v2-8/config.yaml": header, "b/dev/v2-8/config.yaml": header})
    assert [change.path for change in stale_files(tmp_path, ["a/"], [])] == [
        "a/dev/v2-8/config.yaml"
    ]


def test_a_folder_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    """A folder at the path of a config is named, and is not removed."""
    (tmp_path / FIRST).mkdir(parents=True)
    with pytest.raises(OutputError, match=r"^\S+/config.yaml: is a directory"):
        compare_files(tmp_path, FILES)


@pytest.mark.parametrize("name", [FIRST, "old/v2-8/config.yaml", "old/v2-8/config.json"])
def test_a_pipe_does_not_block(tmp_path: Path, name: str) -> None:
    """A pipe at the path of a config is an error, and a pipe elsewhere is ignored."""
    (tmp_path / name).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / name)
    if name == FIRST:
        with pytest.raises(OutputError, match="expected a file, found a pipe or a device"):
            compare_files(tmp_path, FILES)
    else:
        assert stale_files(tmp_path, [""], FILES) == ()


def test_a_large_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A config is as long as its text: of what is longer, no more than that is held in memory."""
    (tmp_path / FIRST).parent.mkdir(parents=True)
    with (tmp_path / FIRST).open("wb") as file:
        file.truncate(1 << 40)
    tracemalloc.start()
    assert compare_files(tmp_path, {FIRST: FILES[FIRST]}) == (FileChange(FIRST, "update"),)
    assert stale_files(tmp_path, [""], []) == ()
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    """The next run removes staged files, and no file of a similar name."""
    leftover = FIRST.replace("config", ".config", 1) + ".tpucfg-staged-1-0"
    similar = FIRST.replace("config", ".config", 1) + ".tpucfg-staged-notes"
    render(tmp_path, {FIRST: "old\n"})
    for path in (leftover, similar):
        (tmp_path / path).write_text("half")
    render(tmp_path, {FIRST: "newer\n"})
    assert written(tmp_path) == {FIRST: "newer\n", similar: "half"}


@pytest.mark.parametrize("out", ["x" * 300, "loop", "loop/x"])
def test_a_path_that_cannot_be_followed_is_an_error(tmp_path: Path, out: str) -> None:
    """A name that is too long, or a link to itself, is an OutputError with a help."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OutputError) as excinfo:
        render(tmp_path / out, FILES)
    assert excinfo.value.help
    assert stale_files(tmp_path / out, [""], FILES) == ()
