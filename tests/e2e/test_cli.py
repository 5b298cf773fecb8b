"""The commands: exit status, standard output and standard error."""

import json
import re
from pathlib import Path

import pytest
import yaml

from process import Run
from spec_factory import ROOT, spec
from tpucfg.cli.app import COMMANDS

pytestmark = pytest.mark.shell


def test_the_help_has_one_line_for_each_command(tpucfg: Run) -> None:
    """Every command and its summary fit on one line of 80 columns, with --help and without arguments."""
    lines = tpucfg("--help").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert {*lines} >= {f"  {name:<7}  {summary}" for name, summary in COMMANDS.items()}
    assert tpucfg().stderr.splitlines() == lines


def test_render_prints_the_configs(tpucfg: Run) -> None:
    """Stdout has one YAML document for each job, and stderr is empty without findings."""
    completed = tpucfg("render")
    assert (completed.returncode, completed.stderr) == (0, "")
    documents = list(yaml.safe_load_all(completed.stdout))
    counts = [
        document["workerPoolSpecs"][0]["machineSpec"]["acceleratorCount"] for document in documents
    ]
    assert counts == [8, 32]


def test_render_of_one_size_and_run(tpucfg: Run) -> None:
    """The run id is a part of the job's folder, and one size is one document."""
    completed = tpucfg("render", "--size", "v2-32", "--run", "try-2")
    assert completed.returncode == 0
    folder = yaml.safe_load(completed.stdout)["baseOutputDirectory"]["outputUriPrefix"]
    assert folder == "gs://my-project-dev-mnist-dev-us-central1/jobs/mnist/v2-32/try-2"


def test_render_as_json_equals_yaml(tpucfg: Run) -> None:
    """Each config is a JSON value equal to its YAML document."""
    text = tpucfg("render", "--format", "json").stdout
    decoder, configs = json.JSONDecoder(), []
    while text.strip():
        value, end = decoder.raw_decode(text.lstrip())
        configs.append(value)
        text = text.lstrip()[end:]
    assert configs == list(yaml.safe_load_all(tpucfg("render").stdout))


def test_findings_of_render_go_to_stderr(tpucfg: Run) -> None:
    """With an error nothing is printed on stdout, and the status is 1."""
    completed = tpucfg("render", "--spec", "wrong.yaml")
    assert (completed.returncode, completed.stdout) == (1, "")
    assert "wrong.yaml:6:" in completed.stderr
    assert "error[TPU020]" in completed.stderr


def test_check_prints_its_result(tpucfg: Run) -> None:
    """The findings of `check` go to stdout, with a last line that counts them."""
    completed = tpucfg("check")
    assert (completed.returncode, completed.stdout, completed.stderr) == (
        0,
        "tpucfg.yaml, 2 configs: no findings\n",
        "",
    )
    completed = tpucfg("check", "--spec", "wrong.yaml")
    assert (completed.returncode, completed.stderr) == (1, "")
    assert completed.stdout.startswith("wrong.yaml:6:")
    assert completed.stdout.endswith("wrong.yaml, 0 configs: 1 error\n")


@pytest.mark.parametrize("format_", ["json", "sarif"])
def test_check_prints_one_json_value(tpucfg: Run, format_: str) -> None:
    """The output is one JSON value, also without findings, and nothing else."""
    for arguments, status in ((("check",), 0), (("check", "--spec", "wrong.yaml"), 1)):
        completed = tpucfg(*arguments, "--format", format_)
        output = json.loads(completed.stdout)
        assert (completed.returncode, completed.stderr) == (status, "")
        results = output if format_ == "json" else output["runs"][0]["results"]
        assert len(results) == status


def test_check_prints_github_annotations(tpucfg: Run) -> None:
    """Each finding is one annotation line."""
    completed = tpucfg("check", "--spec", "wrong.yaml", "--format", "github")
    assert completed.returncode == 1
    assert [line.partition(",line=")[0] for line in completed.stdout.splitlines()] == [
        "::error file=wrong.yaml"
    ]


