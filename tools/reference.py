"""Generate docs/reference: the spec's keys from its schema, and the commands from their help.

No part of these pages is written by hand. `finding_pages.py` generates the index of the findings.

    python tools/reference.py            writes the pages that differ
    python tools/reference.py --check    writes nothing; exits 1 and prints their names
"""

import json
import sys
from pathlib import Path
from typing import Final

from generated_pages import OutdatedPages, outdated_pages, write_or_check

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "compiler")]

from refpages import commands, spec  # noqa: E402 - the script runs in a checkout that is not installed

PAGES: Final = ROOT / "docs" / "reference"


def pages() -> dict[Path, str]:
    """Return each page with its expected text."""
    schema = json.loads((ROOT / "schema" / "tpucfg.schema.json").read_text(encoding="utf-8"))
    return {PAGES / "spec.md": spec.page(schema), PAGES / "commands.md": commands.page()}


def differing() -> OutdatedPages:
    """Yield the outdated pages with their expected text."""
    return outdated_pages(pages())


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pages; return the exit status."""
    return write_or_check(
        "Generate docs/reference from the schema and the commands.", differing, ROOT, arguments
    )


if __name__ == "__main__":
    sys.exit(main())
