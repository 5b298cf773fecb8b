"""Measure, and print or write a page of Markdown: `make bench`, `make bench-write`."""

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import cold_start, environments, peers, throughput

RESULTS: Final = Path(__file__).with_name("RESULTS.md")
FUZZ: Final = "## Fuzzing"
"""The heading of what the fuzzer found; a test holds that it writes the same."""
_PACKAGES: Final = ("tpucfg", "typer", "jinja2", "jsonschema", "jsonschema-rs", "pyyaml", "check-jsonschema")

_PAGE: Final = """\
# Benchmarks

Taken on {day} by `make bench-write`. Times depend on the machine; compare the ratios.

- machine: {machine}
- versions: {versions}

## Cold start

Complete processes on the example project: the fastest of {rounds} runs of each command, run alternately.

{starts}

## Many specs in one command

`tpucfg render --out DIR --spec A --spec B …` on files in memory (tmpfs): every spec is read and checked, and configs of
{sizes} sizes each are rendered, read again, compared and written. Start-up is included. A core second is one
second of CPU time on one core; memory is that of the largest process. The cheapest of {many_rounds} runs.

{many}

## Comparison with other tools

The same configs for Vertex AI from one list of variants with precalculated figures: by a script that uses
jinja2, PyYAML and jsonschema (`benchmarks/peers/script`), and by the other tools on the PATH. tpucfg reads one spec per
{sizes} configs and calculates the figures itself. Files in memory; the fastest of {peer_rounds}
runs, including start-up.

{beside}
"""


def main() -> None:
    """Prints the page; the goals that were missed go to stderr."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure tpucfg.")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name} too")
    parser.add_argument("--rounds", type=int, default=40, metavar="N", help="runs of each command (default: 40)")
    options = parser.parse_args()
    tpucfg, check_jsonschema = environments.tpucfg(), environments.check_jsonschema()
    starts = cold_start.measure(tpucfg, check_jsonschema, options.rounds)
    many_rounds = max(3, options.rounds // 5)
    many = throughput.measure(tpucfg, many_rounds)
    peer_rounds = max(3, options.rounds // 8)
    beside = peers.measure(tpucfg, peer_rounds)
    page = _PAGE.format(
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=f"{_processor()}, {os.cpu_count()} cores, {_memory_gb():.0f} GB of memory, {platform.system()}",
        versions=_versions((tpucfg, check_jsonschema)),
        rounds=options.rounds,
        many_rounds=many_rounds,
        sizes=len(throughput.SIZES),
        starts="\n".join(cold_start.report(starts)),
        many="\n".join(throughput.report(many)),
        peer_rounds=peer_rounds,
        beside="\n".join(peers.report(beside)),
    )
    print(page, end="")
    if options.write:
        RESULTS.write_text(page + _of_others(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")
    missed = [f"{goal.command} against {goal.than}" for goal in cold_start.missed(starts)]
    missed += throughput.missed(many) + peers.missed(beside)
    if missed:
        print(f"missed: {'; '.join(missed)}", file=sys.stderr)


def _of_others(page: str) -> str:
    """What stands at the page's end and is measured by others: `make fuzz-write` puts it there."""
    start = page.find(FUZZ)
    return f"\n{page[start:]}" if start >= 0 else ""


def _processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _versions(programs: tuple[Path, ...]) -> str:
    """Python's version and those of the packages that matter, as one line."""
    found: dict[str, str] = {}
    for folder in programs:
        command = [str(folder / "pip"), "list", "--format", "json", "--disable-pip-version-check"]
        listed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        found |= {package["name"].lower().replace("_", "-"): package["version"] for package in listed}
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {found[name]}" for name in _PACKAGES)])


if __name__ == "__main__":
    main()
