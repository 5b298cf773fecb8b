"""Metadata of a host that `extra` cannot set: it would start a second program, or move the host in its slice."""

from collections.abc import Iterator
from typing import Final

from tpucfg.targets.interface import Reserved

_STARTUP: Final = "https://cloud.google.com/compute/docs/instances/startup-scripts/linux"
_SHUTDOWN: Final = "https://cloud.google.com/compute/docs/shutdownscript"
_CONTAINERS: Final = "https://cloud.google.com/compute/docs/containers/deploying-containers"
_USER_DATA: Final = "https://cloudinit.readthedocs.io/en/latest/reference/datasources/gce.html"
_JAX: Final = "https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py"

_PROGRAM: Final = Reserved("trainer", "run a second program on every host, as root", _STARTUP)
_END: Final = Reserved("trainer", "run a program while the host shuts down", _SHUTDOWN)
_POSITION: Final = Reserved("sizes", "give a host another place in the slice than the service does", _JAX)
_METADATA: Final = {
    "startup-script-url": _PROGRAM,
    **dict.fromkeys(("shutdown-script", "shutdown-script-url"), _END),
    "user-data": _PROGRAM._replace(source=_USER_DATA),
    "gce-container-declaration": _PROGRAM._replace(source=_CONTAINERS),
    **dict.fromkeys(("accelerator-type", "agent-*", "tpu-env", "worker-network-endpoints"), _POSITION),
}


def metadata_rows(prefix: str) -> Iterator[tuple[str, Reserved]]:
    """Yield the reserved keys of metadata, each with the path of the metadata before it."""
    yield from ((f"{prefix}.{key}", row) for key, row in _METADATA.items())
