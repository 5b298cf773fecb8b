"""The command as a process: its exit status, what goes where, and how it ends when it is not let finish."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from making import ROOT, spec

COMMAND = (sys.executable, "-m", "tpucfg")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "compiler"), "COLUMNS": "80"}
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tpucfg(tmp_path: Path) -> Run:
    """Runs the command in a folder that holds a small spec, `wrong.yaml` beside it and nothing else."""
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(), indent=1))
    (tmp_path / "wrong.yaml").write_text(json.dumps(spec(sizes=["v9-8"], name="wrong"), indent=1))
    (tmp_path / "other.yaml").write_text(json.dumps(spec(name="other", sizes=["v2-8"]), indent=1))

    def run(*arguments: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        more = {"env": ENVIRONMENT, "capture_output": True, **more}
        return subprocess.run([*COMMAND, *arguments], cwd=tmp_path, text=True, check=False, timeout=60, **more)

    return run


def test_render_prints_the_configs(tpucfg: Run) -> None:
    """YAML documents on stdout, one for each job, and nothing on stderr where there is nothing to say."""
    ended = tpucfg("render")
    assert (ended.returncode, ended.stderr) == (0, "")
    documents = list(yaml.safe_load_all(ended.stdout))
    counts = [document["workerPoolSpecs"][0]["machineSpec"]["acceleratorCount"] for document in documents]
    assert counts == [8, 32]


def test_render_of_one_size_and_run(tpucfg: Run) -> None:
    """The id of a run is part of the job's folder, and one size is one document."""
    ended = tpucfg("render", "--size", "v2-32", "--run", "try-2")
    assert ended.returncode == 0
    folder = yaml.safe_load(ended.stdout)["baseOutputDirectory"]["outputUriPrefix"]
    assert folder == "gs://my-project-dev-mnist-dev-us-central1/jobs/mnist/v2-32/try-2"


def test_render_as_json(tpucfg: Run) -> None:
    """Each config is a JSON value of its own, the same as in YAML."""
    text = tpucfg("render", "--format", "json").stdout
    decoder, found = json.JSONDecoder(), []
    while text.strip():
        value, end = decoder.raw_decode(text.lstrip())
        found.append(value)
        text = text.lstrip()[end:]
    assert found == list(yaml.safe_load_all(tpucfg("render").stdout))


def test_findings_of_render_go_to_stderr(tpucfg: Run) -> None:
    """With an error nothing is printed on stdout, and the status is 1."""
    ended = tpucfg("render", "--spec", "wrong.yaml")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "wrong.yaml:6:" in ended.stderr
    assert "error[TPU020]" in ended.stderr


def test_check_prints_its_result(tpucfg: Run) -> None:
    """Findings are what a check is asked for: they go to stdout, with a last line that counts them."""
    ended = tpucfg("check")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "tpucfg.yaml, 2 configs: no findings\n", "")
    ended = tpucfg("check", "--spec", "wrong.yaml")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.startswith("wrong.yaml:6:")
    assert ended.stdout.endswith("wrong.yaml, 0 configs: 1 error\n")


@pytest.mark.parametrize("format_", ["json", "sarif"])
def test_check_for_programs(tpucfg: Run, format_: str) -> None:
    """What a program reads is one JSON value, also where there is nothing to say, and no line beside it."""
    for arguments, status in ((("check",), 0), (("check", "--spec", "wrong.yaml"), 1)):
        ended = tpucfg(*arguments, "--format", format_)
        found = json.loads(ended.stdout)
        assert (ended.returncode, ended.stderr) == (status, "")
        results = found if format_ == "json" else found["runs"][0]["results"]
        assert len(results) == status


def test_check_in_a_workflow(tpucfg: Run) -> None:
    """Annotations for GitHub, one line each."""
    ended = tpucfg("check", "--spec", "wrong.yaml", "--format", "github")
    assert ended.returncode == 1
    assert [line.partition(",line=")[0] for line in ended.stdout.splitlines()] == ["::error file=wrong.yaml"]


