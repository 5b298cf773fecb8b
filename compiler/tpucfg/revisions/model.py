"""A side of a comparison."""

from pathlib import Path
from typing import Final, NamedTuple

WORKING_TREE: Final = "the working tree"


class Commit(NamedTuple):
    """The commit that a side is."""

    id: str
    """In full: how short an id may be depends on the clone."""
    is_parting: bool = False
    """Whether it is not what was asked for, but where the other side left that."""
    merges: str = ""
    """The commit that it merges into the other side, as a service does to try a merge; empty for any other commit."""


class Side(NamedTuple):
    """A spec with what lies beside it, as it was or is somewhere."""

    title: str
    """The revision as the user gave it, or `the working tree`."""
    spec: Path
    """Where the spec can be read now."""
    shown: str
    """The spec's path as its user knows it, for findings."""
    exists: bool
    """Whether this side has a spec at all: before the first commit there is none."""
    copied_to: Path | None = None
    """The temporary folder that a revision was copied to; None for the working tree."""
    left_out: int = 0
    """Files of the revision that were too many or too large to be copied."""
    inside: str = ""
    """The path in the repository that is asked for, on either side; it is the same from wherever somebody asks."""
    commit: Commit | None = None
    """What was read; None for the working tree, and before the first commit."""

    def said(self, text: str) -> str:
        """A text about this side without the temporary folder's name in it."""
        return (
            text if self.copied_to is None else text.replace(f"{self.copied_to}/", "").replace(str(self.copied_to), ".")
        )


class RevisionError(Exception):
    """A revision cannot be read; the message is for people."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help
