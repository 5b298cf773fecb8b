"""The README for package registries, where relative links and images would be broken.

If `[project.urls]` in pyproject.toml names a `Repository`, they become links to that repository at the version's tag.
Otherwise a link becomes its text, and an image is removed. The build runs this module as a metadata hook.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

README: Final = "README.md"
_FENCED: Final = re.compile(r"^(```.*?^```$)", re.DOTALL | re.MULTILINE)
_COMMENT: Final = re.compile(r"^<!-- .*? -->\n", re.MULTILINE)
_LINK: Final = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?![a-z]+:)(?P<target>[^)\s]+)\)")


def without_relative_links(text: str, repository: str | None = None, version: str = "") -> str:
    """Return the text without links relative to the repository; fenced blocks are unchanged."""
    return re.sub(r"\n{3,}", "\n\n", "".join(_parts(text, repository, version)))


def _parts(text: str, repository: str | None, version: str) -> Iterator[str]:
    def replacement(match: re.Match[str]) -> str:
        if repository is None:
            return "" if match["mark"] else match["text"]
        kind = "raw" if match["mark"] else "blob"
        return f"{match['mark']}[{match['text']}]({repository.rstrip('/')}/{kind}/v{version}/{match['target']})"

    for number, part in enumerate(_FENCED.split(text)):
        yield part if number % 2 else _LINK.sub(replacement, _COMMENT.sub("", part))


class RegistryReadme(MetadataHookInterface):
    """Sets the package's description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README in the package's metadata."""
        text = (Path(self.root) / README).read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": without_relative_links(text, repository, metadata.get("version", "")),
        }