def test_check_of_a_config(tpucfg: Run, tmp_path: Path) -> None:
    """A config that somebody else wrote is checked by itself; it does not say which service it is for."""
    text = tpucfg("render", "--size", "v2-8").stdout
    (tmp_path / "right.yaml").write_text(text)
    (tmp_path / "wrong-config.yaml").write_text(text.replace("replicaCount: 1", "replicaCount: 4"))
    assert tpucfg("check", "--config", "right.yaml", "--target", "vertex-ai").returncode == 0
    ended = tpucfg("check", "--config", "wrong-config.yaml", "--target", "vertex-ai")
    assert (ended.returncode, "error[TPU074]" in ended.stdout) == (1, True)
    ended = tpucfg("check", "--config", "right.yaml")
    assert (ended.returncode, "--target" in ended.stderr) == (2, True)


def test_several_specs(tpucfg: Run, tmp_path: Path) -> None:
    """Each is checked and rendered; with several, a folder gets one folder for each project."""
    both = ("--spec", "tpucfg.yaml", "--spec", "other.yaml")
    assert tpucfg("check", *both).stdout == "tpucfg.yaml, other.yaml, 3 configs: no findings\n"
    assert len(list(yaml.safe_load_all(tpucfg("render", *both).stdout))) == 3
    assert tpucfg("render", *both, "--out", "made").returncode == 0
    found = sorted(path.relative_to(tmp_path / "made").as_posix() for path in (tmp_path / "made").rglob("config.yaml"))
    assert found == ["mnist/dev/v2-32/config.yaml", "mnist/dev/v2-8/config.yaml", "other/dev/v2-8/config.yaml"]
    ended = tpucfg("render", *both, "--spec", "wrong.yaml", "--out", "none")
    assert (ended.returncode, (tmp_path / "none").exists()) == (1, False)


def test_a_folder_that_is_up_to_date(tpucfg: Run, tmp_path: Path) -> None:
    """--check writes nothing, and exits with 3 where a file would change."""
    assert tpucfg("render", "--out", "made", "--check").returncode == 3
    assert not (tmp_path / "made").exists()
    assert tpucfg("render", "--out", "made").returncode == 0
    assert tpucfg("render", "--out", "made", "--check").returncode == 0
    (tmp_path / "made" / "dev" / "v2-8" / "config.yaml").write_text("mine\n")
    ended = tpucfg("render", "--out", "made", "--check")
    assert ended.returncode == 3
    assert "made/dev/v2-8/config.yaml" in ended.stdout
    assert (tmp_path / "made" / "dev" / "v2-8" / "config.yaml").read_text() == "mine\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("render", "--nonsense"),
        ("rendr",),
        ("render", "--format", "toml"),
        ("render", "--check"),
        ("render", "--env", "prod"),
        ("render", "--size", "v3-8"),
        ("render", "--target", "borg"),
        ("render", "--run", "A_B"),
        ("render", "--run", "a" * 21),
        ("check", "--format", "xml"),
        ("check", "--env", "dev", "--size", "v2-128"),
        ("check", "extra"),
    ],
)
def test_wrong_use(tpucfg: Run, arguments: tuple[str, ...]) -> None:
    """An option or a value that does not exist is status 2, said on stderr without a traceback."""
    ended = tpucfg(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.strip()
    assert "Traceback" not in ended.stderr


def test_a_size_of_no_ladder_lists_the_ladders(tpucfg: Run) -> None:
    """Whoever asks for a rung that is not there sees which there are."""
    assert "dev: v2-8, v2-32" in tpucfg("render", "--size", "v3-8").stderr


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"[[[", b"a: &a [*a]", b"\x00", b"{" * 10_000])
def test_no_file_whatever_ends_in_a_traceback(tpucfg: Run, tmp_path: Path, content: bytes) -> None:
    """A file that is no spec, and one that is not there, are findings."""
    (tmp_path / "bad.yaml").write_bytes(content)
    for name in ("bad.yaml", "missing.yaml", "."):
        ended = tpucfg("check", "--spec", name)
        assert ended.returncode == 1
        assert "error[TPU0" in ended.stdout
        assert ended.stderr == ""


def test_a_file_name_that_is_no_text(tpucfg: Run, tmp_path: Path) -> None:
    """A name that is not UTF-8 is shown with escapes, in JSON too."""
    name = os.fsdecode(b"caf\xe9.yaml")
    (tmp_path / name).write_text("a: 1\n")
    assert tpucfg("check", "--spec", name).stdout.startswith("caf\\udce9.yaml:1:1: error")
    assert json.loads(tpucfg("check", "--spec", name, "--format", "json").stdout)[0]["file"] == name


