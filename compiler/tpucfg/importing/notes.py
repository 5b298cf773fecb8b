"""What an import did not carry over."""

from typing import NamedTuple

from tpucfg.paths import KeyPath


class Note(NamedTuple):
    """A field that the spec does not have, or that its config has otherwise."""

    path: KeyPath
    """The path in the file; empty if it is about the whole file."""
    reason: str
    """The consequence, and the edit if there is one."""
    differs: bool = True
    """False if the config is still equal to the file as far as `tpucfg import` promises."""

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.reason}" if self.path else self.reason
