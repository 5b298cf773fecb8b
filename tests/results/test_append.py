"""Appending: whole lines under many writers, and no damage where it fails."""

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_factory import ROOT, spec
from tpucfg import results
from tpucfg.results import ExampleRecord
from tpucfg.results.record import Record
from tpucfg.results.record_file import (
    MAX_FILE_BYTES,
    RecordFileError,
    append_record,
    parse_records,
    record_line,
    record_problems,
)
from tpucfg.results.record_parser import MAX_LINE_LENGTH

EXAMPLE = ExampleRecord("mnist", "v2-8")
RECORD = Record("mnist", "v2-8", {"examples_per_second": 1234.5, "accuracy": 0.97}, "143f2d0788729193", "a1")
WRITER = """
import sys
from pathlib import Path
from tpucfg.results.record_file import append_record
from tpucfg.results.record import Record
folder, name, count, length = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
print("ready", flush=True)
for number in range(count):
    append_record(folder, "dev", Record(name, "v2-8", {f"m{at}_{'x' * 50}": number for at in range(length)}))
"""


def writer(folder: Path, name: str, count: int, metrics: int = 40) -> "subprocess.Popen[str]":
    """A process that appends that many records, of some three kilobytes each, and says when it begins."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(count), str(metrics)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "compiler")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def text_of(folder: Path) -> str:
    """What is in the file of dev."""
    return (folder / "results" / "dev.jsonl").read_text()


def test_a_line_is_the_same_for_the_same_record(tmp_path: Path) -> None:
    """Keys are sorted, whole numbers have no point, and there is no time, host or path in it."""
    path = append_record(tmp_path, "dev", RECORD)
    append_record(tmp_path, "dev", Record("mnist", "v2-8", {"loss": 1e-9, "examples_per_second": 4.0}))
    assert path == tmp_path / "results" / "dev.jsonl"
    assert text_of(tmp_path) == (
        '{"job": "143f2d0788729193", "metrics": {"accuracy": 0.97, "examples_per_second": 1234.5}, '
        '"name": "mnist", "run": "a1", "size": "v2-8"}\n'
        '{"metrics": {"examples_per_second": 4, "loss": 1e-09}, "name": "mnist", "size": "v2-8"}\n'
    )


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}", fullmatch=True),
        st.floats(min_value=-1e300, max_value=1e300),
        min_size=1,
        max_size=50,
    )
)
def test_what_is_written_is_read(metrics: dict[str, float]) -> None:
    """Every record that the schema takes comes back as it was, on a line that is not too long."""
    record = RECORD._replace(metrics={**metrics, "examples_per_second": 1.5})
    if record_problems(record):
        assert len(record.metrics) > 50
        return
    line = record_line(record)
    assert len(line) <= MAX_LINE_LENGTH
    found = parse_records(line, "results/dev.jsonl", EXAMPLE)
    assert [it._replace(location=None) for it in found.records] == [record]


def test_the_longest_record_is_not_too_long() -> None:
    """Fifty metrics with the longest names and numbers fit on a line that is read."""
    record = RECORD._replace(
        name="n" * 30,
        run="r" * 20,
        size="v5litepod-256",
        metrics={f"{at:x>63}": -1.2345678901234567e-300 for at in range(50)},
    )
    assert not record_problems(record)
    assert len(record_line(record)) <= MAX_LINE_LENGTH


@pytest.mark.parametrize("left", ['{"metrics": {"examples_per', record_line(RECORD).rstrip("\n")])
def test_a_last_line_without_its_end_is_kept(tmp_path: Path, left: str) -> None:
    """The next record begins on a line of its own; nothing is deleted, and what is torn is said by name."""
    append_record(tmp_path, "dev", RECORD)
    with (tmp_path / "results" / "dev.jsonl").open("a") as file:
        file.write(left)
    append_record(tmp_path, "dev", RECORD)
    assert text_of(tmp_path) == f"{record_line(RECORD)}{left}\n{record_line(RECORD)}"
    found = results.read_records(tmp_path, "dev", EXAMPLE)
    whole = left.endswith("}")
    assert (len(found.records), [it.location.line for it in found.findings]) == (
        3 if whole else 2,
        [] if whole else [2],
    )


def test_many_writers_and_a_reader_at_once(tmp_path: Path) -> None:
    """Four processes append hundreds of lines of kilobytes: each is there once, in order, and no reader sees half."""
    names = ["a", "b", "c", "d"]
    writers = [writer(tmp_path, name, 150) for name in names]
    reads = 0
    while any(it.poll() is None for it in writers):
        assert results.read_records(tmp_path, "dev", EXAMPLE).findings == ()
        reads += 1
    assert [it.communicate()[1] for it in writers] == [""] * 4
    assert reads > 1
    rows = [json.loads(row) for row in text_of(tmp_path).splitlines()]
    for name in names:
        numbers = [next(iter(row["metrics"].values())) for row in rows if row["name"] == name]
        assert numbers == list(range(150))


def test_a_writer_that_is_killed_leaves_whole_lines(tmp_path: Path) -> None:
    """Whenever the signal comes, the file holds whole lines, and the lock is free again."""
    for _ in range(6):
        running = writer(tmp_path, "killed", 100_000)
        assert running.stdout
        assert running.stdout.readline() == "ready\n"
        before = len(results.read_records(tmp_path, "dev", EXAMPLE).records)
        while len(results.read_records(tmp_path, "dev", EXAMPLE).records) == before:
            time.sleep(0.001)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        append_record(tmp_path, "dev", RECORD)
        found = results.read_records(tmp_path, "dev", EXAMPLE)
        assert found.findings == ()
        assert found.records[-1].name == "mnist"
        (tmp_path / "results" / "dev.jsonl").unlink()


def test_a_full_disk_does_no_damage(tmp_path: Path) -> None:
    """A write that stops short is taken back: the file is what it was. A limit on its size stands in for the disk."""
    append_record(tmp_path, "dev", RECORD)
    before = text_of(tmp_path)
    script = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 50},) * 2)\n"
        "from tpucfg.__main__ import main\nmain()"
    )
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(sizes=["v2-8"])))
    ended = subprocess.run(
        [sys.executable, "-c", script, "record", "--size", "v2-8", "--metric", "examples_per_second=1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "compiler")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "tpucfg: nothing was recorded: results/dev.jsonl: the disk is full\nhelp: make room and record it again\n"
    )
    assert text_of(tmp_path) == before
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != len(before) + 50


@pytest.mark.parametrize("what", [".", "results", "results/dev.jsonl"])
def test_a_place_that_may_not_be_written(what: str) -> None:
    """One clear error, whether the project, the folder or the file is read-only, and nothing changes."""
    with tempfile.TemporaryDirectory() as name:  # which nobody else may enter, as neither may pytest's own
        folder = Path(name)
        folder.chmod(0o755)
        if what != ".":
            append_record(folder, "dev", RECORD)
        (folder / what).chmod(0o555)
        before = sorted(folder.rglob("*"))
        with as_nobody(), pytest.raises(RecordFileError, match="permission denied") as caught:
            append_record(folder, "dev" if what != "results" else "other", RECORD)
        assert caught.value.help.startswith("give yourself the right")
        assert sorted(folder.rglob("*")) == before
        (folder / what).chmod(0o755)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may write everywhere, so it gives up its rights for as long as this lasts."""
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)


