"""Scaling up from rung to rung as a user does: submit, record, check the status, submit the next."""

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
from tpucfg.results.records import parse_records

GATE = {"min_scaling_efficiency": 0.8, "metric": "accuracy", "goal": "max", "max_drop": 0.01}
SIZES = ["v2-8", "v2-32", "v2-128"]
ONE_WARNING = "tpucfg.yaml: 1 warning; tpucfg check shows it\n"
"""The batch of the last rung is 16 times that of the first."""
STATUS = """\
dev: vertex-ai in us-central1, results/dev.jsonl
size    cores  examples/s  per core  scaling  accuracy  worse by  USD/hour  hours   USD  figures              status
v2-8        8       1,000       125        –      0.97         –      2.00   1.14  2.28  measured             passed
v2-32      32       2,480      77.5      62%      0.93      0.04      8.00  0.459  3.67  measured             not passed
v2-128    128           –         –        –         –         –     32.00  0.115  3.67  forecast from v2-32  closed

the gate requires a scaling of 80%, and accuracy at most 0.01 below that of the previous rung
v2-8 is the first rung: its accuracy of 0.97 is not compared with anything
v2-32 has not passed: v2-32 scales to 62% of v2-8, and the gate requires 80%; \
accuracy is 0.93 on v2-32 and 0.97 on v2-8: 0.04 worse, and the gate allows 0.01
fix v2-32 and run it again in a new job folder: tpucfg submit --env dev --size v2-32 --run a2
then: tpucfg record --env dev --size v2-32 --run a2 --from LOG
"""


@pytest.fixture
def scale_up(tpucfg: Run, tmp_path: Path) -> Run:
    """Return the command in a project with a gate, prices and three rungs, without records."""
    write_spec(tmp_path, sizes=SIZES, gate=GATE, prices={"v2": 0.5})

    return tpucfg


def write_spec(folder: Path, **changes: object) -> None:
    """Write the small spec with these changes."""
    (folder / "tpucfg.yaml").write_text(json.dumps(spec(**changes), indent=1))


def records_of(folder: Path, environment: str = "dev") -> list[dict[str, object]]:
    """Return the lines of an environment's results."""
    return [
        json.loads(row)
        for row in (folder / "results" / f"{environment}.jsonl").read_text().splitlines()
    ]


def record_metrics(tpucfg: Run, size: str, throughput: float, accuracy: float) -> str:
    """Record both metrics of a rung, and return the output."""
    result = tpucfg(
        "record",
        "--size",
        size,
        "--metric",
        f"examples_per_second={throughput}",
        "--metric",
        f"accuracy={accuracy}",
    )
    assert (result.returncode, result.stderr.removeprefix(ONE_WARNING)) == (0, "")
    return result.stdout


def test_the_whole_ladder_can_be_scaled_up(scale_up: Run, tmp_path: Path) -> None:
    """Each rung is refused until the one below has passed; `status` prints the next step each time, and it works."""
    for size, lower, throughput in (
        ("v2-8", None, 1000),
        ("v2-32", "v2-8", 3600),
        ("v2-128", "v2-32", 13000),
    ):
        if lower:
            assert scale_up("submit", "--size", size).returncode == 0
        output = scale_up("status").stdout
        assert f"next: tpucfg submit --env dev --size {size}\n" in output
        assert f"then: tpucfg record --env dev --size {size} --from LOG\n" in output
        for higher in SIZES[SIZES.index(size) + 1 :]:
            result = scale_up("submit", "--size", higher)
            assert (result.returncode, result.stdout) == (1, "")
            assert (
                f"error[TPU110]: {higher} may not be started in dev: nothing is recorded for "
                in result.stderr
            )
        record_metrics(scale_up, size, throughput, 0.97)
    assert scale_up("status").stdout.endswith("\nevery rung has passed\n")
    assert scale_up("submit").returncode == 0
    assert [row["size"] for row in records_of(tmp_path)] == SIZES


def test_status_prints_a_table(scale_up: Run) -> None:
    """The table has one line per rung, measured or forecast, and a note why a rung has not passed."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    record_metrics(scale_up, "v2-32", 2480, 0.93)
    assert scale_up("status").stdout == STATUS


def test_status_prints_the_data_as_json(scale_up: Run) -> None:
    """The JSON has the data of the table, with null for unknown values."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    document = json.loads(scale_up("status", "--format", "json").stdout)
    (environment,) = document["environments"]
    first, second, _ = environment["rungs"]
    assert document["gate"] == {**GATE, "fit": False, "same_image": False, "max_usd": None}
    assert (first["passed"], first["may_run"], first["figures"]) == (True, True, "measured")
    assert first["metrics"] == {"accuracy": 0.97, "examples_per_second": 1000}
    assert (second["recorded"], second["passed"], second["may_run"]) == (False, False, True)
    assert (second["metrics"], second["scaling_efficiency"], second["figures"]) == (
        None,
        None,
        "forecast from v2-8",
    )
    assert second["usd"] == pytest.approx(first["usd"])


