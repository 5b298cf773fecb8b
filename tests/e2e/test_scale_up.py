"""Scaling up from rung to rung as a user does: submit, record, status, submit."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from jobs import program
from process import COMMAND, ENVIRONMENT, Run
from spec_factory import CATALOG, spec
from tpucfg.results import ExampleRecord
from tpucfg.results.record_file import parse_records

GATE = {"min_scaling_efficiency": 0.8, "metric": "accuracy", "goal": "max", "max_drop": 0.01}
SIZES = ["v2-8", "v2-32", "v2-128"]
STATUS = """\
dev: vertex-ai in us-central1, results/dev.jsonl
size    cores  examples/s  per core  scaling  accuracy  worse by  USD/hour  hours   USD  figures              status
v2-8        8       1,000       125        –      0.97         –      2.00   1.14  2.28  measured             passed
v2-32      32       2,480      77.5      62%      0.93      0.04      8.00  0.459  3.67  measured             not passed
v2-128    128           –         –        –         –         –     32.00  0.115  3.67  forecast from v2-32  closed

the gate asks for scaling of 80%, and accuracy at most 0.01 below the rung below
v2-8 is the first rung: its accuracy of 0.97 is taken as it is, compared with nothing
v2-32 has not passed: v2-32 scales to 62% of v2-8, and the gate asks for 80%; \
accuracy is 0.93 on v2-32 and 0.97 on v2-8: 0.04 worse, and the gate allows 0.01
fix v2-32 and run it again in a folder of its own: tpucfg submit --env dev --size v2-32 --run a2
then: tpucfg record --env dev --size v2-32 --run a2 --from LOG
"""


@pytest.fixture
def ladder_cli(tpucfg: Run, tmp_path: Path) -> Run:
    """Return the command, in a project with a gate, prices and three rungs without records."""
    write(tmp_path, sizes=SIZES, gate=GATE, prices={"v2": 0.5})
    return tpucfg


def write(folder: Path, **changes: object) -> None:
    """Write the small spec with these changes."""
    (folder / "tpucfg.yaml").write_text(json.dumps(spec(**changes), indent=1))


def recorded(folder: Path, environment: str = "dev") -> list[dict[str, object]]:
    """Return the records of an environment."""
    return [json.loads(row) for row in (folder / "results" / f"{environment}.jsonl").read_text().splitlines()]


def measure(tpucfg: Run, size: str, throughput: float, accuracy: float) -> str:
    """Record both metrics of a rung, and return the output."""
    ended = tpucfg(
        "record", "--size", size, "--metric", f"examples_per_second={throughput}", "--metric", f"accuracy={accuracy}"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_scaling_up_the_whole_ladder(ladder_cli: Run, tmp_path: Path) -> None:
    """Each rung is refused until the one below has passed; at each step, the commands that `status` names work."""
    for size, lower, throughput in (("v2-8", None, 1000), ("v2-32", "v2-8", 3600), ("v2-128", "v2-32", 13000)):
        if lower:
            assert ladder_cli("submit", "--size", size).returncode == 0
        said = ladder_cli("status").stdout
        assert f"next: tpucfg submit --env dev --size {size}\n" in said
        assert f"then: tpucfg record --env dev --size {size} --from LOG\n" in said
        for higher in SIZES[SIZES.index(size) + 1 :]:
            ended = ladder_cli("submit", "--size", higher)
            assert (ended.returncode, ended.stdout) == (1, "")
            assert f"error[TPU110]: {higher} may not be climbed in dev: nothing is recorded for " in ended.stderr
        measure(ladder_cli, size, throughput, 0.97)
    assert ladder_cli("status").stdout.endswith("\nevery rung has passed\n")
    assert ladder_cli("submit").returncode == 0
    assert [row["size"] for row in recorded(tmp_path)] == SIZES


def test_status_as_text(ladder_cli: Run) -> None:
    """The table has measurements and forecasts of each rung; the notes explain why a rung has not passed."""
    measure(ladder_cli, "v2-8", 1000, 0.97)
    measure(ladder_cli, "v2-32", 2480, 0.93)
    assert ladder_cli("status").stdout == STATUS


def test_status_as_json(ladder_cli: Run) -> None:
    """The JSON has the figures of each rung; an unknown one is null."""
    measure(ladder_cli, "v2-8", 1000, 0.97)
    document = json.loads(ladder_cli("status", "--format", "json").stdout)
    (environment,) = document["environments"]
    first, second, _ = environment["rungs"]
    assert document["gate"] == GATE
    assert (first["passed"], first["may_run"], first["figures"]) == (True, True, "measured")
    assert first["metrics"] == {"accuracy": 0.97, "examples_per_second": 1000}
    assert (second["recorded"], second["passed"], second["may_run"]) == (False, False, True)
    assert (second["metrics"], second["scaling_efficiency"], second["figures"]) == (None, None, "forecast from v2-8")
    assert second["usd"] == pytest.approx(first["usd"])


def test_a_failed_rung_closes_the_next(ladder_cli: Run) -> None:
    """Bad scaling closes the next rung with its numbers, a better record opens it, and the last record counts."""
    measure(ladder_cli, "v2-8", 1000, 0.97)
    assert "v2-32 has not passed: v2-32 scales to 62% of v2-8" in measure(ladder_cli, "v2-32", 2480, 0.97)
    ended = ladder_cli("submit", "--size", "v2-128")
    assert ended.returncode == 1
    assert "v2-32 scales to 62% of v2-8, and the gate asks for 80%" in ended.stderr
    assert "next: tpucfg submit --env dev --size v2-128" in measure(ladder_cli, "v2-32", 3900, 0.97)
    assert ladder_cli("submit", "--size", "v2-128").returncode == 0
    measure(ladder_cli, "v2-32", 3900, 0.5)
    assert ladder_cli("submit", "--size", "v2-128").returncode == 1


def test_all_refusals_are_printed_at_once(ladder_cli: Run) -> None:
    """Of several jobs the allowed ones and every refusal are printed, and the status is 1."""
    ended = ladder_cli("submit")
    assert ended.returncode == 1
    assert "# mnist-dev-v2-8: v2-8 on vertex-ai" in ended.stdout
    assert "v2-32 on" not in ended.stdout
    assert ended.stderr.count("error[TPU110]") == 2


def test_force_and_no_gate(ladder_cli: Run, tmp_path: Path) -> None:
    """--force overrides the gate, also with broken results; without a gate no record is required."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "dev.jsonl").write_text("broken\n")
    assert ladder_cli("submit", "--size", "v2-8").stderr == ""
    assert ladder_cli("submit", "--size", "v2-128").returncode == 1
    ended = ladder_cli("submit", "--size", "v2-128", "--force")
    assert ended.returncode == 0
    assert "v2-128 on vertex-ai" in ended.stdout
    write(tmp_path, sizes=["v2-8", "v2-32"])
    assert ladder_cli("submit").stderr == ""
    assert "closed" not in ladder_cli("status").stdout


