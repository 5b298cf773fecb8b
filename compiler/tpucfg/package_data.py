"""Where schema/, templates/ and docs/findings/ are: inside the package when installed, at the root in a checkout."""

from functools import cache
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parent.parent


@cache
def data_folder(name: str) -> Path:
    """A folder that the wheel carries inside the package, as `schema`, `docs/findings` or `stacks`."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _CHECKOUT / name