def test_a_failed_rung_closes_the_next(scale_up: Run) -> None:
    """Bad scaling closes the next rung, a better record opens it again, and the last record counts."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    assert "v2-32 has not passed: v2-32 scales to 62% of v2-8" in record_metrics(
        scale_up, "v2-32", 2480, 0.97
    )
    result = scale_up("submit", "--size", "v2-128")
    assert result.returncode == 1
    assert "v2-32 scales to 62% of v2-8, and the gate requires 80%" in result.stderr
    assert "next: tpucfg submit --env dev --size v2-128" in record_metrics(
        scale_up, "v2-32", 3900, 0.97
    )
    assert scale_up("submit", "--size", "v2-128").returncode == 0
    record_metrics(scale_up, "v2-32", 3900, 0.5)
    assert scale_up("submit", "--size", "v2-128").returncode == 1


def test_all_refusals_are_printed_at_once(scale_up: Run) -> None:
    """Of several jobs, those that may be started are printed, each refusal is a finding, and the exit status is 1."""
    result = scale_up("submit")
    assert result.returncode == 1
    assert "# mnist-dev-v2-8: v2-8 on vertex-ai" in result.stdout
    assert "v2-32 on" not in result.stdout
    assert result.stderr.count("error[TPU110]") == 2


def test_the_help_of_a_refusal_keeps_changed_values(scale_up: Run, tmp_path: Path) -> None:
    """With --set, the commands of the help make a run of their own with the same values, which opens the rung."""
    values = ("--set", "trainer.args.lr_schedule=cosine")
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    (tmp_path / "LOG").write_text('{"examples_per_second": 1000, "accuracy": 0.97}')
    wanted = ("submit", "--env", "dev", "--size", "v2-32", "--run", "b1", *values)
    refused = scale_up(*wanted)
    assert refused.returncode == 1
    (hint,) = [line for line in refused.stderr.splitlines() if line.startswith("help: ")]
    for command in hint.removesuffix("; or start it anyway with --force").split(": tpucfg ")[1:]:
        done = scale_up(
            *shlex.split(command.removesuffix(", then").replace("LOG", str(tmp_path / "LOG")))
        )
        assert (done.returncode, done.stderr.count("error")) == (0, 0), command
    assert scale_up(*wanted).returncode == 0


def test_force_ignores_the_gate(scale_up: Run, tmp_path: Path) -> None:
    """--force starts a rung despite the gate or invalid results; without a gate every rung may be started."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "dev.jsonl").write_text("broken\n")
    assert scale_up("submit", "--size", "v2-8").stderr == ""
    assert scale_up("submit", "--size", "v2-128").returncode == 1
    result = scale_up("submit", "--size", "v2-128", "--force")
    assert result.returncode == 0
    assert "v2-128 on vertex-ai" in result.stdout
    write_spec(tmp_path, sizes=["v2-8", "v2-32"])
    assert scale_up("submit").stderr == ""
    assert "closed" not in scale_up("status").stdout


