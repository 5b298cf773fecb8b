"""Golden files: tests compare what they see with them, and write them under `pytest --write-goldens`."""

from pathlib import Path
from typing import NamedTuple


class Goldens(NamedTuple):
    """Golden files, which are written instead of compared where the option is given."""

    are_written: bool

    def text(self, path: Path, seen: str) -> str:
        """Return the text of a golden file, after writing what the test saw into it; a missing one is empty."""
        if self.are_written:
            path.parent.mkdir(exist_ok=True)
            path.write_text(seen, encoding="utf-8")
        return path.read_text(encoding="utf-8") if path.exists() else ""
