"""`tpucfg fit` with a false Python: what is compiled, kept and printed."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from false_python import SPEC, Folder
from process import COMMAND, ENVIRONMENT
from tpucfg.cli.app import run

ENDS = 'answer(phase="trace"); answer(result=known(RESULT))'
"""A compilation that ends well."""
COUNTS = """
with open("runs", "a") as runs:
    runs.write(REQUEST["slice"]["name"] + "\\n")
"""
"""Keeps a line for each process."""
DEV = "  dev: {project: acme-dev, region: us-west4, kube_context: dev}\n"
TWO_ENVIRONMENTS = (
    DEV,
    f"{DEV}  prod: {{project: acme-prod, region: us-west4, kube_context: prod}}\n",
)


def test_the_table_has_memory_and_bound(folder: Folder) -> None:
    """Each rung has its memory, its bound and its forecast; the file has the result, and no duration."""
    folder.spec(("training:", "prices: {v5e: 1.2}\ntraining:"))
    folder.python(ENDS)
    status, out, err = folder.fit("--jobs", "1")
    assert status == 0
    assert [line[:109] for line in out.splitlines()[:3]] == [
        "dev: gke in us-west4",
        "size          devices  HBM GiB  available  headroom   step ≥      step  examples/s           MFU        hours",
        "v5litepod-16       16        7         15         8  31.7 ms  2–3.12 s    81.9–128    1.02–1.59%    2.22–3.47",
    ]
    assert [line.split()[-1] for line in out.splitlines()[1:4]] == [
        "USD",
        "42.67–66.67",
        "42.67–66.67",
    ]
    assert "step is by 7 published runs on v5e" in out
    assert "indicative" in out
    assert "1/2 dev v5litepod-16: 7 of 15 GiB (" in err
    assert [(row["size"], row["hbm"]["used"], "seconds" in row) for row in folder.file()] == [
        ("v5litepod-16", 7 << 30, False),
        ("v5litepod-64", 7 << 30, False),
    ]
    assert folder.file()[0]["files"].keys() == {"step.py"}


def test_a_run_that_cannot_end_in_time_has_a_note(folder: Folder) -> None:
    """The least time of a run is compared with its limit, rung by rung."""
    folder.spec(("trainer:", "trainer:\n  max_run_duration: 2h"))
    folder.python(ENDS)
    _, out, _ = folder.fit()
    assert (
        "a run in dev takes longer than trainer.max_run_duration, after which the slice is gone: at least 2.22 h"
        in out
    )
    assert "h on v5litepod-64" not in out


def test_a_limit_of_another_environment_has_no_note(folder: Folder) -> None:
    """Environments with equal tables and other limits are not grouped."""
    own = "    trainer: {max_run_duration: 2h}\n"
    prod = f"  prod:\n    project: acme-prod\n    region: us-west4\n    kube_context: prod\n{own}"
    folder.spec((DEV, f"{DEV}{prod}"))
    folder.python(ENDS)
    _, out, _ = folder.fit("--size", "v5litepod-16")
    assert (
        "a run in prod takes longer than environments.prod.trainer.max_run_duration, after which"
        in out
    )


def test_the_process_gets_the_slice_and_the_flags(folder: Folder) -> None:
    """The request has the rung's devices and the flags of its config; the variables are those of the job."""
    (folder.path / "out").mkdir()
    folder.spec(
        ("  fit:", "  args: {data_dir: '${bucket}/data', verbose: null, layer: [a, b]}\n  fit:"),
        (
            "  fit:",
            "  env: {HF_HOME: /cache, PATH: /nowhere, TPU_NAME: x, JAX_ENABLE_X64: '1'}\n  fit:",
        ),
        ("  fit:", "  xla_flags: {v5e: [--xla_a=1, --xla_b=2]}\n  fit:"),
    )
    folder.python(
        f"json.dump([REQUEST, dict(os.environ), os.getcwd()], open('out/request', 'w')); {ENDS}"
    )
    assert folder.fit("--size", "v5litepod-16")[0] == 0
    request, env, cwd = json.loads((folder.path / "out/request").read_text())
    assert request["step"] == "step:abstract_step"
    assert request["folder"] == cwd == str(folder.path)
    assert request["slice"]["name"] == "v5e:4x4"
    assert request["slice"]["devices"] == 16
    assert request["known"] == []
    assert request["flags"] == {
        "data_dir": "gs://acme-dev-chat-dev-us-west4/data",
        "verbose": None,
        "layer": ["a", "b"],
        "batch_size": "256",
        "train_steps": "4000",
    }
    assert env["LIBTPU_INIT_ARGS"] == "--xla_a=1 --xla_b=2"
    assert (env["HF_HOME"], env["JAX_ENABLE_X64"], env["JAX_PLATFORMS"]) == ("/cache", "1", "cpu")
    assert env["PATH"] == os.environ["PATH"]
    assert "TPU_NAME" not in env