def test_invalid_results_close_every_rung_but_the_first(scale_up: Run, tmp_path: Path) -> None:
    """A line that is not a record is an error and closes the gate; status and ladder still print their tables."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    with (tmp_path / "results" / "dev.jsonl").open("a") as file:
        file.write('{"size": "v2-8"}\n')
    result = scale_up("submit")
    assert result.returncode == 1
    assert result.stderr.count("error[TPU102]") == 2
    assert result.stderr.count("error[TPU110]") == 2
    assert "results/dev.jsonl has invalid lines" in result.stderr
    for command in ("status", "ladder"):
        result = scale_up(command)
        assert result.returncode == 1
        assert "v2-8" in result.stdout
        assert "results/dev.jsonl:2:1: error[TPU102]" in result.stderr
    assert scale_up("render").returncode == 0


def test_execute_respects_the_gate(scale_up: Run, tmp_path: Path) -> None:
    """A refused job is not started with --execute, unless --force is given."""
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "gcloud", f"echo called >> {tmp_path}/called; cat > /dev/null")
    path = {**ENVIRONMENT, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    result = scale_up("submit", "--size", "v2-32", "--execute", env=path)
    assert (result.returncode, (tmp_path / "called").exists()) == (1, False)
    assert "running:" not in result.stderr
    assert scale_up("submit", "--size", "v2-32", "--execute", "--force", env=path).returncode == 0
    assert (tmp_path / "called").read_text() == "called\n"


@pytest.mark.usefixtures("scale_up")
def test_record_reads_a_pipe(tmp_path: Path) -> None:
    """From a trainer's output through a real pipe, the last of many measurements is recorded."""
    lines = "".join(
        f"step {step}: loss 0.{step}\n2026-01-01T00:00:00Z worker-0 "
        f'{{"examples_per_second": {step}.5, "accuracy": 0.{step}}}\n'
        for step in range(1, 2000)
    )
    (tmp_path / "train.log").write_text(lines)
    piped = f"cat train.log | {shlex.join(COMMAND)} record --size v2-8 --from - --run a1"
    result = subprocess.run(
        ["sh", "-c", piped],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith(
        "results/dev.jsonl: recorded v2-8: accuracy 0.1999, examples_per_second 1999.5\n"
    )
    (row,) = records_of(tmp_path)
    assert (row["run"], row["metrics"]) == (
        "a1",
        {"accuracy": 0.1999, "examples_per_second": 1999.5},
    )


@pytest.mark.usefixtures("scale_up")
def test_record_reads_gcloud_output(tmp_path: Path) -> None:
    """From log entries through a real pipe, newest first, the latest measurement is recorded."""
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
    (row,) = records_of(tmp_path)
    assert row["metrics"] == {"accuracy": 0.9, "examples_per_second": 59}


@pytest.mark.usefixtures("scale_up")
def test_record_reports_a_closed_standard_input(tmp_path: Path) -> None:
    """A closed standard input is an error, like a missing log."""
    closed = f"{shlex.join(COMMAND)} record --size v2-8 --from - <&-"
    result = subprocess.run(
        ["sh", "-c", closed],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert "- cannot be read" in result.stderr


def test_record_reads_a_file(scale_up: Run, tmp_path: Path) -> None:
    """A given value replaces the log's, and given names replace the default ones."""
    (tmp_path / "train.log").write_text(
        '{"examples_per_second": 10, "accuracy": 0.9, "loss": 0.2}\n'
    )
    assert scale_up("record", "--size", "v2-8", "--from", "train.log").returncode == 0
    assert (
        scale_up(
            "record", "--size", "v2-8", "--from", "train.log", "--metric", "accuracy=0.95"
        ).returncode
        == 0
    )
    assert (
        scale_up("record", "--size", "v2-8", "--from", "train.log", "--metric", "loss").returncode
        == 0
    )
    assert [row["metrics"] for row in records_of(tmp_path)] == [
        {"accuracy": 0.9, "examples_per_second": 10},
        {"accuracy": 0.95, "examples_per_second": 10},
        {"loss": 0.2},
    ]


@pytest.mark.parametrize("value", ["-5", "0", "1e-320", "1e16"])
def test_record_refuses_an_invalid_value_in_the_log(
    scale_up: Run, tmp_path: Path, value: str
) -> None:
    """A value in the log that no record may have is an error with file and line."""
    (tmp_path / "train.log").write_text(
        f'starting\n{{"examples_per_second": {value}, "accuracy": 0.9}}\n'
    )
    result = scale_up("record", "--size", "v2-8", "--from", "train.log")
    assert (result.returncode, result.stdout) == (1, "")
    assert "nothing was recorded: train.log:2: metrics.examples_per_second is " in result.stderr
    assert not (tmp_path / "results").exists()


def test_the_environment_is_optional_if_it_is_unambiguous(scale_up: Run, tmp_path: Path) -> None:
    """If two environments have the size, --env is required; each environment has its own file."""
    environments = {
        name: {"project": f"my-project-{name}", "region": "us-central1", **more}
        for name, more in (("dev", {}), ("prod", {"sizes": ["v2-8", "v2-128"]}))
    }
    write_spec(tmp_path, environments=environments)
    metric = ("--metric", "examples_per_second=1")
    result = scale_up("record", "--size", "v2-8", *metric)
    assert (result.returncode, result.stdout) == (2, "")
    assert "v2-8 is a rung of 2 environments: dev, prod" in result.stderr
    assert scale_up("record", "--size", "v2-128", *metric).returncode == 0
    assert scale_up("record", "--size", "v2-8", "--env", "dev", *metric).returncode == 0
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "dev.jsonl",
        "prod.jsonl",
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        ((), 2, "nothing to record"),
        (("--metric", "accuracy"), 2, "has no value"),
        (("--metric", "accuracy=97%"), 2, "the value is not a number"),
        (("--metric", "accuracy=１２"), 2, "the value is not a number"),
        (("--metric", "accuracy=0.٣"), 2, "the value is not a number"),
        (("--metric", "accuracy=nan"), 2, "the value is not a number"),
        (("--metric", "accuracy=1e999"), 2, "the value is not a number"),
        (("--metric", "accuracy=1,5"), 2, "the value is not a number"),
        (("--metric", "a b=1"), 2, "a metric's name"),
        (("--metric", "a=1", "--metric", "a=2"), 2, "given twice"),
        (
            ("--metric", "examples_per_second=0"),
            1,
            "help: record what the run measured: --metric examples_per_second=NUMBER",
        ),
        (("--metric", "examples_per_second=-1"), 1, "metrics.examples_per_second is -1"),
        (
            (
                "--from",
                "tpucfg.yaml",
                "--metric",
                "examples_per_second=1",
                "--metric",
                "accuracy=1",
            ),
            2,
            "no metric to read",
        ),
        (("--from", "missing.log"), 1, "missing.log cannot be read"),
        (("--from", "."), 1, ". cannot be read"),
        (("--from", "\x1b[31m"), 1, "\\u001b[31m cannot be read"),
        (("--from", "tpucfg.yaml"), 1, "no line of JSON"),
        (("--metric", "a=1", "--run", "A_B"), 2, "a run id"),
        (("--metric", "a=1", "--env", "prod"), 2, "no environment prod"),
        (("--metric", "a=1", "--size", "v2-256"), 2, "v2-256 is in no ladder"),
    ],
)
def test_an_invalid_record_is_an_error(
    scale_up: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, expected: str
) -> None:
    """Invalid arguments and values are an error with a help line, and nothing is written."""
    result = scale_up("record", "--size", "v2-8", *arguments)
    assert (result.returncode, result.stdout) == (status, "")
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "results").exists()


