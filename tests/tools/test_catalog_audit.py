"""`tools/catalog_audit.py` on the catalog and on wrong copies of it, with the compiler and with recorded answers."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import catalog_audit
import pytest

from tpucfg.catalog.catalog import DATA

SCRIPT = Path(catalog_audit.__file__)
RECORDED = Path(__file__).with_name("topology_answers.jsonl")
"""The versions, questions and answers of `tools/topology_answers.py` about v3 and v5e."""
GENERATIONS = ("v3", "v5e")

STAND_IN = """#!{python}
import json, os, sys
versions, *lines = open({recorded!r}).read().splitlines()
answers = {{json.dumps(line["question"], sort_keys=True): line["answer"] for line in map(json.loads, lines)}}
print(versions)
questions = json.load(sys.stdin)
print(json.dumps(questions), file=open({asked!r}, "a"))
for question in questions:
    if question["name"] == {crash!r}:
        sys.stdout.flush()
        os.abort()
    print(json.dumps(answers.get(json.dumps(question, sort_keys=True), {{"error": "INVALID_ARGUMENT: no\\nTrace:"}})))
"""


class Row(NamedTuple):
    """A wrong edit of the data, and the part of the message that names it."""

    file: str
    right: str
    wrong: str
    key: str
    """The start of the line that the message points at."""
    messages: tuple[str, ...]


PLANTED = {
    "chips": Row(
        "v5e", "{chips: 16, topology: 4x4}", "{chips: 32, topology: 4x4}", "  v5litepod-16:",
        ("v5litepod-16 as 4x4 on ct5lp-hightpu-4t: devices 32 in the catalog, 16 in the compiler", ": hosts 8 in the "),
    ),
    "topology": Row(
        "v5e", "{chips: 16, topology: 4x4}", "{chips: 16, topology: 4x8}", "  v5litepod-16:",
        ("v5litepod-16 as 4x8 on ct5lp-hightpu-4t: devices 16 in the catalog, 32 in the compiler", ": hosts 4 in the "),
    ),
    "hosts": Row(
        "v5e", "{chips: 16, topology: 4x4}", "{chips: 16, topology: 4x4, machines: [ct5lp-hightpu-8t]}",
        "  v5litepod-16:",
        ("v5litepod-16 as 4x4 on ct5lp-hightpu-8t: hosts 2 in the catalog, 4 in the compiler",),
    ),
    "another machine": Row(
        "v5e", "machines: [ct5lp-hightpu-8t, ct5lp-hightpu-4t]", "machines: [ct5lp-hightpu-8t, ct5lp-hightpu-1t]",
        "  v5litepod-8:",
        ("v5litepod-8 as 2x4 on ct5lp-hightpu-1t: hosts 8 in the catalog, 2 in the compiler",),
    ),
    "another topology": Row(
        "v5e", "{chips: 16, topology: 4x4}", "{chips: 16, topology: 4x4, topologies: [8x8]}", "  v5litepod-16:",
        ("v5litepod-16 as 8x8 on ct5lp-hightpu-4t: devices 16 in the catalog, 64 in the compiler", ": hosts 4 in the "),
    ),
    "hosts that do not fit": Row(
        "v5e", "{chips: 16, topology: 4x4}", "{chips: 16, topology: 1x16}", "  v5litepod-16:",
        ("v5litepod-16 as 1x16 on ct5lp-hightpu-4t: a topology of 1x16 cannot be divided into hosts of 2x2x1 chips",),
    ),
    "HBM": Row(
        "v5e", "hbm_gib_per_chip: 16", "hbm_gib_per_chip: 32", "hbm_gib_per_chip:",
        ("TPU v5e: 32 GiB HBM a device, but the compiler grants 15.75 GiB, which is outside 93% to 101% of it",),
    ),
    "devices": Row(
        "v3", "devices_per_chip: 2", "devices_per_chip: 1", "  v3-32:",
        ("v3-32 as 4x4 on ct3p-hightpu-4t: the compiler refuses v3:4x4: ",),
    ),
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a copy of the catalog with two generations."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in (*GENERATIONS, "sources"):
        shutil.copy(DATA / f"{name}.yaml", folder)
    lines = (DATA / "index.yaml").read_text().splitlines(keepends=True)
    (folder / "index.yaml").write_text(
        "".join(line for line in lines if line.partition(":")[0] in GENERATIONS)
    )
    return folder


def stand_in(folder: Path, crash: str = "") -> str:
    """Return a program that gives the recorded answers, ends without one at the question with a name, and logs them."""
    program = folder / "python"
    values = {
        "python": sys.executable,
        "recorded": str(RECORDED),
        "asked": str(folder / "asked"),
        "crash": crash,
    }
    program.write_text(STAND_IN.format(**values))
    program.chmod(0o755)
    return str(program)


def audit(data: Path, python: str) -> tuple[int, list[str], str]:
    """Run the script on a catalog, and return its status, its lines and its messages."""
    command = [sys.executable, str(SCRIPT), "--data", str(data), "--python", python]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return process.returncode, process.stdout.splitlines(), process.stderr


def plant(data: Path, row: Row) -> str:
    """Write a wrong row, and return the location of its line."""
    path = data / f"{row.file}.yaml"
    text = path.read_text()
    assert text.count(row.right) == 1
    path.write_text(text.replace(row.right, row.wrong))
    number = next(
        n for n, line in enumerate(path.read_text().splitlines(), 1) if line.startswith(row.key)
    )
    return f"{path}:{number}: "


@pytest.mark.slow
@pytest.mark.parametrize("row", PLANTED.values(), ids=PLANTED)
def test_a_wrong_row_is_reported_by_file_and_line(data: Path, row: Row, tmp_path: Path) -> None:
    """With recorded answers, each wrong row fails, and the line names the file, the line, and both figures."""
    location = plant(data, row)
    status, lines, _ = audit(data, stand_in(tmp_path))
    problems = [line for line in lines if line.startswith(location)]
    assert status == 1
    assert len(problems) == len(row.messages), lines
    for problem, message in zip(problems, row.messages, strict=True):
        assert message in problem


def test_the_catalog_agrees_with_the_compiler(
    tpu_python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each size has the devices, the hosts, the topology and the HBM that the compiler knows."""
    assert catalog_audit.main(["--python", tpu_python]) == 0, capsys.readouterr().out


