"""The sections of docs/findings, one for each rule, as text that stands alone."""

import re
from functools import cache
from typing import Final

from tpucfg.named_tuple import NamedTuple
from tpucfg.package_data import data_folder

_FOLDER: Final = "docs/findings"
# Compiled on first use: few commands read the pages.
_SECTION: Final = r"^## (TPU[0-9]{3}): (.+) <a id=.*\n((?:(?!## ).*\n)*)"
_MARK: Final = r"^<!-- .*\n"
_LOCAL_LINK: Final = r"\[([^\]]*)\](?:\((?!https?:)[^)]*\))"


class Section(NamedTuple):
    """A rule's part of a page."""

    address: str
    """The page and the section's anchor, relative to the repository: `docs/findings/figures.md#tpu040`."""
    text: str
    """Markdown, in which a link to another page is its text."""


@cache
def sections() -> dict[str, Section]:
    """Return the sections of all rules, by id."""
    return {
        id_: Section(f"{_FOLDER}/{path.name}#{id_.lower()}", _standalone(f"# {id_}: {title}\n{body}"))
        for path in data_folder(_FOLDER).glob("*.md")
        for id_, title, body in re.findall(_SECTION, path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def _standalone(text: str) -> str:
    """Return the text without the marks of the script that fills in examples, and without links to other pages."""
    return re.sub(_LOCAL_LINK, r"\1", re.sub(_MARK, "", text, flags=re.MULTILINE)).rstrip() + "\n"