def test_check_of_a_config_needs_its_target(tpucfg: Run, tmp_path: Path) -> None:
    """A config file is checked without a spec, and --target names its service."""
    text = tpucfg("render", "--size", "v2-8").stdout
    (tmp_path / "right.yaml").write_text(text)
    (tmp_path / "wrong-config.yaml").write_text(text.replace("replicaCount: 1", "replicaCount: 4"))
    assert tpucfg("check", "--config", "right.yaml", "--target", "vertex-ai").returncode == 0
    completed = tpucfg("check", "--config", "wrong-config.yaml", "--target", "vertex-ai")
    assert (completed.returncode, "error[TPU074]" in completed.stdout) == (1, True)
    completed = tpucfg("check", "--config", "right.yaml")
    assert (completed.returncode, "--target" in completed.stderr) == (2, True)


def test_several_specs_are_checked_and_rendered(tpucfg: Run, tmp_path: Path) -> None:
    """Each spec is checked and rendered; the output folder has a folder for each project."""
    both = ("--spec", "tpucfg.yaml", "--spec", "other.yaml")
    assert tpucfg("check", *both).stdout == "tpucfg.yaml, other.yaml, 3 configs: no findings\n"
    assert len(list(yaml.safe_load_all(tpucfg("render", *both).stdout))) == 3
    assert tpucfg("render", *both, "--out", "output").returncode == 0
    files = sorted(
        path.relative_to(tmp_path / "output").as_posix()
        for path in (tmp_path / "output").rglob("config.yaml")
    )
    assert files == [
        "mnist/dev/v2-32/config.yaml",
        "mnist/dev/v2-8/config.yaml",
        "other/dev/v2-8/config.yaml",
    ]
    completed = tpucfg("render", *both, "--spec", "wrong.yaml", "--out", "none")
    assert (completed.returncode, (tmp_path / "none").exists()) == (1, False)


def test_check_option_of_render_writes_nothing(tpucfg: Run, tmp_path: Path) -> None:
    """--check writes nothing, and exits with 3 if a file would change."""
    assert tpucfg("render", "--out", "output", "--check").returncode == 3
    assert not (tmp_path / "output").exists()
    assert tpucfg("render", "--out", "output").returncode == 0
    assert tpucfg("render", "--out", "output", "--check").returncode == 0
    (tmp_path / "output" / "dev" / "v2-8" / "config.yaml").write_text("mine\n")
    completed = tpucfg("render", "--out", "output", "--check")
    assert completed.returncode == 3
    assert "output/dev/v2-8/config.yaml" in completed.stdout
    assert (tmp_path / "output" / "dev" / "v2-8" / "config.yaml").read_text() == "mine\n"


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
def test_wrong_use_exits_with_2(tpucfg: Run, arguments: tuple[str, ...]) -> None:
    """An unknown option or value is an error on stderr without a traceback."""
    completed = tpucfg(*arguments)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.strip()
    assert "Traceback" not in completed.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rendr",), "did you mean render?"),
        (("chekc",), "did you mean check?"),
        (("zzz",), "list all commands with: tpucfg --help"),
        (("render", "--target", "vertex"), "did you mean vertex-ai?"),
        (("render", "--target", "borg"), "give one of: "),
        (("render", "--format", "yml"), "did you mean yaml?"),
        (("check", "--format", "xml"), "give one of: text, json, sarif, github"),
        (("render", "--env", "devv"), "did you mean dev?"),
    ],
)
def test_misspelled_words_get_a_suggestion(
    tpucfg: Run, arguments: tuple[str, ...], message: str
) -> None:
    """The help for a misspelled command, target, format or environment names a similar one, or all."""
    completed = tpucfg(*arguments)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert message in completed.stderr


@pytest.mark.parametrize("word", ["\x1b[2J", "\u202e", "\u2028", "\x9b2J"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("{}",),
        ("check", "{}"),
        ("check", "--{}"),
        ("render", "--env", "{}"),
        ("render", "--size", "{}"),
        ("render", "--target", "{}"),
        ("render", "--run", "{}"),
        ("render", "--spec", "{}"),
        ("render", "--format", "{}"),
        ("explain", "{}"),
        ("schema", "{}"),
        ("why", "{}", "--size", "v2-8"),
        ("diff", "{}"),
        ("record", "--size", "v2-8", "--metric", "{}=1"),
        ("init", "{}"),
    ],
)
def test_control_characters_are_escaped(tpucfg: Run, arguments: tuple[str, ...], word: str) -> None:
    """An argument that an error message quotes contains no control characters."""
    completed = tpucfg(*(argument.replace("{}", word) for argument in arguments))
    assert completed.returncode in (1, 2)
    assert all(char.isprintable() or char == "\n" for char in completed.stdout + completed.stderr)


