"""The metadata of a host, of which the start-up script is one value: its limits.

Source of the limits: https://cloud.google.com/compute/docs/reference/rest/v1/instances (metadata).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.yamldoc.document import KeyPath

_MAX_VALUE: Final = 256 * 1024
"""Bytes of one metadata value."""
_MAX_ALL: Final = 512 * 1024
"""Bytes of all keys and values together."""


def metadata_problems(path: KeyPath, metadata: Mapping[KeyPath, tuple[str, str]]) -> Iterator[Problem]:
    """Yield a problem for each value that is too long, and one for too much metadata.

    Args:
        path: The path of the metadata in the request body.
        metadata: The key and the value by the path of the value.
    """
    # surrogatepass, because strict UTF-8 raises an error for a lone surrogate, and only the size matters here.
    sizes = {place: len(value.encode("utf-8", "surrogatepass")) for place, (_, value) in metadata.items()}
    for place, size in sizes.items():
        if size > _MAX_VALUE:
            message = f"it has {size:,} bytes, and {_MAX_VALUE:,} are allowed for a metadata value"
            yield service_problem(place, message, "move the flags to a file in the bucket, and pass its path")
    if sum(sizes.values()) + sum(len(key) for key, _ in metadata.values()) >= _MAX_ALL:
        message = f"all metadata together must be below {_MAX_ALL:,} bytes"
        yield service_problem(path, message, "move long values to a file in the bucket, and pass its path")