@pytest.mark.parametrize(
    "name", ["LIBTPU_INIT_ARGS", "XLA_FLAGS", "JAX_ENABLE_X64", "TPU_NAME", "PYTHONSAFEPATH"]
)
def test_the_callers_settings_of_the_compiler_do_not_count(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A flag of the caller's shell would compile another program than the job's."""
    monkeypatch.setenv(name, "callers")
    folder.python(f"assert os.environ.get({name!r}, '') == '', os.environ; {ENDS}")
    assert folder.fit("--size", "v5litepod-16")[0] == 0


def test_a_known_step_is_not_compiled_again(folder: Folder) -> None:
    """A second run reuses the figures, and does not touch the file."""
    folder.python(ENDS)
    assert folder.fit()[0] == 0
    path = folder.path / "results" / "fit.json"
    before = path.read_bytes(), path.stat().st_ino
    folder.python("assert REQUEST['known']; RESULT['flops'] = 1; " + ENDS)
    status, out, err = folder.fit()
    assert status == 0
    assert "31.7 ms" in out
    assert err.count("unchanged") == 2
    assert (path.read_bytes(), path.stat().st_ino) == before
    assert "1e14" not in folder.fit("--fresh")[1]


def test_a_reused_result_is_as_committed(folder: Folder) -> None:
    """A file that was edited by hand is not repeated as the compiler's own; a result of the same run is."""
    folder.spec(TWO_ENVIRONMENTS, ("  fit:", "  args: {data_dir: '${bucket}/data'}\n  fit:"))
    folder.python(ENDS)
    _, out, err = folder.fit("--size", "v5litepod-16")
    assert err.count("unchanged") == 1
    assert "as committed" not in out + err
    _, out, err = folder.fit("--jobs", "1")
    assert err.count("unchanged, as committed") == 2
    note = (
        "the step is unchanged, and its figures are as committed in results/fit.json; --fresh compiles it again: "
        "on v5litepod-16"
    )
    assert note in out.splitlines()
    assert "unchanged, as committed" not in folder.fit("--fresh")[2]
    assert (
        "compiles it again: on v5litepod-16, v5litepod-64" in folder.fit("--format", "markdown")[1]
    )
    data = json.loads(folder.fit("--format", "json")[1])
    assert {rung["as_committed"] for row in data["environments"] for rung in row["rungs"]} == {True}


def test_a_result_is_known_only_to_an_equal_compiler(folder: Folder) -> None:
    """Other XLA flags may compile equal StableHLO in another way, so the results of other flags are not offered."""
    folder.python(ENDS)
    assert folder.fit()[0] == 0
    folder.python("assert not REQUEST['known'], REQUEST; " + ENDS)
    folder.spec(("  fit:", "  xla_flags: {v5e: [--xla_a=1]}\n  fit:"))
    assert folder.fit()[0] == 0
    folder.spec(("  fit:", "  env: {XLA_FLAGS: --xla_dump_to=x}\n  fit:"))
    assert folder.fit()[0] == 0


def test_environments_with_equal_inputs_share_a_process(folder: Folder) -> None:
    """Two environments whose flags are equal are compiled once, and have a result each."""
    folder.spec(TWO_ENVIRONMENTS)
    folder.python(COUNTS + ENDS)
    status, out, _ = folder.fit()
    assert status == 0
    assert sorted((folder.path / "runs").read_text().split()) == ["v5e:4x4", "v5e:8x8"]
    assert [(row["environment"], row["size"]) for row in folder.file()] == [
        ("dev", "v5litepod-16"),
        ("dev", "v5litepod-64"),
        ("prod", "v5litepod-16"),
        ("prod", "v5litepod-64"),
    ]
    assert out.startswith("dev, prod: gke in us-west4\n")


def test_environments_that_differ_by_a_bucket_compile_once(folder: Folder) -> None:
    """A second environment that differs in its bucket lowers its step, and finds it known."""
    folder.spec(TWO_ENVIRONMENTS, ("  fit:", "  args: {data_dir: '${bucket}/data'}\n  fit:"))
    folder.python(COUNTS + ENDS)
    status, _, err = folder.fit("--jobs", "4")
    assert status == 0
    assert len((folder.path / "runs").read_text().split()) == 4
    assert err.count("unchanged") == 2


def test_results_of_others_are_kept(folder: Folder) -> None:
    """Another project and an unselected rung stay in the file; a rung that the spec lost leaves it."""
    folder.python(ENDS)
    (folder.path / "other.yaml").write_text(SPEC.replace("name: chat", "name: other"))
    assert folder.fit("--spec", "other.yaml")[0] == 0
    assert folder.fit()[0] == 0
    assert len(folder.file()) == 4
    folder.spec(("sizes: [v5litepod-16, v5litepod-64]", "sizes: [v5litepod-16, v5litepod-32]"))
    assert folder.fit("--size", "v5litepod-32")[0] == 0
    assert [(row["name"], row["size"]) for row in folder.file()] == [
        ("chat", "v5litepod-16"),
        ("chat", "v5litepod-32"),
        ("other", "v5litepod-16"),
        ("other", "v5litepod-64"),
    ]


def test_a_step_that_does_not_fit_is_an_error(folder: Folder) -> None:
    """The table has the least memory, the finding the edit, and the result is kept."""
    refused = "{'fits': False, 'hbm': {'used': 23 << 30, 'available': 15 << 30, 'exact': False}, 'forecast': None}"
    folder.python(f"answer(result=RESULT | {refused})")
    status, out, err = folder.fit("--size", "v5litepod-16")
    assert status == 1
    assert "≥ 23" in out
    assert "does not fit" in out
    assert "tpucfg.yaml:4:9: error[TPU105]: the training step does not fit on v5litepod-16" in err
    assert not folder.file()[0]["fits"]
    lines = folder.fit("--size", "v5litepod-16", "--format", "markdown")[1].splitlines()
    (index,) = (number for number, line in enumerate(lines) if line.startswith("- error[TPU105]: "))
    assert lines[index + 1].startswith("  help: ")
    assert "tpucfg fit" in lines[index + 1]


def test_little_headroom_is_a_warning(folder: Folder) -> None:
    """Less than a tenth of the memory is a warning, which the spec may allow."""
    folder.python(
        "answer(result=RESULT | {'hbm': {'used': 14 << 30, 'available': 15 << 30, 'exact': True}})"
    )
    status, _, err = folder.fit("--size", "v5litepod-16")
    assert status == 0
    assert "warning[TPU106]" in err
    folder.spec(("training:", "allow: {TPU106: evaluation runs elsewhere}\ntraining:"))
    assert "note[TPU106]" in folder.fit("--size", "v5litepod-16")[2]


def test_a_probe_has_its_hours_and_its_cost(folder: Folder) -> None:
    """A note has the forecast of the steps of a probe on each rung."""
    folder.spec(("training:", "probe: {steps: 400}\nprices: {v5e: 1}\ntraining:"))
    folder.python(ENDS)
    note = "a probe of 400 steps: v5litepod-16 0.222–0.347 hours, 3.56–5.56 USD; v5litepod-64 0.222–0.347 hours, "
    assert note in folder.fit()[1]


def test_json_and_markdown_have_all_values(folder: Folder) -> None:
    """JSON has every figure and the durations; Markdown has the table, and both are equal from run to run."""
    folder.spec(("train_steps: 4000", "epochs: 2"))
    folder.python(f"RESULT['uncounted'] = ['while']; {ENDS}")
    data = json.loads(folder.fit("--format", "json")[1])
    (environment,) = data["environments"]
    rung = environment["rungs"][0]
    assert environment["environments"] == ["dev"]
    assert rung["hbm"] == {
        "used": 7 << 30,
        "available": 15 << 30,
        "exact": True,
        "headroom": 8 << 30,
    }
    assert rung["model"]["parts"] == {"products": 2.0, "fusions": 0.5}
    assert (rung["forecast_step_seconds"]["low"], rung["forecast_step_seconds"]["high"]) == (
        2.0,
        3.125,
    )
    assert (rung["least_hours"], rung["forecast_hours"]) == (None, [])
    assert rung["seconds"]["compile"] == 30.25
    assert rung["uncounted"] == ["while"]
    markdown = folder.fit("--format", "markdown")[1]
    assert "| v5litepod-16 | 16 | 7 | 15 | 8 | 31.7 ms | 2–3.12 s |" in markdown
    assert "- the bound leaves out while: on v5litepod-16, v5litepod-64" in markdown
    assert "its length is given in epochs" in markdown
    assert folder.fit("--format", "markdown")[1] == markdown


def test_a_file_that_changes_meanwhile_counts_as_changed(folder: Folder) -> None:
    """A file of the program that is saved while its rung is compiled may not be the one that was compiled."""
    folder.python(f"time.sleep(0.05); open('step.py', 'a').write('# later'); {ENDS}")
    assert folder.fit("--size", "v5litepod-16")[0] == 0
    assert folder.file()[0]["files"] == {"step.py": "0" * 16}


def test_a_file_that_is_replaced_meanwhile_counts_as_changed(folder: Folder) -> None:
    """`mv` and `rsync -t` put a file in place with an older time of its last write."""
    folder.python(f"time.sleep(0.05); os.rename('older.py', 'step.py'); {ENDS}")
    (folder.path / "older.py").write_text("# older")
    os.utime(folder.path / "older.py", (10**9, 10**9))
    assert folder.fit("--size", "v5litepod-16")[0] == 0
    assert folder.file()[0]["files"] == {"step.py": "0" * 16}


def test_a_file_from_a_clock_that_is_ahead_is_not_changed(folder: Folder) -> None:
    """Else its result would be outdated for as long as the clock is ahead."""
    folder.python(ENDS)
    os.utime(folder.path / "step.py", (10**10, 10**10))
    assert folder.fit("--size", "v5litepod-16")[0] == 0
    assert folder.file()[0]["files"] != {"step.py": "0" * 16}


def test_a_program_outside_the_folder_is_noted(folder: Folder) -> None:
    """The hashes of an installed program are not kept, so the readers of the file cannot see that it changed."""
    folder.python(f"RESULT['files'] = []; {ENDS}")
    assert "other commands notice no change of it" in folder.fit("--size", "v5litepod-16")[1]


def test_a_size_without_a_step_is_left_out(folder: Folder) -> None:
    """`fit: null` takes a rung away; without any step, the command is an error with the lines to add."""
    folder.python(ENDS)
    folder.spec(("training:", "overrides: {v5litepod-64: {trainer: {fit: null}}}\ntraining:"))
    assert folder.fit()[0] == 0
    assert [row["size"] for row in folder.file()] == ["v5litepod-16"]
    status, _, err = folder.fit("--size", "v5litepod-64")
    assert status == 1
    assert "error[TPU062]: no selected rung has a training step to compile" in err


def test_a_file_with_a_mistake_stops_before_anything_is_compiled(folder: Folder) -> None:
    """The results of others would be lost if the file was replaced."""
    folder.python(COUNTS + ENDS)
    (folder.path / "results").mkdir()
    (folder.path / "results" / "fit.json").write_text("<<<<<<< HEAD\n")
    status, _, err = folder.fit()
    assert status == 1
    assert "error[TPU109]" in err
    assert not (folder.path / "runs").exists()


def test_results_that_cannot_be_written_are_printed(folder: Folder) -> None:
    """Minutes of work are not lost because a file takes the place of the folder meanwhile."""
    folder.python(f"open('results', 'w').close(); {ENDS}")
    status, out, err = folder.fit()
    assert status == 1
    assert "31.7" in out
    assert "results/fit.json cannot be written" in err
    assert "help: check the free space, its permissions, " in err
    assert err.endswith(", and run the command again\n")


def test_a_full_disk_loses_no_result(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are printed, with the system's reason."""
    folder.python(ENDS)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tpucfg.cli.fit.update_fit_file", refuse)
    status, out, err = folder.fit()
    assert status == 1
    assert "31.7" in out
    assert "help: check the free space, its permissions, " in err
    assert err.endswith(", and run the command again\n")


def test_the_help_for_a_broken_file_names_the_spec(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command works where the spec has another name."""
    folder.python(ENDS)
    (tmp_path / "tpucfg.yaml").rename(tmp_path / "chat.yaml")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "fit.json").write_text("<<<<<<< HEAD\n")
    for command in (["check"], ["fit"], ["status", "--env", "dev"], ["ladder"]):
        assert run([*command, "--spec", "chat.yaml"]) == 1
        assert "help: delete the file, and compile again: tpucfg fit --spec chat.yaml\n" in "".join(
            capsys.readouterr()
        )


@pytest.mark.parametrize("value", ["0s", "15", "-1m", "1.5h", "m", "9" * 9 + "d"])
def test_a_time_limit_is_a_duration(folder: Folder, value: str) -> None:
    """Other texts are refused before the spec is read."""
    status, _, err = folder.fit("--time-limit", value)
    assert status == 2
    assert "for example: --time-limit 30m" in err


def test_a_spec_in_another_folder(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The Python and the results belong to the spec's folder, wherever the command runs."""
    folder.python(ENDS)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run(["fit", "--spec", "../tpucfg.yaml"]) == 0
    assert len(folder.file()) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_output_is_one_error_line_and_loses_no_result(folder: Folder) -> None:
    """The table cannot be written, which is an error; the results are kept all the same."""
    folder.python(ENDS)
    with Path("/dev/full").open("w") as full:
        completed = subprocess.run(
            [*COMMAND, "fit"],
            cwd=folder.path,
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert completed.returncode == 1
    assert completed.stderr.splitlines()[-1] == "tpucfg: the output: No space left on device"
    assert [row["size"] for row in folder.file()] == ["v5litepod-16", "v5litepod-64"]