def test_a_record_of_another_program_does_not_count(scale_up: Run, tmp_path: Path) -> None:
    """A rung with another batch has to be measured again; its rate and its run's id make no other program."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    write_spec(tmp_path, sizes=SIZES, gate=GATE, training__learning_rate=0.2)
    assert "another program" not in scale_up("status").stdout
    assert scale_up("submit", "--size", "v2-32", "--run", "c3").returncode == 0
    write_spec(tmp_path, sizes=SIZES, gate=GATE, training__batch_size=2048)
    output = scale_up("status").stdout
    difference = "recorded with another program (batch_size was 1024, now 2048)"
    assert f"v2-8 was last {difference}" in output
    assert "next: tpucfg submit --env dev --size v2-8 --run a2" in output
    submitted = scale_up("submit", "--size", "v2-32", "--run", "c3")
    assert submitted.returncode == 1
    assert f"v2-32 may not be started in dev: v2-8 was {difference}" in submitted.stderr


def test_a_record_of_another_image_has_a_note(scale_up: Run, tmp_path: Path) -> None:
    """A new image makes a note, as most of them change no step; under `gate.same_image` its record does not count."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    image = "us-docker.pkg.dev/my-project/train/mnist:2.0"
    write_spec(tmp_path, sizes=SIZES, gate=GATE, trainer__image=image)
    assert f"and its job now has {image}" in scale_up("status").stdout
    submitted = scale_up("submit", "--size", "v2-32")
    assert (
        submitted.returncode,
        f"now has {image}; v2-32 is compared with it" in submitted.stderr,
    ) == (0, True)
    write_spec(tmp_path, sizes=SIZES, gate={**GATE, "same_image": True}, trainer__image=image)
    submitted = scale_up("submit", "--size", "v2-32")
    assert (
        submitted.returncode,
        "recorded with another program (the image was " in submitted.stderr,
    ) == (1, True)


