"""Fields of a queued resource that `extra` cannot set, although the target does not write them."""

from collections.abc import Mapping
from typing import Final

from tpucfg.targets.hosts.metadata import reserved_metadata
from tpucfg.targets.interface import Reserved

_API: Final = "https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources"
_NODE_API: Final = "https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes"

_SPEC: Final = "tpu.nodeSpec.*"
_NODE: Final = f"{_SPEC}.node"
_CAPACITY: Final = Reserved("capacity", "get the machines in another way", _API)

RESERVED: Final[Mapping[str, Reserved]] = {
    # Machines and capacity.
    _SPEC: Reserved("sizes", "request a further slice", _API, adds_machines=True),
    f"{_SPEC}.multisliceParams.**": Reserved("sizes", "change the number of slices", _API, adds_machines=True),
    f"{_NODE}.acceleratorConfig.**": Reserved("sizes", "name the slice a second time, by its topology", _NODE_API),
    "guaranteed.**": _CAPACITY,
    f"{_NODE}.schedulingConfig.**": _CAPACITY._replace(source=_NODE_API),
    f"{_NODE}.networkConfigs.**": Reserved(
        "targets.cloud-tpu.network", "replace networkConfig, which it excludes", _NODE_API
    ),
    # The program.
    **dict(reserved_metadata(f"{_NODE}.metadata")),
}
"""See `Target.RESERVED`."""
