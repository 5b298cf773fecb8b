"""What came of a run, as Markdown: `benchmarks/RESULTS.md` holds that of the last long one."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from fuzz.corpus import ROOT
from fuzz.running import Tally
from fuzz.trying import SLOWEST

HEADING: Final = "## Fuzzing"
RESULTS: Final = ROOT / "benchmarks" / "RESULTS.md"
_PACKAGES: Final = ("tpucfg", "typer", "jinja2", "jsonschema", "jsonschema-rs", "pyyaml")


def write(section: str) -> None:
    """Puts the section at the end of the results, in the place of the last one."""
    text = RESULTS.read_text(encoding="utf-8")
    before = text.partition(HEADING)[0].rstrip("\n")
    RESULTS.write_text(f"{before}\n\n{section}\n", encoding="utf-8")


def page(tally: Tally, seed: int, seconds: float) -> str:
    """A section."""
    inputs = ", ".join(f"{count:,} {kind}" for kind, count in sorted(tally.inputs.items(), key=lambda it: -it[1]))
    ends = ", ".join(f"{status} for {count:,}" for status, count in sorted(tally.statuses.items()))
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
            f"| failed: an exception, a timeout, a refusal without location or id | {len(tally.failures)} |",
            f"| slowest command, seconds (bound: {SLOWEST:.0f}) | {tally.slowest:.2f} |",
            f"| peak memory of a process, MB (bound: 200) | {tally.peak:.0f} |",
            f"| findings reported | {tally.ids.total():,} |",
            "",
            f"Inputs by kind: {inputs}. Exit statuses: {ends}.",
            "",
            "Findings by id: " + ", ".join(f"{id_} {count:,}" for id_, count in sorted(tally.ids.items())) + ".",
        ]
    )


def _processor() -> str:
    """Its name, where the system tells it."""
    told = Path("/proc/cpuinfo")
    rows = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    return next((row.partition(": ")[2] for row in rows if row.startswith("model name")), platform.machine())


def _versions() -> list[str]:
    return [f"{package} {version(package)}" for package in _PACKAGES]