@pytest.mark.parametrize("name", ["--q", "trainer", "workerPoolSpecs"])
def test_why_escapes_values_of_the_spec(tpucfg: Run, tmp_path: Path, name: str) -> None:
    """A value of the spec is one printable line, whatever characters it contains."""
    text = (tmp_path / "tpucfg.yaml").read_text()
    args = r'"args": {"q": "a \u202e \u2028\nnext", "trainer": "${bucket}\u2028"},'
    (tmp_path / "tpucfg.yaml").write_text(text.replace('"trainer": {', f'"trainer": {{{args}', 1))
    completed = tpucfg("why", name, "--size", "v2-8")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert (r": a \u202e \u2028\u000anext" in completed.stdout) or name == "trainer"
    assert all(char.isprintable() or char == "\n" for char in completed.stdout)


def test_why_lists_the_values_of_a_mapping(tpucfg: Run) -> None:
    """Each value of a mapping is a line with its origin; for an argument that is the origin of its flag."""
    completed = tpucfg("why", "workerPoolSpecs", "--size", "v2-8")
    assert completed.returncode == 0
    assert (
        "  workerPoolSpecs contains 8 values; give the path of one for all details"
        in completed.stdout
    )
    assert ": workerPoolSpecs[0].containerSpec.imageUri: trainer.image\n" in completed.stdout
    assert (
        ": workerPoolSpecs[0].containerSpec.args[0]: training.batch_size: 1024\n"
        in completed.stdout
    )
    details = tpucfg(
        "why", "workerPoolSpecs.0.machineSpec.acceleratorCount", "--size", "v2-8"
    ).stdout
    assert "the cores of v2-8 in the catalog" in details


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "zzz",
            ": batch_size, train_steps, learning_rate, workerPoolSpecs, serviceAccount, baseOutputDirectory\n",
        ),
        ("trian_steps", "help: did you mean train_steps?\n"),
        ("steps", "help: did you mean train_steps?\n"),
        ("workerPoolSpecs.0.zzz", "help: it has: machineSpec, replicaCount, containerSpec\n"),
    ],
)
def test_why_of_an_unknown_path_suggests_names(tpucfg: Run, path: str, message: str) -> None:
    """The help for an unknown path names a similar one, or all figures and fields."""
    completed = tpucfg("why", path, "--size", "v2-8")
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.endswith(message)


def test_why_knows_the_flags_of_the_program(tpucfg: Run, tmp_path: Path) -> None:
    """The program's own flags can be explained, listed and suggested."""
    text = (tmp_path / "tpucfg.yaml").read_text()
    args = '"args": {"data_dir": "${bucket}/data", "hosts": "${hosts}"},'
    (tmp_path / "tpucfg.yaml").write_text(text.replace('"trainer": {', f'"trainer": {{{args}', 1))
    completed = tpucfg("why", "zzz", "--size", "v2-8")
    assert (
        "it has: batch_size, train_steps, learning_rate, data_dir, hosts, workerPoolSpecs"
        in completed.stderr
    )
    assert tpucfg("why", "datadir", "--size", "v2-8").stderr.endswith("did you mean data_dir?\n")
    assert tpucfg("why", "data_dir", "--size", "v2-8").returncode == 0


def test_check_compiles_the_probes_too(tpucfg: Run, tmp_path: Path) -> None:
    """A mistake that only a probe has is found without --probe, once, and the rest is not reported twice."""
    probed = spec(probe={"steps": 50, "args": {"train_steps": 3}})
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(probed, indent=1))
    completed = tpucfg("check")
    assert (completed.returncode, completed.stdout.count("TPU050")) == (1, 1)
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(probe={"steps": 50}), indent=1))
    assert tpucfg("check").stdout == tpucfg("check", "--probe").stdout


