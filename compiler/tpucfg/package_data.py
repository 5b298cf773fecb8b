"""The data folders that the package reads: schema/, templates/, stacks/ and docs/findings/.

A wheel contains them inside the package; in a checkout they are at its root.
"""

from functools import cache
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parent.parent


@cache
def data_folder(name: str) -> Path:
    """Return the path of a data folder: `schema`, `docs/findings` or `stacks`, for example."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _CHECKOUT / name
