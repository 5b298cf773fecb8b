"""`tpucfg tune` with a false Python: what is compiled, kept, printed and written."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from false_python import Folder
from process import COMMAND, ENVIRONMENT
from tpucfg.cli.app import run

pytestmark = pytest.mark.shell

TUNE = """\
tune:
  model_parallel: [2, 4]
  args: {remat: [full, none]}   # what the program keeps
prices: {v5e: 1.2, v6e: 2.7}
training:
  tuned_on: v5litepod-16
  grad_accum: 16   # of 16 sequences
  model_parallel: 2
  batch_size: 256
  train_steps: 4000
"""
SEARCHED = (
    ("training: {tuned_on: v5litepod-16, batch_size: 256, train_steps: 4000}\n", TUNE),
    ("  fit: {step", '  args: {remat: full, mesh: "${model_parallel}"}\n  fit: {step'),
)
"""A spec with something to try."""
LINEAR = """
import hashlib
flags = REQUEST["flags"]
with open("runs", "a") as runs:
    runs.write(flags["grad_accum"] + "\\n")
used = int((4 + 64 / int(flags["grad_accum"]) * {"full": 1, "none": 2}[flags["remat"]]) * 2**30)
fits = used <= 15 << 30
digest = hashlib.sha256(json.dumps(flags, sort_keys=True).encode()).hexdigest()
RESULT |= {"stablehlo": digest, "fits": fits, "hbm": {"used": used, "available": 15 << 30, "exact": fits}}
RESULT["forecast"] = None
answer(phase="compile")
"""
"""A compilation whose memory grows with the micro-batch, and twice as fast without rematerialization."""
ENDS = f"{LINEAR}answer(result=known(RESULT))"


def tune(folder: Folder, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    """Run `tpucfg tune`, and return its exit status, stdout and stderr."""
    assert folder.path == Path.cwd()
    status = run(["tune", *options])
    return status, *capsys.readouterr()


def runs(folder: Folder) -> int:
    """Return the number of processes since the last call."""
    file = folder.path / "runs"
    lines = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return len(lines)


def kept(folder: Folder) -> list[dict[str, Any]]:
    """Return the results in results/tune.json."""
    results: list[dict[str, Any]] = json.loads((folder.path / "results" / "tune.json").read_text())[
        "results"
    ]
    return results


@pytest.fixture
def searched(folder: Folder) -> Folder:
    """Return a folder with a spec that names what to try."""
    folder.spec(*SEARCHED)
    folder.python(ENDS)
    return folder


def test_the_frontier_of_memory_comes_first(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """The largest micro-batch that fits is stated for each combination, with the proof beside it."""
    status, out, err = tune(searched, capsys, "--jobs", "1")
    assert status == 0, err
    assert out.splitlines()[:7] == [
        "dev v5litepod-16: gke in us-west4; each candidate has batch 256, 4,000 steps",
        "",
        "the largest micro-batch that fits, as compiled",
        "size          model_parallel  remat  micro-batch  grad_accum  HBM GiB  available  next larger",
        "v5litepod-16               2  none             2          16       12         15  4 needs ≥ 20",
        "v5litepod-16               4  none             4          16       12         15  8 needs ≥ 20",
        "v5litepod-16               2  full             4           8       12         15  8 needs ≥ 20",
    ]
    assert "26 candidates in 4 combinations" in err
    assert err.splitlines()[-1].endswith("nothing left")
    assert "not compiled: " in out
    assert "not tried: XLA flags" in out


def test_without_a_forecast_no_order_is_claimed(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bound is shown, and no candidate has a rank."""
    _, out, _ = tune(searched, capsys)
    assert (
        "no order is claimed, as there is no forecast; the least cost of the run by the bound"
        in out
    )
    assert "rank" not in out