def test_output_is_utf_8_on_every_machine(tpucfg: Run) -> None:
    """What the locale says of encodings changes no byte of what is printed."""
    ascii_only = {
        **ENVIRONMENT,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
    }
    arguments = ("check", "--spec", str(ROOT / "tpucfg.yaml"))
    assert "×" in tpucfg(*arguments).stdout
    assert tpucfg(*arguments, env=ascii_only, encoding="utf-8").stdout == tpucfg(*arguments).stdout


def test_no_colour_where_nobody_sees_it(tpucfg: Run) -> None:
    """Neither in a pipe, nor on a terminal that is dumb or that was asked for none; colour on any other."""
    arguments = ("check", "--spec", "wrong.yaml")
    assert "\033" not in tpucfg(*arguments).stdout
    for more, coloured in (
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ):
        ours, theirs = pty.openpty()
        tpucfg(*arguments, env={**ENVIRONMENT, **more}, capture_output=False, stdout=theirs)
        os.close(theirs)
        shown = os.read(ours, 100_000).decode()
        os.close(ours)
        assert "TPU020" in shown
        assert ("\033[" in shown) == coloured


def test_a_reader_that_has_seen_enough(tpucfg: Run) -> None:
    """A closed pipe is no error to talk about: the status is that of a process which the signal ended."""
    for arguments in (("render",), ("check", "--spec", "wrong.yaml"), ("render", "--spec", str(ROOT / "tpucfg.yaml"))):
        ours, theirs = os.pipe()
        os.close(ours)
        ended = tpucfg(*arguments, capture_output=False, stdout=theirs, stderr=subprocess.PIPE)
        os.close(theirs)
        assert ended.returncode == 141
        assert "TPU041" in ended.stderr or ended.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk(tpucfg: Run) -> None:
    """What could not be printed is an error that is said, not a config that is half there."""
    with Path("/dev/full").open("w") as full:
        ended = tpucfg("render", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (1, "tpucfg: the output: No space left on device\n")


def test_ctrl_c(tmp_path: Path) -> None:
    """An interrupted command ends at once, without a word, with the status that shells expect."""
    os.mkfifo(tmp_path / "tpucfg.yaml")
    process = subprocess.Popen([*COMMAND, "check"], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    writer = os.open(tmp_path / "tpucfg.yaml", os.O_WRONLY)  # returns when the command reads, and waits for more
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    os.close(writer)
    assert (process.returncode, said) == (130, "")


COMPLETE = """
eval "$(_TPUCFG_COMPLETE=source_bash tpucfg)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
"$(complete -p tpucfg | sed 's/.*-F \\([^ ]*\\).*/\\1/')" tpucfg
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("re",), ["render"]),
        (("render", "--si"), ["--size"]),
        (("render", "--env", ""), ["dev", "prod"]),
        (("render", "--env", "p"), ["prod"]),
        (("check", "--size", "v3"), ["v3-8", "v3-32"]),
        (("render", "--target", "c"), ["cloud-tpu"]),
        (("render", "--spec", "other.yaml", "--env", ""), ["dev"]),
        (("render", "--spec", "broken.yaml", "--env", ""), [""]),
        (("render", "--spec", "missing.yaml", "--size", ""), [""]),
    ],
)
def test_completion_in_bash(tmp_path: Path, words: tuple[str, ...], expected: list[str]) -> None:
    """A real bash completes commands, options, and the environments and sizes of the spec at hand; it never fails."""
    prod = {"project": "my-project-prod", "region": "europe-west4", "sizes": ["v3-8", "v3-32"]}
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(environments__prod=prod)))
    (tmp_path / "other.yaml").write_text(json.dumps(spec()))
    (tmp_path / "broken.yaml").write_text("environments: {dev: null, x: [")
    shim = tmp_path / "bin" / "tpucfg"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m tpucfg "$@"\n')
    shim.chmod(0o755)
    ended = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", "tpucfg", *words],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PATH": f"{shim.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.stdout.split("\n")[:-1] == expected
