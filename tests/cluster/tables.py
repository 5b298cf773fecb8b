"""Write tables of what was seen: a row of YAML has what was done on one line, and what was seen on the next."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml


def written(path: Path, rows: Iterable[Mapping[str, Any]], seen: str) -> str:
    """Return the text of a table with rows; the comment at the start of the file stays."""
    head = [line for line in path.read_text().splitlines() if line.startswith("#")]
    return "\n".join([*head, *(_row(row, seen) for row in rows), ""])


def _row(row: Mapping[str, Any], seen: str) -> str:
    done = _flow({key: value for key, value in row.items() if key != seen})
    return f"- {done.removesuffix('}')},\n   {seen}: {_flow(row[seen])}}}"


def _flow(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
    return text.strip()
