"""The commands that read `results/fit.json` without JAX."""

import io
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fit_results import GIB, write_spec
from spec_factory import spec
from tpucfg.cli.app import run
from tpucfg.fit.fit_file import MAX_FILE_BYTES, StepForecast

AVAILABLE = round(7.48 * GIB)
STEP = {"step": "trainer.fit:abstract_step"}
LADDER = spec(sizes=["v2-8", "v2-32"], trainer__fit=STEP)
GATED = spec(sizes=["v2-8", "v2-32"], trainer__fit=STEP, gate={"fit": True})
COMMANDS = (
    ("check",),
    ("render",),
    ("ladder",),
    ("ladder", "--format", "svg"),
    ("status",),
    ("submit",),
    ("record", "--size", "v2-8", "--metric", "examples_per_second=1"),
)


class Output(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def findings(self) -> list[str]:
        """The level and id of each finding in the output: `error[TPU105]`."""
        return re.findall(
            r"^\S+: ((?:error|warning|note)\[TPU\d{3}\]): ", self.out + self.err, re.MULTILINE
        )


def tpucfg(folder: Path, *arguments: str) -> Output:
    """Run a command in a folder."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        status = run([*arguments])
    return Output(status, out.getvalue(), err.getvalue())


def status_data(folder: Path) -> list[dict[str, Any]]:
    """Return the rungs of the first environment in the data of `tpucfg status`."""
    rungs: list[dict[str, Any]] = json.loads(tpucfg(folder, "status", "--format", "json").out)[
        "environments"
    ][0]["rungs"]
    return rungs


@pytest.mark.parametrize(
    ("used", "status", "findings"),
    [
        ({"v2-8": 3, "v2-32": 3}, 0, []),
        ({"v2-8": 3, "v2-32": 9}, 1, ["error[TPU105]"]),
        ({"v2-8": 7, "v2-32": 3}, 0, ["warning[TPU106]"]),
        ({"v2-8": 3}, 0, ["note[TPU107]"]),
        (None, 0, ["note[TPU107]"]),
        ({"v2-8": 9, "v2-32": 7}, 1, ["error[TPU105]", "warning[TPU106]"]),
    ],
)
def test_check_reports_what_is_known(
    tmp_path: Path, used: Mapping[str, float] | None, status: int, findings: list[str]
) -> None:
    """A step that does not fit is an error, one that hardly does a warning, and one that is not known a note."""
    write_spec(tmp_path, LADDER, used)
    checked = tpucfg(tmp_path, "check")
    assert (checked.status, checked.findings) == (status, findings)


def test_a_finding_belongs_to_its_rung(tmp_path: Path) -> None:
    """A step that does not fit stops a check only where its rung is selected."""
    write_spec(tmp_path, LADDER, {"v2-8": 3, "v2-32": 9})
    assert tpucfg(tmp_path, "check", "--size", "v2-8").status == 0
    assert tpucfg(tmp_path, "check", "--size", "v2-32").findings == ["error[TPU105]"]


def test_each_environment_has_one_note(tmp_path: Path) -> None:
    """Rungs that are not known share a note for each environment, with the command that compiles them."""
    region = {"region": "us-central1"}
    environments = {name: {"project": f"my-project-{name}", **region} for name in ("dev", "prod")}
    data = spec(sizes=["v2-8", "v2-32", "v2-128"], trainer__fit=STEP, environments=environments)
    write_spec(tmp_path, data, {"dev/v2-8": 3, "prod/v2-8": 3, "prod/v2-32": 3})
    checked = tpucfg(tmp_path, "check")
    assert (
        "dev: the fit of 2 of 3 rungs is not known: v2-32 and v2-128 were never compiled\n"
        in checked.out
    )
    assert "tpucfg fit --env dev --size v2-32 --size v2-128\n" in checked.out
    assert "prod: the fit of 1 of 3 rungs is not known: v2-128 was never compiled\n" in checked.out
    assert checked.findings.count("note[TPU107]") == 2


def test_an_allowed_warning_is_a_note(tmp_path: Path) -> None:
    """`allow` turns little memory into a note, and is not reported as unused without a result."""
    data = spec(sizes=["v2-8"], trainer__fit=STEP, allow={"TPU106": "measured on a slice"})
    write_spec(tmp_path, data, {"v2-8": 7})
    assert tpucfg(tmp_path, "check").findings == ["note[TPU106]"]
    write_spec(tmp_path, data, {"v2-8": 3})
    assert tpucfg(tmp_path, "check").findings == []


CHANGES: dict[str, dict[str, Any]] = {
    "--width": {"trainer__args": {"width": 128}},
    "--batch_size": {"training__batch_size": 2048},
    "env A": {"trainer__env": {"A": "2"}},
    "the XLA flags": {"trainer__xla_flags": {"v2": ["--xla_a=2"]}},
    "trainer.fit.step": {"trainer__fit": {"step": "other:step"}},
}


@pytest.mark.parametrize("named", CHANGES)
def test_a_change_of_the_spec_makes_a_result_outdated(tmp_path: Path, named: str) -> None:
    """A result of another config does not count in any command, and the change is named."""
    base: dict[str, Any] = {
        "sizes": ["v2-8"],
        "trainer__fit": STEP,
        "trainer__args": {"width": 64},
        "trainer__env": {"A": "1"},
        "trainer__xla_flags": {"v2": ["--xla_a=1"]},
        "gate": {"fit": True},
    }
    write_spec(tmp_path, spec(**base), {"v2-8": 3})
    assert tpucfg(tmp_path, "submit").status == 0
    write_spec(tmp_path, spec(**{**base, **CHANGES[named]}))
    note = f"v2-8 was compiled before a change of {named}"
    assert f"dev: the fit of v2-8 is not known: {note}\n" in tpucfg(tmp_path, "check").out
    assert re.search(r"^v2-8 .* outdated( |$)", tpucfg(tmp_path, "ladder").out, re.MULTILINE)
    assert re.search(r"^v2-8 .* outdated +closed$", tpucfg(tmp_path, "status").out, re.MULTILINE)
    assert (
        f"its training step was compiled before a change of {named}\n"
        in tpucfg(tmp_path, "submit").err
    )


def test_a_change_of_the_program_or_the_slice_makes_a_result_outdated(tmp_path: Path) -> None:
    """A result of another version of a file, or of another topology, does not count."""
    (tmp_path / "fit.py").write_text("step = 2\n")
    write_spec(tmp_path, LADDER, {"v2-8": 3, "v2-32": 3}, files={"fit.py": "0123456789abcdef"})
    assert "before a change of fit.py\n" in tpucfg(tmp_path, "check").out
    path = write_spec(tmp_path, LADDER, {"v2-8": 3, "v2-32": 3}).parent / "results" / "fit.json"
    path.write_text(path.read_text().replace('"topology": "4x4"', '"topology": "2x8"'))
    assert (
        "v2-32 was compiled before a change of the slice's topology or hosts\n"
        in tpucfg(tmp_path, "check").out
    )


def test_render_shows_a_step_that_does_not_fit(tmp_path: Path) -> None:
    """A config that does not fit is rendered as before, with a warning on stderr; little memory is left to check."""
    write_spec(tmp_path, LADDER)
    before = tpucfg(tmp_path, "render")
    write_spec(tmp_path, LADDER, {"v2-8": 7, "v2-32": 9})
    after = tpucfg(tmp_path, "render")
    assert (after.status, after.out, after.findings) == (0, before.out, ["warning[TPU105]"])
    assert (before.findings, tpucfg(tmp_path, "render", "--size", "v2-8").findings) == ([], [])


def test_a_spec_without_a_step_reads_no_file(tmp_path: Path) -> None:
    """Without `trainer.fit`, commands print nothing of fits, whatever the file contains."""
    write_spec(tmp_path, spec())
    before = {command: tpucfg(tmp_path, *command) for command in COMMANDS[:-1]}
    os.mkfifo(tmp_path / "results" / "fit.json")
    assert {command: tpucfg(tmp_path, *command) for command in COMMANDS[:-1]} == before


def test_the_ladder_has_memory_and_bound(tmp_path: Path) -> None:
    """Each verdict has its cell, a bound is shown of a step that fits, and a ladder without results has dashes."""
    data = spec(sizes=["v2-8", "v2-32", "v2-128"], trainer__fit=STEP)
    write_spec(tmp_path, data, {"v2-8": 3, "v2-32": 9})
    rows = tpucfg(tmp_path, "ladder").out.splitlines()
    assert rows[1].endswith("HBM            bound  forecast")
    assert rows[2].endswith("3 of 7.48 GiB    1 s  2–3.12 s")
    assert rows[3].endswith("does not fit       –         –")
    assert rows[4].endswith(f"–{'–':>19}{'–':>10}")
    assert "as committed in results/fit.json" in rows[5]
    assert (
        "| 3 of 7.48 GiB | 1 s | 2–3.12 s |"
        in tpucfg(tmp_path, "ladder", "--format", "markdown").out
    )


def test_the_ladder_has_fits_as_data(tmp_path: Path) -> None:
    """The data has the verdict, bytes and seconds; what is not known is null."""
    write_spec(tmp_path, LADDER, {"v2-8": 3})
    (ladder,) = json.loads(tpucfg(tmp_path, "ladder", "--format", "json").out)["ladders"]
    first, second = (rung["fit"] for rung in ladder["rungs"])
    assert first == {
        "verdict": "fits",
        "hbm": {
            "used": 3 * GIB,
            "available": AVAILABLE,
            "exact": True,
            "headroom": AVAILABLE - 3 * GIB,
        },
        "least_step_seconds": 1.0,
        "forecast_step_seconds": {
            "low": 2.0,
            "middle": 2.5,
            "high": 3.125,
            "basis": "7 published runs on v2",
        },
        "changes": [],
        "as_committed": True,
    }
    assert second["verdict"] == "not compiled"
    assert {value for key, value in second.items() if key not in ("verdict", "changes")} == {None}


def test_environments_with_other_fits_have_tables_of_their_own(tmp_path: Path) -> None:
    """Environments share a table only if their fits are equal too."""
    environments = {
        name: {"project": f"my-project-{name}", "region": "us-central1"}
        for name in ("dev", "prod", "test")
    }
    data = spec(sizes=["v2-8"], trainer__fit=STEP, environments=environments)
    write_spec(tmp_path, data, {"dev/v2-8": 3, "prod/v2-8": 4, "test/v2-8": 3})
    titles = re.findall(r"^(\S.*): vertex-ai", tpucfg(tmp_path, "ladder").out, re.MULTILINE)
    assert titles == ["dev, test", "prod"]


def test_gate_fit_alone_needs_no_record(tmp_path: Path) -> None:
    """Every rung that is known to fit may run, the first rung is no exception, and no record is asked for."""
    data = spec(sizes=["v2-8", "v2-32", "v2-128"], trainer__fit=STEP, gate={"fit": True})
    write_spec(tmp_path, data, {"v2-32": 3, "v2-128": 9})
    assert [rung["may_run"] for rung in status_data(tmp_path)] == [False, True, False]
    assert [rung["passed"] for rung in status_data(tmp_path)] == [None] * 3
    assert [rung["why_closed"] for rung in status_data(tmp_path)] == [
        "its training step was never compiled",
        None,
        "its training step does not fit: at least 9 of 7.48 GiB",
    ]
    steps = tpucfg(tmp_path, "status").out.splitlines()[-3:]
    assert steps[0] == "next, compile v2-8: tpucfg fit --env dev --size v2-8"
    assert steps[1] == "once v2-8 is known to fit: tpucfg submit --env dev --size v2-8"


def test_the_gate_takes_the_upper_end_of_a_forecast_as_the_cost(tmp_path: Path) -> None:
    """Without a record or a forecast, the cost is not known, and the help is the command that makes it known."""
    data = {"sizes": ["v2-8"], "trainer__fit": STEP, "prices": {"v2": 1}}
    write_spec(tmp_path, spec(**data, gate={"max_usd": 10**6}))
    refused = tpucfg(tmp_path, "submit")
    assert refused.findings == ["error[TPU130]"]
    assert "the cost of a run is not known" in refused.err
    assert (
        "help: compile it, which forecasts its time: tpucfg fit --env dev --size v2-8"
        in refused.err
    )
    write_spec(tmp_path, spec(**data, gate={"max_usd": 10**6}), {"v2-8": 3})
    assert tpucfg(tmp_path, "submit").status == 0
    write_spec(tmp_path, spec(**data, gate={"max_usd": 1}), {"v2-8": 3})
    assert (
        "by the upper end of its forecast, and the gate allows $1.00"
        in tpucfg(tmp_path, "submit").err
    )


def test_a_step_with_arrays_on_the_host_is_not_refused(tmp_path: Path) -> None:
    """Its memory by the compiler proves nothing: a refusal is a warning, and the gate lets the rung start."""
    data = spec(sizes=["v2-8"], trainer__fit=STEP, gate={"fit": True})
    write_spec(tmp_path, data, {"v2-8": 9}, forecast=StepForecast(0.0, {}, is_reliable=False))
    checked = tpucfg(tmp_path, "check")
    assert (checked.status, checked.findings) == (0, ["warning[TPU105]"])
    assert "arrays in its host's memory" in checked.out
    assert [rung["may_run"] for rung in status_data(tmp_path)] == [True]


@pytest.mark.parametrize("used", [{"v2-8": 9}, None], ids=["does not fit", "unreadable"])
def test_the_next_step_is_never_one_that_the_gate_refuses(
    tmp_path: Path, used: dict[str, float] | None
) -> None:
    """`next` is the edit and the compilation until the step is known to fit, and then the start."""
    data = spec(sizes=["v2-8"], trainer__fit=STEP, gate={"fit": True})
    write_spec(tmp_path, data, used)
    if used is None:
        (tmp_path / "results/fit.json").write_text("{")
    (first,) = (
        line for line in tpucfg(tmp_path, "status").out.splitlines() if line.startswith("next")
    )
    assert first.endswith(": tpucfg fit --env dev --size v2-8")
    write_spec(tmp_path, data, {"v2-8": 3})
    assert (
        "next: tpucfg submit --env dev --size v2-8" in tpucfg(tmp_path, "status").out.splitlines()
    )


def test_a_gate_without_conditions_refuses_nothing(tmp_path: Path) -> None:
    """`fit: false` alone is as no gate, with a step or without."""
    write_spec(tmp_path, spec(trainer__fit=STEP, gate={"fit": False}))
    assert "the gate requires" not in tpucfg(tmp_path, "status").out
    assert [rung["may_run"] for rung in status_data(tmp_path)] == [True, True]
    assert tpucfg(tmp_path, "submit").status == 0
    write_spec(tmp_path, spec(gate={"fit": False}))
    assert tpucfg(tmp_path, "check").findings == []


def test_gate_fit_is_one_more_condition(tmp_path: Path) -> None:
    """With a threshold too, a rung needs both: a rung below that has passed, and a step that fits."""
    gate = {"min_scaling_efficiency": 0.8, "fit": True}
    write_spec(tmp_path, spec(trainer__fit=STEP, gate=gate), {"v2-8": 3})
    refused = tpucfg(tmp_path, "submit")
    assert (refused.status, refused.findings) == (1, ["error[TPU110]", "error[TPU111]"])
    assert refused.out.count("gcloud ai custom-jobs create") == 1
    tpucfg(tmp_path, "record", "--size", "v2-8", "--metric", "examples_per_second=100")
    assert tpucfg(tmp_path, "submit", "--size", "v2-32").findings == ["error[TPU111]"]
    write_spec(tmp_path, spec(trainer__fit=STEP, gate=gate), {"v2-8": 3, "v2-32": 3})
    assert tpucfg(tmp_path, "submit", "--size", "v2-32").status == 0


def test_a_failed_rung_is_compiled_before_it_runs_again(tmp_path: Path) -> None:
    """The steps for a rung that has not passed begin with its fit, without which it would be refused."""
    data = spec(trainer__fit=STEP, gate={"min_scaling_efficiency": 0.8, "fit": True})
    write_spec(tmp_path, data, {"v2-8": 3})
    for size, throughput in (("v2-8", 100), ("v2-32", 200)):
        tpucfg(tmp_path, "record", "--size", size, "--metric", f"examples_per_second={throughput}")
    steps = tpucfg(tmp_path, "status").out.splitlines()[-3:]
    assert [step.split(": ")[0] for step in steps] == [
        "compile v2-32",
        "fix v2-32 and run it again in a new job folder",
        "then",
    ]


@pytest.mark.parametrize(
    ("throughput", "is_said"), [(1024 / 2.5, False), (1024 / 2, False), (1024 / 4, True)]
)
def test_a_record_outside_its_forecast_has_a_note(
    tmp_path: Path, throughput: float, *, is_said: bool
) -> None:
    """A step of 4 s is slower than every published run lets expect of a step of 2.5 s by the model."""
    write_spec(tmp_path, spec(trainer__fit=STEP), {"v2-8": 3})
    tpucfg(tmp_path, "record", "--size", "v2-8", "--metric", f"examples_per_second={throughput}")
    note = "outside its forecast: a step took 4 s, and 2–3.12 s was expected, by 7 published runs on v2"
    assert (note in tpucfg(tmp_path, "status").out) == is_said


def test_force_starts_a_rung_that_does_not_fit(tmp_path: Path) -> None:
    """`--force` prints the commands of a refused rung, and the warning."""
    write_spec(tmp_path, GATED, {"v2-8": 9, "v2-32": 3})
    assert tpucfg(tmp_path, "submit", "--size", "v2-8").findings == ["error[TPU111]"]
    forced = tpucfg(tmp_path, "submit", "--size", "v2-8", "--force")
    assert (forced.status, forced.findings) == (0, ["warning[TPU105]"])
    assert (
        "# fit:    does not fit: at least 9 of 7.48 GiB of HBM a device, as committed in results/fit.json\n"
        in forced.out
    )


def test_submit_without_the_gate_warns(tmp_path: Path) -> None:
    """Without `gate.fit`, a step that does not fit is a warning, and each job's fit is printed with its commands."""
    write_spec(tmp_path, LADDER, {"v2-8": 9})
    submitted = tpucfg(tmp_path, "submit")
    assert (submitted.status, submitted.findings) == (0, ["warning[TPU105]"])
    assert "# fit:    not known: never compiled\n" in submitted.out
    assert tpucfg(tmp_path, "submit", "--size", "v2-32").findings == []


def test_a_run_has_the_fit_of_its_rung(tmp_path: Path) -> None:
    """Another output folder makes no other program."""
    write_spec(
        tmp_path,
        spec(trainer__fit=STEP, trainer__args={"out": "${job_dir}"}, gate={"fit": True}),
        {"v2-8": 3},
    )
    assert tpucfg(tmp_path, "submit", "--size", "v2-8", "--run", "a2").status == 0


def test_the_results_are_beside_the_spec(tmp_path: Path) -> None:
    """The results of a spec in another folder are in that folder, and commands name the spec."""
    write_spec(tmp_path / "chat", GATED, {"v2-8": 3})
    assert tpucfg(tmp_path, "submit", "--spec", "chat/tpucfg.yaml", "--size", "v2-8").status == 0
    refused = tpucfg(tmp_path, "submit", "--spec", "chat/tpucfg.yaml", "--size", "v2-32")
    assert "tpucfg fit --spec chat/tpucfg.yaml --env dev --size v2-32; or" in refused.err


def test_two_specs_share_a_folder(tmp_path: Path) -> None:
    """Each spec reads the results of its own name, and an error in the file they share is reported once."""
    write_spec(tmp_path, LADDER, {"v2-8": 3, "v2-32": 3})
    (tmp_path / "other.yaml").write_text(json.dumps({**LADDER, "name": "other"}))
    specs = ("--spec", "tpucfg.yaml", "--spec", "other.yaml")
    assert tpucfg(tmp_path, "check", *specs).findings == ["note[TPU107]"]
    (tmp_path / "results" / "fit.json").write_text("{")
    assert tpucfg(tmp_path, "check", *specs).findings == ["error[TPU109]"]


def test_a_record_beyond_the_bound_is_kept(tmp_path: Path) -> None:
    """A throughput above batch and least step time is a warning of `record`, `status` and `check`; it is recorded."""
    write_spec(tmp_path, spec(sizes=["v2-8"], trainer__fit=STEP), {"v2-8": 3})
    recorded = tpucfg(tmp_path, "record", "--size", "v2-8", "--metric", "examples_per_second=1025")
    assert (recorded.status, recorded.findings) == (0, ["warning[TPU108]"])
    assert "1,025 examples/s is a step of 999 ms, and the least is 1 s" in recorded.err
    assert status_data(tmp_path)[0]["recorded"]
    assert "the record of v2-8 is faster than the TPU can be" in tpucfg(tmp_path, "status").out
    assert tpucfg(tmp_path, "check").findings == ["warning[TPU108]"]


@pytest.mark.parametrize(
    ("throughput", "changes"),
    [
        (1024, {}),
        (5000, {"allow": {"TPU108": "the catalog's peak is too low"}}),
        (5000, {"training__batch_size": 2048}),
    ],
    ids=["at the bound", "allowed", "another config"],
)
def test_other_records_are_no_warning(
    tmp_path: Path, throughput: int, changes: dict[str, Any]
) -> None:
    """A record at the bound is possible, one of another config is not comparable, and a spec can allow the finding."""
    base: dict[str, Any] = {"sizes": ["v2-8"], "trainer__fit": STEP}
    write_spec(tmp_path, spec(**base), {"v2-8": 3})
    tpucfg(tmp_path, "record", "--size", "v2-8", "--metric", f"examples_per_second={throughput}")
    write_spec(tmp_path, spec(**base, **changes), {"v2-8": 3})
    assert "warning[TPU108]" not in tpucfg(tmp_path, "check").findings
    assert "faster than the TPU" not in tpucfg(tmp_path, "status").out


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


HOSTILE: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda path: path.write_text("<<<<<<< HEAD"),
    "no text": lambda path: path.write_bytes(b"\xff\x00\xfe"),
    "another type": lambda path: path.write_text('["\\u001b[31m"]'),
    "too deep": lambda path: path.write_text("[" * 200_000),
    "too large": lambda path: path.write_text(" " * (MAX_FILE_BYTES + 1)),
    "a huge number": lambda path: path.write_text('{"version": 1' + "0" * 5000 + "}"),
    "a link": _link,
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a key twice": lambda path: path.write_text('{"version": 1, "version": 1, "results": []}'),
    "an unknown key": lambda path: path.write_text('{"version": 1, "results": [], "a": 1}'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_no_command_early(tmp_path: Path, name: str) -> None:
    """Every command reports the file, and goes on where it can: no traceback, no wait, and no control character."""
    write_spec(tmp_path, LADDER)
    HOSTILE[name](tmp_path / "results" / "fit.json")
    for command in COMMANDS:
        result = tpucfg(tmp_path, *command)
        level, status = (
            ("error", 1) if command[0] in ("check", "ladder", "status") else ("warning", 0)
        )
        assert result.status == status, command
        if command[0] != "record":
            assert set(result.findings) == {f"{level}[TPU109]"}, command
        assert "\x1b" not in result.out + result.err


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_closes_the_gate(tmp_path: Path, name: str) -> None:
    """With `gate.fit`, no rung starts on a file that cannot be read."""
    write_spec(tmp_path, GATED)
    HOSTILE[name](tmp_path / "results" / "fit.json")
    refused = tpucfg(tmp_path, "submit")
    assert (refused.status, refused.out) == (1, "")
    assert refused.findings[:2] == ["error[TPU111]", "error[TPU111]"]
    assert "results/fit.json cannot be read" in refused.err


def test_names_of_a_written_file_reach_no_terminal(tmp_path: Path) -> None:
    """Control characters and long names of a result are escaped and cut, on stdout and stderr of every command."""
    path = write_spec(tmp_path, GATED, {"v2-8": 3, "v2-32": 3}).parent / "results" / "fit.json"
    data = json.loads(path.read_text())
    data["results"][0]["flags"]["\x1b[31m\nrm -rf ~"] = "1"
    data["results"][1]["flags"]["x" * 10_000] = "1"
    path.write_text(json.dumps(data))
    for command in (*COMMANDS, ("submit", "--force"), ("ladder", "--format", "svg")):
        text = "".join(tpucfg(tmp_path, *command)[1:])
        assert "\x1b" not in text
        assert "\nrm -rf" not in text
        assert "x" * 100 not in text
    assert r"before a change of --\u001b[31m\u000arm -rf ~" in tpucfg(tmp_path, "submit").err


def test_a_linked_folder_is_not_followed(tmp_path: Path) -> None:
    """Like records, fits are not read through a link."""
    write_spec(tmp_path, GATED, {"v2-8": 3, "v2-32": 3})
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    (tmp_path / "results").symlink_to("elsewhere")
    message = "results/fit.json:1:1: error[TPU109]: fit.json: it or its folder is a symbolic link"
    assert message in tpucfg(tmp_path, "check").out
    assert tpucfg(tmp_path, "submit").out == ""


def test_a_rung_with_two_results_has_none(tmp_path: Path) -> None:
    """Of two results of one rung, such as after a merge, neither counts."""
    path = write_spec(tmp_path, GATED, {"v2-8": 3, "v2-32": 3}).parent / "results" / "fit.json"
    data = json.loads(path.read_text())
    data["results"] += data["results"][:1]
    path.write_text(json.dumps(data))
    assert "a rung has two results" in tpucfg(tmp_path, "check").out
    assert tpucfg(tmp_path, "submit").out == ""
