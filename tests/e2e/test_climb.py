"""The climb from rung to rung, as a user makes it: run, record, look, climb."""

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
def climber(tpucfg: Run, tmp_path: Path) -> Run:
    """The command in a project with a gate, prices and three rungs, of which nothing is recorded."""
    write(tmp_path, sizes=SIZES, gate=GATE, prices={"v2": 0.5})
    return tpucfg


def write(folder: Path, **changes: object) -> None:
    """The small spec with these changes."""
    (folder / "tpucfg.yaml").write_text(json.dumps(spec(**changes), indent=1))


def recorded(folder: Path, environment: str = "dev") -> list[dict[str, object]]:
    """The lines of an environment's results."""
    return [json.loads(row) for row in (folder / "results" / f"{environment}.jsonl").read_text().splitlines()]


def measure(tpucfg: Run, size: str, throughput: float, accuracy: float) -> str:
    """Records both metrics of a rung, and gives what was printed."""
    ended = tpucfg(
        "record", "--size", size, "--metric", f"examples_per_second={throughput}", "--metric", f"accuracy={accuracy}"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_whole_climb(climber: Run, tmp_path: Path) -> None:
    """Each rung is refused until the one below has passed; `status` says at each step what to do, and it works."""
    for size, lower, throughput in (("v2-8", None, 1000), ("v2-32", "v2-8", 3600), ("v2-128", "v2-32", 13000)):
        if lower:
            assert climber("submit", "--size", size).returncode == 0
        said = climber("status").stdout
        assert f"next: tpucfg submit --env dev --size {size}\n" in said
        assert f"then: tpucfg record --env dev --size {size} --from LOG\n" in said
        for higher in SIZES[SIZES.index(size) + 1 :]:
            ended = climber("submit", "--size", higher)
            assert (ended.returncode, ended.stdout) == (1, "")
            assert f"error[TPU110]: {higher} may not be climbed in dev: nothing is recorded for " in ended.stderr
        measure(climber, size, throughput, 0.97)
    assert climber("status").stdout.endswith("\nevery rung has passed\n")
    assert climber("submit").returncode == 0
    assert [row["size"] for row in recorded(tmp_path)] == SIZES


def test_status_for_people(climber: Run) -> None:
    """One line a rung, what is measured and what is forecast, and why a rung has not passed."""
    measure(climber, "v2-8", 1000, 0.97)
    measure(climber, "v2-32", 2480, 0.93)
    assert climber("status").stdout == STATUS


def test_status_for_programs(climber: Run) -> None:
    """The same as JSON: what is not known is null."""
    measure(climber, "v2-8", 1000, 0.97)
    document = json.loads(climber("status", "--format", "json").stdout)
    (environment,) = document["environments"]
    first, second, _ = environment["rungs"]
    assert document["gate"] == GATE
    assert (first["passed"], first["may_run"], first["figures"]) == (True, True, "measured")
    assert first["metrics"] == {"accuracy": 0.97, "examples_per_second": 1000}
    assert (second["recorded"], second["passed"], second["may_run"]) == (False, False, True)
    assert (second["metrics"], second["scaling_efficiency"], second["figures"]) == (None, None, "forecast from v2-8")
    assert second["usd"] == pytest.approx(first["usd"])


def test_a_failed_rung_closes_the_next(climber: Run) -> None:
    """Bad scaling is refused with its numbers, a better record opens the rung again, and the last one counts."""
    measure(climber, "v2-8", 1000, 0.97)
    assert "v2-32 has not passed: v2-32 scales to 62% of v2-8" in measure(climber, "v2-32", 2480, 0.97)
    ended = climber("submit", "--size", "v2-128")
    assert ended.returncode == 1
    assert "v2-32 scales to 62% of v2-8, and the gate asks for 80%" in ended.stderr
    assert "next: tpucfg submit --env dev --size v2-128" in measure(climber, "v2-32", 3900, 0.97)
    assert climber("submit", "--size", "v2-128").returncode == 0
    measure(climber, "v2-32", 3900, 0.5)
    assert climber("submit", "--size", "v2-128").returncode == 1


def test_all_refusals_at_once(climber: Run) -> None:
    """Of several jobs those that may be climbed are printed, every refusal is said, and the status is 1."""
    ended = climber("submit")
    assert ended.returncode == 1
    assert "# mnist-dev-v2-8: v2-8 on vertex-ai" in ended.stdout
    assert "v2-32 on" not in ended.stdout
    assert ended.stderr.count("error[TPU110]") == 2


def test_force_and_no_gate(climber: Run, tmp_path: Path) -> None:
    """--force climbs in spite of the gate, also where the results are broken; without a gate nothing is asked."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "dev.jsonl").write_text("broken\n")
    assert climber("submit", "--size", "v2-8").stderr == ""
    assert climber("submit", "--size", "v2-128").returncode == 1
    ended = climber("submit", "--size", "v2-128", "--force")
    assert ended.returncode == 0
    assert "v2-128 on vertex-ai" in ended.stdout
    write(tmp_path, sizes=["v2-8", "v2-32"])
    assert climber("submit").stderr == ""
    assert "closed" not in climber("status").stdout


def test_broken_results_close_every_rung_but_the_first(climber: Run, tmp_path: Path) -> None:
    """A line that is no record could be the one that counts: it is said, with status 1, and the rest is still shown."""
    measure(climber, "v2-8", 1000, 0.97)
    with (tmp_path / "results" / "dev.jsonl").open("a") as file:
        file.write('{"size": "v2-8"}\n')
    ended = climber("submit")
    assert ended.returncode == 1
    assert ended.stderr.count("error[TPU102]") == 2
    assert ended.stderr.count("error[TPU110]") == 2
    assert "results/dev.jsonl is read only in part" in ended.stderr
    for command in ("status", "ladder"):
        ended = climber(command)
        assert ended.returncode == 1
        assert "v2-8" in ended.stdout
        assert "results/dev.jsonl:2:1: error[TPU102]" in ended.stderr
    assert climber("render").returncode == 0


def test_execute_is_refused_before_anything_runs(climber: Run, tmp_path: Path) -> None:
    """The program that would start the job is not called, and with --force it is."""
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "gcloud", f"echo called >> {tmp_path}/called; cat > /dev/null")
    path = {**ENVIRONMENT, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    ended = climber("submit", "--size", "v2-32", "--execute", env=path)
    assert (ended.returncode, (tmp_path / "called").exists()) == (1, False)
    assert "running:" not in ended.stderr
    assert climber("submit", "--size", "v2-32", "--execute", "--force", env=path).returncode == 0
    assert (tmp_path / "called").read_text() == "called\n"


@pytest.mark.usefixtures("climber")
def test_record_from_a_pipe(tmp_path: Path) -> None:
    """A trainer's output goes through a real pipe: text lines, many measurements, and the last one counts."""
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


@pytest.mark.usefixtures("climber")
def test_record_from_what_gcloud_prints(tmp_path: Path) -> None:
    """Log entries, newest first, through a real pipe: the latest measurement counts, whatever stands behind it."""
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


def test_record_from_no_standard_input(climber: Run) -> None:
    """A shell may have closed it: that is said like a log that is missing."""
    ended = climber("record", "--size", "v2-8", "--from", "-", preexec_fn=lambda: os.close(0))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "- cannot be read" in ended.stderr


def test_record_from_a_file(climber: Run, tmp_path: Path) -> None:
    """A value that is given goes before the log's, and names that are given are what is looked for."""
    (tmp_path / "train.log").write_text('{"examples_per_second": 10, "accuracy": 0.9, "loss": 0.2}\n')
    assert climber("record", "--size", "v2-8", "--from", "train.log").returncode == 0
    assert climber("record", "--size", "v2-8", "--from", "train.log", "--metric", "accuracy=0.95").returncode == 0
    assert climber("record", "--size", "v2-8", "--from", "train.log", "--metric", "loss").returncode == 0
    assert [row["metrics"] for row in recorded(tmp_path)] == [
        {"accuracy": 0.9, "examples_per_second": 10},
        {"accuracy": 0.95, "examples_per_second": 10},
        {"loss": 0.2},
    ]


@pytest.mark.parametrize("value", ["-5", "0", "1e16"])
def test_record_from_a_line_that_no_record_holds(climber: Run, tmp_path: Path, value: str) -> None:
    """What the log says is told with its file and line, as a number that is none is."""
    (tmp_path / "train.log").write_text(f'starting\n{{"examples_per_second": {value}, "accuracy": 0.9}}\n')
    ended = climber("record", "--size", "v2-8", "--from", "train.log")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "nothing was recorded: train.log:2: metrics.examples_per_second is " in ended.stderr
    assert not (tmp_path / "results").exists()


def test_the_environment_may_be_left_out_where_one_has_the_size(climber: Run, tmp_path: Path) -> None:
    """With two that have it, the command asks which; the results of each are in a file of their own."""
    environments = {
        name: {"project": f"my-project-{name}", "region": "us-central1", **more}
        for name, more in (("dev", {}), ("prod", {"sizes": ["v2-8", "v2-128"]}))
    }
    write(tmp_path, environments=environments)
    one = ("--metric", "examples_per_second=1")
    ended = climber("record", "--size", "v2-8", *one)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "v2-8 is a rung of 2 environments: dev, prod" in ended.stderr
    assert climber("record", "--size", "v2-128", *one).returncode == 0
    assert climber("record", "--size", "v2-8", "--env", "dev", *one).returncode == 0
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
def test_what_cannot_be_recorded(
    climber: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    """It is said in one line with a help, and nothing is written."""
    ended = climber("record", "--size", "v2-8", *arguments)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "results").exists()


def test_a_record_of_another_config_is_said(climber: Run, tmp_path: Path) -> None:
    """What was measured with another batch still counts, and `status` says so; a run's id makes no difference."""
    measure(climber, "v2-8", 1000, 0.97)
    climber(
        "record", "--size", "v2-8", "--run", "b2", "--metric", "examples_per_second=1000", "--metric", "accuracy=0.9"
    )
    assert "another config" not in climber("status").stdout
    header = climber("render", "--size", "v2-8").stdout
    assert str(recorded(tmp_path)[0]["job"]) in header
    assert recorded(tmp_path)[0]["job"] == recorded(tmp_path)[1]["job"]
    assert climber("submit", "--size", "v2-32").stderr == ""
    write(tmp_path, sizes=SIZES, gate=GATE, training__batch_size=2048)
    said = climber("status").stdout
    assert "v2-8 was recorded for another config than the spec makes now" in said
    climbed = climber("submit", "--size", "v2-32", "--run", "c3")
    assert (climbed.returncode, "another config than the spec makes now" in climbed.stderr) == (0, True)
    assert "next: tpucfg submit --env dev --size v2-32" in said


def test_a_cost_of_another_config_is_no_measurement_any_more(climber: Run, tmp_path: Path) -> None:
    """Hours by a record of another config say so, on its rung and on those forecast from it, in every form."""
    measure(climber, "v2-8", 1000, 0.97)
    write(tmp_path, sizes=SIZES, gate=GATE, prices={"v2": 0.5}, trainer__args={"augment": True})
    sentence = "v2-8 was recorded for another config than the spec makes now: "
    for command in ("status", "ladder"):
        for form in ("text", "markdown"):
            said = climber(command, "--format", form).stdout
            assert said.count("measured, other config") == 1
            assert said.count("forecast from v2-8, other config") == 2
            assert sentence in said
    assert "forecast from v2-8, other config" in climber("ladder", "--size", "v2-32").stdout
    (environment,) = json.loads(climber("status", "--format", "json").stdout)["environments"]
    (ladder,) = json.loads(climber("ladder", "--format", "json").stdout)["ladders"]
    for rungs in (environment["rungs"], ladder["rungs"]):
        figures = [rung["figures"] for rung in rungs]
        assert figures == ["measured, other config", *["forecast from v2-8, other config"] * 2]
    for form in ("svg", "html"):
        drawn = " ".join(re.findall(">([^<]+)<", climber("ladder", "--format", form).stdout))
        assert "v2-8: measured with another config than the spec makes now." in drawn
    said = measure(climber, "v2-32", 3600, 0.97)
    assert "v2-8, which v2-32 is compared with, was recorded for another config than the spec makes now\n" in said
    measure(climber, "v2-8", 1000, 0.97)
    for command in ("status", "ladder"):
        assert "other config" not in climber(command).stdout


def test_environments_that_differ_in_their_records_are_shown_apart(climber: Run, tmp_path: Path) -> None:
    """Two with the same figures, of which one was measured with another config, have a table each."""
    both = {name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("a", "b")}
    write(tmp_path, sizes=["v2-8"], prices={"v2": 0.5}, environments=both)
    for name in both:
        assert climber("record", "--env", name, "--size", "v2-8", "--metric", "examples_per_second=5").returncode == 0
    assert climber("ladder").stdout.startswith("a, b: vertex-ai in us-central1\n")
    both["b"]["bucket"] = "another-bucket"
    write(tmp_path, sizes=["v2-8"], prices={"v2": 0.5}, environments=both, trainer__args={"data": "${bucket}"})
    assert climber("record", "--env", "a", "--size", "v2-8", "--metric", "examples_per_second=5").returncode == 0
    said = climber("ladder").stdout
    assert said.startswith("a: vertex-ai in us-central1\n")
    assert "\nb: vertex-ai in us-central1\n" in said


def test_without_prices_there_is_no_cost_and_with_epochs_no_hours(climber: Run, tmp_path: Path) -> None:
    """The hour's cost needs a price alone; a run's needs a record and its examples."""
    assert "USD/hour" in climber("ladder").stdout
    assert "hours" not in climber("ladder").stdout
    assert "no rung has a record of examples_per_second" in climber("ladder").stdout
    measure(climber, "v2-8", 1000, 0.97)
    assert "forecast from v2-8" in climber("ladder").stdout
    assert "forecast from v2-8" in climber("ladder", "--format", "markdown", "--size", "v2-32").stdout
    (climb,) = json.loads(climber("ladder", "--format", "json").stdout)["ladders"]
    assert [rung["usd_per_hour"] for rung in climb["rungs"]] == [2, 8, 32]
    write(tmp_path, training={"tuned_on": "v2-8", "batch_size": 1024, "epochs": 10}, prices={"v2": 0.5})
    said = climber("ladder").stdout
    assert "its length is given in epochs" in said
    assert "USD/hour" in said
    write(tmp_path)
    assert "USD" not in climber("ladder").stdout
    assert "USD" not in climber("status").stdout


def test_environments_with_results_of_their_own_are_apart(climber: Run, tmp_path: Path) -> None:
    """`ladder` shows environments as one as long as what it shows of them is the same."""
    environments = {name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("dev", "prod")}
    write(tmp_path, environments=environments, prices={"v2": 0.5})
    assert climber("ladder").stdout.startswith("dev, prod: ")
    climber("record", "--env", "dev", "--size", "v2-8", "--metric", "examples_per_second=1")
    assert climber("ladder").stdout.startswith("dev: ")


def test_a_spec_elsewhere(climber: Run, tmp_path: Path) -> None:
    """Results lie beside the spec, wherever the command runs; the commands that are named can be pasted."""
    folder = tmp_path / "it's here"
    folder.mkdir()
    write(folder, gate=GATE)
    path = str(folder / "tpucfg.yaml")
    climber("record", "--spec", path, "--size", "v2-8", "--metric", "examples_per_second=1", "--metric", "accuracy=1")
    assert (folder / "results" / "dev.jsonl").exists()
    assert not (tmp_path / "results").exists()
    (line,) = [row for row in climber("status", "--spec", path).stdout.splitlines() if row.startswith("next: ")]
    shim = f'tpucfg() {{ {shlex.join(COMMAND)} "$@"; }}; {line.removeprefix("next: ")}'
    ended = subprocess.run(
        ["bash", "-c", shim], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert "v2-32 on vertex-ai" in ended.stdout


def test_a_metric_may_have_any_name(climber: Run, tmp_path: Path) -> None:
    """A metric that is called like a column of the table has one of its own."""
    write(tmp_path, sizes=SIZES, gate={**GATE, "metric": "size"})
    climber("record", "--size", "v2-8", "--metric", "examples_per_second=1000", "--metric", "size=0.25")
    header, row, *_ = climber("status").stdout.splitlines()[1:]
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


def test_a_measurement_that_is_too_good_is_asked_about(climber: Run) -> None:
    """Whoever records a host's figure on one rung and the slice's on the next is asked."""
    measure(climber, "v2-8", 1000, 0.97)
    measure(climber, "v2-32", 5000, 0.97)
    assert "whole slice" not in climber("status").stdout
    measure(climber, "v2-32", 16000, 0.97)
    said = "v2-32 scales to 400% of v2-8: is examples_per_second that of the whole slice on both?\n"
    assert said in climber("status").stdout
    assert said in measure(climber, "v2-32", 16000, 0.97)
    assert said in measure(climber, "v2-8", 1000, 0.97)
    assert said not in measure(climber, "v2-128", 16000, 0.97)


def test_a_column_of_numbers_stays_one(climber: Run) -> None:
    """A number with an exponent is a number: its column keeps its side, as text and as Markdown."""
    measure(climber, "v2-8", 0.001, 0.97)
    measure(climber, "v2-32", 1e6, 0.97)
    header, first, second = climber("status").stdout.splitlines()[1:4]
    end = header.index("scaling") + len("scaling")
    assert second[:end].endswith("e+10%")
    assert first[:end].endswith(" –")
    assert climber("status", "--format", "markdown").stdout.splitlines()[3].startswith("|---|---:|---:|---:|---:|")


def test_two_specs_in_one_folder(climber: Run, tmp_path: Path) -> None:
    """They share the file and not the records, and what is wrong with it is said once."""
    measure(climber, "v2-8", 1000, 0.97)
    (tmp_path / "tpucfg.yaml").rename(tmp_path / "first.yaml")
    write(tmp_path, name="second", gate=GATE)
    said = climber("status").stdout
    assert "\nv2-8       8           –" in said
    assert "\n1 record of another name (mnist) is not counted: the spec's name is second\n" in said
    with (tmp_path / "results" / "dev.jsonl").open("a") as file:
        file.write("torn")
    both = climber("check", "--spec", "first.yaml", "--spec", "tpucfg.yaml")
    assert both.stdout.count("error[TPU101]") == 1


def test_branches_that_both_recorded_are_merged(climber: Run, tmp_path: Path) -> None:
    """With the line in .gitattributes that the documents name, git keeps the records of both."""

    def git(*words: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / ".gitattributes").write_text("results/*.jsonl merge=union\n")
    git("init", "--initial-branch=main")
    measure(climber, "v2-8", 1000, 0.97)
    git("add", ".")
    git("commit", "-m", "v2-8")
    for branch, size in (("a", "v2-32"), ("b", "v2-128")):
        git("checkout", "-b", branch, "main")
        measure(climber, size, 4000, 0.97)
        git("commit", "-a", "-m", size)
    git("merge", "a")
    assert sorted(str(row["size"]) for row in recorded(tmp_path)) == ["v2-128", "v2-32", "v2-8"]


def test_what_is_recorded_is_checked(climber: Run, tmp_path: Path) -> None:
    """`check` finds nothing in what `record` wrote, and two runs of the same commands write the same bytes."""
    for _ in range(2):
        measure(climber, "v2-8", 1000, 0.97)
    assert climber("check").returncode == 0
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
def test_what_to_run_again_has_a_folder_of_its_own(climber: Run, runs: list[str | None], expected: str) -> None:
    """The run's id that is named for another try is the next that no record of the rung has, also on the top rung."""
    measure(climber, "v2-8", 1000, 0.97)
    measure(climber, "v2-32", 4000, 0.97)
    for run in runs:
        given = ["--metric", "examples_per_second=1", "--metric", "accuracy=1", *(["--run", run] if run else [])]
        said = climber("record", "--size", "v2-128", *given)
    *_, again, then = said.stdout.splitlines()
    assert again.endswith(f": tpucfg submit --env dev --size v2-128 --run {expected}")
    assert then == f"then: tpucfg record --env dev --size v2-128 --run {expected} --from LOG"


def test_the_first_rung_is_compared_with_nothing(climber: Run) -> None:
    """A run that diverged looks like any other there, so whoever records it is told."""
    said = climber("record", "--size", "v2-8", "--metric", "examples_per_second=1000", "--metric", "accuracy=0.1")
    taken = "v2-8 is the first rung: its accuracy of 0.1 is taken as it is, compared with nothing"
    assert taken in said.stdout.splitlines()
    assert taken in climber("status").stdout.splitlines()


def test_a_file_that_is_not_read(climber: Run, tmp_path: Path) -> None:
    """It is not said to be read in part, and its path is there once."""
    (tmp_path / "results" / "dev.jsonl").mkdir(parents=True)
    ended = climber("status")
    assert "results/dev.jsonl is not read at all: fix it first\n" in ended.stdout
    assert "results/dev.jsonl:1:1: error[TPU100]: a folder stands where the file belongs\n" in ended.stderr