def test_costs_by_another_program_are_marked(scale_up: Run, tmp_path: Path) -> None:
    """Hours based on its record are marked in every format, on its rung and on those forecast from it."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    write_spec(
        tmp_path, sizes=SIZES, gate=GATE, prices={"v2": 0.5}, trainer__args={"augment": True}
    )
    note = "v2-8 was last recorded with another program (augment was not set, now true), which does not count"
    for command in ("status", "ladder"):
        for options in ((), ("--format", "markdown") if command == "ladder" else ()):
            output = scale_up(command, *options).stdout
            assert output.count("measured, other program") == 1
            assert output.count("forecast from v2-8, other program") == 2
            assert note in output
    assert "forecast from v2-8, other program" in scale_up("ladder", "--size", "v2-32").stdout
    (environment,) = json.loads(scale_up("status", "--format", "json").stdout)["environments"]
    (ladder,) = json.loads(scale_up("ladder", "--format", "json").stdout)["ladders"]
    for rungs in (environment["rungs"], ladder["rungs"]):
        figures = [rung["figures"] for rung in rungs]
        assert figures == ["measured, other program", *["forecast from v2-8, other program"] * 2]
    assert environment["rungs"][0]["other_program"] == ["augment was not set, now true"]
    drawn = " ".join(re.findall(">([^<]+)<", scale_up("ladder", "--format", "svg").stdout))
    assert "v2-8: measured with another program." in drawn
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    for command in ("status", "ladder"):
        assert "other program" not in scale_up(command).stdout


def test_environments_with_different_records_have_their_own_tables(
    scale_up: Run, tmp_path: Path
) -> None:
    """Environments with equal figures have separate tables if the record of one is outdated."""
    both = {name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("a", "b")}
    write_spec(tmp_path, sizes=["v2-8"], prices={"v2": 0.5}, environments=both)
    for name in both:
        assert (
            scale_up(
                "record", "--env", name, "--size", "v2-8", "--metric", "examples_per_second=5"
            ).returncode
            == 0
        )
    assert scale_up("ladder").stdout.startswith("a, b: vertex-ai in us-central1\n")
    both["b"]["bucket"] = "another-bucket"
    write_spec(
        tmp_path,
        sizes=["v2-8"],
        prices={"v2": 0.5},
        environments=both,
        trainer__args={"data": "${bucket}"},
    )
    assert (
        scale_up(
            "record", "--env", "a", "--size", "v2-8", "--metric", "examples_per_second=5"
        ).returncode
        == 0
    )
    output = scale_up("ladder").stdout
    assert output.startswith("a: vertex-ai in us-central1\n")
    assert "\nb: vertex-ai in us-central1\n" in output


def test_without_prices_there_is_no_cost_and_with_epochs_no_hours(
    scale_up: Run, tmp_path: Path
) -> None:
    """The price of an hour needs only `prices`; the cost of a run also needs a record and its examples."""
    assert "USD/hour" in scale_up("ladder").stdout
    assert "hours" not in scale_up("ladder").stdout
    assert "no rung has a record of examples_per_second" in scale_up("ladder").stdout
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    assert "forecast from v2-8" in scale_up("ladder").stdout
    assert (
        "forecast from v2-8" in scale_up("ladder", "--format", "markdown", "--size", "v2-32").stdout
    )
    (ladder,) = json.loads(scale_up("ladder", "--format", "json").stdout)["ladders"]
    assert [rung["usd_per_hour"] for rung in ladder["rungs"]] == [2, 8, 32]
    write_spec(
        tmp_path,
        training={"tuned_on": "v2-8", "batch_size": 1024, "epochs": 10},
        prices={"v2": 0.5},
    )
    output = scale_up("ladder").stdout
    assert "its length is given in epochs" in output
    assert "USD/hour" in output
    write_spec(tmp_path)
    assert "USD" not in scale_up("ladder").stdout
    assert "USD" not in scale_up("status").stdout


def test_recorded_environments_have_their_own_ladders(scale_up: Run, tmp_path: Path) -> None:
    """`ladder` combines environments only while it prints equal figures for them."""
    environments = {
        name: {"project": f"my-project-{name}", "region": "us-central1"} for name in ("dev", "prod")
    }
    write_spec(tmp_path, environments=environments, prices={"v2": 0.5})
    assert scale_up("ladder").stdout.startswith("dev, prod: ")
    scale_up("record", "--env", "dev", "--size", "v2-8", "--metric", "examples_per_second=1")
    assert scale_up("ladder").stdout.startswith("dev: ")


def test_a_spec_in_another_folder_has_its_own_results(scale_up: Run, tmp_path: Path) -> None:
    """Results are next to the spec, wherever the command runs, and printed commands can be pasted."""
    folder = tmp_path / "it's here"
    folder.mkdir()
    write_spec(folder, gate=GATE)
    path = str(folder / "tpucfg.yaml")
    scale_up(
        "record",
        "--spec",
        path,
        "--size",
        "v2-8",
        "--metric",
        "examples_per_second=1",
        "--metric",
        "accuracy=1",
    )
    assert (folder / "results" / "dev.jsonl").exists()
    assert not (tmp_path / "results").exists()
    (line,) = [
        row
        for row in scale_up("status", "--spec", path).stdout.splitlines()
        if row.startswith("next: ")
    ]
    shim = f'tpucfg() {{ {shlex.join(COMMAND)} "$@"; }}; {line.removeprefix("next: ")}'
    result = subprocess.run(
        ["bash", "-c", shim],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "v2-32 on vertex-ai" in result.stdout


def test_a_metric_may_have_the_name_of_a_column(scale_up: Run, tmp_path: Path) -> None:
    """A metric with the name of another column has its own column."""
    write_spec(tmp_path, sizes=SIZES, gate={**GATE, "metric": "size"})
    scale_up(
        "record", "--size", "v2-8", "--metric", "examples_per_second=1000", "--metric", "size=0.25"
    )
    header, row, *_ = scale_up("status").stdout.splitlines()[1:]
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


def test_implausible_scaling_has_a_note(scale_up: Run) -> None:
    """Implausible scaling has a note, as a host's throughput may have been recorded for the slice."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    record_metrics(scale_up, "v2-32", 5000, 0.97)
    assert "whole slice" not in scale_up("status").stdout
    record_metrics(scale_up, "v2-32", 16000, 0.97)
    output = "v2-32 scales to 400% of v2-8: check that examples_per_second is that of the whole slice on both\n"
    assert output in scale_up("status").stdout
    assert output in record_metrics(scale_up, "v2-32", 16000, 0.97)
    assert output in record_metrics(scale_up, "v2-8", 1000, 0.97)
    assert output not in record_metrics(scale_up, "v2-128", 16000, 0.97)


