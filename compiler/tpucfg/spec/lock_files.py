"""Find the versions of JAX that the lock files beside a spec name."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.fs import is_file, open_regular_file, sorted_glob

_FOLDERS: Final = (".", "trainer")
"""The folders beside the spec in which a trainer has its lock file: that of `tpucfg init` is in `trainer`."""
_PATTERNS: Final = ("requirements*.txt", "*.lock", "pylock.toml", "pylock.*.toml")
"""The last two are those of https://peps.python.org/pep-0751/#file-name."""
_MAX_BYTES: Final = 1 << 23
"""More than the longest lock file."""
_PIN: Final = re.compile(
    r"""^(?:[ \t]{0,9}jax[ \t]{0,9}(?:\[[^]\n]*\])?[ \t]{0,9}\(?[ \t]{0,9}={2,3}[ \t]{0,9}
        |name[ \t]{0,9}=[ \t]{0,9}(["'])jax\1[ \t]{0,9}\r?\nversion[ \t]{0,9}=[ \t]{0,9}["'])
        (?P<version>v?(?P<major>[0-9]{1,4})\.(?P<minor>[0-9]{1,4})(?:\.(?P<patch>[0-9]{1,4}))?[^\s"',;)\\]*)""",
    re.ASCII | re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""A line of requirements, or two of a lock file of uv, poetry or pip, with any line ends.

Requirements: https://packaging.python.org/en/latest/specifications/dependency-specifiers/ (names in any case, spaces
around extras and operators) and https://packaging.python.org/en/latest/specifications/version-specifiers/ (`===`).
"""


class JaxPin(NamedTuple):
    """A version of JAX in a file."""

    file: str
    """The file's path below the folder of the spec."""
    line: int
    version: str
    release: tuple[int, int, int]


def jax_pins(folder: Path) -> Iterator[JaxPin]:
    """Yield the versions of JAX in the lock files of a spec's folder; a file that cannot be read has none."""
    for name in _FOLDERS:
        for pattern in _PATTERNS:
            for path in sorted_glob(folder / name, pattern):
                yield from _pins_in(path, path.relative_to(folder).as_posix())


def _pins_in(path: Path, name: str) -> Iterator[JaxPin]:
    if not is_file(path):
        return
    try:
        with open_regular_file(path) as file:
            text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    for match in _PIN.finditer(text):
        release = int(match["major"]), int(match["minor"]), int(match["patch"] or 0)
        yield JaxPin(name, text.count("\n", 0, match.start()) + 1, match["version"], release)
