"""Results of a run as Markdown; `benchmarks/RESULTS.md` contains those of the last long run."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from fuzz.corpus import ROOT
from fuzz.shell import MAX_SECONDS
from fuzz.tally import Tally

HEADING: Final = "## Fuzzing"
RESULTS: Final = ROOT / "benchmarks" / "RESULTS.md"
_PACKAGES: Final = ("tpucfg", "typer", "jinja2", "jsonschema", "jsonschema-rs", "pyyaml")


def write(section: str) -> None:
    """Replace the section at the end of the results."""
    text = RESULTS.read_text(encoding="utf-8")
    before = text.partition(HEADING)[0].rstrip("\n")
    RESULTS.write_text(f"{before}\n\n{section}\n", encoding="utf-8")


def page(tally: Tally, seed: int, seconds: float) -> str:
    """Return the section."""
    inputs = ", ".join(
        f"{count:,} {kind}"
        for kind, count in sorted(tally.inputs.items(), key=lambda entry: -entry[1])
    )
    statuses = ", ".join(
        f"{count:,} with {status}" for status, count in sorted(tally.statuses.items())
    )
    return "\n".join(
        [
            HEADING,
            "",
            f"Taken on {datetime.now(UTC):%Y-%m-%d} by `make fuzz`, seed {seed}, in {seconds / 60:.0f} minutes.",
            "",
            f"- machine: {_processor()}, {os.cpu_count()} cores, {platform.system()}",
            f"- versions: {', '.join([f'Python {platform.python_version()}', *_versions()])}",
            "",
            "| | |",
            "|---|---:|",
            f"| inputs | {tally.inputs.total():,} |",
            f"| commands run on them | {tally.commands:,} |",
            f"| failures: an exception, a hang, an error without location and id | {len(tally.failures)} |",
            f"| slowest command, seconds (bound: {MAX_SECONDS:.0f}) | {tally.slowest:.2f} |",
            f"| peak memory of a process, MB (bound: 200) | {tally.peak:.0f} |",
            f"| findings | {tally.ids.total():,} |",
            "",
            f"Inputs by kind: {inputs}. Exit statuses: {statuses}.",
            "",
            "Findings by id: "
            + ", ".join(f"{id_} {count:,}" for id_, count in sorted(tally.ids.items()))
            + ".",
        ]
    )


def _processor() -> str:
    """Return the processor's name, if the system provides it."""
    cpuinfo = Path("/proc/cpuinfo")
    rows = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    return next(
        (row.partition(": ")[2] for row in rows if row.startswith("model name")), platform.machine()
    )


def _versions() -> list[str]:
    return [f"{package} {version(package)}" for package in _PACKAGES]