def test_a_right_catalog_has_no_disagreement(data: Path, tmp_path: Path) -> None:
    """The summary has the sizes, the versions, the sizes with a host of their own, and the HBM of each generation."""
    assert audit(data, stand_in(tmp_path)) == (0, [
        "no disagreement: 16 sizes, 17 shapes of them on their machines, compared with jax 0.10.2 and libtpu 0.0.42.1",
        "one host of other than 4 chips, which the compiler had to be given: v5litepod-1, v5litepod-8",
        "TPU v3: 16 GiB HBM a device, of which the compiler grants 15.48 GiB",
        "TPU v5e: 16 GiB HBM a device, of which the compiler grants 15.75 GiB",
    ], "")  # fmt: skip


def test_the_recording_is_what_the_compiler_answers(tpu_python: str) -> None:
    """The installed compiler gives the recorded answers, also to the wrong rows, HBM within a hundredth of a GiB."""
    recorded = [json.loads(line) for line in RECORDED.read_text().splitlines()[1:]]
    cases = [catalog_audit.Case("", "", line["question"], line["answer"], 1) for line in recorded]
    answers = catalog_audit.ask(tpu_python, cases).answers
    for expected, answer in zip((case.expected for case in cases), answers, strict=True):
        if "hbm" in expected:
            assert catalog_audit.hbm_limit(answer) == pytest.approx(
                catalog_audit.hbm_limit(expected), abs=0.02
            )
        else:
            assert answer == expected


def test_a_crash_is_a_disagreement_and_the_rest_is_asked(data: Path, tmp_path: Path) -> None:
    """If the compiler ends at a question, that row is reported, and all others are compared by a new process."""
    plant(data, PLANTED["HBM"])
    status, lines, _ = audit(data, stand_in(tmp_path, crash="v5e:4x4"))
    problems = [line for line in lines if line.startswith(str(data))]
    assert (status, len(problems)) == (1, 2)
    assert problems[1].endswith(
        ": the compiler refuses v5e:4x4: the compiler crashed, or did not answer in time"
    )


