"""Appending: whole lines with many writers, and no damage if it fails."""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from process import without_root
from spec_factory import ROOT, spec
from tpucfg.results import records as results
from tpucfg.results.records import (
    MAX_FILE_BYTES,
    MAX_LINE_LENGTH,
    Record,
    RecordFileError,
    append_record,
    parse_records,
    record_line,
    record_problems,
)

PROGRAM = {"figures": {"batch_size": 256}, "flags": {"x": "1"}, "image": "r.io/a/i:1"}
RECORD = Record(
    "mnist", "v2-8", {"examples_per_second": 1234.5, "accuracy": 0.97}, "a1", True, PROGRAM
)
WRITER = """
import sys
from pathlib import Path
from tpucfg.results.records import append_record
from tpucfg.results.records import Record, record_line
folder, name, count, length = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
print("ready", flush=True)
for number in range(count):
    append_record(folder, "dev", Record(name, "v2-8", {f"m{at}_{'x' * 50}": number for at in range(length)}))
"""


def start_writer(folder: Path, name: str, count: int, metrics: int = 40) -> "subprocess.Popen[str]":
    """Start a process that appends that many records of about three kilobytes, and prints a line when it begins."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(count), str(metrics)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "compiler")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def text_of(folder: Path) -> str:
    """Return the content of the file of dev."""
    return (folder / "results" / "dev.jsonl").read_text()


def test_equal_records_are_equal_lines(tmp_path: Path) -> None:
    """Keys are sorted, whole numbers have no decimal point, and no time, host or path is added."""
    path = append_record(tmp_path, "dev", RECORD)
    append_record(
        tmp_path, "dev", Record("mnist", "v2-8", {"loss": 1e-9, "examples_per_second": 4.0})
    )
    assert path == tmp_path / "results" / "dev.jsonl"
    assert text_of(tmp_path) == (
        '{"figures": {"batch_size": 256}, "flags": {"x": "1"}, "image": "r.io/a/i:1", '
        '"metrics": {"accuracy": 0.97, "examples_per_second": 1234.5}, '
        '"name": "mnist", "probe": true, "run": "a1", "size": "v2-8"}\n'
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
def test_a_written_record_is_read_back(metrics: dict[str, float]) -> None:
    """Every record that matches the schema is read back unchanged, from a line within the limit."""
    record = RECORD._replace(metrics={**metrics, "examples_per_second": 1.5})
    if record_problems(record):
        assert len(record.metrics) > 50
        return
    line = record_line(record)
    assert len(line) <= MAX_LINE_LENGTH
    parsed = parse_records(line, "results/dev.jsonl")
    assert [row._replace(location=None) for row in parsed.records] == [record]


def test_the_longest_record_is_within_the_limit() -> None:
    """Fifty metrics with the longest names and numbers fit on a line."""
    record = RECORD._replace(
        name="n" * 30,
        run="r" * 20,
        size="v5litepod-256",
        metrics={f"{number:x>63}": -1.2345678901234567e-300 for number in range(50)},
    )
    assert not record_problems(record)
    assert len(record_line(record)) <= MAX_LINE_LENGTH


def test_a_long_command_line_is_left_out(tmp_path: Path) -> None:
    """A line has to be readable, and the figures of the batch decide most; flags that are not stated do not differ."""
    program = {**PROGRAM, "flags": {f"flag{number}": "x" * 4000 for number in range(20)}}
    append_record(tmp_path, "dev", RECORD._replace(program=program))
    (record,) = results.read_records(tmp_path, "dev").records
    assert record.program == {"figures": {"batch_size": 256}}


@pytest.mark.parametrize("rest", ['{"metrics": {"examples_per', record_line(RECORD).rstrip("\n")])
def test_a_last_line_without_a_line_break_is_kept(tmp_path: Path, rest: str) -> None:
    """The next record begins on a new line; nothing is deleted, and a truncated line is a finding."""
    append_record(tmp_path, "dev", RECORD)
    with (tmp_path / "results" / "dev.jsonl").open("a") as file:
        file.write(rest)
    append_record(tmp_path, "dev", RECORD)
    assert text_of(tmp_path) == f"{record_line(RECORD)}{rest}\n{record_line(RECORD)}"
    read = results.read_records(tmp_path, "dev")
    is_whole = rest.endswith("}")
    assert (len(read.records), [finding.location.line for finding in read.findings]) == (
        3 if is_whole else 2,
        [] if is_whole else [2],
    )


@pytest.mark.slow
def test_concurrent_writers_append_whole_lines(tmp_path: Path) -> None:
    """Four processes append hundreds of long lines: each is written once, in order, and a reader sees whole lines."""
    names = ["a", "b", "c", "d"]
    writers = [start_writer(tmp_path, name, 50) for name in names]
    reads = 0
    while any(process.poll() is None for process in writers):
        assert results.read_records(tmp_path, "dev").findings == ()
        reads += 1
        time.sleep(0.005)  # a reader that never rests takes a core from the writers
    assert [process.communicate()[1] for process in writers] == [""] * 4
    assert reads > 1
    rows = [json.loads(row) for row in text_of(tmp_path).splitlines()]
    for name in names:
        numbers = [next(iter(row["metrics"].values())) for row in rows if row["name"] == name]
        assert numbers == list(range(50))


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_whole_lines(tmp_path: Path) -> None:
    """At whatever moment a writer is killed, the file has whole lines, and the lock is released."""
    for _ in range(6):
        process = start_writer(tmp_path, "killed", 100_000)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        before = len(results.read_records(tmp_path, "dev").records)
        while len(results.read_records(tmp_path, "dev").records) == before:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        append_record(tmp_path, "dev", RECORD)
        read = results.read_records(tmp_path, "dev")
        assert read.findings == ()
        assert read.records[-1].name == "mnist"
        (tmp_path / "results" / "dev.jsonl").unlink()


def test_a_write_that_fails_halfway_does_no_damage(tmp_path: Path) -> None:
    """The file is unchanged, and no other is left. A limit on the size of files ends the write, as a full disk does."""
    append_record(tmp_path, "dev", RECORD)
    before = text_of(tmp_path)
    script = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 50},) * 2)\n"
        "from tpucfg.__main__ import main\nmain()"
    )
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(sizes=["v2-8"])))
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            script,
            "record",
            "--size",
            "v2-8",
            "--metric",
            "examples_per_second=1",
        ],
        cwd=tmp_path,
        # The limit would cut the bytecode of modules too.
        env={**os.environ, "PYTHONPATH": str(ROOT / "compiler"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr == (
        "tpucfg: nothing was recorded: results/dev.jsonl: file too large\n"
        "help: check the free space, its permissions, and that it is a file in a folder, without links,"
        " and record it again\n"
    )
    assert text_of(tmp_path) == before
    assert [file.name for file in (tmp_path / "results").iterdir()] == ["dev.jsonl"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != len(before) + 50


@pytest.mark.parametrize(
    ("read_only", "environment"),
    [(".", "dev"), ("results", "other"), ("results", "dev"), ("results/dev.jsonl", "dev")],
)
def test_a_read_only_path_is_an_error(read_only: str, environment: str) -> None:
    """A read-only project, folder or file is one error, and nothing changes."""
    with tempfile.TemporaryDirectory() as name:  # other users cannot enter pytest's own
        folder = Path(name)
        folder.chmod(0o755)
        if read_only != ".":
            append_record(folder, "dev", RECORD).chmod(0o666)
        (folder / read_only).chmod(0o555)
        before = sorted(folder.rglob("*"))
        with without_root(), pytest.raises(RecordFileError, match="permission denied") as excinfo:
            append_record(folder, environment, RECORD)
        assert excinfo.value.help.startswith("check the free space, its permissions")
        assert sorted(folder.rglob("*")) == before
        (folder / read_only).chmod(0o755)


@pytest.mark.parametrize("kind", ["folder", "file", "dangling"])
def test_links_are_not_followed(tmp_path: Path, kind: str) -> None:
    """A linked folder, a linked file and a dangling link are errors, and nothing outside the project is written."""
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    project.mkdir()
    if kind == "folder":
        (project / "results").symlink_to(outside)
    else:
        (project / "results").mkdir()
        (project / "results" / "dev.jsonl").symlink_to(outside / "target")
        if kind == "file":
            (outside / "target").write_text("mine\n")
    with pytest.raises(RecordFileError, match="symbolic link"):
        append_record(project, "dev", RECORD)
    assert [file.read_text() for file in outside.iterdir()] == (
        ["mine\n"] if kind == "file" else []
    )


@pytest.mark.parametrize("kind", ["folder", "file", "pipe"])
def test_another_kind_of_file_is_an_error(tmp_path: Path, kind: str) -> None:
    """A folder, a file or a pipe in place of the folder or file is reported, without waiting for a pipe."""
    if kind == "file":
        (tmp_path / "results").write_text("mine\n")
    else:
        (tmp_path / "results").mkdir()
        path = tmp_path / "results" / "dev.jsonl"
        path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(RecordFileError) as excinfo:
        append_record(tmp_path, "dev", RECORD)
    assert str(tmp_path / "results") in str(excinfo.value)
    assert excinfo.value.help


@pytest.mark.slow
def test_a_file_does_not_grow_beyond_the_limit(tmp_path: Path) -> None:
    """A record that would make the file unreadable is refused, and the others are kept."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "dev.jsonl").write_text("\n" * (MAX_FILE_BYTES - 10))
    with pytest.raises(RecordFileError, match="grow beyond"):
        append_record(tmp_path, "dev", RECORD)
    assert results.read_records(tmp_path, "dev").findings == ()


def test_the_mode_of_the_file_is_kept(tmp_path: Path) -> None:
    """A file that a group may write to stays one; a new file has the mode of an ordinary one."""
    path = append_record(tmp_path, "dev", RECORD)
    (tmp_path / "ordinary").touch()
    assert path.stat().st_mode == (tmp_path / "ordinary").stat().st_mode
    path.chmod(0o660)
    append_record(tmp_path, "dev", RECORD)
    assert path.stat().st_mode & 0o777 == 0o660
