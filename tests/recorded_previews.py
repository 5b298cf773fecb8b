"""Recorded previews of the Pulumi engine, described in `tests/review/previews/README.md`."""

from pathlib import Path
from typing import Final

from tpucfg.changes.previews import Preview, read_preview

FOLDER: Final = Path(__file__).parent / "review" / "previews"
FORMS: Final = ("json", "jsonl")


def text(name: str, form: str = "jsonl") -> str:
    """Return a scenario's preview as it was printed."""
    return (FOLDER / f"{name}.{form}").read_text(encoding="utf-8")


def read(name: str, form: str = "jsonl") -> Preview:
    """Return a scenario's preview as the reader parses it."""
    return read_text(text(name, form), f"dev.{form}")


def read_text(text: str, file: str = "dev.jsonl") -> Preview:
    """Return a text parsed as the preview of dev."""
    return read_preview("dev", file, text.encode(errors="surrogatepass"))
