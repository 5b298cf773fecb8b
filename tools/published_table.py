"""Generate the table of docs/fit.md from the published runs that were compiled again.

python tools/published_table.py            writes the page if it differs
python tools/published_table.py --check    writes nothing; exits 1 and prints its name
"""

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from generated_pages import OutdatedPages, outdated_pages, write_or_check

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "fit.md"
RUNS: Final = ROOT / "compiler" / "tpucfg" / "fit" / "published.yaml"
START: Final = "<!-- published runs -->\n\n"
END: Final = "<!-- /published runs -->\n"
_PARTS: Final = {
    "products": ("products",), "kernels": ("kernels",), "fusions": ("fusions", "copies"), "waiting": ("communication",),
}  # fmt: skip
_RUN_COLUMNS: Final = ("run", "published", "model", "error", *_PARTS, "seen")
_ERROR_COLUMNS: Final = ("runs not seen", "number", "median error", "worst error")


def page() -> str:
    """Return the page with its tables."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    rows = list(yaml.safe_load(RUNS.read_text(encoding="utf-8"))["rows"].values())
    lines = [*_table(_RUN_COLUMNS, map(_run, rows)), "", *_table(_ERROR_COLUMNS, errors(rows))]
    return before + START + "".join(f"{line}\n" for line in lines) + "\n" + END + after


def _run(row: Mapping[str, Any]) -> list[str]:
    parts = [sum(row["parts"].get(name, 0) for name in names) for names in _PARTS.values()]
    times = [f"{seconds:.2f}" for seconds in (row["step_seconds"], row["forecast_seconds"], *parts)]
    seen = "yes" if row["used_for_constants"] else "no"
    offload = ", offloads to hosts" if row["host_offload"] else ""
    return [
        f"{row['title']}, {row['size']}{offload}",
        *times[:2],
        _percent(_error(row)),
        *times[2:],
        seen,
    ]


def errors(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the errors of the runs by which nothing was chosen: of all, and of each generation."""
    proving = [row for row in rows if not row["used_for_constants"] and not row["host_offload"]]
    for name in ("all", *dict.fromkeys(row["generation"] for row in proving)):
        unused = [_error(row) for row in proving if name in ("all", row["generation"])]
        median = statistics.median(map(abs, unused))
        yield [name, str(len(unused)), f"{median:.0%}", _percent(max(unused, key=abs))]


def _error(row: Mapping[str, Any]) -> float:
    return float(row["forecast_seconds"] / row["step_seconds"] - 1)


def _percent(share: float) -> str:
    return f"{share:+.0%}".replace("-", "−")


def _table(columns: Sequence[str], rows: Any) -> Iterator[str]:
    yield _line(columns)
    yield "|---|" + "--:|" * (len(columns) - 1)
    yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def differing() -> OutdatedPages:
    """Yield the page with its expected text if it is outdated."""
    return outdated_pages({PAGE: page()})


def main(arguments: list[str] | None = None) -> int:
    """Write or check the page; return the exit status."""
    return write_or_check(
        "Generate the table of published runs from their data.", differing, ROOT, arguments
    )


if __name__ == "__main__":
    sys.exit(main())