@pytest.mark.slow
def test_a_compiler_that_hangs_is_ended(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time limit, the question counts as unanswered, and the rest is asked of a new process."""
    monkeypatch.setattr(catalog_audit, "TIMEOUT_SECONDS", 5)
    program = Path(stand_in(tmp_path, crash="v5e:8x8"))
    program.write_text(program.read_text().replace("os.abort()", "import time; time.sleep(60)"))
    cases = catalog_audit.audit_of(data).cases
    answers = catalog_audit.ask(str(program), cases).answers
    unanswered = [
        case.question["name"]
        for case, answer in zip(cases, answers, strict=True)
        if "error" in answer
    ]
    assert unanswered == ["v5e:8x8"]


def test_a_process_describes_few_devices_and_no_question_is_asked_twice(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes are as many as the limit of devices needs, and a size that exceeds it alone has its own process."""
    monkeypatch.setattr(catalog_audit, "MAX_DEVICES", 300)
    cases = catalog_audit.audit_of(data).cases
    catalog_audit.ask(stand_in(tmp_path), cases)
    devices = {catalog_audit.question_key(case.question): case.devices for case in cases}
    batches = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    keys = [[catalog_audit.question_key(question) for question in batch] for batch in batches]
    sums = [sum(devices[key] for key in batch) for batch in keys]
    assert len(batches) > 5
    assert all(total <= 300 or len(batch) == 1 for total, batch in zip(sums, batches, strict=True))
    assert sorted(key for batch in keys for key in batch) == sorted(devices)


def test_the_page_has_the_figures_of_the_catalog() -> None:
    """The summary on the catalog's page has the sizes and shapes that the audit compares."""
    page = (Path(__file__).parents[2] / "docs/catalog.md").read_text()
    audit_of_data = catalog_audit.audit_of(DATA)
    cases = [case for case in audit_of_data.cases if "hbm" not in case.expected]
    sizes = {case.subject.partition(" as ")[0] for case in cases}
    assert (
        f"no disagreement: {len(sizes)} sizes, {len(cases)} shapes of them on their machines"
        in page
    )
    assert f"had to be given: {', '.join(audit_of_data.own_host)}\n" in page
    assert f"no source states their topology: {len(audit_of_data.shapeless)} sizes" in page
    assert audit_of_data.disagreements == ()


def test_a_refused_shape_has_the_first_line_of_the_reason(data: Path, tmp_path: Path) -> None:
    """A shape that the compiler does not know is reported with its message, without the trace."""
    row = Row(
        "v5e", "{chips: 16, topology: 4x4}", "{chips: 16, topology: 6x6}", "  v5litepod-16:", ()
    )
    location = plant(data, row)
    _, lines, _ = audit(data, stand_in(tmp_path))
    assert (
        f"{location}v5litepod-16 as 6x6 on ct5lp-hightpu-4t: the compiler refuses v5e:6x6: INVALID_ARGUMENT: no"
        in lines
    )


@pytest.mark.parametrize("python", ["/nowhere/python", sys.executable])
def test_a_python_without_the_compiler_has_the_command(
    data: Path, python: str, tmp_path: Path
) -> None:
    """A missing Python, and one without JAX, end with the command that installs it."""
    if python == sys.executable:
        python = str(tmp_path / "python")
        Path(python).write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
        Path(python).chmod(0o755)
    status, lines, messages = audit(data, python)
    assert (status, lines) == (1, [])
    assert messages.startswith(python)
    assert messages.endswith("help: make tpu-compiler\n")


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        (
            "E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total (250.49G) exceeds available HBM (15.75G)",
            15.75,
        ),
        (
            "Ran out of memory in memory space hbm. Used 4.00T of 95.74G hbm. Exceeded hbm capacity by 3.91T.",
            95.74,
        ),
        ("INTERNAL: something else", None),
    ],
)
def test_the_limit_is_read_from_both_wordings(message: str, limit: float | None) -> None:
    """Newer and older versions of libtpu state the limit in different words."""
    assert catalog_audit.hbm_limit({"hbm": message}) == limit
