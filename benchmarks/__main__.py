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

from benchmarks import cold_start, environments, fit, large_repositories, peers, throughput

RESULTS: Final = Path(__file__).with_name("RESULTS.md")
_PACKAGES: Final = (
    "tpucfg",
    "typer",
    "jinja2",
    "jsonschema",
    "jsonschema-rs",
    "pyyaml",
    "check-jsonschema",
)

_PAGE: Final = """\
# Benchmarks

Taken on {day} by `make bench-write`. Times depend on the machine; compare the ratios.

- machine: {machine}
- versions: {versions}

## Cold start

Complete processes on the example project: the fastest of {rounds} runs of each command, run alternately.

{starts}

## Many specs in one command

`tpucfg render --out DIR --spec A --spec B …` on files in memory (tmpfs): every spec is checked, and its configs for
{sizes} sizes are rendered, verified and written, including start-up. Core seconds are the processor time of all
processes; memory is that of the largest process. The cheapest of {many_rounds} runs.

{many}

## Large repositories

Two trees of {configs:,} configs of which 1% differ; the same configs checked as hand-written ones; and a change of all
{reviewed} configs of one spec, without Pulumi's packages. Files in memory; the fastest of {many_rounds} runs, including
start-up.

{large}

## Comparison with other tools

Equal configs for Vertex AI from one list of variants with precomputed values: by a script with jinja2, PyYAML and
jsonschema (`benchmarks/peers/script`), and by the tools on the PATH. tpucfg reads one spec per {sizes} configs and
computes the values itself. Files in memory; the fastest of {peer_rounds} runs, including start-up.

{comparison}
"""


def main() -> None:
    """Measure and print the page; print missed goals to stderr."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure tpucfg.")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name} too")
    parser.add_argument(
        "--rounds", type=int, default=40, metavar="N", help="runs of each command (default: 40)"
    )
    options = parser.parse_args()
    tpucfg, check_jsonschema = environments.tpucfg(), environments.check_jsonschema()
    starts = cold_start.measure(tpucfg, check_jsonschema, options.rounds)
    many_rounds = max(3, options.rounds // 5)
    many = throughput.measure(tpucfg, many_rounds)
    large = large_repositories.measure(tpucfg, many_rounds)
    peer_rounds = max(3, options.rounds // 8)
    comparison = peers.measure(tpucfg, peer_rounds)
    page = _PAGE.format(
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=f"{_processor()}, {os.cpu_count()} cores, {_memory_gb():.0f} GB of memory, {platform.system()}",
        versions=_versions((tpucfg, check_jsonschema)),
        rounds=options.rounds,
        many_rounds=many_rounds,
        sizes=len(throughput.SIZES),
        starts="\n".join(cold_start.report(starts)),
        many="\n".join(throughput.report(many)),
        configs=large_repositories.CONFIGS,
        reviewed=large_repositories.REVIEWED_CONFIGS,
        large="\n".join(large_repositories.report(large)),
        peer_rounds=peer_rounds,
        comparison="\n".join(peers.report(comparison)),
    )
    print(page, end="")
    if options.write:
        RESULTS.write_text(
            page + kept_sections(RESULTS.read_text(encoding="utf-8")), encoding="utf-8"
        )
    missed = [f"{goal.command} against {goal.reference}" for goal in cold_start.missed(starts)]
    missed += throughput.missed(many) + large_repositories.missed(large) + peers.missed(comparison)
    if missed:
        print(f"missed: {'; '.join(missed)}", file=sys.stderr)


def kept_sections(page: str) -> str:
    """Return the sections at the page's end, which `python -m benchmarks.fit --write` and `make fuzz-write` write."""
    starts = [start for start in (page.find(fit.HEADING), page.find(fit.FUZZ)) if start >= 0]
    return f"\n{page[min(starts) :]}" if starts else ""


def _processor() -> str:
    """Return the processor's name, if the system provides it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _versions(programs: tuple[Path, ...]) -> str:
    """Return the versions of Python and of the relevant packages, on one line."""
    versions: dict[str, str] = {}
    for folder in programs:
        command = [str(folder / "pip"), "list", "--format", "json", "--disable-pip-version-check"]
        packages = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        versions |= {
            package["name"].lower().replace("_", "-"): package["version"] for package in packages
        }
    return ", ".join(
        [f"Python {platform.python_version()}", *(f"{name} {versions[name]}" for name in _PACKAGES)]
    )


if __name__ == "__main__":
    main()