def test_broken_results_close_every_rung_but_the_first(ladder_cli: Run, tmp_path: Path) -> None:
    """A broken line might be the latest record: it is an error, and the readable records are still shown."""
    measure(ladder_cli, "v2-8", 1000, 0.97)
    with (tmp_path / "results" / "dev.jsonl").open("a") as file:
        file.write('{"size": "v2-8"}\n')
    ended = ladder_cli("submit")
    assert ended.returncode == 1
    assert ended.stderr.count("error[TPU102]") == 2
    assert ended.stderr.count("error[TPU110]") == 2
    assert "results/dev.jsonl is read only in part" in ended.stderr
    for command in ("status", "ladder"):
        ended = ladder_cli(command)
        assert ended.returncode == 1
        assert "v2-8" in ended.stdout
        assert "results/dev.jsonl:2:1: error[TPU102]" in ended.stderr
    assert ladder_cli("render").returncode == 0


def test_execute_is_refused_before_anything_runs(ladder_cli: Run, tmp_path: Path) -> None:
    """The program that starts the job is called only with --force."""
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "gcloud", f"echo called >> {tmp_path}/called; cat > /dev/null")
    path = {**ENVIRONMENT, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    ended = ladder_cli("submit", "--size", "v2-32", "--execute", env=path)
    assert (ended.returncode, (tmp_path / "called").exists()) == (1, False)
    assert "running:" not in ended.stderr
    assert ladder_cli("submit", "--size", "v2-32", "--execute", "--force", env=path).returncode == 0
    assert (tmp_path / "called").read_text() == "called\n"


@pytest.mark.usefixtures("ladder_cli")
def test_record_from_a_pipe(tmp_path: Path) -> None:
    """From the output of a trainer in a real pipe, the last measurement is recorded."""
    lines = "".join(
        f'step {at}: loss 0.{at}\n2026-01-01T00:00:00Z worker-0 {{"examples_per_second": {at}.5, "accuracy": 0.{at}}}\n'
        for at in range(1, 2000)
    )
    (tmp_path / "train.log").write_text(lines)
    piped = f"cat train.log | {shlex.join(COMMAND)} record --size v2-8 --from - --run a1"
    ended = subprocess.run(
        ["sh", "-c", piped], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("results/dev.jsonl: recorded v2-8: accuracy 0.1999, examples_per_second 1999.5\n")
    (row,) = recorded(tmp_path)
    assert (row["run"], row["metrics"]) == ("a1", {"accuracy": 0.1999, "examples_per_second": 1999.5})


@pytest.mark.usefixtures("ladder_cli")
def test_record_from_gcloud_logging(tmp_path: Path) -> None:
    """From log entries in a real pipe, newest first, the latest measurement is recorded."""
    entries = [
        {
            "insertId": f"id{minute}",
            "jsonPayload": {
                "levelname": "INFO",
                "message": json.dumps({"examples_per_second": minute, "accuracy": 0.9}),
            },
            "timestamp": f"2026-03-01T12:{minute:02}:07.023451776Z",
        }
        for minute in range(59, 0, -1)
    ]
    (tmp_path / "train.json").write_text(json.dumps(entries, indent=2))
    piped = f"cat train.json | {shlex.join(COMMAND)} record --size v2-8 --from -"
    subprocess.run(["sh", "-c", piped], cwd=tmp_path, env=ENVIRONMENT, check=True)
    (row,) = recorded(tmp_path)
    assert row["metrics"] == {"accuracy": 0.9, "examples_per_second": 59}


def test_record_from_a_closed_standard_input(ladder_cli: Run) -> None:
    """A standard input that the shell closed is an error like a missing log."""
    ended = ladder_cli("record", "--size", "v2-8", "--from", "-", preexec_fn=lambda: os.close(0))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "- cannot be read" in ended.stderr


def test_record_from_a_file(ladder_cli: Run, tmp_path: Path) -> None:
    """A value on the command line overrides the log's, and only the named metrics are read."""
    (tmp_path / "train.log").write_text('{"examples_per_second": 10, "accuracy": 0.9, "loss": 0.2}\n')
    assert ladder_cli("record", "--size", "v2-8", "--from", "train.log").returncode == 0
    assert ladder_cli("record", "--size", "v2-8", "--from", "train.log", "--metric", "accuracy=0.95").returncode == 0
    assert ladder_cli("record", "--size", "v2-8", "--from", "train.log", "--metric", "loss").returncode == 0
    assert [row["metrics"] for row in recorded(tmp_path)] == [
        {"accuracy": 0.9, "examples_per_second": 10},
        {"accuracy": 0.95, "examples_per_second": 10},
        {"loss": 0.2},
    ]


@pytest.mark.parametrize("value", ["-5", "0", "1e16"])
def test_record_from_a_line_with_an_invalid_value(ladder_cli: Run, tmp_path: Path, value: str) -> None:
    """An invalid value in a log is an error with the file and the line."""
    (tmp_path / "train.log").write_text(f'starting\n{{"examples_per_second": {value}, "accuracy": 0.9}}\n')
    ended = ladder_cli("record", "--size", "v2-8", "--from", "train.log")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "nothing was recorded: train.log:2: metrics.examples_per_second is " in ended.stderr
    assert not (tmp_path / "results").exists()


def test_the_environment_is_optional_if_one_has_the_size(ladder_cli: Run, tmp_path: Path) -> None:
    """If two have it, --env is required; each environment has its own results."""
    environments = {
        name: {"project": f"my-project-{name}", "region": "us-central1", **more}
        for name, more in (("dev", {}), ("prod", {"sizes": ["v2-8", "v2-128"]}))
    }
    write(tmp_path, environments=environments)
    one = ("--metric", "examples_per_second=1")
    ended = ladder_cli("record", "--size", "v2-8", *one)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "v2-8 is a rung of 2 environments: dev, prod" in ended.stderr
    assert ladder_cli("record", "--size", "v2-128", *one).returncode == 0
    assert ladder_cli("record", "--size", "v2-8", "--env", "dev", *one).returncode == 0
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["dev.jsonl", "prod.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 2, "nothing to record"),
        (("--metric", "accuracy"), 2, "has no value"),
        (("--metric", "accuracy=97%"), 2, "the value is no number"),
        (("--metric", "accuracy=nan"), 2, "the value is no number"),
        (("--metric", "accuracy=1e999"), 2, "the value is no number"),
        (("--metric", "accuracy=1,5"), 2, "the value is no number"),
        (("--metric", "a b=1"), 2, "a metric's name"),
        (("--metric", "a=1", "--metric", "a=2"), 2, "given twice"),
        (
            ("--metric", "examples_per_second=0"),
            1,
            "help: record what the run measured: --metric examples_per_second=NUMBER",
        ),
        (("--metric", "examples_per_second=-1"), 1, "metrics.examples_per_second is -1"),
        (
            ("--from", "tpucfg.yaml", "--metric", "examples_per_second=1", "--metric", "accuracy=1"),
            2,
            "nothing to look for",
        ),
        (("--from", "missing.log"), 1, "missing.log cannot be read"),
        (("--from", "."), 1, ". cannot be read"),
        (("--from", "\x1b[31m"), 1, "\\u001b[31m cannot be read"),
        (("--from", "tpucfg.yaml"), 1, "no line of JSON"),
        (("--metric", "a=1", "--run", "A_B"), 2, "a run's id"),
        (("--metric", "a=1", "--env", "prod"), 2, "no environment prod"),
        (("--metric", "a=1", "--size", "v2-256"), 2, "v2-256 is in no ladder"),
    ],
)
def test_invalid_records_are_refused(
    ladder_cli: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    """The error is one line with a help, and nothing is written."""
    ended = ladder_cli("record", "--size", "v2-8", *arguments)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "results").exists()


def test_a_record_of_another_config_is_noted(ladder_cli: Run, tmp_path: Path) -> None:
    """A measurement with another batch still counts, and `status` notes it; another run id is no difference."""
    measure(ladder_cli, "v2-8", 1000, 0.97)
    ladder_cli(
        "record", "--size", "v2-8", "--run", "b2", "--metric", "examples_per_second=1000", "--metric", "accuracy=0.9"
    )
    assert "another config" not in ladder_cli("status").stdout
    header = ladder_cli("render", "--size", "v2-8").stdout
    assert str(recorded(tmp_path)[0]["job"]) in header
    assert recorded(tmp_path)[0]["job"] == recorded(tmp_path)[1]["job"]
    assert ladder_cli("submit", "--size", "v2-32").stderr == ""
    write(tmp_path, sizes=SIZES, gate=GATE, training__batch_size=2048)
    said = ladder_cli("status").stdout
    assert "v2-8 was recorded for another config than the spec makes now" in said
    climbed = ladder_cli("submit", "--size", "v2-32", "--run", "c3")
    assert (climbed.returncode, "another config than the spec makes now" in climbed.stderr) == (0, True)
    assert "next: tpucfg submit --env dev --size v2-32" in said


def test_a_cost_of_another_config_is_marked(ladder_cli: Run, tmp_path: Path) -> None:
    """Hours from a record of another config are marked, on its rung and in forecasts, in every format."""
    measure(ladder_cli, "v2-8", 1000, 0.97)
    write(tmp_path, sizes=SIZES, gate=GATE, prices={"v2": 0.5}, trainer__args={"augment": True})
    sentence = "v2-8 was recorded for another config than the spec makes now: "
    for command in ("status", "ladder"):
        for form in ("text", "markdown"):
            said = ladder_cli(command, "--format", form).stdout
            assert said.count("measured, other config") == 1
            assert said.count("forecast from v2-8, other config") == 2
            assert sentence in said
    assert "forecast from v2-8, other config" in ladder_cli("ladder", "--size", "v2-32").stdout
    (environment,) = json.loads(ladder_cli("status", "--format", "json").stdout)["environments"]
    (ladder,) = json.loads(ladder_cli("ladder", "--format", "json").stdout)["ladders"]
    for rungs in (environment["rungs"], ladder["rungs"]):
        figures = [rung["figures"] for rung in rungs]
        assert figures == ["measured, other config", *["forecast from v2-8, other config"] * 2]
    for form in ("svg", "html"):
        drawn = " ".join(re.findall(">([^<]+)<", ladder_cli("ladder", "--format", form).stdout))
        assert "v2-8: measured with another config than the spec makes now." in drawn
    said = measure(ladder_cli, "v2-32", 3600, 0.97)
    assert "v2-8, which v2-32 is compared with, was recorded for another config than the spec makes now\n" in said
    measure(ladder_cli, "v2-8", 1000, 0.97)
    for command in ("status", "ladder"):
        assert "other config" not in ladder_cli(command).stdout


def test_environments_with_different_records_have_separate_tables(ladder_cli: Run, tmp_path: Path) -> None:
    """Two environments with equal figures have separate tables if one was measured with another config."""
    both = {name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("a", "b")}
    write(tmp_path, sizes=["v2-8"], prices={"v2": 0.5}, environments=both)
    for name in both:
        assert (
            ladder_cli("record", "--env", name, "--size", "v2-8", "--metric", "examples_per_second=5").returncode == 0
        )
    assert ladder_cli("ladder").stdout.startswith("a, b: vertex-ai in us-central1\n")
    both["b"]["bucket"] = "another-bucket"
    write(tmp_path, sizes=["v2-8"], prices={"v2": 0.5}, environments=both, trainer__args={"data": "${bucket}"})
    assert ladder_cli("record", "--env", "a", "--size", "v2-8", "--metric", "examples_per_second=5").returncode == 0
    said = ladder_cli("ladder").stdout
    assert said.startswith("a: vertex-ai in us-central1\n")
    assert "\nb: vertex-ai in us-central1\n" in said


def test_cost_needs_prices_and_hours_need_examples(ladder_cli: Run, tmp_path: Path) -> None:
    """The hourly cost needs only a price; the cost of a run needs a record and its number of examples."""
    assert "USD/hour" in ladder_cli("ladder").stdout
    assert "hours" not in ladder_cli("ladder").stdout
    assert "no rung has a record of examples_per_second" in ladder_cli("ladder").stdout
    measure(ladder_cli, "v2-8", 1000, 0.97)
    assert "forecast from v2-8" in ladder_cli("ladder").stdout
    assert "forecast from v2-8" in ladder_cli("ladder", "--format", "markdown", "--size", "v2-32").stdout
    (climb,) = json.loads(ladder_cli("ladder", "--format", "json").stdout)["ladders"]
    assert [rung["usd_per_hour"] for rung in climb["rungs"]] == [2, 8, 32]
    write(tmp_path, training={"tuned_on": "v2-8", "batch_size": 1024, "epochs": 10}, prices={"v2": 0.5})
    said = ladder_cli("ladder").stdout
    assert "its length is given in epochs" in said
    assert "USD/hour" in said
    write(tmp_path)
    assert "USD" not in ladder_cli("ladder").stdout
    assert "USD" not in ladder_cli("status").stdout


def test_environments_share_a_table_while_their_figures_are_equal(ladder_cli: Run, tmp_path: Path) -> None:
    """`ladder` shows one table for environments until their results differ."""
    environments = {name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("dev", "prod")}
    write(tmp_path, environments=environments, prices={"v2": 0.5})
    assert ladder_cli("ladder").stdout.startswith("dev, prod: ")
    ladder_cli("record", "--env", "dev", "--size", "v2-8", "--metric", "examples_per_second=1")
    assert ladder_cli("ladder").stdout.startswith("dev: ")


def test_a_spec_in_another_folder(ladder_cli: Run, tmp_path: Path) -> None:
    """Results are next to the spec wherever the command runs, and the printed commands can be pasted."""
    folder = tmp_path / "it's here"
    folder.mkdir()
    write(folder, gate=GATE)
    path = str(folder / "tpucfg.yaml")
    ladder_cli(
        "record", "--spec", path, "--size", "v2-8", "--metric", "examples_per_second=1", "--metric", "accuracy=1"
    )
    assert (folder / "results" / "dev.jsonl").exists()
    assert not (tmp_path / "results").exists()
    (line,) = [row for row in ladder_cli("status", "--spec", path).stdout.splitlines() if row.startswith("next: ")]
    shim = f'tpucfg() {{ {shlex.join(COMMAND)} "$@"; }}; {line.removeprefix("next: ")}'
    ended = subprocess.run(
        ["bash", "-c", shim], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert "v2-32 on vertex-ai" in ended.stdout


def test_a_metric_may_have_any_name(ladder_cli: Run, tmp_path: Path) -> None:
    """A metric with the name of another column has its own column."""
    write(tmp_path, sizes=SIZES, gate={**GATE, "metric": "size"})
    ladder_cli("record", "--size", "v2-8", "--metric", "examples_per_second=1000", "--metric", "size=0.25")
    header, row, *_ = ladder_cli("status").stdout.splitlines()[1:]
    assert header.split() == [
        "size",
        "cores",
        "examples/s",
        "per",
        "core",
        "scaling",
        "size",
        "worse",
        "by",
        "status",
    ]
    assert row.split() == ["v2-8", "8", "1,000", "125", "–", "0.25", "–", "passed"]


def test_an_implausible_measurement_is_noted(ladder_cli: Run) -> None:
    """A host's throughput on one rung and the slice's on the next are noted as implausible."""
    measure(ladder_cli, "v2-8", 1000, 0.97)
    measure(ladder_cli, "v2-32", 5000, 0.97)
    assert "whole slice" not in ladder_cli("status").stdout
    measure(ladder_cli, "v2-32", 16000, 0.97)
    said = "v2-32 scales to 400% of v2-8: is examples_per_second that of the whole slice on both?\n"
    assert said in ladder_cli("status").stdout
    assert said in measure(ladder_cli, "v2-32", 16000, 0.97)
    assert said in measure(ladder_cli, "v2-8", 1000, 0.97)
    assert said not in measure(ladder_cli, "v2-128", 16000, 0.97)


def test_numbers_with_exponents_are_aligned_right(ladder_cli: Run) -> None:
    """A column with a number such as 2.5e+07 is numeric, as text and as Markdown."""
    measure(ladder_cli, "v2-8", 0.001, 0.97)
    measure(ladder_cli, "v2-32", 1e6, 0.97)
    header, first, second = ladder_cli("status").stdout.splitlines()[1:4]
    end = header.index("scaling") + len("scaling")
    assert second[:end].endswith("e+10%")
    assert first[:end].endswith(" –")
    assert ladder_cli("status", "--format", "markdown").stdout.splitlines()[3].startswith("|---|---:|---:|---:|---:|")


def test_two_specs_in_one_folder_share_the_results_file(ladder_cli: Run, tmp_path: Path) -> None:
    """Each reads its own records, and an error of the file is reported once."""
    measure(ladder_cli, "v2-8", 1000, 0.97)
    (tmp_path / "tpucfg.yaml").rename(tmp_path / "first.yaml")
    write(tmp_path, name="second", gate=GATE)
    said = ladder_cli("status").stdout
    assert "\nv2-8       8           –" in said
    assert "\n1 record of another name (mnist) is not counted: the spec's name is second\n" in said
    with (tmp_path / "results" / "dev.jsonl").open("a") as file:
        file.write("torn")
    both = ladder_cli("check", "--spec", "first.yaml", "--spec", "tpucfg.yaml")
    assert both.stdout.count("error[TPU101]") == 1


def test_git_merges_records_of_two_branches(ladder_cli: Run, tmp_path: Path) -> None:
    """With the documented line in .gitattributes, a merge keeps the records of both branches."""

    def git(*words: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / ".gitattributes").write_text("results/*.jsonl merge=union\n")
    git("init", "--initial-branch=main")
    measure(ladder_cli, "v2-8", 1000, 0.97)
    git("add", ".")
    git("commit", "-m", "v2-8")
    for branch, size in (("a", "v2-32"), ("b", "v2-128")):
        git("checkout", "-b", branch, "main")
        measure(ladder_cli, size, 4000, 0.97)
        git("commit", "-a", "-m", size)
    git("merge", "a")
    assert sorted(str(row["size"]) for row in recorded(tmp_path)) == ["v2-128", "v2-32", "v2-8"]


def test_recorded_files_are_valid_and_reproducible(ladder_cli: Run, tmp_path: Path) -> None:
    """`check` has no finding about the output of `record`, and equal commands write equal bytes."""
    for _ in range(2):
        measure(ladder_cli, "v2-8", 1000, 0.97)
    assert ladder_cli("check").returncode == 0
    text = (tmp_path / "results" / "dev.jsonl").read_text()
    first, second = text.splitlines()
    assert first == second
    assert len(parse_records(text, "dev.jsonl", ExampleRecord("mnist", "v2-8")).records) == 2
    assert CATALOG.find("v2-8")


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([None], "a2"),
        (["a1"], "a2"),
        (["b1", "b3", "b2"], "b4"),
        (["nightly"], "nightly2"),
        (["12345678901234567890"], "a2"),
    ],
)
def test_a_retry_has_a_new_run_id(ladder_cli: Run, runs: list[str | None], expected: str) -> None:
    """The run id suggested for a retry is the next one that no record of the rung has."""
    measure(ladder_cli, "v2-8", 1000, 0.97)
    measure(ladder_cli, "v2-32", 4000, 0.97)
    for run in runs:
        given = ["--metric", "examples_per_second=1", "--metric", "accuracy=1", *(["--run", run] if run else [])]
        said = ladder_cli("record", "--size", "v2-128", *given)
    *_, again, then = said.stdout.splitlines()
    assert again.endswith(f": tpucfg submit --env dev --size v2-128 --run {expected}")
    assert then == f"then: tpucfg record --env dev --size v2-128 --run {expected} --from LOG"


def test_the_first_rung_is_noted_as_unjudged(ladder_cli: Run) -> None:
    """A metric of the first rung is compared with nothing, and `record` notes that."""
    said = ladder_cli("record", "--size", "v2-8", "--metric", "examples_per_second=1000", "--metric", "accuracy=0.1")
    taken = "v2-8 is the first rung: its accuracy of 0.1 is taken as it is, compared with nothing"
    assert taken in said.stdout.splitlines()
    assert taken in ladder_cli("status").stdout.splitlines()


def test_an_unreadable_results_file_is_named_once(ladder_cli: Run, tmp_path: Path) -> None:
    """The error names the path once, and does not claim that a part was read."""
    (tmp_path / "results" / "dev.jsonl").mkdir(parents=True)
    ended = ladder_cli("status")
    assert "results/dev.jsonl is not read at all: fix it first\n" in ended.stdout
    assert "results/dev.jsonl:1:1: error[TPU100]: a folder stands where the file belongs\n" in ended.stderr