def test_a_run_longer_than_its_limit_has_a_note(scale_up: Run, tmp_path: Path) -> None:
    """A rung whose limit is shorter than its run, measured or forecast, has a note."""
    # A run of 4,096,000 examples takes 68.3 minutes at 1,000 a second, and 17.1 on four times the cores.
    limits = {
        "v2-8": {"trainer": {"max_run_duration": "68m"}},
        "v2-32": {"trainer": {"max_run_duration": "17m"}},
    }
    write_spec(tmp_path, sizes=SIZES, overrides=limits)
    assert "max_run_duration" not in scale_up("status").stdout
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    assert [
        line for line in scale_up("status").stdout.splitlines() if "max_run_duration" in line
    ] == [
        f"a run in dev takes longer than overrides.{size}.trainer.max_run_duration, after which the slice is gone: "
        f"{hours} h on {size}, 2 submissions, and nothing in the spec shows that the program writes checkpoints"
        for size, hours in (("v2-8", "1.14"), ("v2-32", "0.284"))
    ]
    record_metrics(scale_up, "v2-8", 1010, 0.97)
    assert "max_run_duration" not in scale_up("status").stdout


def test_a_column_of_numbers_is_aligned(scale_up: Run) -> None:
    """A column stays right-aligned with numbers that have an exponent, as text and as Markdown."""
    record_metrics(scale_up, "v2-8", 0.001, 0.97)
    record_metrics(scale_up, "v2-32", 1e6, 0.97)
    header, first, second = scale_up("status").stdout.splitlines()[1:4]
    end = header.index("scaling") + len("scaling")
    assert second[:end].endswith("e10%")
    assert first[:end].endswith(" –")
    assert (
        scale_up("status", "--format", "markdown")
        .stdout.splitlines()[3]
        .startswith("| --- | --: | --: | --: | --: |")
    )


def test_two_specs_in_one_folder_share_the_file_only(scale_up: Run, tmp_path: Path) -> None:
    """Two specs share the file but not the records, and an invalid line is one finding."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    (tmp_path / "tpucfg.yaml").rename(tmp_path / "first.yaml")
    write_spec(tmp_path, name="second", gate=GATE)
    output = scale_up("status").stdout
    assert "\nv2-8       8           –" in output
    assert (
        "\n1 record with another name (mnist) is not counted: the spec's name is second\n" in output
    )
    with (tmp_path / "results" / "dev.jsonl").open("a") as file:
        file.write("torn")
    checked = scale_up("check", "--spec", "first.yaml", "--spec", "tpucfg.yaml")
    assert checked.stdout.count("error[TPU101]") == 1


def test_records_of_two_branches_are_merged(scale_up: Run, tmp_path: Path) -> None:
    """With the documented line in .gitattributes, git keeps the records of both branches."""

    def git(*arguments: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / ".gitattributes").write_text("results/*.jsonl merge=union\n")
    git("init", "--initial-branch=main")
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    git("add", ".")
    git("commit", "-m", "v2-8")
    for branch, size in (("a", "v2-32"), ("b", "v2-128")):
        git("checkout", "-b", branch, "main")
        record_metrics(scale_up, size, 4000, 0.97)
        git("commit", "-a", "-m", size)
    git("merge", "a")
    assert sorted(str(row["size"]) for row in records_of(tmp_path)) == ["v2-128", "v2-32", "v2-8"]


def test_a_recorded_file_is_valid(scale_up: Run, tmp_path: Path) -> None:
    """`check` has no findings about a file written by `record`, and equal commands write equal lines."""
    for _ in range(2):
        record_metrics(scale_up, "v2-8", 1000, 0.97)
    assert scale_up("check").returncode == 0
    text = (tmp_path / "results" / "dev.jsonl").read_text()
    first, second = text.splitlines()
    assert first == second
    assert len(parse_records(text, "dev.jsonl").records) == 2
    assert CATALOG.find("v2-8")


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([None], "a2"),
        (["a1"], "a2"),
        (["a3", "a2", "nightly"], "a4"),
    ],
)
def test_the_next_run_has_a_new_id(scale_up: Run, runs: list[str | None], expected: str) -> None:
    """The suggested run id is the next one that no record of the rung has, on the largest rung too."""
    record_metrics(scale_up, "v2-8", 1000, 0.97)
    record_metrics(scale_up, "v2-32", 4000, 0.97)
    for id_ in runs:
        options = [
            "--metric",
            "examples_per_second=1",
            "--metric",
            "accuracy=1",
            *(["--run", id_] if id_ else []),
        ]
        output = scale_up("record", "--size", "v2-128", *options)
    *_, again, then = output.stdout.splitlines()
    assert again.endswith(f": tpucfg submit --env dev --size v2-128 --run {expected}")
    assert then == f"then: tpucfg record --env dev --size v2-128 --run {expected} --from LOG"


def test_the_first_rung_is_compared_with_nothing(scale_up: Run) -> None:
    """The first rung's metric has a note, as the gate cannot detect a diverged run there."""
    output = scale_up(
        "record",
        "--size",
        "v2-8",
        "--metric",
        "examples_per_second=1000",
        "--metric",
        "accuracy=0.1",
    )
    note = "v2-8 is the first rung: its accuracy of 0.1 is not compared with anything"
    assert note in output.stdout.splitlines()
    assert note in scale_up("status").stdout.splitlines()


