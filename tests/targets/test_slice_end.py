"""The decisions of the watchdog that take longer than a machine of tests/machine runs, by a real bash with stubs."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from outcomes import RUNS

from jobs import job
from script_host import watchdog_of
from tpucfg.targets import cloud_tpu

ROOT = Path(__file__).resolve().parents[2]


def functions(size: str = "v2-32", slices: int = 1) -> str:
    """Return the functions of a watchdog that deletes its slice."""
    planned = job("cloud-tpu", size, trainer={"max_run_duration": "12h"})
    slice_ = planned.slice._replace(slices=slices)
    script = cloud_tpu.startup_script(planned._replace(rung=planned.rung._replace(slice=slice_)))
    return watchdog_of(script).partition("\n{ read -r failures")[0].replace("cd /var/lib", ": ")


def bash(*lines: str, **options: Any) -> list[str]:
    """Run functions of the watchdog and then these lines, and return what they print."""
    text = "\n".join((functions(**options), *lines))
    return subprocess.run(
        ["/bin/bash"], input=text, capture_output=True, text=True, check=True, timeout=30
    ).stdout.splitlines()


YES = r'{"permissions": ["tpu.nodes.delete"]}\n200'
NO = r"{}\n200"
SILENT = r"\n000"
REASON = "may not delete the slice: it needs the permission tpu.nodes.delete in the project"


@pytest.mark.parametrize(
    ("answers", "asked", "refused", "waited"),
    [
        ([YES], 1, 0, []),
        ([NO, NO, YES], 3, 2, [30] * 2),
        ([NO] * 25 + [YES], 26, 25, [30] * 20 + [600] * 5),
        ([SILENT] * 30, 21, 0, [30] * 20),
        ([SILENT] * 5 + [NO, YES], 7, 1, [30] * 6),
    ],
)
def test_the_first_host_asks_for_ten_minutes_if_it_may_delete(
    answers: list[str], asked: int, refused: int, waited: list[int]
) -> None:
    """It asks every 30 seconds; a no that stays is repeated every ten minutes, and a missing answer is no no."""
    with_answers = "\n".join(answers)
    printed = bash(
        f"mapfile -t answers <<'END'\n{with_answers}\nEND",
        'calls=$(mktemp); request() { printf "${answers[$(wc --lines <"$calls")]}"; echo >>"$calls"; }',
        'sleep() { echo "sleep $1"; }; worker() { echo 0-0; }',
        'check_permission; echo "asked $(wc --lines <"$calls")"',
    )
    assert printed[-1] == f"asked {asked}"
    assert sum(REASON in line for line in printed) == refused
    assert [int(line.split()[1]) for line in printed if line.startswith("sleep")] == waited


def test_other_hosts_do_not_ask() -> None:
    """A host that is not the first one leaves the question to it."""
    assert bash("request() { echo asked; }; worker() { echo 0-1; }; check_permission") == []


@pytest.mark.parametrize(
    ("attributes", "slices", "worker"),
    [
        ({"agent-worker-number": "2"}, 1, ["0-2"]),
        ({"worker-id": "3"}, 1, ["0-3"]),
        ({"tpu-env": "ACCELERATOR_TYPE: 'v4-16'\nTPU_WORKER_ID: '1'"}, 1, ["0-1"]),
        ({"agent-worker-number": "0", "tpu-env": "MEGASCALE_SLICE_ID: '1'"}, 2, ["1-0"]),
        ({}, 1, []),
    ],
)
def test_a_host_knows_its_number_by_each_attribute(
    attributes: dict[str, str], slices: int, worker: list[str]
) -> None:
    """Whichever attribute of the metadata has the numbers of the slice and of the host in it, they are read."""
    cases = "".join(
        f'attributes/{name}) printf "%s\\n" "{text}" ;;\n' for name, text in attributes.items()
    )
    assert (
        bash(
            f"metadata() {{ case $1 in\n{cases}*) return 22 ;;\nesac; }}",
            "worker || true",
            slices=slices,
        )
        == worker
    )


def test_the_page_has_a_row_for_each_run_of_a_machine() -> None:
    """The table of outcomes and the runs of tests/machine name the same events; a row may have several."""
    page = (ROOT / "docs/targets/hosts.md").read_text(encoding="utf-8")
    table = page.split("### What happens")[1].partition("**Not covered**")[0]
    rows = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)[1:]
    assert sorted(event for row in rows for event in row.split("; ")) == sorted(RUNS)
