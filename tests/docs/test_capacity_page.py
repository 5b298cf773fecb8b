"""The page about capacity has every row of the table, and no other."""

from spec_factory import ROOT
from tpucfg.plan.rules.capacity_table import (
    CAPACITY_TABLE,
    FLEX_START_SECONDS,
    FLEX_START_ZONES,
    CapacityRow,
)

PAGE = (ROOT / "docs" / "capacity.md").read_text(encoding="utf-8")
HOSTS = {"any": "", "one": " of one host", "several": " of several hosts"}
LEVELS = {"allowed": "", "warning": "warning: ", "error": "**error**: "}


def line(row: CapacityRow) -> str:
    """Return the row as the page shows it."""
    sizes = f"{', '.join(row.generations) or 'all'}{HOSTS[row.hosts]}"
    pages = ", ".join(f"[{number}]({url})" for number, url in enumerate(row.sources, 1))
    return f"| `{row.target}` | {row.kind} | {sizes} | {LEVELS[row.level]}{row.text} | {pages} |"


def test_the_page_has_the_rows_in_their_order() -> None:
    """The order counts, because the first row that matches decides."""
    _, _, rest = PAGE.partition(
        "| target | capacity | sizes | config | sources |\n|---|---|---|---|---|\n"
    )
    rows, _, _ = rest.partition("\n\n")
    assert rows.splitlines() == [line(row) for row in CAPACITY_TABLE]


def test_the_page_has_the_zones_and_the_limits() -> None:
    """The numbers in its sentences are those of the rules."""
    assert [zone for zones in FLEX_START_ZONES.values() for zone in zones if zone not in PAGE] == []
    minutes, days = FLEX_START_SECONDS[0] // 60, FLEX_START_SECONDS[-1] // 86_400
    assert f"a duration from {minutes} minutes to {days} days" in PAGE
