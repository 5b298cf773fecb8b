"""The data that the package reads: the folders schema/, templates/, stacks/ and docs/findings/, and files in YAML.

A wheel contains the folders inside the package; in a checkout they are at its root.
"""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parent.parent


@cache
def data_folder(name: str) -> Path:
    """Return the path of a data folder: `schema`, `docs/findings` or `stacks`, for example."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _CHECKOUT / name


@cache
def read_data(path: Path) -> dict[str, Any]:
    """Read a data file, only once per process, because the data does not change while a command runs."""
    data: dict[str, Any]
    # A wheel contains the data as JSON, which is parsed many times faster than YAML.
    with suppress(FileNotFoundError):
        data = json.loads(path.with_suffix(".json").read_bytes())
        return data
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506  a safe loader, in C where there is one
    return data