def test_why_knows_the_variables_of_the_program(tpucfg: Run, tmp_path: Path) -> None:
    """A variable is found by its name and by its field, the compiler's flags in the setting that they come from."""
    trainer = {"image": "r.io/i:1", "env": {"A": "1"}, "xla_flags": {"v2": ["--xla_a=1"]}}
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(trainer=trainer), indent=1))
    for query, setting in (("A", "trainer.env.A"), ("LIBTPU_INIT_ARGS", "trainer.xla_flags.v2")):
        for path in (query, f"workerPoolSpecs.0.containerSpec.env.{query}.value"):
            assert f": {setting}" in tpucfg("why", path, "--size", "v2-8").stdout


def test_why_knows_the_flags_of_a_preset(tpucfg: Run) -> None:
    """A figure can be named as the program's line has it, and an argument of the preset has its source."""
    example = str(ROOT / "examples" / "maxtext" / "tpucfg.yaml")
    for query, text in (
        ("max_target_length", "8192"),
        ("steps", "9537"),
        ("run_name", "the preset adds it"),
    ):
        assert text in tpucfg("why", query, "--spec", example, "--size", "v6e-64").stdout


def test_every_schema_is_in_the_help(tpucfg: Run) -> None:
    """The help names every schema except those of the targets."""
    for name in ("tpucfg", "record", "fit", "stack", "catalog"):
        assert re.search(rf"\[NAME\] .*\b{name}\b", tpucfg("schema", "--help").stdout)
        assert tpucfg("schema", name).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("us-central1-a",),
            "no size is offered in us-central1-a\nhelp: did you mean us-central1?\n",
        ),
        (("US-Central1",), "no size is offered in US-Central1\nhelp: did you mean us-central1?\n"),
        (("mars",), "no size is offered in mars\nhelp: regions with TPUs: asia-east1, "),
        (
            ("mars", "--target", "vertex-ai"),
            "in mars for vertex-ai\nhelp: regions with TPUs for vertex-ai: asia-",
        ),
        (("\x1b[31m",), "no size is offered in \\u001b[31m\n"),
    ],
)
def test_sizes_of_an_unknown_region_suggests_regions(
    tpucfg: Run, arguments: tuple[str, ...], message: str
) -> None:
    """The help for a zone or a misspelled region names the region; for any other name it lists all regions."""
    completed = tpucfg("sizes", "--region", *arguments)
    assert (completed.returncode, completed.stdout) == (1, "")
    assert message in completed.stderr


def test_sizes_of_one_generation(tpucfg: Run) -> None:
    """The list has the sizes of the generation alone, and other options narrow it further."""
    names = [
        row["size"]
        for row in json.loads(tpucfg("sizes", "--generation", "v6e", "--format", "json").stdout)
    ]
    assert names == [f"v6e-{number}" for number in (1, 4, 8, 16, 32, 64, 128, 256)]
    narrowed = tpucfg("sizes", "--generation", "v2", "--target", "ai-platform", "--format", "json")
    assert [row["size"] for row in json.loads(narrowed.stdout)] == ["v2-8"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("v5litepod",), 2, "there is no generation v5litepod\nhelp: did you mean v5e?\n"),
        (("V6E",), 2, "there is no generation V6E\nhelp: did you mean v6e?\n"),
        (("h100",), 2, "there is no generation h100\nhelp: the generations are: v2, v3, v4, "),
        (
            ("v4", "--target", "vertex-ai"),
            1,
            "vertex-ai has no size of v4\nhelp: list them all: tpucfg sizes --gene",
        ),
    ],
)
def test_sizes_of_an_unknown_generation(
    tpucfg: Run, arguments: tuple[str, ...], status: int, message: str
) -> None:
    """The help names the generation of a prefix or a misspelled name, or lists them."""
    completed = tpucfg("sizes", "--generation", *arguments)
    assert (completed.returncode, completed.stdout) == (status, "")
    assert message in completed.stderr