def test_an_unreadable_file_is_one_error(scale_up: Run, tmp_path: Path) -> None:
    """An unreadable file is one error, with its path once."""
    (tmp_path / "results" / "dev.jsonl").mkdir(parents=True)
    result = scale_up("status")
    assert "results/dev.jsonl cannot be read: fix it first\n" in result.stdout
    assert "results/dev.jsonl:1:1: error[TPU100]: is a directory\n" in result.stderr


def test_probes_open_the_ladder(scale_up: Run, tmp_path: Path) -> None:
    """A probe asks for the scaling of the rung below, a whole run for its metric too, which only a run has."""
    write_spec(tmp_path, sizes=SIZES, gate=GATE, probe={"steps": 50})
    assert "next: tpucfg submit --env dev --size v2-8 --probe\n" in scale_up("status").stdout
    measured = ("--probe", "--metric")
    assert scale_up("record", "--size", "v2-8", *measured, "examples_per_second=1000").stdout == (
        "results/dev.jsonl: recorded a probe of v2-8: examples_per_second 1000\n"
        "v2-8 has not passed: accuracy is not recorded for v2-8 by a whole run\n"
        "next: tpucfg submit --env dev --size v2-32 --probe\n"
        "then: tpucfg record --env dev --size v2-32 --probe --from LOG\n"
    )
    assert records_of(tmp_path)[0]["probe"] is True
    whole, probe = (
        scale_up("submit", "--size", "v2-32", *options) for options in ((), ("--probe",))
    )
    assert (whole.returncode, probe.returncode) == (1, 0)
    assert "accuracy is not recorded for v2-8 by a whole run" in whole.stderr
    assert "tpucfg render --env dev --size v2-32 --probe | gcloud" in probe.stdout
    scale_up("record", "--size", "v2-32", *measured, "examples_per_second=2000")
    refused = scale_up("submit", "--size", "v2-128", "--probe")
    assert "v2-32 scales to 50% of v2-8, and the gate requires 80%" in refused.stderr
    assert "fix v2-32 and run a probe of it again in a new job folder" in refused.stderr
    record_metrics(scale_up, "v2-8", 900, 0.97)
    status = scale_up("status").stdout
    assert re.search(r"^v2-8 .* 1,000 .* passed$", status, re.MULTILINE)
    assert re.search(r"^v2-32 .* 2,000 .* not passed$", status, re.MULTILINE)
    (environment,) = json.loads(scale_up("status", "--format", "json").stdout)["environments"]
    assert environment["rungs"][0]["metrics"] == {"examples_per_second": 1000, "accuracy": 0.97}
    assert [rung["probe"] for rung in environment["rungs"]] == [True, True, False]


def test_probes_open_whole_runs_of_a_gate_that_asks_for_scaling(
    scale_up: Run, tmp_path: Path
) -> None:
    """No whole run is needed to start the next rung's."""
    write_spec(tmp_path, sizes=SIZES, gate={"min_scaling_efficiency": 0.8}, probe={"steps": 50})
    refused = scale_up("submit", "--size", "v2-32")
    assert refused.returncode == 1
    assert (
        "help: run a probe of v2-8: tpucfg submit --env dev --size v2-8 --probe, then: tpucfg record "
        in refused.stderr
    )
    scale_up("record", "--size", "v2-8", "--probe", "--metric", "examples_per_second=1000")
    assert scale_up("submit", "--size", "v2-32").returncode == 0


def test_probes_have_files_of_their_own(scale_up: Run, tmp_path: Path) -> None:
    """They are written beside those of the runs, and each kind is pruned by itself."""
    write_spec(tmp_path, sizes=["v2-8", "v2-32"], probe={"steps": 50})
    scale_up("render", "--out", "out")
    scale_up("render", "--out", "out", "--probe")
    files = {
        f"out/dev/{size}/{name}"
        for size in ("v2-8", "v2-32")
        for name in ("config.yaml", "probe/config.yaml")
    }
    assert {str(path.relative_to(tmp_path)) for path in (tmp_path / "out").rglob("*.yaml")} == files
    write_spec(tmp_path, sizes=["v2-8"], probe={"steps": 50})
    pruned = scale_up("render", "--out", "out", "--check")
    assert pruned.stdout == "remove out/dev/v2-32/config.yaml\n"
    pruned = scale_up("render", "--out", "out", "--check", "--probe")
    assert (pruned.returncode, pruned.stdout) == (3, "remove out/dev/v2-32/probe/config.yaml\n")
    assert "tpucfg render --out out --probe --prune" in pruned.stderr
    scale_up("render", "--out", "out", "--probe", "--prune")
    assert (tmp_path / "out/dev/v2-32/config.yaml").exists()
    assert not (tmp_path / "out/dev/v2-32/probe").exists()


