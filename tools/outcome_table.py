"""Generate the table of docs/targets/tested.md from the outcomes that the tests of clusters compare.

python tools/outcome_table.py            writes the page if it differs
python tools/outcome_table.py --check    writes nothing; exits 1 and prints its name
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from generated_pages import OutdatedPages, outdated_pages, write_or_check

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "targets" / "tested.md"
TABLE: Final = ROOT / "tests" / "cluster" / "outcomes.yaml"
START: Final = "<!-- outcomes -->\n\n"
END: Final = "<!-- /outcomes -->\n"
_COLUMNS: Final = ("job", "fault", "at first", "placed", "restarts", "ends", "left")


def page() -> str:
    """Return the page with its table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    head = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS)).replace(" ", "")]
    return "\n".join([before + START.rstrip("\n"), "", *head, *(_line(_cells(row)) for row in rows), END + after])


def _cells(row: Mapping[str, Any]) -> Iterator[str]:
    seen = row["seen"]
    yield ", ".join(_job(row))
    yield row["fault"]
    meanwhile = seen.get("meanwhile")
    yield seen["first"] + (f"; then {meanwhile}" if meanwhile else "")
    again = seen.get("placed again")
    yield _places(seen.get("placed", ())) + (f"; then {_places(again)}" if again else "")
    counted = f", {seen['counted']} counted" if seen["restarts"] else ""
    yield f"{seen['restarts']}{counted}"
    last = seen.get("last attempt")
    yield seen["end"] + (f"; the last attempt had {last}" if last else "")
    yield seen["left"]


def _job(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the size and the settings of a job."""
    yield row["size"]
    settings = {key: row[key] for key in ("capacity",) if key in row}
    if "queue" in row:
        settings |= {"queue": "tpu"} | ({"topology_aware": True} if row["queue"] != "any" else {})
    for name, value in {**settings, **row.get("overrides", {}), **row.get("gke", {}), **row.get("trainer", {})}.items():
        if name != "node_service_account":
            yield f"`{name}: {_value(value)}`"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(inner)}" for key, inner in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _places(places: Any) -> str:
    counts = {place: list(places).count(place) for place in places}
    return ", ".join(place if count == 1 else f"{count} × {place}" for place, count in counts.items()) or "nowhere"


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def differing() -> OutdatedPages:
    """Yield the page with its expected text if it is outdated."""
    return outdated_pages({PAGE: page()})


def main(arguments: list[str] | None = None) -> int:
    """Write or check the page; return the exit status."""
    return write_or_check("Generate the table of outcomes on GKE from the tests.", differing, ROOT, arguments)


if __name__ == "__main__":
    sys.exit(main())
