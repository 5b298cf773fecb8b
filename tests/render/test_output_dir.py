"""Configs on disk: compared, written whole or not at all, and never through a symbolic link."""

import fcntl
import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from tpucfg.render.output_dir import FileChange, OutputError, apply_changes, compare_files, stale_files

FILES = {"dev/v2-8/config.yaml": "a: 1\n", "dev/v2-32/config.yaml": "a: 2\n"}
FIRST, SECOND = sorted(FILES)


def written(out: Path) -> dict[str, str]:
    """Every file below the folder, hidden ones too."""
    return {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*") if path.is_file()}


def render(out: Path, files: dict[str, str]) -> tuple[FileChange, ...]:
    """Compares and writes, as the command does."""
    changes = compare_files(out, files)
    apply_changes(out, changes, files)
    return changes


def test_files_are_created_updated_and_left_alone(tmp_path: Path) -> None:
    """Each change has its kind, in the order of the paths; a file that is right is no change, and keeps its time."""
    assert render(tmp_path, FILES) == (FileChange(FIRST, "create"), FileChange(SECOND, "create"))
    assert written(tmp_path) == FILES
    assert render(tmp_path, FILES) == ()
    before = (tmp_path / FIRST).stat().st_mtime_ns
    assert render(tmp_path, {**FILES, SECOND: "a: 3\n"}) == (FileChange(SECOND, "update"),)
    assert (tmp_path / FIRST).stat().st_mtime_ns == before
    assert (tmp_path / SECOND).read_text() == "a: 3\n"


def test_comparing_writes_nothing(tmp_path: Path) -> None:
    """A folder that is not there is not made, either."""
    assert len(compare_files(tmp_path / "made", FILES)) == 2
    assert list(tmp_path.iterdir()) == []


def test_the_bytes_are_the_text_s(tmp_path: Path) -> None:
    """UTF-8 and line feeds on every machine; a file that differs in its line ends only is a file that differs."""
    render(tmp_path, {FIRST: "é: 日\n"})
    assert (tmp_path / FIRST).read_bytes() == "é: 日\n".encode()
    (tmp_path / FIRST).write_bytes("é: 日\r\n".encode())
    assert compare_files(tmp_path, {FIRST: "é: 日\n"}) == (FileChange(FIRST, "update"),)


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    """Whoever reads while files are written has the old text or the new one."""
    texts = ["a" * 200_000, "b" * 200_000]
    render(tmp_path, {FIRST: texts[0]})
    seen, done = set(), threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add((tmp_path / FIRST).read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(40):
        render(tmp_path, {FIRST: texts[number % 2]})
    done.set()
    reader.join()
    assert seen <= set(texts)


def test_nothing_is_moved_where_something_cannot_be_staged(tmp_path: Path) -> None:
    """One place that cannot be written leaves all files as they were, and nothing behind."""
    render(tmp_path, FILES)
    (tmp_path / "prod").write_text("in the way\n")
    before = written(tmp_path)
    files = dict.fromkeys((*FILES, "prod/v2-8/config.yaml"), "new\n")
    changes = tuple(FileChange(path, "update") for path in files)
    with pytest.raises(OutputError, match=r"prod.*expected a folder, found a file") as caught:
        apply_changes(tmp_path, changes, files)
    assert caught.value.help
    assert written(tmp_path) == before


@pytest.mark.parametrize("link", ["dev", "dev/v2-8"])
def test_no_link_leads_out_of_the_folder(tmp_path: Path, link: str) -> None:
    """A folder that is a symbolic link would put the config somewhere else: it is refused, and named."""
    (tmp_path / "elsewhere").mkdir()
    out = tmp_path / "out"
    (out / link).parent.mkdir(parents=True)
    (out / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=f"{link} is a symbolic link"):
        compare_files(out, FILES)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_that_is_a_link_is_replaced(tmp_path: Path) -> None:
    """What the link led to stays as it is, whatever it holds."""
    target = tmp_path / "mine.yaml"
    target.write_text(FILES[FIRST])
    (tmp_path / "out" / FIRST).parent.mkdir(parents=True)
    (tmp_path / "out" / FIRST).symlink_to(target)
    assert render(tmp_path / "out", {FIRST: FILES[FIRST]}) == (FileChange(FIRST, "update"),)
    assert not (tmp_path / "out" / FIRST).is_symlink()
    assert target.read_text() == FILES[FIRST]


def test_a_folder_reached_through_a_link_is_a_folder(tmp_path: Path) -> None:
    """The folder that --out names may be a link itself: whoever names it means it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    render(tmp_path / "out", FILES)
    assert len(written(tmp_path / "real")) == 2


def test_what_no_job_makes_any_more(tmp_path: Path) -> None:
    """Only what this tool made, at the place of a config, is stale: what others wrote is never removed."""
    others = [
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
    made = {"old/v2-8/config.yaml": "# Made by tpucfg 0.1.0\n", "old/v3-32/config.json": "{}\n"}
    render(tmp_path, {path: made.get(path, "x\n") for path in (*made, *others, *FILES)})
    (tmp_path / "linked").symlink_to(tmp_path / "dev")
    found = stale_files(tmp_path, [""], FILES)
    assert [change.path for change in found] == ["old/v2-8/config.yaml", "old/v3-32/config.json"]
    apply_changes(tmp_path, found, {})
    assert set(written(tmp_path)) == {*others, *FILES}
    assert not (tmp_path / "old").exists(), "a folder that holds nothing any more goes too"


def test_stale_files_of_one_project_only(tmp_path: Path) -> None:
    """With a folder for each project, the folders of others are nobody's business."""
    made = "# Made by tpucfg 0.1.0\n"
    render(tmp_path, {"a/dev/v2-8/config.yaml": made, "b/dev/v2-8/config.yaml": made})
    assert [change.path for change in stale_files(tmp_path, ["a/"], [])] == ["a/dev/v2-8/config.yaml"]


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    """It is not removed to make room."""
    (tmp_path / FIRST).mkdir(parents=True)
    with pytest.raises(OutputError, match=r"^\S+/config.yaml: expected a file, found a folder"):
        compare_files(tmp_path, FILES)


@pytest.mark.parametrize("at", [FIRST, "old/v2-8/config.yaml", "old/v2-8/config.json"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, at: str) -> None:
    """In the place of a config it is refused, and elsewhere it is nobody's business: whoever opens one waits."""
    (tmp_path / at).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / at)
    if at == FIRST:
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


def test_what_a_killed_run_left_is_taken_away(tmp_path: Path) -> None:
    """By the next run that writes there, but not while another writes; a file of a like name stays."""
    left = FIRST.replace("config", ".config", 1) + ".tpucfg-staged-1-0"
    mine = FIRST.replace("config", ".config", 1) + ".tpucfg-staged-notes"
    render(tmp_path, {FIRST: "old\n"})
    for path in (left, mine):
        (tmp_path / path).write_text("half")
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_SH)
    render(tmp_path, {FIRST: "new\n"})
    assert set(written(tmp_path)) == {FIRST, left, mine}
    os.close(folder)
    render(tmp_path, {FIRST: "newer\n"})
    assert written(tmp_path) == {FIRST: "newer\n", mine: "half"}


@pytest.mark.parametrize("out", ["x" * 300, "loop", "loop/x"])
def test_a_path_that_cannot_be_followed(tmp_path: Path, out: str) -> None:
    """A name that is too long, or a link that leads to itself, is an error of the folder with a help."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OutputError) as caught:
        render(tmp_path / out, FILES)
    assert caught.value.help
    assert stale_files(tmp_path / out, [""], FILES) == ()