@pytest.mark.parametrize("run", ["probe", "probe-a1"])
def test_a_run_is_not_named_probe(scale_up: Run, run: str) -> None:
    """Its name and folder would be those of a probe."""
    result = scale_up("render", "--run", run)
    assert (result.returncode, "choose another id" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "command", [("render",), ("check",), ("ladder",), ("submit",), ("why", "train_steps")]
)
def test_probes_need_a_section_of_the_spec(scale_up: Run, command: tuple[str, ...]) -> None:
    """The error of each command shows what to add."""
    result = scale_up(*command, "--probe")
    assert result.returncode == 2
    assert "tpucfg.yaml has no probe; add " in result.stderr
    assert "probe:\n  steps: 50\n" in result.stderr


def test_why_explains_a_probe(scale_up: Run, tmp_path: Path) -> None:
    """The steps come from `probe`, and its arguments from the last layer."""
    write_spec(
        tmp_path,
        sizes=SIZES,
        probe={"steps": 50, "args": {"profiler": "xplane"}},
        trainer__args={"profiler": "off"},
    )
    steps = scale_up("why", "train_steps", "--size", "v2-32", "--probe").stdout
    assert "mnist-dev-v2-32-probe on vertex-ai\n" in steps
    assert (
        "probe.steps: 50\n  the steps of a probe, on every rung; the whole run has 1000\n" in steps
    )
    profiler = scale_up("why", "trainer.args.profiler", "--size", "v2-32", "--probe").stdout
    assert "probe.args.profiler: xplane, set in probe\n" in profiler
    assert "trainer.args.profiler: off, which probe overrides\n" in profiler
    write_spec(
        tmp_path,
        sizes=SIZES,
        probe={"steps": 50, "args": ["profiler=xplane"]},
        trainer__args=["a.yml"],
    )
    words = "workerPoolSpecs.0.containerSpec.args."
    assert (
        ": trainer.args[0]\n" in scale_up("why", f"{words}0", "--size", "v2-32", "--probe").stdout
    )
    assert ": probe.args[0]\n" in scale_up("why", f"{words}1", "--size", "v2-32", "--probe").stdout


def test_the_cost_of_probes_is_shown_beside_that_of_a_run(scale_up: Run, tmp_path: Path) -> None:
    """A probe costs its steps at the measured speed; the ladder of probes has it in the columns of a run."""
    write_spec(tmp_path, sizes=SIZES, prices={"v2": 0.5}, probe={"steps": 500})
    assert "the cost of a run and of a probe is not known yet" in scale_up("status").stdout
    scale_up("record", "--size", "v2-8", "--probe", "--metric", "examples_per_second=1024")
    for command in ("status", "ladder"):
        output = scale_up(command).stdout
        # 500 steps of one second cost an eighth of 4,000, and on four times the chips four times as much.
        assert re.search(r"USD/hour +hours +USD +USD/probe", output)
        assert re.search(r"^v2-8 .* 2\.00 +1\.11 +2\.22 +0\.28 ", output, re.MULTILINE)
        assert re.search(r"^v2-32 .* 2\.22 +1\.11 ", output, re.MULTILINE)
        assert "probes of 3 rungs cost 5.83 USD, without start-up and compilation" in output
    (ladder,) = json.loads(scale_up("ladder", "--format", "json").stdout)["ladders"]
    assert [rung["probe_usd"] for rung in ladder["rungs"]] == pytest.approx(
        [0.2778, 1.1111, 4.4444], abs=1e-4
    )
    probes = scale_up("ladder", "--probe").stdout
    assert probes.startswith("dev: vertex-ai in us-central1, probes\n")
    assert re.search(r"^v2-8 .* 500 .* 2\.00 +0\.139 +0\.28 +measured", probes, re.MULTILINE)
    assert "USD/probe" not in probes


def test_a_forced_command_stays_forced(scale_up: Run, tmp_path: Path) -> None:
    """The command of a job of several objects, which is printed in one line, has --force if it was printed with it."""
    changes = {
        "target": "gke",
        "sizes": ["v5litepod-16", "v5litepod-64"],
        "gate": {"min_scaling_efficiency": 0.8},
    }
    environment = {"project": "my-project-dev", "region": "us-central1", "kube_context": "train"}
    trainer = {"image": "r.io/i:1", "secrets": {"HF_TOKEN": "hf/1"}}
    training = {"tuned_on": "v5litepod-16", "batch_size": 1024, "train_steps": 4000}
    write_spec(
        tmp_path, **changes, environments__dev=environment, trainer=trainer, training=training
    )
    printed = scale_up("submit", "--size", "v5litepod-64", "--force").stdout
    assert "tpucfg submit --env dev --size v5litepod-64 --force --execute\n" in printed
    assert scale_up("submit", "--size", "v5litepod-16").stdout.count("--force") == 0