@pytest.mark.parametrize("kind", ["folder", "file", "dangling"])
def test_nothing_is_written_through_a_link(tmp_path: Path, kind: str) -> None:
    """Neither a linked folder, nor a linked file, nor a link to what does not exist yet leads out of the project."""
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    elsewhere.mkdir()
    here.mkdir()
    if kind == "folder":
        (here / "results").symlink_to(elsewhere)
    else:
        (here / "results").mkdir()
        (here / "results" / "dev.jsonl").symlink_to(elsewhere / "target")
        if kind == "file":
            (elsewhere / "target").write_text("mine\n")
    with pytest.raises(RecordFileError, match="symbolic link"):
        append_record(here, "dev", RECORD)
    assert [it.read_text() for it in elsewhere.iterdir()] == (["mine\n"] if kind == "file" else [])


@pytest.mark.parametrize("kind", ["folder", "file", "pipe"])
def test_something_else_in_the_place(tmp_path: Path, kind: str) -> None:
    """A folder, a file or a pipe where it does not belong is named, and not waited for."""
    if kind == "file":
        (tmp_path / "results").write_text("mine\n")
    else:
        (tmp_path / "results").mkdir()
        location = tmp_path / "results" / "dev.jsonl"
        location.mkdir() if kind == "folder" else os.mkfifo(location)
    with pytest.raises(RecordFileError) as caught:
        append_record(tmp_path, "dev", RECORD)
    assert str(tmp_path / "results") in str(caught.value)
    assert caught.value.help


def test_a_file_does_not_grow_beyond_what_is_read(tmp_path: Path) -> None:
    """The record that would make the file unreadable is refused, and the others stay."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "dev.jsonl").write_text("\n" * (MAX_FILE_BYTES - 10))
    with pytest.raises(RecordFileError, match="grow beyond"):
        append_record(tmp_path, "dev", RECORD)
    assert results.read_records(tmp_path, "dev", EXAMPLE).findings == ()


def test_a_file_that_is_replaced_while_its_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As git does at a checkout: the record goes into the file that now has the name, and not into the old one."""
    path = append_record(tmp_path, "dev", RECORD)
    held = path.open()
    fcntl.flock(held, fcntl.LOCK_EX)

    def replace(_: float) -> None:
        (tmp_path / "new").write_text("")
        (tmp_path / "new").replace(path)
        held.close()

    monkeypatch.setattr(time, "sleep", replace)  # it is called when the lock was found taken
    append_record(tmp_path, "dev", RECORD)
    assert text_of(tmp_path) == record_line(RECORD)


def test_a_stopped_writer_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds the file locked waits, and says so in the end."""
    monkeypatch.setattr("tpucfg.results.record_file._PATIENCE_SECONDS", 0.05)
    append_record(tmp_path, "dev", RECORD)
    with (tmp_path / "results" / "dev.jsonl").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RecordFileError, match="locked"):
            append_record(tmp_path, "dev", RECORD)
    append_record(tmp_path, "dev", RECORD)
    assert text_of(tmp_path) == record_line(RECORD) * 2
