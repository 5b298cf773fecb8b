"""Fields of a queued resource that `extra` cannot set, although the target does not write them."""

from collections.abc import Mapping
from typing import Final

from tpucfg.targets.interface import Reserved

_API: Final = "https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources"
_NODE_API: Final = "https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes"
_STARTUP: Final = "https://cloud.google.com/compute/docs/instances/startup-scripts/linux"
_SHUTDOWN: Final = "https://cloud.google.com/compute/docs/shutdownscript"
_CONTAINERS: Final = "https://cloud.google.com/compute/docs/containers/deploying-containers"
_USER_DATA: Final = "https://cloudinit.readthedocs.io/en/latest/reference/datasources/gce.html"
_JAX: Final = "https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py"

_SPEC: Final = "tpu.nodeSpec.*"
_NODE: Final = f"{_SPEC}.node"
_CAPACITY: Final = Reserved("capacity", "get the machines in another way", _API)
_PROGRAM: Final = Reserved("trainer", "run a second program on every host, as root", _STARTUP)
_END: Final = Reserved("trainer", "run a program while the host shuts down", _SHUTDOWN)
_POSITION: Final = Reserved("sizes", "give a host another place in the slice than the service does", _JAX)

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
    f"{_NODE}.metadata.startup-script-url": _PROGRAM,
    **{f"{_NODE}.metadata.{key}": _END for key in ("shutdown-script", "shutdown-script-url")},
    f"{_NODE}.metadata.user-data": _PROGRAM._replace(source=_USER_DATA),
    f"{_NODE}.metadata.gce-container-declaration": _PROGRAM._replace(source=_CONTAINERS),
    **{
        f"{_NODE}.metadata.{key}": _POSITION
        for key in ("accelerator-type", "agent-*", "tpu-env", "worker-network-endpoints")
    },
}
"""See `Target.RESERVED`."""