def test_a_second_search_starts_one_process(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """The current rung is compiled again, up to its StableHLO; all else is as kept, and the output is equal."""
    _, first, _ = tune(searched, capsys)
    assert runs(searched) > 5
    _, second, err = tune(searched, capsys)
    assert runs(searched) == 1
    assert err.count("(as kept)") == len(kept(searched)) - 1
    # Only the number of compilations differs.
    assert [line for line in first.splitlines() if "compiled now" not in line] == [
        line for line in second.splitlines() if "compiled now" not in line
    ]


def test_a_changed_program_is_compiled_again(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kept results count for the files, the versions and the StableHLO that they were compiled with."""
    tune(searched, capsys)
    count = runs(searched)
    (searched.path / "step.py").write_text("def abstract_step(devices, flags): return 1\n")
    tune(searched, capsys)
    assert runs(searched) == count
    searched.python(ENDS.replace("digest = ", "flags['new'] = 1\ndigest = "))
    tune(searched, capsys)
    assert runs(searched) == count, (
        "the installed packages have changed the step of the current rung"
    )


def test_a_killed_search_goes_on_where_it_was(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that was compiled before the end is kept, and is not compiled again."""
    searched.python(
        f"{LINEAR}\nif flags['remat'] == 'none': time.sleep(600)\nanswer(result=known(RESULT))"
    )
    process = subprocess.Popen(
        [*COMMAND, "tune", "--jobs", "2"], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    file = searched.path / "results" / "tune.json"
    while time.monotonic() < deadline and not (file.exists() and len(kept(searched)) > 1):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)  # SIGINT stays ignored where the caller ignores it
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    # Another compilation can end before the signal arrives.
    ends = f"{len(kept(searched))} results kept in results/tune.json"
    assert re.search(
        f"interrupted: {ends}; 4 of 4 combinations left, about . min; the same command goes on", err
    )
    runs(searched)
    before = {json.dumps(row["flags"]) for row in kept(searched)}
    searched.python(ENDS)
    tune(searched, capsys)
    assert runs(searched) == len(kept(searched)) - len(before) + 1


def test_two_searches_lose_no_result(searched: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Two searches that write the file at once keep the results of both."""
    lists = ("tune.args.remat=[full]", "tune.args.remat=[none]")
    command = [*COMMAND, "tune", "--jobs", "1", "--set"]
    both = [
        subprocess.Popen([*command, change], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        for change in lists
    ]
    assert [process.wait(60) for process in both] == [0, 0]
    runs(searched)
    tune(searched, capsys)
    assert runs(searched) == 1


def test_a_candidate_that_fails_is_said(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that crashes with one value leaves the others; the failure is a finding."""
    crash = "if flags['remat'] == 'none': os.kill(os.getpid(), signal.SIGSEGV)"
    searched.python(f"{LINEAR}{crash}\nanswer(result=known(RESULT))")
    status, out, err = tune(searched, capsys)
    assert status == 0
    assert "warning[TPU118]" in err
    assert "not compiled: v5litepod-16 model_parallel=2 grad_accum=1 remat=none" in err
    assert err.rstrip().endswith("run it again with: tpucfg tune")
    assert "as two candidates of the same other values failed" in out
    assert re.search(r"compiled now.*, [0-9]+ failed$", out, re.MULTILINE)
    assert "v5litepod-16               2  full             4           8" in out


def test_a_flag_without_effect_is_named(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt flag changes nothing in the program, which its values cannot be the reason for."""
    read = {
        "json.dumps(flags, sort_keys=True)": "(flags['grad_accum'] + flags['mesh'])",
        'flags["remat"]': '"full"',
    }
    program = ENDS
    for old, new in read.items():
        program = program.replace(old, new)
    searched.python(program)
    _, out, _ = tune(searched, capsys)
    assert "no effect: every value of remat gives the same program" in out
    searched.python(ENDS)
    assert "no effect" not in tune(searched, capsys)[1]


def test_a_python_that_cannot_compile_ends_the_search(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure that every candidate would have is found by the first, and printed once."""
    searched.python(
        'answer(error={"kind": "no-jax", "message": "No module named jax", "frames": []})'
    )
    status, out, err = tune(searched, capsys)
    assert status == 1
    assert err.count("error[TPU114]") == 1
    assert "not tried" in out
    assert not (searched.path / "results").exists()


def test_a_broken_file_is_refused(searched: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read is not overwritten, and nothing is compiled."""
    tune(searched, capsys)
    runs(searched)
    file = searched.path / "results" / "tune.json"
    file.write_text(file.read_text().replace('"flops"', '"flop"', 1))
    status, _, err = tune(searched, capsys)
    assert (status, runs(searched)) == (1, 0)
    assert "error[TPU109]" in err
    assert "help: delete the file, and compile again: tpucfg tune" in err


def test_a_record_comes_before_any_forecast(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """A measured step of a candidate's program is its time, and its cost."""
    assert run(["record", "--size", "v5litepod-16", "--metric", "examples_per_second=128"]) == 0
    capsys.readouterr()
    _, out, _ = tune(searched, capsys)
    row = next(line for line in out.splitlines() if line.endswith("now"))
    # 2 seconds, 4,000 steps, 16 chips at 1.2 dollars an hour.
    assert row.split()[:6] == ["1", "v5litepod-16", "2", "full", "2", "16"]
    assert "2 s measured  42.67" in row


def test_as_json(searched: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has the tables as data."""
    _, out, _ = tune(searched, capsys, "--format", "json")
    data = json.loads(out)
    assert data["memory"][0]["args"] == {"remat": "none"}
    assert data["memory"][0]["fits"]["micro_batch"] == 2
    assert data["memory"][0]["refused"]["micro_batch"] == 4
    assert {row["rank"] for row in data["rankings"][0]["rows"]} == {None}
    assert sum(row["is_current"] for row in data["rankings"][0]["rows"]) <= 1


def test_write_edits_the_values_alone(searched: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """The values of the first candidate are in the spec, whose comments stay; the next search finds them there."""
    # The current rung does not fit, so one candidate is left.
    one = (
        ("model_parallel: [2, 4]", "model_parallel: [2]"),
        ("[full, none]", "[full]"),
        ("16   #", "4   #"),
    )
    searched.spec(*SEARCHED, *one)
    before = (searched.path / "tpucfg.yaml").read_text()
    status, out, err = tune(searched, capsys, "--write")
    assert status == 0, err
    assert (searched.path / "tpucfg.yaml").read_text() == before.replace(
        "grad_accum: 4 ", "grad_accum: 8 "
    )
    assert out.endswith(
        "   tuned_on: v5litepod-16\n-  grad_accum: 4   # of 16 sequences\n+  grad_accum: 8   # of 16 sequences\n"
        "   model_parallel: 2\n"
    )
    _, _, err = tune(searched, capsys, "--write")
    assert err.endswith("tpucfg.yaml has the values of the first candidate\n")


def test_write_leaves_out_what_the_spec_says_already(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """An override has the accumulation alone: the rung has the batch, the parallelism and the flag."""
    one = (
        ("model_parallel: [2, 4]", "model_parallel: [2]"),
        ("[full, none]", "[full]"),
        ("16   #", "4   #"),
    )
    searched.spec(*SEARCHED, *one)
    status, out, err = tune(searched, capsys, "--size", "v5litepod-64", "--write")
    assert status == 0, err
    added = [
        line[1:].strip()
        for line in out.splitlines()
        if line.startswith("+") and not line.startswith("+++")
    ]
    assert added in (
        ["overrides: {v5litepod-64: {grad_accum: 8}}"],
        ["overrides:", "v5litepod-64:", "grad_accum: 8"],
    )


def test_write_needs_a_first_candidate(
    searched: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several candidates without an order are not chosen from, and values of --set are not in the spec."""
    before = (searched.path / "tpucfg.yaml").read_text()
    status, _, err = tune(searched, capsys, "--write")
    assert (
        status,
        "tpucfg.yaml was not changed: no order is claimed without a forecast" in err,
    ) == (1, True)
    status, _, err = tune(searched, capsys, "--write", "--set", "prices.v5e=1")
    assert (status, "--write and --set exclude each other" in err) == (2, True)
    assert (searched.path / "tpucfg.yaml").read_text() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sizes", "v5p-33"), "--sizes: v5p-33 is not a TPU size"),
        (("--size", "v5litepod-256"), "v5litepod-256 is in no ladder"),
        (("--env", "prod"), "there is no environment prod"),
        (
            (
                "--set",
                f"tune.model_parallel={[*range(1, 17)]}",
                "--set",
                f"tune.args.b={[*range(16)]}",
            ),
            "512 combinations",
        ),
    ],
)
def test_wrong_use_is_explained(
    searched: Folder, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    """A search that cannot be made ends before anything is compiled."""
    status, _, err = tune(searched, capsys, *options)
    assert (status, runs(searched)) == (2, 0)
    assert message in err