def test_sizes_have_the_peaks_of_all_chips_and_their_pages(tpucfg: Run) -> None:
    """JSON has devices, peaks and bandwidths of the whole slice, null where no page states one, and the pages."""
    rows = {
        row["size"]: row
        for generation in ("v3", "tpu7x")
        for row in json.loads(
            tpucfg("sizes", "--generation", generation, "--format", "json").stdout
        )
    }
    keys = ("devices", "peak_bf16_tflops", "peak_8bit_tflops", "hbm_gbps", "ici_gbps")
    assert [rows["v3-32"][key] for key in keys] == [32, 1968, None, 14400, None]
    assert [rows["tpu7x-8"][key] for key in keys] == [8, 9228, 18456, 29520, 4800]
    assert "https://docs.cloud.google.com/tpu/docs/tpu7x" in [
        source["url"] for source in rows["tpu7x-8"]["sources"]
    ]


def test_numbers_of_the_catalog_have_separators(tpucfg: Run) -> None:
    """The table writes numbers as every other table does; JSON has plain numbers."""
    (row,) = (
        line
        for line in tpucfg("sizes", "--generation", "v6e").stdout.splitlines()
        if line.startswith("v6e-256")
    )
    assert row.split()[:7] == ["v6e-256", "256", "256", "16x16", "64", "8,192", "235,008"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("ladder", "--spec", "tpucfg.yaml", "--spec", "other.yaml"),
        ("why", "batch_size", "--spec=tpucfg.yaml", "--spec", "tpucfg.yaml"),
        ("status", "--spec", "a", "--env", "dev", "--spec", "b"),
        ("submit", "--spec", "a", "--spec", "b", "--spec", "c"),
        ("record", "--size", "v2-8", "--metric", "a=1", "--spec", "a", "--spec", "b"),
    ],
)
def test_a_second_spec_is_refused(tpucfg: Run, arguments: tuple[str, ...]) -> None:
    """A command that takes one spec refuses two instead of using the last."""
    completed = tpucfg(*arguments)
    assert (completed.returncode, completed.stdout) == (2, "")
    message = f"tpucfg: --spec is given more than once, and {arguments[0]} takes one spec\nhelp: keep one --spec\n"
    assert completed.stderr == message


@pytest.mark.parametrize("command", [["train", "--out=${nonsense}"], ["train"]])
def test_a_ladder_is_shown_with_its_errors(tpucfg: Run, tmp_path: Path, command: list[str]) -> None:
    """A mistake that decides no figure is listed below the table, and the exit status is 1."""
    trainer = {"image": "r.io/i:1", "command": command, "args": {"batch_size": 1}}
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(spec(trainer=trainer)))
    completed = tpucfg("ladder")
    assert completed.returncode == 1
    assert "batch_size" in completed.stdout.splitlines()[1]
    assert "error[TPU" in completed.stdout


def test_a_size_of_no_ladder_lists_the_ladders(tpucfg: Run) -> None:
    """The error about a size that no ladder has lists the ladders."""
    assert "dev: v2-8, v2-32" in tpucfg("render", "--size", "v3-8").stderr


@pytest.mark.parametrize("format_", ["text", "markdown", "json", "svg"])
def test_every_format_of_the_ladder_reads_every_number(
    tpucfg: Run, tmp_path: Path, format_: str
) -> None:
    """YAML's octal and hexadecimal numbers are numbers in every format, also in charts and JSON."""
    text = (tmp_path / "tpucfg.yaml").read_text()
    for decimal, other in (
        ('"train_steps": 4000', '"epochs": 0o12'),
        ('"learning_rate": 0.1', '"learning_rate": 0x1'),
    ):
        text = text.replace(decimal, other)
    (tmp_path / "tpucfg.yaml").write_text(text)
    completed = tpucfg("ladder", "--format", format_)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout


def test_charts_show_measurements(tpucfg: Run) -> None:
    """The records are drawn against linear scaling, with the percentages that `status` prints."""
    for size, speed in (("v2-8", 11500), ("v2-32", 41200)):
        assert (
            tpucfg("record", "--size", size, "--metric", f"examples_per_second={speed}").returncode
            == 0
        )
    drawn = tpucfg("ladder", "--format", "svg").stdout
    assert "dev: measured against linear scaling" in drawn
    assert ">41,200<" in drawn
    assert ">89.5%<" in drawn
    assert "89.5%" in tpucfg("status").stdout
