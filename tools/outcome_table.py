"""Generate the tables of docs/targets/tested.md from the outcomes that the tests of clusters compare.

python tools/outcome_table.py            writes the page if it differs
python tools/outcome_table.py --check    writes nothing; exits 1 and prints its name
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from generated_pages import OutdatedPages, outdated_pages, write_or_check

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "targets" / "tested.md"
TABLE: Final = ROOT / "tests" / "cluster" / "outcomes.yaml"
START: Final = "<!-- outcomes -->\n\n"
END: Final = "<!-- /outcomes -->\n"
_PLACES: Final = ("job", "at first", "placed", "ends", "left")
_FAULTS: Final = ("fault", "settings", "at first", "restarts", "ends", "left", "jobs")


def page() -> str:
    """Return the page with its tables: jobs without a fault, and each fault with its outcomes and jobs."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    places = [
        [_job(row), *_first(row), _places(row), row["seen"]["end"], _left(row)]
        for row in rows
        if _is_calm(row)
    ]
    faults: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if not _is_calm(row):
            faults.setdefault(tuple(_fault(row)), []).append(_job(row))
    order = [fault for fault, *_ in faults]
    outcomes = [
        [*fault, "; ".join(faults[fault])]
        for fault in sorted(faults, key=lambda fault: order.index(fault[0]))
    ]
    return f"{before}{START}{_table(_PLACES, places)}\n{_table(_FAULTS, outcomes)}{END}{after}"


def _is_calm(row: Mapping[str, Any]) -> bool:
    return bool(row["fault"] == "none")


def _fault(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the cells of a fault's row but for the job."""
    seen = row["seen"]
    yield row["fault"]
    yield ", ".join(_settings(row.get("trainer", {}))) or "none"
    yield from _first(row)
    counted = f", {seen['counted']} counted" if seen["restarts"] else ""
    yield f"{seen['restarts']}{counted}"
    last = seen.get("last attempt")
    yield seen["end"] + (f"; the last attempt had {last}" if last else "")
    yield _left(row)


def _first(row: Mapping[str, Any]) -> Iterator[str]:
    meanwhile = row["seen"].get("meanwhile")
    yield row["seen"]["first"] + (f"; then {meanwhile}" if meanwhile else "")


def _left(row: Mapping[str, Any]) -> str:
    """Return what is left: of a completed job, all of its pods, whose number follows from the size."""
    left: str = row["seen"]["left"]
    is_complete = row["seen"]["end"] == "Completed" and left != "nothing"
    return "the JobSet and its pods" if is_complete else left


def _job(row: Mapping[str, Any]) -> str:
    """Return the size and the settings of a job; without a fault, those of its trainer too."""
    settings = {"capacity": row["capacity"]} if "capacity" in row else {}
    if "queue" in row:
        settings |= {"queue": "tpu"} | ({"topology_aware": True} if row["queue"] != "any" else {})
    settings |= {**row.get("overrides", {}), **row.get("gke", {})}
    return ", ".join(
        [
            row["size"],
            *_settings(settings),
            *(_settings(row.get("trainer", {})) if _is_calm(row) else ()),
        ]
    )


def _settings(settings: Mapping[str, Any]) -> Iterator[str]:
    return (
        f"`{name}: {_value(value)}`"
        for name, value in settings.items()
        if name != "node_service_account"
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(inner)}" for key, inner in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _places(row: Mapping[str, Any]) -> str:
    places = row["seen"].get("placed", ())
    counts = {place: list(places).count(place) for place in places}
    return (
        ", ".join(place if count == 1 else f"{count} × {place}" for place, count in counts.items())
        or "nowhere"
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    ruler = f"|{'---|' * len(columns)}"
    lines = (f"| {' | '.join(cells)} |" for cells in rows)
    return "\n".join([f"| {' | '.join(columns)} |", ruler, *lines, ""])


def differing() -> OutdatedPages:
    """Yield the page with its expected text if it is outdated."""
    return outdated_pages({PAGE: page()})


def main(arguments: list[str] | None = None) -> int:
    """Write or check the page; return the exit status."""
    return write_or_check(
        "Generate the tables of outcomes on GKE from the tests.", differing, ROOT, arguments
    )


if __name__ == "__main__":
    sys.exit(main())
