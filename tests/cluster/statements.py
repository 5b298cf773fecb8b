"""The sentences of a page about GKE, and what backs each: cases, another test, or a source that is not tested here."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SECTIONS: Final = (
    "Capacity",
    "Machines and topologies",
    "Several slices",
    "Queues that place slices",
    "Restarts and the end",
    "Submission",
)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_END: Final = re.compile(r"(?<=[.;])\s+(?=[A-Z0-9`])")
_NUMBER: Final = re.compile(r"^\d+\. ", re.MULTILINE)


def sentences(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each sentence of the sections with the section's title; a row of a table is one, a code block none."""
    for part in page.read_text().split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        if title in SECTIONS:
            text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
            for block in re.split(r"\n\s*\n", text):
                lines = block.strip().splitlines()
                rows = [line for line in lines if line.startswith("|")][2:]
                prose = " ".join(
                    _NUMBER.sub("", line.strip()) for line in lines if not line.startswith("|")
                )
                plain = _LINK.sub(r"\1", prose)
                yield from (
                    (title, each.strip()) for each in (*rows, *_END.split(plain)) if each.strip()
                )
